//! Random manifests with and without groups end alike.
//!
//! `CCM_GROUPS` sets how many.

use std::fmt::Write as _;
use std::time::Duration;

use ccm_model::{Event, EventId};
use ccm_testkit::{Random, snapshot_of_content};
use serde_json::Value;

use super::{Bed, Ended};

const NAMES: [&str; 12] =
    ["a", "b", "c", "d", "e", "half1", "half2", "missing1", "missing2", "stubborn1", "f", "g"];

/// A manifest of parts with requirements, control, subscribers and checks.
fn manifest(random: &mut Random) -> String {
    let mut text = String::from("ccm:\n");
    let mut names: Vec<&str> = NAMES.to_vec();
    if random.below(4) == 0 {
        text.push_str("  fail_on_error: true\n");
        // Where a tool claims to have added what it has not, the members behind it are
        // there already when the run stops.
        names.retain(|name| !name.starts_with("stubborn"));
    }
    text.push_str("  resources:\n");
    let mut earlier: Vec<String> = Vec::new();
    for number in 0..=random.below(11) {
        let name = names.swap_remove(random.below(names.len()));
        let mut properties = vec!["at: \"[DIR]/parts\"".to_owned()];
        if random.below(4) == 0 {
            properties.push("ensure: absent".to_owned());
        }
        if !earlier.is_empty() && random.below(3) == 0 {
            let other = &earlier[random.below(earlier.len())];
            properties.push(format!("require: [\"{other}\"]"));
        }
        match random.below(8) {
            0 => properties.push("control: {if: \"1 > 2\"}".to_owned()),
            1 => properties.push("control: {unless: \"len(Data) > 5\"}".to_owned()),
            2 => {
                let command = "sh -c 'exit 2'";
                properties.push(format!("health_checks: [{{name: bad, command: \"{command}\"}}]"));
            }
            _ => {}
        }
        let _ = writeln!(text, "    - part: {{{name}: {{{}}}}}", properties.join(", "));
        // Of what a tool claims to have added, nobody knows before the next one is.
        if !name.starts_with("stubborn") {
            earlier.push(format!("part#{name}"));
        }
        if !earlier.is_empty() && random.below(5) == 0 {
            let of = &earlier[random.below(earlier.len())];
            let _ = writeln!(
                text,
                "    - exec: {{reload{number}: {{command: touch [DIR]/reacted{number}, \
                 refresh_only: true, subscribe: [\"{of}\"]}}}}"
            );
        }
    }
    text
}

/// What events say but for times, and but for groups.
fn said(ended: &Ended, bed: &Bed) -> Vec<Value> {
    let plain = |event: &Event| {
        let mut event = event.clone();
        event.event_id = EventId::default();
        (event.timestamp, event.duration, event.group) = Default::default();
        event.health_check.iter_mut().for_each(|check| check.duration = Duration::ZERO);
        let mut value = serde_json::to_value(&event).unwrap();
        for time in ["timestamp", "health_check"] {
            value["status"][time] = Value::Null;
        }
        let text = value.to_string().replace(bed.path("").to_str().unwrap(), "[DIR]");
        serde_json::from_str(&text).unwrap()
    };
    ended.events.iter().map(plain).collect()
}

#[test]
fn random_manifests_end_alike_with_and_without_groups() {
    let count = std::env::var("CCM_GROUPS").map_or(100, |count| count.parse().unwrap());
    let mut grouped = 0;
    for number in 0..count {
        let mut random = Random(0x5851_f42d_4c95_7f2d ^ (number + 1) << 17);
        for _ in 0..8 {
            random.below(2);
        }
        let text = manifest(&mut random);
        let present: Vec<&str> =
            NAMES.into_iter().filter(|_| random.below(3) == 0).filter(|n| n.len() == 1).collect();
        let beds = [Bed::new(&present), Bed::new(&present)];
        for noop in [true, false, false] {
            let [with, without] = [true, false].map(|groups| {
                let bed = &beds[usize::from(!groups)];
                let ended = bed.apply(&text, |options| {
                    (options.groups, options.mode.noop) = (groups, noop);
                });
                grouped += ended.events.iter().filter(|event| event.group.is_some()).count();
                let owed = ccm_state::list(&bed.options().state.directory.unwrap()).unwrap().owed;
                let owed: Vec<String> = owed
                    .into_iter()
                    .map(|(_, it)| format!("{}<{}", it.subscriber, it.by))
                    .collect();
                let tree = snapshot_of_content(&bed.path("parts"));
                (said(&ended, bed), ended.stop, tree, owed)
            });
            let differs = with.0.iter().zip(&without.0).find(|(one, other)| one != other);
            assert_eq!(differs, None, "{number} noop {noop}:\n{text}");
            assert_eq!(with.0.len(), without.0.len(), "{number} noop {noop}:\n{text}");
            let (with, without) = ((with.1, with.2, with.3), (without.1, without.2, without.3));
            assert_eq!(with, without, "{number} noop {noop}:\n{text}");
        }
        let [undone, single] = beds.map(|bed| {
            let state = bed.options().state.directory.unwrap();
            if !ccm_state::history::list(&state).unwrap().is_empty() {
                bed.undo();
            }
            bed.parts()
        });
        assert_eq!(undone, single, "{number}:\n{text}");
    }
    assert!(grouped > count as usize, "{grouped} members");
}
