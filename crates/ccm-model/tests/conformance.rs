//! Shell quoting, durations and registrations against the reference's results.

use ccm_model::{
    RegistryChange, RegistryEntry, RegistryQuery, RegistrySubject, Ttl, TtlError, duration,
    entries_of, prometheus_file_sd, shellquote,
};
use serde_json::{Value, json};
use vectors::Vectors;

fn compare(case: &Value, got: Result<Value, String>) -> Result<(), String> {
    match (case["want_error"].as_bool().unwrap_or(false), got) {
        (true, Err(_)) => Ok(()),
        (false, Ok(got)) if got == case["want"] => Ok(()),
        (_, Ok(got)) => Err(got.to_string()),
        (_, Err(error)) => Err(format!("error: {error}")),
    }
}

#[test]
fn conformance_shellquote() {
    Vectors::new("shellquote.jsonl", env!("CARGO_MANIFEST_DIR")).run(|case| {
        let input = &case["input"];
        let got = if case["op"] == "shelljoin" {
            let words = input.as_array().into_iter().flatten().filter_map(Value::as_str);
            Ok(json!(shellquote::join(words)))
        } else {
            let text = input.as_str().unwrap_or_default();
            shellquote::split(text).map(|words| json!(words)).map_err(|error| error.to_string())
        };
        compare(case, got)
    });
}

#[test]
fn conformance_duration() {
    Vectors::new("duration.jsonl", env!("CARGO_MANIFEST_DIR")).run(|case| {
        let text = case["input"].as_str().unwrap_or_default();
        let got = duration::parse(text).map(|ns| json!(ns)).map_err(|error| error.to_string());
        compare(case, got)
    });
}

/// The operations of `registration.jsonl` that need neither templates nor a
/// server.
#[test]
fn conformance_registration() {
    let here = |case: &Value| {
        ["subject", "filter", "parse_subject", "ttl", "ttl_json", "filesd", "lookup", "watch"]
            .contains(&case["op"].as_str().unwrap_or_default())
    };
    Vectors::new("registration.jsonl", env!("CARGO_MANIFEST_DIR")).only(here).run(|case| {
        let input = &case["input"];
        let got = match case["op"].as_str().unwrap_or_default() {
            "subject" => subject(input),
            "filter" => {
                let field = |name: &str| input[name].as_str().unwrap_or_default();
                let (cluster, protocol) = (field("cluster"), field("protocol"));
                RegistryQuery::new(cluster, protocol, field("service"), field("address"))
                    .map(|query| json!(query.filter_subject()))
            }
            "parse_subject" => Ok(RegistrySubject::parse(text(input))
                .map_or_else(|| json!({"none": true}), |subject| json!(subject))),
            "ttl" => text(input).parse().map(ttl).map_err(|error: TtlError| error.to_string()),
            "ttl_json" => {
                serde_json::from_str(text(input)).map(ttl).map_err(|error| error.to_string())
            }
            "filesd" => {
                let entries: Result<Vec<RegistryEntry>, _> = serde_json::from_value(input.clone());
                entries
                    .map(|entries| json!(prometheus_file_sd(&entries)))
                    .map_err(|error| error.to_string())
            }
            "lookup" => Ok(lookup(input)),
            _ => watch(input),
        };
        compare(case, got)
    });
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn subject(input: &Value) -> Result<Value, String> {
    let entry: RegistryEntry =
        serde_json::from_value(input.clone()).map_err(|error| error.to_string())?;
    Ok(json!({"instance": entry.instance(), "subject": entry.subject()}))
}

fn ttl(ttl: Ttl) -> Value {
    let ns = ttl.duration().unwrap_or_default().as_nanos() as u64;
    let json = serde_json::to_string(&ttl).unwrap_or_default();
    json!({"json": json, "never": ttl == Ttl::Never, "ns": ns, "text": ttl.to_string()})
}

fn lookup(input: &Value) -> Value {
    let messages = input.as_array().into_iter().flatten();
    // The cases name no subjects: each entry is on its own.
    let messages: Vec<(String, &Value)> = messages
        .map(|message| {
            let entry = serde_json::from_str::<RegistryEntry>(text(&message["data"]));
            (entry.map(|entry| entry.subject()).unwrap_or_default(), message)
        })
        .collect();
    let (entries, _) = entries_of(messages.iter().map(|(subject, message)| {
        (subject.as_str(), message["marker"].as_str(), text(&message["data"]).as_bytes())
    }));
    json!(entries.iter().map(RegistryEntry::payload).collect::<Vec<_>>())
}

fn watch(input: &Value) -> Result<Value, String> {
    let payload = text(&input["data"]).as_bytes();
    let change = RegistryChange::read(text(&input["subject"]), input["marker"].as_str(), payload);
    match change.map_err(|error| error.to_string())? {
        RegistryChange::Register(entry) => {
            Ok(json!({"action": "register", "entry": entry.payload()}))
        }
        RegistryChange::Remove { subject, reason } => {
            let mut value = json!(subject);
            value["action"] = json!("remove");
            value["reason"] = json!(reason);
            Ok(value)
        }
    }
}
