//! Converts entries to a target file for Prometheus.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{RegistryEntry, as_go_writes};

const SCRAPE: &str = "prometheus.io/scrape";
const PROMETHEUS: &str = "prometheus";

#[derive(Serialize)]
struct Group<'e> {
    labels: BTreeMap<&'e str, &'e str>,
    targets: Vec<String>,
}

/// The content of a file for Prometheus' `file_sd_configs`.
///
/// Entries of one cluster, service and protocol form a group, whose labels come
/// from its first entry. Entries without a port are left out, as are those that
/// are neither of Prometheus itself nor annotated with
/// `prometheus.io/scrape: "true"`.
pub fn prometheus_file_sd(entries: &[RegistryEntry]) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut known = BTreeMap::new();
    for entry in entries.iter().filter(|entry| is_target(entry)) {
        let Some(port) = entry.port else { continue };
        let key = (&entry.cluster, &entry.service, &entry.protocol);
        let index = *known.entry(key).or_insert_with(|| {
            groups.push(Group { labels: labels(entry), targets: Vec::new() });
            groups.len() - 1
        });
        let address = &entry.address;
        groups[index].targets.push(if address.contains(':') {
            format!("[{address}]:{port}")
        } else {
            format!("{address}:{port}")
        });
    }
    // Texts always have a notation in JSON.
    as_go_writes(&serde_json::to_string_pretty(&groups).unwrap_or_default())
}

fn is_target(entry: &RegistryEntry) -> bool {
    let is_prometheus = entry.service == PROMETHEUS || entry.protocol == PROMETHEUS;
    match entry.annotations.get(SCRAPE) {
        Some(scrape) => scrape == "true",
        None => is_prometheus,
    }
}

fn labels(entry: &RegistryEntry) -> BTreeMap<&str, &str> {
    let mut labels = BTreeMap::from([
        ("cluster", entry.cluster.as_str()),
        ("service", entry.service.as_str()),
        ("protocol", entry.protocol.as_str()),
    ]);
    let annotations = entry.annotations.iter();
    let usable = annotations.filter(|(key, value)| is_label(key) && !value.is_empty());
    labels.extend(usable.map(|(key, value)| (key.as_str(), value.as_str())));
    labels
}

/// Whether Prometheus takes this name; names with `__` are its own.
fn is_label(name: &str) -> bool {
    let is_rest = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(is_rest)
        && !name.starts_with("__")
}
