//! Functions that use the network: `kvGet` and `registrations`, with the
//! methods of their results.

use std::collections::BTreeMap;

use ccm_model::{RegistryEntry, RegistryQuery, prometheus_file_sd};
use expr::FunctionError;
use govalue::{Map, MapShape, Value};

use crate::functions::string;
use crate::resolver::Call;

/// The method of a list of registrations.
pub(crate) const FILE_SD: &str = "PrometheusFileSD";

/// The members of an entry that it may lack.
const OPTIONAL: &[&str] = &["annotations", "ttl"];

/// `kvGet(bucket, key)`
pub(crate) fn kv_get(call: &Call, args: &[Value]) -> Result<Value, FunctionError> {
    let [bucket, key] = args else { return Err("takes a bucket and a key".into()) };
    let (bucket, key) = (string(bucket, "the bucket")?, string(key, "the key")?);
    call.resolver.host().kv_get(bucket, key).map(Value::from).map_err(|error| failure(&error))
}

/// `registrations(cluster, protocol, service, address)`
pub(crate) fn registrations(call: &Call, args: &[Value]) -> Result<Value, FunctionError> {
    let [cluster, protocol, service, address] = args else {
        return Err("takes cluster, protocol, service and address".into());
    };
    let query = RegistryQuery::new(
        string(cluster, "the cluster")?,
        string(protocol, "the protocol")?,
        string(service, "the service")?,
        string(address, "the address")?,
    )?;
    let entries = call.resolver.host().registrations(&query).map_err(|error| failure(&error))?;
    Ok(Value::array(entries.into_iter().map(value)))
}

/// `list.PrometheusFileSD()`
pub(crate) fn file_sd(args: &[Value]) -> Result<Value, FunctionError> {
    let [list] = args else { return Err(format!("{FILE_SD} takes no arguments").into()) };
    let items = list.as_array().unwrap_or_default();
    let entries: Option<Vec<RegistryEntry>> = items.iter().map(entry).collect();
    match entries {
        Some(entries) => Ok(prometheus_file_sd(&entries).into()),
        None => Err(format!("{FILE_SD} is for what `registrations` returns").into()),
    }
}

/// Members of expressions have no place for a hint of their own.
fn failure(error: &ccm_host::Error) -> FunctionError {
    match error.hint() {
        Some(hint) => format!("{error} ({hint})").into(),
        None => error.to_string().into(),
    }
}

/// An entry as templates see it.
fn value(entry: RegistryEntry) -> Value {
    let RegistryEntry { cluster, service, protocol, address, port, priority, annotations, ttl } =
        entry;
    let mut map = Map::new();
    map.insert("cluster", cluster);
    map.insert("service", service);
    map.insert("protocol", protocol);
    map.insert("address", address);
    map.insert("port", port);
    map.insert("priority", priority);
    if !annotations.is_empty() {
        let mut texts = Map::with_shape(MapShape::Strings);
        for (name, text) in annotations {
            texts.insert(name, text);
        }
        map.insert("annotations", texts);
    }
    if let Some(ttl) = ttl {
        map.insert("ttl", ttl.to_string());
    }
    map.into_struct(OPTIONAL).into()
}

/// The same back again. Only what a file for Prometheus needs is looked at.
fn entry(value: &Value) -> Option<RegistryEntry> {
    let map = value.as_map()?;
    let text = |name: &str| Some(map.get(name)?.as_str()?.to_owned());
    let mut annotations = BTreeMap::new();
    for (name, text) in
        map.get("annotations").and_then(Value::as_map).iter().flat_map(|map| map.iter())
    {
        annotations.insert(name.as_str()?.to_owned(), text.as_str()?.to_owned());
    }
    Some(RegistryEntry {
        cluster: text("cluster")?,
        service: text("service")?,
        protocol: text("protocol")?,
        address: text("address")?,
        port: map.get("port").and_then(Value::as_int),
        priority: map.get("priority").and_then(Value::as_int).unwrap_or_default(),
        annotations,
        ttl: None,
    })
}
