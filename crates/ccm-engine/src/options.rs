//! Options of one run.

use std::path::PathBuf;

use ccm_host::{Host, Registry};

use crate::decision_log::DecisionPolicy;
use crate::inputs::Inputs;
use crate::manifest_run::Mode;
use crate::owed::RunState;
use crate::resource_type::{Detail, Diffs};
use crate::selection::Selection;

/// The options of one run. A run reads no other options from its process.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The machine, with the token that cancels the run and the caches that end
    /// with it.
    pub host: Host,
    /// Restrictions on the run.
    pub mode: Mode,
    /// How deep child manifests may be nested. The first manifest is at depth 0.
    pub max_depth: usize,
    /// Which diffs to make.
    pub diffs: Diffs,
    /// How the run uses decisions: acts on them, records them, or compares them with a plan.
    pub decisions: DecisionPolicy,
    /// Previews run no commands on staged copies; what these would change is known
    /// only in the run.
    pub skips_post: bool,
    /// Take steps of adjacent resources together, where their type can.
    pub groups: bool,
    /// The resources to look at.
    pub selection: Selection,
    /// How much of each state someone will read.
    pub detail: Detail,
    /// Inputs of templates besides the manifest.
    pub inputs: Inputs,
    /// Where relative paths of a resource begin that stands in no manifest.
    pub working_directory: PathBuf,
    /// Whether references may be met by what ran before, as in a shared session.
    pub has_history: bool,
    /// Where to publish the services of resources that are as desired.
    pub register: Option<Registry>,
    /// Where the run keeps what later ones must know.
    pub state: RunState,
}
