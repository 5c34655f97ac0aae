//! The decision about each resource, recorded for a saved plan and compared
//! when the plan is applied.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use ccm_host::{AccountKind, Digest, Host};
use ccm_model::{Event, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Result};

/// Stands in a recorded state for what a preview cannot know. Any value matches
/// it when the plan is applied.
pub const ONLY_IN_THE_RUN: &str = "known only in the run";

/// How a run uses its decisions.
#[derive(Clone, Debug, Default)]
pub enum DecisionPolicy {
    /// Acts on them.
    #[default]
    Free,
    /// Records them.
    Record(Arc<Mutex<DecisionLog>>),
    /// Acts only on those that were planned.
    Planned(Arc<DecisionLog>),
}

/// Decisions by resource. A key is the chain of manifests and the resource.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DecisionLog(BTreeMap<String, RecordedDecision>);

/// The decision about one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedDecision {
    /// The resource, as `type#name`.
    pub resource: String,
    /// Outcome of the resource.
    pub outcome: Outcome,
    /// The state that was observed or predicted, without secrets and times.
    pub state: Value,
    /// The digest of the actions; `None` if it did not come to a decision.
    pub actions: Option<String>,
}

/// The key of a resource in the manifests on the way to it.
pub(crate) fn key(files: &[String], resource: &str) -> String {
    let chain = files.iter().map(String::as_str).chain([resource]);
    chain.collect::<Vec<_>>().join("\n")
}

impl DecisionPolicy {
    /// Whether anyone looks at decisions.
    pub(crate) fn are_watched(&self) -> bool {
        !matches!(self, Self::Free)
    }

    /// Records a decision, or refuses one that was not planned.
    pub(crate) fn decided<A: Serialize>(
        &self,
        key: &str,
        state: Value,
        actions: &[A],
        host: &Host,
    ) -> Result<()> {
        let mut state = state;
        if self.are_watched() {
            remove_times(&mut state);
            name_open_ids(&mut state, host);
            host.redactor().value(&mut state);
        }
        let digest = || {
            let mut actions = serde_json::to_value(actions).unwrap_or_default();
            name_open_ids(&mut actions, host);
            let json = serde_json::to_vec(&actions).unwrap_or_default();
            Digest::of(&json).to_string()
        };
        match self {
            Self::Free => Ok(()),
            Self::Record(log) => {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                let decision = log.0.entry(key.to_owned()).or_default();
                decision.state = state;
                decision.actions = Some(digest());
                Ok(())
            }
            Self::Planned(log) => log.check(key, &state, &digest()),
        }
    }

    /// Records what becomes of a resource.
    pub(crate) fn finished(&self, key: &str, resource: String, event: &Event) {
        if let Self::Record(log) = self {
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            let decision = log.0.entry(key.to_owned()).or_default();
            decision.resource = resource;
            decision.outcome = event.outcome();
        }
    }
}

impl DecisionLog {
    /// Every decision with its key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RecordedDecision)> {
        self.0.iter().map(|(key, decision)| (key.as_str(), decision))
    }

    /// The decision with a key.
    pub fn get(&self, key: &str) -> Option<&RecordedDecision> {
        self.0.get(key)
    }

    /// Fails unless these actions were planned. A provisional resource may do
    /// what its manifest says, and so may those of a manifest that it applies.
    fn check(&self, key: &str, state: &Value, actions: &str) -> Result<()> {
        let not_planned = |reason: &str| {
            Err(Error::Refused {
                reason: format!("{reason}, and ccm applies exactly the saved plan"),
                hint: Some("make a new plan with `ccm plan MANIFEST --out FILE`".to_owned()),
            })
        };
        match self.0.get(key) {
            Some(decision) if decision.outcome == Outcome::Provisional => Ok(()),
            // An earlier package has brought it as it should be.
            Some(decision) if decision.state == ONLY_IN_THE_RUN && actions == nothing() => Ok(()),
            Some(decision) if decision.actions.as_deref() == Some(actions) => {
                if agrees(&decision.state, state) {
                    Ok(())
                } else {
                    not_planned("it is no longer as it was when the plan was made")
                }
            }
            Some(RecordedDecision { actions: None, .. }) => {
                not_planned("the plan does not manage it")
            }
            Some(_) => not_planned("the changes are not those of the plan"),
            None if self.has_manifest_of(key) => not_planned("it is not in the plan"),
            None => Ok(()),
        }
    }

    fn has_manifest_of(&self, key: &str) -> bool {
        let manifest = |key: &str| key.rsplit_once('\n').map(|(files, _)| files.to_owned());
        let known: HashSet<String> = self.0.keys().filter_map(|key| manifest(key)).collect();
        manifest(key).is_some_and(|files| known.contains(&files))
    }
}

/// The digest of no actions.
fn nothing() -> String {
    Digest::of(b"[]").to_string()
}

/// Whether a state is the planned one, as far as that was known.
pub(crate) fn agrees(planned: &Value, now: &Value) -> bool {
    match (planned, now) {
        (Value::String(text), _) if text == ONLY_IN_THE_RUN => true,
        (Value::Object(planned), Value::Object(now)) => {
            let is_same = |(key, planned): (&String, &Value)| {
                now.get(key).is_some_and(|now| agrees(planned, now))
            };
            planned.len() == now.len() && planned.iter().all(is_same)
        }
        (planned, now) => planned == now,
    }
}

/// Times, and the sizes of directories, differ from one look to the next and
/// decide nothing. What a file holds is compared by its digest.
fn remove_times(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.shift_remove("mtime");
            map.shift_remove("size");
            map.values_mut().for_each(remove_times);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_times),
        _ => {}
    }
}

/// Puts names in place of the IDs of users and groups that a tool chooses in the
/// run, so that a plan can say what the run does.
fn name_open_ids(value: &mut Value, host: &Host) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let kind = match key.as_str() {
                    "uid" | "owner" => Some(AccountKind::User),
                    "gid" | "group" => Some(AccountKind::Group),
                    _ => None,
                };
                let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
                match kind.zip(id).and_then(|(kind, id)| host.open_id_name(kind, id)) {
                    Some(name) => *value = name.into(),
                    None => name_open_ids(value, host),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| name_open_ids(item, host)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_a_tool_chooses_have_their_names_in_plans() {
        let (host, preview) = (Host::new(), Host::new().preview());
        let gid = preview.predict_group("ann", None);
        host.note_given_id(AccountKind::Group, 1001, "ann");
        let action = |gid: u32| serde_json::json!([{"store": {"uid": 0, "gid": gid, "size": gid}}]);
        let (mut planned, mut done) = (action(gid), action(1001));
        name_open_ids(&mut planned, &preview);
        name_open_ids(&mut done, &host);
        let store = serde_json::json!({"uid": 0, "gid": "ann", "size": 1001});
        assert_eq!(done, serde_json::json!([{ "store": store }]));
        assert_eq!(planned[0]["store"]["gid"], "ann");
        assert_eq!(planned[0]["store"]["size"], gid);
    }

    #[test]
    fn only_what_was_planned_is_done() {
        let host = Host::new();
        let log = Arc::new(Mutex::new(DecisionLog::default()));
        let record = DecisionPolicy::Record(Arc::clone(&log));
        let files = ["m.yaml".to_owned()];
        let [one, two, open] = ["file#1", "file#2", "file#3"].map(|name| key(&files, name));
        record.decided(&one, serde_json::json!({"mtime": 1, "x": 2}), &["a"], &host).unwrap();
        let provisional = Event { changed: true, provisional: true, ..Event::default() };
        record.finished(&one, "file#1".into(), &Event::default());
        record.finished(&two, "file#2".into(), &Event { skipped: true, ..Event::default() });
        record.finished(&open, "file#3".into(), &provisional);
        let brought = key(&files, "file#4");
        record.decided(&brought, ONLY_IN_THE_RUN.into(), &["a"], &host).unwrap();
        record.finished(&brought, "file#4".into(), &Event::default());
        let log = log.lock().unwrap().clone();
        assert_eq!(log.get(&one).unwrap().state, serde_json::json!({"x": 2}));
        let planned = DecisionPolicy::Planned(Arc::new(log));
        let check = |key: &str, actions: &[&str]| {
            planned
                .decided(key, serde_json::json!({"x": 2}), actions, &host)
                .map_err(|error| error.to_string())
        };
        check(&one, &["a"]).unwrap();
        assert!(check(&one, &["b"]).unwrap_err().contains("not those of the plan"));
        assert!(check(&one, &[]).is_err());
        assert!(check(&two, &["a"]).unwrap_err().contains("does not manage it"));
        check(&open, &["anything"]).unwrap();
        check(&brought, &["a"]).unwrap();
        check(&brought, &[]).unwrap();
        check(&brought, &["b"]).unwrap_err();
        assert!(check(&key(&files, "file#new"), &["a"]).unwrap_err().contains("not in the plan"));
        // Of a manifest that the plan does not know, everything is allowed.
        check(&key(&["m.yaml".into(), "child.yaml".into()], "file#1"), &["a"]).unwrap();
    }
}
