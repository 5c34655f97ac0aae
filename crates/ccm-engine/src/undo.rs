//! Undoes a run: restores what it changed in reverse order, except what was
//! changed since.

mod choice;
mod judge;
mod paths;
mod undone;

use std::borrow::Cow;
use std::time::Instant;

use ccm_model::{Diagnostic, Event, Request, Verb, did_you_mean};
use ccm_state::history::{RecordedRun, RecordedTurn};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::options::RunOptions;
use crate::plan::{PlanRecorder, Planned};
use crate::run::{NoObserver, Observer, Run, Stop};
use crate::session::NoSession;
use crate::{Error, chain};
pub use choice::find_run;
pub(crate) use choice::{already_undone, choose_undo};
use paths::PathUndo;

/// Options of an undo.
#[derive(Clone, Debug, Default)]
pub struct UndoOptions {
    /// Only these resources, as `type#name`; all if empty.
    pub only: Vec<String>,
    /// Also restore what was changed since the run.
    pub force: bool,
}

/// Why a run cannot be undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// A selected resource that the run did not change.
    #[error("the run {id} did not change `{name}`")]
    NotChanged {
        /// The run.
        id: String,
        /// The selected resource.
        name: String,
        /// A name that was perhaps meant.
        hint: Option<String>,
    },
    /// There is no such run.
    #[error("{message}")]
    NoRun {
        /// Why.
        message: String,
    },
    /// The data that templates see cannot be resolved.
    #[error("cannot resolve data")]
    Data(#[from] ccm_hiera::Error),
    /// The history cannot be read.
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
}

impl UndoError {
    /// No run has changed anything.
    pub(crate) fn none() -> Self {
        Self::NoRun { message: "there is no run to undo".to_owned() }
    }

    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotChanged { hint, id, .. } => {
                hint.clone().or_else(|| Some(format!("`ccm history show {id}` lists what it did")))
            }
            Self::NoRun { .. } => Some("`ccm history` lists the runs that are kept".to_owned()),
            Self::Data(_) => None,
            Self::Host(error) => error.hint(),
        }
    }
}

impl Engine {
    /// Undoes an earlier run; in noop mode, previews the undo.
    ///
    /// # Errors
    ///
    /// Fails if something was selected that the run did not change. Nothing was
    /// changed then.
    pub fn undo(
        &self,
        run: &RecordedRun,
        undo: &UndoOptions,
        options: &RunOptions,
        observer: &mut dyn Observer,
    ) -> Result<Planned, UndoError> {
        check_selection(run, undo)?;
        options.host.add_secrets(run.secrets.iter().cloned());
        let mut recorder = PlanRecorder::new(observer);
        let mut none = NoSession;
        let mut undoing = self.start(options, &mut none, &mut recorder)?;
        undoing.keep_events();
        let mut stop = None;
        let mut paths = PathUndo::new(run, options, undoing.host(), undo.force);
        for (number, turn) in run.turns.iter().enumerate().rev() {
            if !is_selected(undo, turn) {
                continue;
            }
            if let Some(reason) = options.host.cancel().reason() {
                stop = Some(Stop::Cancelled(reason));
                break;
            }
            match &turn.state {
                Some((before, after)) => {
                    self.undo_state(turn, before, after.as_ref(), undo, &mut undoing);
                }
                None => undoing.undo_files(turn, number, &mut paths),
            }
        }
        let mut finished = undoing.finish();
        finished.report.manifest = format!("undo of {}", run.info.id);
        finished.stop = stop;
        let plan = recorder.into_plan(&finished, &options.host);
        Ok(Planned { plan, finished })
    }

    /// Brings back the former state of a resource that has one beside files.
    fn undo_state(
        &self,
        turn: &RecordedTurn,
        before: &Value,
        after: Option<&Value>,
        undo: &UndoOptions,
        run: &mut Run<'_>,
    ) {
        if after == Some(before) {
            if let Some(verb) = turn.event.as_ref().and_then(|event| event.verbs.first())
                && matches!(verb, Verb::Restarted | Verb::Reloaded)
            {
                let name = display(turn);
                let word = if *verb == Verb::Reloaded { "reload" } else { "restart" };
                run.warn(&format!(
                    "{name} was {word}ed by the run; {word} it if it reads files that are restored"
                ));
            }
            return;
        }
        let is_there = |wanted: &Value| self.is_in_state(turn, wanted, run.options());
        if !undo.force
            && let Some(after) = after
            && !is_there(after)
            && !is_there(before)
        {
            let left = words(after);
            let reason = format!("it is no longer as the run left it ({left})");
            run.conflict(turn, vec![reason]);
            return;
        }
        match request(turn, before) {
            Ok(source) => run.undo_by_request(turn, &source),
            Err(reason) => run.conflict(turn, vec![reason]),
        }
    }

    /// Whether a resource is as these properties say.
    fn is_in_state(&self, turn: &RecordedTurn, wanted: &Value, options: &RunOptions) -> bool {
        let mut options = options.clone();
        options.mode.noop = true;
        let Ok(source) = request(turn, wanted) else { return false };
        let Ok(request) = Request::parse(&source) else { return false };
        let (mut none, mut nobody) = (NoSession, NoObserver);
        let looked = self.ensure(request, &options, &mut none, &mut nobody);
        looked.is_ok_and(|(event, _)| !event.changed && !event.failed)
    }
}

/// A request for a resource with these properties.
fn request(turn: &RecordedTurn, properties: &Value) -> Result<ccm_yaml::Source, String> {
    let Value::Object(properties) = properties else {
        return Err("its former state was not recorded".to_owned());
    };
    let mut properties = properties.clone();
    properties.entry("name").or_insert_with(|| turn.name.as_str().into());
    let request = json!({
        "protocol": Request::PROTOCOL,
        "type": turn.kind,
        "properties": properties,
    });
    Ok(ccm_yaml::Source::new("undo", request.to_string()))
}

fn words(properties: &Value) -> String {
    let Value::Object(map) = properties else { return String::new() };
    let word = |(key, value): (&String, &Value)| match value {
        Value::String(text) => format!("{key}: {text}"),
        value => format!("{key}: {value}"),
    };
    let told = map.iter().filter(|(key, _)| *key != "name");
    told.map(word).collect::<Vec<_>>().join(", ")
}

/// What a resource is called, without what was secret in the run.
fn display(turn: &RecordedTurn) -> String {
    let name = turn.event.as_ref().map_or(&turn.name, |event| &event.name);
    format!("{}#{name}", turn.kind)
}

fn is_selected(undo: &UndoOptions, turn: &RecordedTurn) -> bool {
    undo.only.is_empty() || undo.only.iter().any(|name| is_called(turn, name))
}

fn is_called(turn: &RecordedTurn, name: &str) -> bool {
    let alias = turn.event.as_ref().and_then(|event| event.alias.as_ref());
    // Everything below the manifest that an `apply` resource names.
    let is_below = name
        .strip_prefix("apply#")
        .is_some_and(|manifest| turn.route.iter().any(|step| step == manifest));
    let is_alias = alias.is_some_and(|alias| {
        alias == name || name.split_once('#') == Some((turn.kind.as_str(), alias.as_str()))
    });
    // A name with secrets is recorded without them, and the path with them.
    let paths = turn.paths.iter().map(|change| change.path.to_string_lossy());
    let mut names = paths.chain([Cow::Borrowed(turn.name.as_str())]);
    let is_named = names.any(|own| name.split_once('#') == Some((turn.kind.as_str(), &own)));
    is_below || is_alias || display(turn) == name || is_named
}

fn check_selection(run: &RecordedRun, undo: &UndoOptions) -> Result<(), UndoError> {
    for name in &undo.only {
        if !run.turns.iter().any(|turn| is_called(turn, name)) {
            let below = run.turns.iter().flat_map(|turn| &turn.route);
            let below = below.map(|manifest| format!("apply#{manifest}"));
            let known: Vec<String> = run.turns.iter().map(display).chain(below).collect();
            let hint = did_you_mean(name, known.iter().map(String::as_str));
            return Err(UndoError::NotChanged {
                id: run.info.id.clone(),
                name: name.clone(),
                hint,
            });
        }
    }
    Ok(())
}

impl Run<'_> {
    /// Takes back the changes of files, or says why not.
    fn undo_files(&mut self, turn: &RecordedTurn, number: usize, paths: &mut PathUndo<'_>) {
        let begin = Instant::now();
        let noop = self.options().mode.noop;
        if turn.paths.is_empty() && turn.lost.is_empty() {
            return;
        }
        let host = self.options().host.clone();
        let result = if noop || turn.paths.is_empty() { Ok(()) } else { self.record_undo(turn) };
        let mut undone = undone::Undone::default();
        let mut errors: Vec<String> = Vec::new();
        match result {
            Ok(()) => undone = paths.undo(turn, number),
            Err(error) => errors.push(with_hint(&error)),
        }
        self.end_turn();
        errors.extend(std::mem::take(&mut undone.errors));
        let name = |(what, reason): &(String, String)| match what.as_str() {
            "" => format!("cannot be undone: {reason}"),
            what => format!("cannot be undone: {what}: {reason}"),
        };
        errors.extend(turn.lost.iter().map(name));
        if errors.is_empty() && undone.is_nothing() {
            return;
        }
        let mut event = self.event(turn);
        event.changed = errors.is_empty();
        event.failed = !errors.is_empty();
        event.error = errors;
        event.verbs = undone.verbs();
        event.changes = undone.changes(&host);
        if noop && !event.failed {
            event.noop_message = Some("Would have restored the former state".to_owned());
        }
        event.duration = begin.elapsed();
        self.add(event);
    }

    /// Takes back a resource by asking for what it was.
    fn undo_by_request(&mut self, turn: &RecordedTurn, source: &ccm_yaml::Source) {
        let event = Request::parse(source).and_then(|request| self.ensure(request));
        match event {
            Ok(event) => {
                self.keep(event);
                let lost: Vec<String> = turn
                    .lost
                    .iter()
                    .map(|(_, reason)| format!("cannot be undone: {reason}"))
                    .collect();
                if !lost.is_empty() {
                    self.conflict(turn, lost);
                }
            }
            Err(error) => {
                let reasons = error.messages().map(|(message, _)| message).collect();
                self.conflict(turn, reasons);
            }
        }
    }

    /// Says why something is left as it is.
    fn conflict(&mut self, turn: &RecordedTurn, reasons: Vec<String>) {
        let event = Event { failed: true, error: reasons, ..self.event(turn) };
        self.add(event);
    }

    fn event(&self, turn: &RecordedTurn) -> Event {
        let recorded = turn.event.as_ref();
        let options = self.options();
        Event {
            protocol: Cow::Borrowed(Event::PROTOCOL),
            kind: Cow::Owned(turn.kind.clone()),
            name: recorded.map_or_else(|| turn.name.clone(), |event| event.name.clone()),
            alias: recorded.and_then(|event| event.alias.clone()),
            provider: recorded.map(|event| event.provider.clone()).unwrap_or_default(),
            noop: options.mode.noop,
            timestamp: options.host.now(),
            ..Event::default()
        }
    }

    fn warn(&mut self, message: &str) {
        self.warning(&Diagnostic::warning(message));
    }
}

/// What went wrong, and what to do.
fn with_hint(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{} ({hint})", chain(error)),
        None => chain(error),
    }
}
