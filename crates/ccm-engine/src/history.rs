//! Records the history of a run: the former state before each change.
//!
//! Nothing is written before the first change, so a run without changes leaves
//! no record.

use std::borrow::Cow;
use std::sync::Arc;

use ccm_host::{Host, StateDir};
use ccm_model::{Event, Summary};
use ccm_state::history::{Former, Limits, RunInfo, RunJournal, prune};
use serde_json::Value;

use crate::options::RunOptions;
use crate::owed::Route;
use crate::{Error, Result, chain};

/// Information about a run for its history.
#[derive(Clone, Debug, Default)]
pub struct HistoryInfo {
    /// The digest of the saved plan that is applied.
    pub plan: Option<String>,
    /// The run that is taken back.
    pub undo_of: Option<String>,
}

/// The history of the run that goes on.
#[derive(Default)]
pub(crate) struct History {
    /// Where it is kept; `None` if it is not.
    state: Option<StateDir>,
    info: RunInfo,
    journal: Option<Arc<RunJournal>>,
    /// The resource at work has changed something.
    has_turn: bool,
    /// Its name, if there are secrets in it.
    real_name: Option<String>,
    /// Failures before the first change.
    early: Vec<(Route, Event)>,
}

/// A resource that changes together with others: its type, its name, the
/// manifests on the way to it, and its state.
pub(crate) type GroupMember = (&'static str, String, Route, Value);

/// Failures before the first change that are kept for the history.
const MAX_EARLY: usize = 1000;

impl History {
    /// The history of a run of a manifest; without one, that of its first
    /// resource.
    pub(crate) fn new(options: &RunOptions, manifest: Option<String>) -> Self {
        let mode = options.mode;
        let is_off = mode.noop || mode.health_check_only || options.state.history.is_none();
        let Some(history) = options.state.history.as_ref().filter(|_| !is_off) else {
            return Self::default();
        };
        let Some(state) = options.state.directory.clone() else { return Self::default() };
        let host = &options.host;
        let sudo_user = host.env("SUDO_USER").and_then(|name| name.into_string().ok());
        let info = RunInfo {
            manifest: manifest.unwrap_or_default(),
            user: host.user_name(host.whoami().0).to_string(),
            sudo_user: sudo_user.filter(|_| host.is_root()),
            plan: history.plan.clone(),
            undo_of: history.undo_of.clone(),
            ..RunInfo::default()
        };
        Self { state: Some(state), info, ..Self::default() }
    }

    /// Whether changes are recorded.
    pub(crate) fn is_kept(&self) -> bool {
        self.state.is_some()
    }

    /// A resource is about to change: records what it is, and every path that
    /// it changes from now on.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be recorded; then nothing may be changed.
    pub(crate) fn before_change(
        &mut self,
        kind: &str,
        name: &str,
        route: &Route,
        former: &Former,
        host: &Host,
    ) -> Result<()> {
        let failed = |source| Error::History { source };
        let journal = match (&self.journal, &self.state) {
            (Some(journal), _) => Arc::clone(journal),
            (None, Some(state)) => {
                let state = state.clone();
                self.begin(&state, &format!("ensure {kind}#{name}"), host).map_err(failed)?
            }
            (None, None) => return Ok(()),
        };
        let redacted = |text: &str| host.redactor().name(text).into_owned();
        let route: Route = route.iter().map(|step| redacted(step)).collect();
        let shown = redacted(name);
        self.real_name = (shown != name).then(|| name.to_owned());
        let former = self.with_real_name(former);
        journal.turn(kind, &shown, &route, &former).map_err(failed)?;
        self.has_turn = true;
        host.set_journal(Some(journal));
        Ok(())
    }

    /// Resources are about to change together, before their turns: records what
    /// they are.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be recorded; then nothing may be changed.
    pub(crate) fn before_group(&mut self, members: &[GroupMember], host: &Host) -> Result<()> {
        let failed = |source| Error::History { source };
        let Some((kind, name, ..)) = members.first() else { return Ok(()) };
        let journal = match (&self.journal, &self.state) {
            (Some(journal), _) => Arc::clone(journal),
            (None, Some(state)) => {
                let state = state.clone();
                self.begin(&state, &format!("ensure {kind}#{name}"), host).map_err(failed)?
            }
            (None, None) => return Ok(()),
        };
        let redacted = |text: &str| host.redactor().name(text).into_owned();
        let shown: Vec<GroupMember> = members
            .iter()
            .map(|(kind, name, route, state)| {
                let (shown, mut state) = (redacted(name), state.clone());
                if shown != *name {
                    state["name"] = name.as_str().into();
                }
                (*kind, shown, route.iter().map(|step| redacted(step)).collect(), state)
            })
            .collect();
        let members = shown.iter();
        let members = members.map(|(kind, name, route, state)| (*kind, &**name, &**route, state));
        journal.ahead(members).map_err(failed)
    }

    /// Begins the journal, with what failed before. A run without a manifest is
    /// known by its first change.
    fn begin(
        &mut self,
        state: &StateDir,
        first: &str,
        host: &Host,
    ) -> ccm_host::Result<Arc<RunJournal>> {
        let mut info = RunInfo { started: host.now(), boot: host.boot_id(), ..self.info.clone() };
        if info.manifest.is_empty() {
            info.manifest = host.redactor().text(first).into();
        }
        let journal = RunJournal::begin(state, info, Limits::default())?;
        for (route, event) in self.early.drain(..) {
            journal.turn(&event.kind, &event.name, &route, &Former::Files)?;
            journal.event(&event, None);
        }
        self.journal = Some(Arc::clone(&journal));
        Ok(journal)
    }

    /// The resource is as the change has left it.
    pub(crate) fn after_change(&self, now: &Former) {
        // What is new and secret is kept nowhere.
        if let (Some(journal), Former::Properties(now) | Former::Sealed { properties: now, .. }) =
            (&self.journal, &*self.with_real_name(now))
        {
            journal.complete_state(now);
        }
    }

    /// Undo finds a resource by its name, so that is among its properties if the
    /// journal shows it redacted.
    fn with_real_name<'f>(&self, former: &'f Former) -> Cow<'f, Former> {
        let Some(name) = &self.real_name else { return Cow::Borrowed(former) };
        let mut named = former.clone();
        match &mut named {
            Former::Properties(properties) | Former::Sealed { properties, .. } => {
                properties["name"] = name.as_str().into();
            }
            Former::Files | Former::Lost(_) => {}
        }
        Cow::Owned(named)
    }

    /// A resource's turn is over, in success or not.
    pub(crate) fn end_turn(&mut self, host: &Host) {
        if self.has_turn {
            host.set_journal(None);
        }
    }

    /// Records the event of a resource.
    pub(crate) fn event(&mut self, event: &Event, route: &Route, diff: Option<&str>) {
        if !self.is_kept() {
            return;
        }
        let has_turn = std::mem::take(&mut self.has_turn);
        match &self.journal {
            Some(journal) if has_turn => journal.event(event, diff),
            // Nothing of it is to be taken back: it was not changed.
            Some(journal)
                if event.failed
                    && journal.turn(&event.kind, &event.name, route, &Former::Files).is_ok() =>
            {
                journal.event(event, None);
            }
            None if event.failed && self.early.len() < MAX_EARLY => {
                self.early.push((route.clone(), event.clone()));
            }
            _ => {}
        }
    }

    /// Ends the run, and drops runs that are too old or too many.
    pub(crate) fn finish(&mut self, summary: &Summary, host: &Host) {
        let (Some(state), Some(journal)) = (&self.state, self.journal.take()) else { return };
        let now = host.now();
        if let Err(error) = journal.finish(now, summary) {
            host.warn(format!("{}; the history of this run is not complete", chain(&error)));
            return;
        }
        let current = Some((journal.id(), journal.stored()));
        if let Err(error) = prune(state, Limits::default(), now, current) {
            host.warn(format!("{}; old runs stay in the history", chain(&error)));
        }
    }
}
