//! Formats entries as text, and changes as text or JSON.

use ccm_model::{RegistryChange, RegistryEntry};
use serde_json::json;

/// Entries, with a heading for each service of a cluster.
pub(super) fn entries(mut entries: Vec<RegistryEntry>) -> String {
    if entries.is_empty() {
        return "No results found\n".to_owned();
    }
    entries.sort_by(|a, b| order(a).cmp(&order(b)));
    let mut out = String::new();
    let mut heading = None;
    for entry in &entries {
        let this = (&entry.service, &entry.cluster);
        if heading != Some(this) {
            if heading.is_some() {
                out.push('\n');
            }
            out.push_str(&format!(
                "Service: {} @ {}\n",
                printable(&entry.service),
                printable(&entry.cluster)
            ));
            heading = Some(this);
        }
        out.push('\n');
        out.push_str(&block(entry));
    }
    out
}

fn order(entry: &RegistryEntry) -> impl Ord + '_ {
    let RegistryEntry { cluster, protocol, service, address, port, .. } = entry;
    (cluster, protocol, service, address, *port)
}

fn block(entry: &RegistryEntry) -> String {
    let port = entry.port.map_or_else(|| "-".to_owned(), |port| port.to_string());
    let mut lines = vec![
        ("Cluster", entry.cluster.clone()),
        ("Protocol", entry.protocol.clone()),
        ("Service", entry.service.clone()),
        ("Address", entry.address.clone()),
        ("Port", port),
        ("Priority", entry.priority.to_string()),
    ];
    lines.extend(entry.ttl.map(|ttl| ("TTL", ttl.to_string())));
    let mut out = String::new();
    for (name, value) in lines {
        out.push_str(&format!("{name:>14}: {}\n", printable(&value)));
    }
    if !entry.annotations.is_empty() {
        out.push_str(&format!("{:>14}:\n", "Annotations"));
        for (name, value) in &entry.annotations {
            out.push_str(&format!("{:16}{}: {}\n", "", printable(name), printable(value)));
        }
    }
    out
}

/// What others have stored must not move the cursor or change colors.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// A change as one line.
pub(super) fn change(change: &RegistryChange) -> String {
    match change {
        RegistryChange::Register(entry) => {
            let RegistryEntry { cluster, service, protocol, address, port, ttl, .. } = entry;
            let port = port.map_or_else(|| "-".to_owned(), |port| port.to_string());
            let ttl = ttl.map_or_else(|| "-".to_owned(), |ttl| ttl.to_string());
            printable(&format!(
                "INFO Updated entry cluster={cluster} service={service} protocol={protocol} \
                 address={address} port={port} ttl={ttl}"
            )) + "\n"
        }
        RegistryChange::Remove { subject, reason } => {
            printable(&format!(
                "WARN Removed entry cluster={} service={} protocol={} address={} reason={reason}",
                subject.cluster, subject.service, subject.protocol, subject.address
            )) + "\n"
        }
    }
}

/// A change as one line of JSON.
pub(super) fn change_json(change: &RegistryChange) -> String {
    let value = match change {
        RegistryChange::Register(entry) => json!({"action": "register", "entry": entry}),
        RegistryChange::Remove { subject, reason } => {
            json!({"action": "remove", "reason": reason, "entry": subject})
        }
    };
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(cluster: &str, service: &str, port: Option<i64>) -> RegistryEntry {
        let json = json!({
            "cluster": cluster, "service": service, "protocol": "http", "address": "10.0.0.5",
            "port": port, "priority": 10,
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn entries_are_sorted_below_one_heading_per_service() {
        let mut first = entry("production", "web", Some(8080));
        first.ttl = "10m".parse().ok();
        first.annotations.insert("version".into(), "1.2.3\u{1b}[31m".into());
        let shown = entries(vec![
            entry("test", "web", None),
            entry("production", "web", Some(9090)),
            first,
        ]);
        let wanted = "\
Service: web @ production

       Cluster: production
      Protocol: http
       Service: web
       Address: 10.0.0.5
          Port: 8080
      Priority: 10
           TTL: 10m0s
   Annotations:
                version: 1.2.3\u{fffd}[31m

       Cluster: production
      Protocol: http
       Service: web
       Address: 10.0.0.5
          Port: 9090
      Priority: 10

Service: web @ test

       Cluster: test
      Protocol: http
       Service: web
       Address: 10.0.0.5
          Port: -
      Priority: 10
";
        assert_eq!(shown, wanted);
        assert_eq!(entries(Vec::new()), "No results found\n");
    }
}
