//! History: what runs changed, and what there was before.
//!
//! A run that changes something has a directory in `runs/`. Its journal says
//! what was at each path before the change, and is appended to before the change
//! is made, so a killed run leaves no change without a record. Former contents
//! are files in `objects/`, named by their digests, with a second name in the
//! directory of each run that needs them: an object without a second name is
//! needed by no run.

mod journal;
mod prune;
mod read;

use std::borrow::Cow;
use std::ops::Not;
use std::path::Path;
use std::time::Duration;

use ccm_host::{Digest, Image};
use ccm_model::{
    Change, ChangeValue, Counts, Event, HealthCheckResult, OwedReaction, ResourceRef, Verb,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use journal::RunJournal;
pub use prune::{Limits, Pruned, prune, sweep};
pub use read::{PathChange, RecordedRun, RecordedTurn, list, open, repair};

/// Where the runs are.
const RUNS: &str = "runs";
/// Where former contents are.
const OBJECTS: &str = "objects";
/// The files of a run.
const JOURNAL: &str = "journal";
const SUMMARY: &str = "summary";
/// The version of the format.
const FORMAT: u32 = 1;

/// Information about a run at its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its name; sorts by time.
    pub id: String,
    /// When its first change was about to be made.
    pub started: Timestamp,
    /// The manifest, or the resource of a run without one.
    pub manifest: String,
    /// User who ran it.
    pub user: String,
    /// User who called sudo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<String>,
    /// The digest of the saved plan that it applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The run that it took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_of: Option<String>,
    /// The boot of the machine that it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
}

/// How much of a run can be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Undoable {
    /// All of it.
    Yes,
    /// Not everything.
    Partly,
    /// Nothing.
    #[default]
    No,
}

impl Undoable {
    pub(crate) fn of(can: bool, cannot: bool) -> Self {
        match (can, cannot) {
            (true, true) => Self::Partly,
            (false, true) => Self::No,
            (_, false) => Self::Yes,
        }
    }
}

/// A run in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The version of the format of all files of the run.
    pub format: u32,
    /// Information at the start of the run.
    #[serde(flatten)]
    pub info: RunInfo,
    /// When it ended; `None` if it was killed.
    pub finished: Option<Timestamp>,
    /// How many resources it changed.
    pub changed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many have which outcome; `None` if the run was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// How much of it can be taken back.
    pub undo: Undoable,
    /// How many bytes of former content it added.
    pub stored: u64,
}

/// Former state of a resource that is not a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Former {
    /// Files are all there is to it.
    Files,
    /// Properties that bring it back, and recognize it.
    Properties(Value),
    /// The same, with some that only an object of the history holds: the journal
    /// knows them by their digest.
    Sealed {
        /// What the journal may show.
        properties: Value,
        /// The other properties.
        sealed: Value,
    },
    /// It cannot be taken back, for this reason.
    Lost(&'static str),
}

/// What an object with sealed properties holds.
#[derive(Serialize, Deserialize)]
struct SealedObject {
    salt: String,
    properties: Value,
}

/// What a journal holds. A run may change many files, so what it says of each is
/// short.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record<'a> {
    Header {
        format: u32,
        #[serde(flatten)]
        info: RunInfo,
    },
    /// A resource is about to change: its type, its name, and the manifests on
    /// the way to it.
    Turn(Cow<'a, str>, Cow<'a, str>, Cow<'a, [String]>),
    /// The same ahead of its turn, for a resource whose step is taken together with
    /// others: with its state, which its own turn records again.
    Ahead(Cow<'a, str>, Cow<'a, str>, Cow<'a, [String]>, Cow<'a, Value>),
    /// A path is about to change: what it is, and will be where that is known.
    Path(PathName<'a>, Cow<'a, Image>, Option<Cow<'a, Image>>),
    /// The same for a path with symlinks on the way: also the directory that
    /// they lead to.
    Led(PathName<'a>, PathName<'a>, Cow<'a, Image>, Option<Cow<'a, Image>>),
    /// A path that contains secrets, and how it may be shown. Undo needs the
    /// path itself.
    Shown(PathName<'a>, Cow<'a, str>),
    /// The image of a path after its last change.
    After(PathName<'a>, Cow<'a, Image>),
    State {
        before: Cow<'a, Value>,
        /// The object with the other properties.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sealed: Option<Digest>,
    },
    StateAfter {
        after: Cow<'a, Value>,
    },
    /// Something of the resource cannot be taken back.
    Lost {
        what: Cow<'a, str>,
        reason: Cow<'a, str>,
    },
    Event(EventRecord<'a>),
    /// The same as the event with this number, but for the time and how long it
    /// took: most are, where a run changes many resources.
    Again(u64, i64, u64),
    End {
        finished: Timestamp,
        summary: Value,
    },
}

/// A path; an empty one stands for the name of the resource at work.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct PathName<'a>(#[serde(with = "ccm_host::path_text")] Cow<'a, Path>);

/// What an event says of the resource at work, as short as can be: a run may
/// change many.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct EventRecord<'a> {
    /// Its number in the run.
    number: u64,
    /// Microseconds since 1970, and how many it took.
    time: (i64, u64),
    provider: Cow<'a, str>,
    /// The name without secrets, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<Cow<'a, str>>,
    ensure: (Cow<'a, str>, Cow<'a, str>),
    #[serde(skip_serializing_if = "is_empty")]
    verbs: Cow<'a, [Verb]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changes: Vec<ChangeLine<'a>>,
    #[serde(skip_serializing_if = "is_empty")]
    because: Cow<'a, [ResourceRef]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owed: Option<Cow<'a, OwedReaction>>,
    #[serde(skip_serializing_if = "is_empty")]
    health_checks: Cow<'a, [HealthCheckResult]>,
    #[serde(skip_serializing_if = "is_empty")]
    error: Cow<'a, [String]>,
    #[serde(skip_serializing_if = "Not::not")]
    changed: bool,
    #[serde(skip_serializing_if = "Not::not")]
    refreshed: bool,
    #[serde(skip_serializing_if = "Not::not")]
    failed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<Cow<'a, str>>,
}

/// A change: the property, before, after, whether it is secret, and the lines
/// that a text gains and loses.
type ChangeRecord<'a> = (
    Cow<'a, str>,
    Option<Cow<'a, ChangeValue>>,
    Option<Cow<'a, ChangeValue>>,
    bool,
    Option<(u64, u64)>,
);

/// The same with the members that are created, updated and removed. Most changes
/// have none, so they are written without.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum ChangeLine<'a> {
    Plain(ChangeRecord<'a>),
    Members(Cow<'a, str>, Cow<'a, [String]>, Cow<'a, [String]>, Cow<'a, [String]>),
}

fn change_line(change: &Change) -> ChangeLine<'_> {
    if change.member_counts().is_none() {
        return ChangeLine::Plain(brief_change(change));
    }
    ChangeLine::Members(
        Cow::Borrowed(&change.property),
        Cow::Borrowed(&change.created),
        Cow::Borrowed(&change.updated),
        Cow::Borrowed(change.removed_members()),
    )
}

fn change_of(line: ChangeLine<'_>) -> Change {
    match line {
        ChangeLine::Plain(record) => whole_change(record),
        ChangeLine::Members(property, created, updated, removed) => {
            let members = [created, updated, removed].map(Cow::into_owned);
            Change::of(property.into_owned()).members(members)
        }
    }
}

fn brief_change(change: &Change) -> ChangeRecord<'_> {
    (
        Cow::Borrowed(&change.property),
        change.from.as_ref().map(Cow::Borrowed),
        change.to.as_ref().map(Cow::Borrowed),
        change.secret,
        change.line_counts(),
    )
}

fn whole_change((property, from, to, secret, lines): ChangeRecord<'_>) -> Change {
    let change = Change {
        property: Cow::Owned(property.into_owned()),
        from: from.map(Cow::into_owned),
        to: to.map(Cow::into_owned),
        secret,
        ..Change::default()
    };
    match lines {
        Some(lines) => change.lines(lines),
        None => change,
    }
}

fn is_empty<T>(list: &[T]) -> bool {
    list.is_empty()
}

/// When an event was, and how long its resource took, in microseconds.
fn times(event: &Event) -> (i64, u64) {
    let duration = u64::try_from(event.duration.as_micros()).unwrap_or(u64::MAX);
    (event.timestamp.as_microsecond(), duration)
}

/// Whether two events say the same, but for the resource and the time.
fn is_same(one: &Event, other: &Event) -> bool {
    one.changes == other.changes
        && one.verbs == other.verbs
        && one.provider == other.provider
        && (one.changed, one.refreshed, one.failed)
            == (other.changed, other.refreshed, other.failed)
        && one.requested_ensure == other.requested_ensure
        && one.final_ensure == other.final_ensure
        && one.error == other.error
        && one.alias == other.alias
        && one.because == other.because
        && one.owed == other.owed
        && one.health_check == other.health_check
}

impl<'a> EventRecord<'a> {
    fn new(event: &'a Event, number: u64, name: &str, diff: Option<&'a str>) -> Self {
        Self {
            number,
            time: times(event),
            provider: Cow::Borrowed(&event.provider),
            name: (event.name != name).then_some(Cow::Borrowed(event.name.as_str())),
            alias: event.alias.as_deref().map(Cow::Borrowed),
            ensure: (Cow::Borrowed(&event.requested_ensure), Cow::Borrowed(&event.final_ensure)),
            verbs: Cow::Borrowed(&event.verbs),
            changes: event.changes.iter().map(change_line).collect(),
            because: Cow::Borrowed(&event.because),
            owed: event.owed.as_ref().map(Cow::Borrowed),
            health_checks: Cow::Borrowed(&event.health_check),
            error: Cow::Borrowed(&event.error),
            changed: event.changed,
            refreshed: event.refreshed,
            failed: event.failed,
            diff: diff.map(Cow::Borrowed),
        }
    }

    /// The event of a resource, and what changed in texts.
    fn into_event(self, kind: &str, name: &str) -> (Event, Option<String>) {
        let event = Event {
            protocol: Cow::Borrowed(Event::PROTOCOL),
            timestamp: Timestamp::from_microsecond(self.time.0).unwrap_or_default(),
            kind: Cow::Owned(kind.to_owned()),
            provider: Cow::Owned(self.provider.into_owned()),
            name: self.name.map_or_else(|| name.to_owned(), Cow::into_owned),
            alias: self.alias.map(Cow::into_owned),
            requested_ensure: self.ensure.0.into_owned(),
            final_ensure: self.ensure.1.into_owned(),
            duration: Duration::from_micros(self.time.1),
            verbs: self.verbs.into_owned(),
            changes: self.changes.into_iter().map(change_of).collect(),
            because: self.because.into_owned(),
            owed: self.owed.map(Cow::into_owned),
            health_check: self.health_checks.into_owned(),
            error: self.error.into_owned(),
            changed: self.changed,
            refreshed: self.refreshed,
            failed: self.failed,
            ..Event::default()
        };
        (event, self.diff.map(Cow::into_owned))
    }
}
