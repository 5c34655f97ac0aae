//! Events: the result of one resource.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Change, EventId, HealthCheckResult, Outcome, ResourceRef, Verb};

/// The outcome of one resource, as it is written to sessions and reports.
#[expect(clippy::struct_excessive_bools, reason = "the wire format has these flags")]
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Event {
    /// The name of this format.
    #[schemars(extend("const" = Event::PROTOCOL))]
    pub protocol: Cow<'static, str>,
    /// Sorts in the order of recording.
    #[schemars(with = "String")]
    pub event_id: EventId,
    /// Time at which the resource was done.
    pub timestamp: Timestamp,
    /// The resource's type.
    #[serde(rename = "type")]
    pub kind: Cow<'static, str>,
    /// The provider; empty if none was selected.
    pub provider: Cow<'static, str>,
    /// Its name.
    pub name: String,
    /// Its alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The child manifests on the way to the resource, as they are written;
    /// empty for the first manifest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub route: Vec<String>,
    /// The item of a `for_each` that the resource was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<Box<ItemPlace>>,
    /// The group whose steps were taken together, if the resource was part of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupPlace>,
    /// The outcome in one word, since the event was recorded; see
    /// [`Event::outcome`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Whether it only sums up the events of a child manifest, which stand for
    /// it: counts leave it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aggregate: bool,
    /// Of a failed resource: file, line and column at which it is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Requested `ensure` value.
    pub requested_ensure: String,
    /// `ensure` value at the end.
    pub final_ensure: String,
    /// Duration in nanoseconds.
    #[serde(with = "nanoseconds")]
    #[schemars(with = "u64")]
    pub duration: Duration,
    /// Properties with secrets redacted; null if not requested.
    #[serde(default)]
    pub properties: Value,
    /// State at the end; null if it was not observed or not requested.
    #[serde(default)]
    pub status: Value,
    /// Description of the steps that noop mode skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noop_message: Option<String>,
    /// Verbs of the steps, or in noop mode of the predicted steps, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<Verb>,
    /// Changes, or in noop mode predicted changes: each property before and after.
    #[serde(default)]
    pub changes: Vec<Change>,
    /// In noop mode: provisional, only the run can decide it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
    /// The resources on which a provisional one depends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// The changed resources that it subscribes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<String>")]
    pub because: Vec<ResourceRef>,
    /// An owed reaction to a change in an earlier run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed: Option<OwedReaction>,
    /// Steps that `--offline` leaves to the first boot, such as `start`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<String>,
    /// How often a command was tried, if it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// Results of its health checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_check: Vec<HealthCheckResult>,
    /// Whether only health checks ran.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub health_check_only: bool,
    /// All errors.
    pub error: Vec<String>,
    /// Whether the resource changed, or in noop mode would have changed.
    pub changed: bool,
    /// Whether the resource reacted to a change of a subscribed resource.
    pub refreshed: bool,
    /// Whether the resource failed.
    pub failed: bool,
    /// Whether ccm skipped the resource.
    pub skipped: bool,
    /// Whether this was a dry run (noop mode).
    pub noop: bool,
    /// Unmet requirements, for which ccm skipped the resource.
    #[schemars(with = "Vec<String>")]
    pub unmet_requirements: Vec<ResourceRef>,
}

/// The place of a resource in a group of adjacent ones whose steps were taken
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct GroupPlace {
    /// How many resources the group has.
    pub size: usize,
    /// Its place among them, from 0.
    pub index: usize,
}

/// The place of a resource in the loops that made it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct ItemPlace {
    /// The place of the item, from 0.
    pub index: usize,
    /// Its key, in a loop over a map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The name of the items of the loop.
    #[serde(rename = "as")]
    pub name: String,
    /// The item of the loop around it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ItemPlace>>,
}

impl Event {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.transaction.event";

    /// What became of the resource.
    pub fn outcome(&self) -> Outcome {
        // Older events do not carry it.
        self.outcome.unwrap_or_else(|| Outcome::of(self))
    }

    /// Of a provisional event: the outcome as things are now, if that is known.
    pub fn outcome_now(&self) -> Option<Outcome> {
        let is_decided = !self.changed || !self.verbs.is_empty() && self.because.is_empty();
        let is_known = is_decided && !self.waits_for.is_empty();
        (self.provisional && is_known).then(|| Outcome::done(self))
    }

    /// Whether ccm skipped it because a requirement was not met.
    pub fn is_unmet(&self) -> bool {
        !self.unmet_requirements.is_empty() && !self.failed
    }

    /// The words for its outcome in logs, which those of the original are.
    pub fn log_words(&self) -> &'static str {
        match self.outcome() {
            Outcome::Failed => "failed",
            Outcome::Skipped if self.is_unmet() => "skipped due to unmet requirement",
            Outcome::Skipped => "skipped",
            _ if self.refreshed => "refreshed",
            _ if self.changed => "changed",
            _ if !self.deferred.is_empty() => "deferred",
            _ => "stable",
        }
    }
}

/// An owed reaction from an earlier run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct OwedReaction {
    /// Time just before the change.
    pub since: Timestamp,
    /// The first resource that changed, as `type#name`.
    pub by: String,
}

/// The first entry of a session.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SessionStart {
    /// [`SessionStart::PROTOCOL`].
    pub protocol: Cow<'static, str>,
    /// Sorts before every event of the session.
    pub event_id: EventId,
    /// When the session began.
    pub timestamp: Timestamp,
}

impl SessionStart {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.session.start";
}

/// Durations as whole nanoseconds.
pub(crate) mod nanoseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(value.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_names_are_fixed() {
        let event = Event {
            protocol: Event::PROTOCOL.into(),
            kind: "file".into(),
            provider: "posix".into(),
            name: "/x".into(),
            duration: Duration::from_micros(3),
            ..Event::default()
        };
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(
            json,
            "{\"protocol\":\"io.choria.ccm.v1.transaction.event\",\
             \"event_id\":\"000000000000000000000000000\",\"timestamp\":\"1970-01-01T00:00:00Z\",\
             \"type\":\"file\",\"provider\":\"posix\",\"name\":\"/x\",\"requested_ensure\":\"\",\
             \"final_ensure\":\"\",\"duration\":3000,\"properties\":null,\"status\":null,\
             \"changes\":[],\"error\":[],\"changed\":false,\"refreshed\":false,\"failed\":false,\
             \"skipped\":false,\"noop\":false,\"unmet_requirements\":[]}"
        );
        let back: Event = serde_json::from_str(&json).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), json);
        let checked = Event {
            noop_message: Some("x".into()),
            health_check: vec![HealthCheckResult::default()],
            health_check_only: true,
            ..event
        };
        let json = serde_json::to_string(&checked).unwrap();
        let wanted = "\"noop_message\":\"x\",\"changes\":[],\"health_check\":[{\"status\":0,\"tries\":0,\
                      \"output\":\"\",\"name\":\"\"}],\"health_check_only\":true,\"error\":[]";
        assert!(json.contains(wanted), "{json}");
        let back: Event = serde_json::from_str(&json).unwrap();
        assert_eq!(back.health_check, checked.health_check);
    }

    #[test]
    fn the_worst_word_wins() {
        let deferred = vec!["start".to_owned()];
        let mut event = Event { deferred, ..Event::default() };
        assert_eq!(event.log_words(), "deferred");
        (event.changed, event.refreshed) = (true, true);
        assert_eq!(event.log_words(), "refreshed");
        event.skipped = true;
        assert_eq!(event.log_words(), "skipped");
        event.unmet_requirements = vec![ResourceRef::new("file", "/x")];
        assert_eq!(event.log_words(), "skipped due to unmet requirement");
        event.failed = true;
        assert_eq!(event.log_words(), "failed");
    }
}
