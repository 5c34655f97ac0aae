//! Whether the machine and the sources are still as they were when a plan was
//! made.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ccm_host::{Digest, FileKind, Host, RecordedSources};
use ccm_model::Outcome;
use serde_json::Value;

use super::SavedPlan;
use crate::decision_log::{DecisionLog, DecisionPolicy, RecordedDecision, agrees};
use crate::engine::Engine;
use crate::manifest::ManifestError;
use crate::options::RunOptions;
use crate::run::Observer;
use crate::{SelectionError, SourceRef};

/// Something that is not as it was when the plan was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The resource or file.
    pub subject: String,
    /// The difference.
    pub reason: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)
    }
}

/// Why a saved plan could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The saved manifest cannot be read again.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The saved selection cannot be used again.
    #[error(transparent)]
    Selection(#[from] SelectionError),
}

const GONE: &str = "is gone since the plan was made";

impl Engine {
    /// Makes a saved plan again and compares. `options` must have the plan's
    /// inputs and replay its sources. Nothing is changed.
    ///
    /// # Errors
    ///
    /// Returns why the saved manifest cannot be read again.
    pub fn verify(
        &self,
        saved: &SavedPlan,
        sources: &RecordedSources,
        options: &RunOptions,
        observer: &mut dyn Observer,
    ) -> Result<Vec<Difference>, VerifyError> {
        let mut differences = SavedPlan::changed_sources(&options.host, sources);
        if !differences.is_empty() {
            return Ok(differences);
        }
        let mut options = options.clone();
        let log = Arc::new(Mutex::new(DecisionLog::default()));
        options.decisions = DecisionPolicy::Record(Arc::clone(&log));
        let manifest = self.load(&SourceRef::Path(saved.manifest.clone()), &options)?;
        let manifest = saved.named(manifest);
        let (only, skip) = saved.selectors();
        options.selection = self.select(&manifest, &options, only, skip)?;
        self.plan(manifest, &options, observer);
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        differences.extend(compare(&saved.decisions, &log));
        Ok(differences)
    }
}

impl SavedPlan {
    /// The files that are still there and hold something else, and what is gone
    /// from a tree. A file of its own that is gone does not matter as long as the
    /// plan has its content.
    pub fn changed_sources(host: &Host, sources: &RecordedSources) -> Vec<Difference> {
        changed_sources(host, sources)
    }
}

fn changed_sources(host: &Host, sources: &RecordedSources) -> Vec<Difference> {
    let mut differences = Vec::new();
    // Of a tree that was downloaded, only the plan has anything left.
    let left: Vec<&PathBuf> =
        sources.trees.iter().filter(|tree| host.exists_now(tree).unwrap_or(false)).collect();
    let is_gone_from_tree = |path: &Path| left.iter().any(|tree| path.starts_with(tree));
    for (path, recorded) in &sources.files {
        let is_in_tree = || sources.trees.iter().any(|tree| path.starts_with(tree));
        let reason = match (now(host, path), recorded.content.is_some()) {
            (Some((digest, mode)), _) if digest == recorded.digest => {
                // What is copied from a tree takes its mode along.
                if mode == recorded.mode || !is_in_tree() {
                    continue;
                }
                format!("mode is {mode:04o}, was {:04o} when planned", recorded.mode)
            }
            (Some(_), _) => "has changed since the plan was made".to_owned(),
            // What has its name now is not what was planned, whatever the plan has.
            (None, _) if is_there(host, path) => "is no longer a regular file".to_owned(),
            (None, true) if is_gone_from_tree(path) => GONE.to_owned(),
            (None, true) => continue,
            (None, false) => "is gone, and is too large to be in the plan".to_owned(),
        };
        differences.push(Difference { subject: path.display().to_string(), reason });
    }
    for (path, target) in &sources.links {
        let reason = match host.read_link(path) {
            Ok(now) if now == *target => continue,
            Ok(_) => "has changed since the plan was made".to_owned(),
            Err(_) if host.lstat(path).is_ok_and(|found| found.is_some()) => {
                "is no longer a symlink".to_owned()
            }
            Err(_) if is_gone_from_tree(path) => GONE.to_owned(),
            Err(_) => continue,
        };
        differences.push(Difference { subject: path.display().to_string(), reason });
    }
    for tree in &sources.trees {
        let below = host.tree_on_disk(tree).ok().flatten().and_then(|tree| tree.entries().ok());
        let Some(below) = below else { continue };
        let is_known = |path: &Path| {
            sources.files.contains_key(path)
                || sources.links.contains_key(path)
                || sources.directories.contains(path)
                || sources.special.contains(path)
        };
        for place in below.files.into_iter().chain(below.directories) {
            let path = tree.join(place);
            if !is_known(&path) {
                let reason = "is new since the plan was made".to_owned();
                differences.push(Difference { subject: path.display().to_string(), reason });
            }
        }
    }
    differences
}

/// What a file holds now, and its permissions.
fn now(host: &Host, path: &Path) -> Option<(Digest, u32)> {
    let (file, stat) = host.open(path).ok()?;
    Some((host.digest(&file, path, stat.size).ok()?, stat.mode & 0o777))
}

/// Whether there is something else than a file.
fn is_there(host: &Host, path: &Path) -> bool {
    host.lstat(path).is_ok_and(|found| found.is_some_and(|stat| stat.kind != FileKind::File))
}

/// The resources about which something else would be decided now.
fn compare(planned: &DecisionLog, now: &DecisionLog) -> Vec<Difference> {
    let keys: BTreeSet<&str> = planned.iter().chain(now.iter()).map(|(key, _)| key).collect();
    let mut differences = Vec::new();
    for key in keys {
        let reason = match (planned.get(key), now.get(key)) {
            (Some(planned), _) if planned.outcome == Outcome::Provisional => continue,
            (Some(planned), Some(now)) if is_same(planned, now) => continue,
            (Some(planned), Some(now)) => difference(planned, now),
            (Some(_), None) => "is no longer reached".to_owned(),
            (None, _) => "was not reached when the plan was made".to_owned(),
        };
        let named = planned.get(key).or_else(|| now.get(key));
        let subject = named.map(|decision| decision.resource.clone()).unwrap_or_default();
        differences.push(Difference { subject, reason });
    }
    differences
}

fn is_same(planned: &RecordedDecision, now: &RecordedDecision) -> bool {
    planned.outcome == now.outcome
        && planned.actions == now.actions
        && agrees(&planned.state, &now.state)
}

fn difference(planned: &RecordedDecision, now: &RecordedDecision) -> String {
    // Whether it is there at all says more than what it is like.
    let ensure = |decision: &RecordedDecision| decision.state["ensure"].clone();
    let found = first_difference("ensure", &ensure(planned), &ensure(now));
    // And what it is like, more than what is in it.
    let metadata = |decision: &RecordedDecision| decision.state["metadata"].clone();
    let found = found.or_else(|| first_difference("", &metadata(planned), &metadata(now)));
    let found = found.or_else(|| first_difference("", &planned.state, &now.state));
    // One that did not come to a decision has no state to compare.
    let is_decided = planned.actions.is_some() && now.actions.is_some();
    if let Some(found) = found.filter(|_| is_decided) {
        return found;
    }
    if planned.outcome != now.outcome {
        let (was, is) = (planned.outcome.word(), now.outcome.word());
        return format!("was planned as {was}, now {is}");
    }
    "would be changed in another way than planned".to_owned()
}

/// The first value in which two states differ, with its name.
fn first_difference(name: &str, planned: &Value, now: &Value) -> Option<String> {
    match (planned, now) {
        (Value::Object(was), Value::Object(is)) => {
            let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
            keys.into_iter().find_map(|key| {
                let (was, is) = (was.get(key), is.get(key));
                first_difference(key, was.unwrap_or(&Value::Null), is.unwrap_or(&Value::Null))
            })
        }
        (was, is) if was == is => None,
        // Digests say nothing to people, and those of secrets too much.
        (was, is) if is_digest(was) || is_digest(is) => Some("content has changed".to_owned()),
        (was, is) => Some(format!("{name} is {}, was {} when planned", shown(is), shown(was))),
    }
}

fn is_digest(value: &Value) -> bool {
    let is_hex = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    value.as_str().is_some_and(is_hex)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "absent".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let was = json!({"metadata": {"mode": "0644", "owner": "root", "size": 3}});
        let is = json!({"metadata": {"mode": "0600", "owner": "root", "size": 3}});
        let found = first_difference("", &was, &is).unwrap();
        assert_eq!(found, "mode is 0600, was 0644 when planned");
        assert_eq!(first_difference("", &was, &was), None);
        let digests = ["a", "b"].map(|digit| json!({"checksum": digit.repeat(64)}));
        let found = first_difference("", &digests[0], &digests[1]).unwrap();
        assert_eq!(found, "content has changed");
        let gone = json!({"metadata": {"owner": "root"}});
        let found = first_difference("", &was, &gone).unwrap();
        assert_eq!(found, "mode is absent, was 0644 when planned");
    }
}
