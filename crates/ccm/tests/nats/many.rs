//! Many entries. `CCM_NATS_ENTRIES=100000` makes it as many as one look-up may
//! return.

use std::time::Instant;

use ccm_model::RegistryEntry;
use ccm_testkit::nats::{Wire, lacks_nats};
use serde_json::Value;

use crate::bed::Bed;

fn count() -> usize {
    std::env::var("CCM_NATS_ENTRIES").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000)
}

/// Fills the stream with entries of services with 1,000 instances each.
fn fill(wire: &mut Wire, count: usize) {
    for number in 0..count {
        let (service, at) = (number / 1_000, number % 1_000);
        let address = format!("10.{}.{}.{}", service % 250, at / 250, at % 250);
        let entry = RegistryEntry {
            cluster: "c".to_owned(),
            service: format!("s{service}"),
            protocol: "http".to_owned(),
            address,
            port: Some(80),
            priority: 1,
            annotations: [("version".to_owned(), "1.2.3".to_owned())].into(),
            ttl: None,
        };
        wire.publish(&entry.subject(), &[], entry.payload().as_bytes());
        if number % 500 == 499 {
            wire.flush();
        }
    }
    wire.flush();
}

#[test]
fn all_entries_are_found_in_one_run() {
    if lacks_nats() {
        return;
    }
    let bed = Bed::new();
    bed.ok(["registration", "init"]);
    let mut wire = bed.wire();
    let count = count();
    fill(&mut wire, count);
    // Nothing is published with an acknowledgement: wait until all are stored.
    ccm_testkit::wait_until("all entries", || {
        let info: Value = serde_json::from_str(&wire.api("STREAM.INFO.REGISTRATION", "")).unwrap();
        (info["state"]["messages"].as_u64() == Some(count as u64)).then_some(())
    });
    let began = Instant::now();
    let found: Value = serde_json::from_str(&bed.ok(["registration", "query", "--json"])).unwrap();
    let took = began.elapsed();
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), count);
    assert!(found.is_sorted_by_key(|entry| {
        (
            entry["address"].as_str().unwrap().to_owned(),
            entry["service"].as_str().unwrap().to_owned(),
        )
    }));
    eprintln!("query of {count} entries: {took:?}");
    let one: Value =
        serde_json::from_str(&bed.ok(["registration", "query", "--json", "c", "http", "s1"]))
            .unwrap();
    assert_eq!(one.as_array().unwrap().len(), 1_000);
    let ran = bed.apply(
        "ccm: {resources: [exec: [{\"echo {{ len(registrations('c', 'http', 's1', '*')) }}\": {logoutput: true}}]]}",
        &[],
    );
    assert!(ran.out.contains("1000"), "{ran:?}");
}
