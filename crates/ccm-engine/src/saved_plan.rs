//! Saved plans: everything that is needed to apply a plan later, exactly as it
//! was shown.
//!
//! A saved plan holds the plan itself, the manifests with the files that they
//! read, data, facts, and for each resource what was observed and decided. To
//! apply it, the engine makes the plan again from what it holds, compares, and
//! only then acts.

mod file;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ccm_hiera::Document;
use ccm_host::{Digest, Host, RecordedFetch, RecordedFile, RecordedSources};
use ccm_model::Plan;
use ccm_template::Facts;
use govalue::{Exact, Map};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use file::MAGIC;
pub use file::SavedPlanError;
pub use verify::{Difference, VerifyError};

use crate::decision_log::{DecisionLog, DecisionPolicy};
use crate::inputs::Inputs;
use crate::manifest::Manifest;
use crate::options::RunOptions;
use crate::plan::this_host;

/// A plan with everything that applying it needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedPlan {
    /// The plan.
    pub plan: Plan,
    /// Where the manifest was read from.
    manifest: PathBuf,
    only: Vec<String>,
    skip: Vec<String>,
    /// Services are left to the first boot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    offline: bool,
    /// No commands ran on staged copies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    no_post: bool,
    /// Each resource was looked at by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    no_groups: bool,
    facts: serde_json::Value,
    environ: BTreeMap<String, String>,
    /// Name and text of hierarchical data from outside.
    external: Option<(String, String)>,
    sources: Vec<SavedFile>,
    trees: Vec<PathBuf>,
    /// The directories in the trees, the symlinks with their texts, and what is
    /// neither of these nor a file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    directories: BTreeSet<PathBuf>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    links: BTreeMap<PathBuf, PathBuf>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    special: BTreeSet<PathBuf>,
    fetched: BTreeMap<String, SavedFetch>,
    decisions: DecisionLog,
}

/// One file that the plan was made with.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedFile {
    path: PathBuf,
    sha256: String,
    #[serde(default)]
    mode: u32,
    /// In Base64; absent where all files together are too large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedFetch {
    Text(String),
    Tree(PathBuf),
}

/// A plan in the making: what the preview reads and decides is recorded.
#[derive(Debug)]
pub struct PlanRecording {
    decisions: Arc<Mutex<DecisionLog>>,
}

impl PlanRecording {
    /// Begins recording. Everything that the plan depends on, its inputs
    /// included, must be read with these options from now on.
    pub fn start(options: &mut RunOptions) -> Self {
        let decisions = Arc::new(Mutex::new(DecisionLog::default()));
        options.host.record_sources();
        options.decisions = DecisionPolicy::Record(Arc::clone(&decisions));
        Self { decisions }
    }

    /// The plan with everything that was recorded. `only` and `skip` are what
    /// chose its resources.
    pub fn finish(
        self,
        plan: Plan,
        manifest: PathBuf,
        options: &RunOptions,
        only: Vec<String>,
        skip: Vec<String>,
    ) -> SavedPlan {
        let recorded = options.host.recorded_sources();
        let inputs = &options.inputs;
        let external = inputs.external.as_ref().and_then(Document::written);
        let external = external.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let environ = mentioned(&inputs.environ, &recorded, external.as_ref());
        let files = recorded.files.into_iter().map(|(path, file)| SavedFile {
            path,
            sha256: file.digest.to_string(),
            mode: file.mode,
            content: file.content.as_deref().map(file::encode_base64),
        });
        let fetched = recorded.fetched.into_iter().map(|(url, fetched)| match fetched {
            RecordedFetch::Text(text) => (url, SavedFetch::Text(text)),
            RecordedFetch::Tree(path) => (url, SavedFetch::Tree(path)),
        });
        SavedPlan {
            plan,
            manifest,
            only,
            skip,
            offline: options.mode.offline,
            no_post: options.skips_post,
            no_groups: !options.groups,
            facts: serde_json::to_value(Exact(inputs.facts.get())).unwrap_or_default(),
            environ,
            external,
            sources: files.collect(),
            trees: recorded.trees,
            directories: recorded.directories,
            links: recorded.links,
            special: recorded.special,
            fetched: fetched.collect(),
            decisions: self.decisions.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// The variables whose names stand in what the plan was made from. The others
/// are nobody's business.
fn mentioned(
    environ: &Map,
    recorded: &RecordedSources,
    external: Option<&(String, String)>,
) -> BTreeMap<String, String> {
    let files = recorded.files.values().filter_map(|file| file.content.as_deref());
    let texts = files.map(String::from_utf8_lossy);
    let fetched = recorded.fetched.values().filter_map(|fetched| match fetched {
        RecordedFetch::Text(text) => Some(text.as_str().into()),
        RecordedFetch::Tree(_) => None,
    });
    let external = external.map(|(_, text)| text.as_str().into());
    let texts: Vec<std::borrow::Cow<'_, str>> = texts.chain(fetched).chain(external).collect();
    let is_mentioned = |name: &str| texts.iter().any(|text| text.contains(name));
    let variables = environ.iter().map(|(name, value)| (name.value().to_string(), value));
    variables
        .filter(|(name, _)| is_mentioned(name))
        .map(|(name, value)| (name, value.to_string()))
        .collect()
}

impl SavedPlan {
    /// Rejects a plan that was made for another machine.
    pub fn check_host(&self, host: &Host) -> Result<(), SavedPlanError> {
        let here = this_host(host);
        if self.plan.host.id == here.id {
            return Ok(());
        }
        Err(SavedPlanError::OtherHost { planned: self.plan.host.name.clone(), here: here.name })
    }

    /// Rejects a plan that is older than this.
    pub fn check_age(&self, now: Timestamp, limit: Duration) -> Result<(), SavedPlanError> {
        /// Clocks of one machine do not differ by more.
        const SKEW: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);
        let created = self.plan.created;
        if created.duration_since(now) > SKEW {
            return Err(SavedPlanError::Future { created });
        }
        let age = Duration::try_from(now.duration_since(self.plan.created)).unwrap_or_default();
        if age <= limit { Ok(()) } else { Err(SavedPlanError::TooOld { age, limit }) }
    }

    /// Where the manifest was read from.
    pub fn manifest_path(&self) -> &PathBuf {
        &self.manifest
    }

    /// The selectors that the plan was made with: those of `--only`, and those
    /// of `--skip`.
    pub fn selectors(&self) -> (Vec<String>, Vec<String>) {
        (self.only.clone(), self.skip.clone())
    }

    /// Whether the plan leaves services to the first boot.
    pub fn is_offline(&self) -> bool {
        self.offline
    }

    /// Whether the preview ran no commands on staged copies.
    pub fn skips_post(&self) -> bool {
        self.no_post
    }

    /// Whether steps of adjacent resources are taken together.
    pub fn has_groups(&self) -> bool {
        !self.no_groups
    }

    /// Gives the manifest the name that it had: of one that was fetched, the path
    /// says nothing.
    pub fn named(&self, manifest: Manifest) -> Manifest {
        Manifest { name: self.plan.manifest.clone(), ..manifest }
    }

    /// The facts, variables and data that the plan was made with.
    ///
    /// # Errors
    ///
    /// Returns why the saved data cannot be read.
    pub fn inputs(&self) -> Result<Inputs, SavedPlanError> {
        let damaged = || SavedPlanError::Damaged;
        let facts = Map::deserialize(&self.facts).map_err(|_| damaged())?;
        let external = match &self.external {
            Some((name, text)) => Some(Document::parse(name, text).map_err(|_| damaged())?),
            None => None,
        };
        Ok(Inputs {
            facts: Facts::known(facts),
            environ: ccm_template::Scope::environ(self.environ.clone()),
            external,
            ..Inputs::default()
        })
    }

    /// The decisions that were planned.
    pub fn decisions(&self) -> DecisionPolicy {
        DecisionPolicy::Planned(Arc::new(self.decisions.clone()))
    }

    /// The files and fetches that the plan was made with.
    ///
    /// # Errors
    ///
    /// Returns that the plan is damaged.
    pub fn sources(&self) -> Result<RecordedSources, SavedPlanError> {
        let fetched_trees = self.fetched.values().filter_map(|fetched| match fetched {
            SavedFetch::Tree(path) => Some(path),
            SavedFetch::Text(_) => None,
        });
        let files = self.sources.iter().map(|saved| &saved.path);
        // Files are put back below a private directory, which none may leave.
        let entries = self.directories.iter().chain(self.links.keys()).chain(&self.special);
        let mut all = files.chain(&self.trees).chain(fetched_trees).chain(entries);
        if !all.all(|path| is_plain(path)) {
            return Err(SavedPlanError::Damaged);
        }
        let mut recorded = RecordedSources::default();
        recorded.trees.clone_from(&self.trees);
        recorded.directories.clone_from(&self.directories);
        recorded.links.clone_from(&self.links);
        recorded.special.clone_from(&self.special);
        for saved in &self.sources {
            let digest: Digest = saved.sha256.parse().map_err(|_| SavedPlanError::Damaged)?;
            let content = saved.content.as_deref().map(file::decode_base64).transpose()?;
            if content.as_ref().is_some_and(|content| Digest::of(content) != digest) {
                return Err(SavedPlanError::Damaged);
            }
            let file = RecordedFile { digest, content, mode: saved.mode };
            recorded.files.insert(saved.path.clone(), file);
        }
        for (url, fetched) in &self.fetched {
            let fetched = match fetched {
                SavedFetch::Text(text) => RecordedFetch::Text(text.clone()),
                SavedFetch::Tree(path) => RecordedFetch::Tree(path.clone()),
            };
            recorded.fetched.insert(url.clone(), fetched);
        }
        Ok(recorded)
    }
}

/// Whether a path is absolute and goes up nowhere.
fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == Component::ParentDir)
}
