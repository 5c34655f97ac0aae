//! The engine: the entry point for all commands.

use std::path::{Path, PathBuf};

use ccm_host::{Cancel, System};
use ccm_model::{Event, Request, RequestError};
use ccm_yaml::{Node, Source};
use serde_json::Value;

use crate::decision_log::DecisionPolicy;
use crate::inputs::Inputs;
use crate::manifest::{Manifest, ManifestError, ManifestLoader, SourceRef};
use crate::manifest_run::{Above, Child, MAX_DEPTH, Mode, load_child};
use crate::options::RunOptions;
use crate::owed::RunState;
use crate::plan::{PlanRecorder, Planned};
use crate::request::{StatusError, read_status};
use crate::resource::AnyType;
use crate::resource_type::{Detail, Diffs};
use crate::run::{Finished, Observer, Run, run_manifest};
use crate::selection::Selection;
use crate::session::Session;
use crate::state_access::StateError;

/// Everything that outlives a run. Cheap to clone, and shared between threads.
#[derive(Clone)]
pub struct Engine {
    system: System,
    types: &'static [&'static dyn AnyType],
}

impl Engine {
    /// Creates an engine with these types.
    pub fn new(system: System, types: &'static [&'static dyn AnyType]) -> Self {
        Self { system, types }
    }

    /// The same engine for checks, which connects to nothing.
    #[must_use]
    pub fn offline(&self) -> Self {
        Self { system: self.system.clone().offline(), types: self.types }
    }

    /// The types of this engine.
    pub fn types(&self) -> &'static [&'static dyn AnyType] {
        self.types
    }

    /// Options for one run, which `cancel` stops: a real run that sees no data
    /// but that of its manifest.
    pub fn options(&self, cancel: Cancel) -> RunOptions {
        let host = self.system.begin(cancel);
        let working_directory = host.current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        RunOptions {
            host,
            mode: Mode::default(),
            max_depth: MAX_DEPTH,
            diffs: Diffs::None,
            decisions: DecisionPolicy::Free,
            skips_post: false,
            groups: true,
            selection: Selection::default(),
            detail: Detail::Decide,
            inputs: Inputs::default(),
            working_directory,
            has_history: false,
            register: None,
            state: RunState::default(),
        }
    }

    pub(crate) fn loader<'a>(&self, options: &'a RunOptions) -> ManifestLoader<'a> {
        let RunOptions { host, inputs, has_history, .. } = options;
        ManifestLoader { host, types: self.types, inputs, has_history: *has_history }
    }

    /// Reads and checks a manifest, wherever it is.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read, or all errors in it.
    pub fn load(
        &self,
        source: &SourceRef,
        options: &RunOptions,
    ) -> Result<Manifest, ManifestError> {
        self.loader(options).load(source)
    }

    /// Reads and checks the manifest `path` of a tarball that was fetched from
    /// `url` and unpacked before. It is the same manifest as that of the URL.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read, or all errors in it.
    pub fn load_copy(
        &self,
        path: &Path,
        url: &str,
        options: &RunOptions,
    ) -> Result<Manifest, ManifestError> {
        self.loader(options).load_copy(path, url)
    }

    /// Checks the text of a manifest as if it were in the file `path`.
    ///
    /// # Errors
    ///
    /// Returns all errors in it.
    pub fn load_text(
        &self,
        path: &Path,
        text: String,
        options: &RunOptions,
    ) -> Result<Manifest, ManifestError> {
        self.load_named(&path.display().to_string(), path, text, options)
    }

    /// As [`Engine::load_text`], with a display name instead of the path.
    ///
    /// # Errors
    ///
    /// Returns all errors in it.
    pub fn load_named(
        &self,
        name: &str,
        path: &Path,
        text: String,
        options: &RunOptions,
    ) -> Result<Manifest, ManifestError> {
        self.load_seen(name, path, text, options, &mut |_, _| {})
    }

    /// As [`Engine::load_named`]. If the text is YAML, `see` gets its tree before
    /// it is checked.
    ///
    /// # Errors
    ///
    /// Returns all errors in it.
    pub fn load_seen(
        &self,
        name: &str,
        path: &Path,
        text: String,
        options: &RunOptions,
        see: &mut dyn FnMut(&Source, &Node<'_>),
    ) -> Result<Manifest, ManifestError> {
        self.loader(options).load_text(name, path, text, see)
    }

    /// Reads and checks the manifest that a resource of `manifest` applies.
    /// `inputs` are those of `manifest`.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read, or all errors in it.
    pub fn load_child(
        &self,
        manifest: &Manifest,
        child: &Child<'_>,
        inputs: &Inputs,
        options: &RunOptions,
    ) -> Result<Manifest, ManifestError> {
        let above = Above {
            templates: &manifest.templates,
            path: manifest.working_directory.join(child.path),
            remote: manifest.remote.clone(),
        };
        load_child(&options.host, self.types, inputs, child, above)
    }

    /// Applies a manifest, or previews it where the options say so. Without a
    /// session, references are met by the run itself.
    pub fn apply(
        &self,
        manifest: Manifest,
        options: &RunOptions,
        session: Option<&mut dyn Session>,
        observer: &mut dyn Observer,
    ) -> Finished {
        run_manifest(self.types, manifest, options, session, observer)
    }

    /// Previews a manifest: what applying it would do to each resource, given
    /// what the resources before it would do. Changes nothing.
    pub fn plan(
        &self,
        manifest: Manifest,
        options: &RunOptions,
        observer: &mut dyn Observer,
    ) -> Planned {
        let mode = Mode { noop: true, ..options.mode };
        // A saved plan compares whole states.
        let is_saved = options.decisions.are_watched();
        let detail = if is_saved { Detail::Report } else { options.detail };
        let options = RunOptions { mode, detail, ..options.clone() };
        self.preview(manifest, &options, None, observer)
    }

    /// Applies a manifest in noop, as the options and the session say, and
    /// collects what it would do.
    pub fn preview(
        &self,
        manifest: Manifest,
        options: &RunOptions,
        session: Option<&mut dyn Session>,
        observer: &mut dyn Observer,
    ) -> Planned {
        let mode = Mode { noop: true, ..options.mode };
        let options = RunOptions { mode, ..options.clone() };
        let mut recorder = PlanRecorder::new(observer);
        let finished = run_manifest(self.types, manifest, &options, session, &mut recorder);
        let plan = recorder.into_plan(&finished, &options.host);
        Planned { plan, finished }
    }

    /// Begins a run that takes requests one after the other.
    ///
    /// # Errors
    ///
    /// Returns why the data that templates see cannot be resolved.
    pub fn start<'a>(
        &self,
        options: &RunOptions,
        session: &'a mut dyn Session,
        observer: &'a mut dyn Observer,
    ) -> Result<Run<'a>, ccm_hiera::Error> {
        Run::new(self.types, options, session, observer)
    }

    /// Manages one resource.
    ///
    /// # Errors
    ///
    /// Returns all errors in the request. Nothing was changed then.
    pub fn ensure(
        &self,
        request: Request<'_>,
        options: &RunOptions,
        session: &mut dyn Session,
        observer: &mut dyn Observer,
    ) -> Result<(Event, Finished), EnsureError> {
        let mut run = self.start(options, session, observer)?;
        let event = run.ensure(request)?;
        Ok((event, run.finish()))
    }

    /// The current state of one resource.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the request, or why the machine did not answer.
    pub fn status(&self, request: Request<'_>, options: &RunOptions) -> Result<Value, StatusError> {
        let RunOptions { host, inputs, working_directory, .. } = options;
        let templates = inputs.templates(host, working_directory)?;
        let resource = read_status(request, self.types, &templates)?;
        Ok(resource.status(host, working_directory, &templates)?)
    }
}

/// Why a resource could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum EnsureError {
    /// The request is wrong.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The data that templates see cannot be resolved.
    #[error("cannot resolve data")]
    Data(#[from] ccm_hiera::Error),
    /// The state directory cannot be used, or another run goes on.
    #[error(transparent)]
    State(#[from] StateError),
}
