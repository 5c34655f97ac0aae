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

use ccm_model::Event;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use ccm_host::Image;

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

/// What is known of a run when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Its name; sorts by time.
    pub id: String,
    /// When its first change was about to be made.
    pub started: Timestamp,
    /// The manifest, or the resource of a run without one.
    pub manifest: String,
    /// Who ran it.
    pub user: String,
    /// Who became that user by sudo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<String>,
    /// The digest of the saved plan that it applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The run that it took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo_of: Option<String>,
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
    /// What was known when it began.
    #[serde(flatten)]
    pub info: RunInfo,
    /// When it ended; `None` if it was killed.
    pub finished: Option<Timestamp>,
    /// How many resources it changed.
    pub changed: usize,
    /// How many failed.
    pub failed: usize,
    /// How much of it can be taken back.
    pub undo: Undoable,
    /// How many bytes of former content it added.
    pub stored: u64,
}

/// What a resource was, beside files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Former {
    /// Files are all there is to it.
    Files,
    /// Properties that bring it back, and recognize it.
    Properties(Value),
    /// It cannot be taken back, for this reason.
    Lost(&'static str),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record<'a> {
    Header {
        format: u32,
        #[serde(flatten)]
        info: RunInfo,
    },
    /// A resource is about to change.
    Turn {
        #[serde(rename = "type")]
        kind: std::borrow::Cow<'a, str>,
        name: std::borrow::Cow<'a, str>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        route: Vec<String>,
    },
    Path {
        #[serde(with = "ccm_host::path_text")]
        path: std::path::PathBuf,
        before: Image,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<Image>,
    },
    /// What the last change of a path led to.
    After {
        #[serde(with = "ccm_host::path_text")]
        path: std::path::PathBuf,
        image: Image,
    },
    State {
        before: Value,
    },
    StateAfter {
        after: Value,
    },
    /// Something of the resource cannot be taken back.
    Lost {
        what: String,
        reason: String,
    },
    Event {
        event: Box<Event>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
    End {
        finished: Timestamp,
        summary: Value,
    },
}
