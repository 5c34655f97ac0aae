//! Undoes a run: restores what it changed in reverse order, except what was
//! changed since.

mod blocked;
mod choice;
mod judge;
mod links;
mod order;
mod paths;
mod refresh;
mod undone;

use std::borrow::Cow;
use std::time::Instant;

use ccm_model::{Diagnostic, Event, Request, ResourceRef, Severity, Verb, did_you_mean};
use ccm_state::history::{RecordedRun, RecordedTurn};
use serde_json::{Value, json};

use crate::engine::Engine;
use crate::options::RunOptions;
use crate::plan::{PlanRecorder, Planned};
use crate::run::{NoObserver, Observer, Run, Stop};
use crate::session::NoSession;
use crate::{Error, chain};
use blocked::{Pass, blocked};
pub use choice::find_run;
pub(crate) use choice::{already_undone, choose_undo};
use paths::PathUndo;
use refresh::{OwedByRun, Reaction};

/// Options of an undo.
#[derive(Clone, Debug, Default)]
pub struct UndoOptions {
    /// Only these resources, as `type#name`; all if empty.
    pub only: Vec<String>,
    /// Also restore what was changed since the run.
    pub force: bool,
    /// Restore the rest even if the run contains steps that cannot be undone and
    /// that came after it, or reacted to it.
    pub partial: bool,
    /// Also let what reacted to the run react to its undo.
    pub refresh: bool,
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
    /// The run contains steps that cannot be undone, and that may rely on what
    /// would be restored.
    #[error("cannot undo all of the run {id}: nothing was changed{}", listed(steps))]
    Partial {
        /// The run.
        id: String,
        /// The steps, and what each has to do with the rest.
        steps: Vec<String>,
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
            Self::Partial { .. } => Some(
                "restore the rest with `--partial`, or single resources with `--only TYPE#NAME`; \
                 ccm leaves the effects of these steps as they are"
                    .to_owned(),
            ),
            Self::NoRun { .. } => Some("`ccm history` lists the runs that are kept".to_owned()),
            Self::Data(_) => None,
            Self::Host(error) => error.hint(),
        }
    }
}

/// One step per line.
fn listed(steps: &[String]) -> String {
    steps.iter().map(|step| format!("\n  {step}")).collect()
}

impl Engine {
    /// Undoes an earlier run; in noop mode, previews the undo. Where `partial` is
    /// needed and not set, a preview has the reason among the errors of its
    /// report, and shows what would be restored with it.
    ///
    /// # Errors
    ///
    /// Fails if something was selected that the run did not change, or if
    /// `partial` is needed. Nothing was changed then.
    pub fn undo(
        &self,
        run: &RecordedRun,
        undo: &UndoOptions,
        options: &RunOptions,
        observer: &mut dyn Observer,
    ) -> Result<Planned, UndoError> {
        check_selection(run, undo)?;
        options.host.add_secrets(run.secrets.iter().cloned());
        let noop = options.mode.noop;
        // What cannot be undone may show only when it is tried.
        let is_checked = !noop && !undo.partial;
        if is_checked && let Some(refusal) = self.refusal(run, undo, options)? {
            return Err(refusal);
        }
        let mut recorder = PlanRecorder::new(observer);
        let mut none = NoSession;
        let mut undoing = self.start(options, &mut none, &mut recorder)?;
        undoing.keep_events();
        let (pass, stop) = self.take_back(run, undo, &mut undoing)?;
        let mut finished = undoing.finish();
        finished.report.manifest = format!("undo of {}", run.info.id);
        finished.stop = stop;
        let mut plan = recorder.into_plan(&finished, &options.host);
        let steps = if noop && !undo.partial { blocked(run, undo, &pass) } else { Vec::new() };
        if !steps.is_empty() {
            let refusal = UndoError::Partial { id: run.info.id.clone(), steps };
            let error = Diagnostic {
                severity: Severity::Error,
                hint: refusal.hint(),
                ..Diagnostic::warning(refusal.to_string())
            };
            plan.errors.push(error.clone());
            finished.report.errors.push(error);
        }
        Ok(Planned { plan, finished })
    }

    /// Why a run is not undone without `partial`, if so.
    fn refusal(
        &self,
        run: &RecordedRun,
        undo: &UndoOptions,
        options: &RunOptions,
    ) -> Result<Option<UndoError>, UndoError> {
        let mut preview = self.options(options.host.cancel().clone());
        preview.mode.noop = true;
        preview.host.add_secrets(run.secrets.iter().cloned());
        let undo = UndoOptions { refresh: false, ..undo.clone() };
        let (mut none, mut nobody) = (NoSession, NoObserver);
        let mut previewing = self.start(&preview, &mut none, &mut nobody)?;
        let (pass, _) = self.take_back(run, &undo, &mut previewing)?;
        let steps = blocked(run, &undo, &pass);
        let id = || run.info.id.clone();
        Ok((!steps.is_empty()).then(|| UndoError::Partial { id: id(), steps }))
    }

    /// Takes the resources of a run back, each in its turn, and lets others react.
    fn take_back(
        &self,
        recorded: &RecordedRun,
        undo: &UndoOptions,
        run: &mut Run<'_>,
    ) -> Result<(Pass, Option<Stop>), UndoError> {
        let options = run.options().clone();
        let mut pass = Pass::default();
        let order = order::order(recorded, &options.host, |turn| is_selected(undo, turn));
        let reactions = if undo.refresh { self.reactions(recorded, &options) } else { Vec::new() };
        let mut owed = OwedByRun::open(recorded, &options);
        // Those of an undo that was killed before it came to them.
        let owing: Vec<bool> = reactions.iter().map(|reaction| owed.has(reaction)).collect();
        owed.record(&reactions)?;
        let mut paths = PathUndo::new(recorded, &order, &options, run.host(), undo.force);
        let mut last = Vec::new();
        for number in order {
            if let Some(reason) = options.host.cancel().reason() {
                return Ok((pass, Some(Stop::Cancelled(reason))));
            }
            let turn = &recorded.turns[number];
            match &turn.state {
                // What is started reads what the rest of the undo restores.
                Some(_) if self.reaction_of(turn).is_some() => last.push(number),
                Some(_) => {
                    // Its files came after it, such as those of a user.
                    if !turn.paths.is_empty() {
                        run.undo_files(turn, number, &mut paths, &mut pass);
                    }
                    self.undo_state(recorded, number, undo, run, &mut pass);
                }
                None => run.undo_files(turn, number, &mut paths, &mut pass),
            }
        }
        paths.remove_leftovers();
        for number in last {
            self.undo_state(recorded, number, undo, run, &mut pass);
        }
        for (reaction, is_owing) in reactions.iter().zip(owing) {
            let is_due = is_owing || reaction.is_due(&pass);
            if !is_due || run.react(recorded, reaction) {
                owed.mark_done(reaction);
            }
        }
        owed.clear_undone(&pass);
        owed.close();
        Ok((pass, None))
    }

    /// Brings back the former state of a resource that has one beside files.
    fn undo_state(
        &self,
        recorded: &RecordedRun,
        number: usize,
        undo: &UndoOptions,
        run: &mut Run<'_>,
        pass: &mut Pass,
    ) {
        let turn = &recorded.turns[number];
        let Some((shown, after)) = &turn.state else { return };
        let before = match recorded.former_properties(turn) {
            Ok(Some(before)) => before,
            Ok(None) => {
                let reason = "its former state is no longer in the history".to_owned();
                run.conflict(turn, vec![reason.clone()]);
                pass.lost.insert(number, reason);
                return;
            }
            Err(error) => {
                run.conflict(turn, vec![chain(&error)]);
                pass.lost.insert(number, chain(&error));
                return;
            }
        };
        let before = &before;
        if after.as_ref() == Some(shown) && turn.sealed.is_none() {
            pass.back.insert(number);
            if let Some(verb) = turn.event.as_ref().and_then(|event| event.verbs.first())
                && !undo.refresh
                && matches!(verb, Verb::Restarted | Verb::Reloaded)
            {
                let name = display(turn);
                let word = if *verb == Verb::Reloaded { "reload" } else { "restart" };
                run.warn(&format!(
                    "{name} was {word}ed by the run; {word} it if it reads files that are \
                     restored, or undo with `--refresh`"
                ));
            }
            return;
        }
        let is_there = |wanted: &Value| self.is_in_state(turn, wanted, run.options());
        let is_back = is_there(before);
        if !undo.force
            && let Some(after) = after
            && !is_back
            && !is_there(after)
        {
            let left = words(after);
            let reason = format!("it is no longer as the run left it ({left})");
            run.conflict(turn, vec![reason]);
            return;
        }
        match request(turn, before) {
            Ok(source) => {
                if let Some(verbs) = run.undo_by_request(turn, &source) {
                    pass.back.insert(number);
                    if !is_back {
                        pass.restored.insert(number);
                    }
                    if verbs.contains(&Verb::Started) {
                        pass.started.insert(number);
                    }
                } else {
                    pass.lost.insert(number, "its former state cannot be restored".to_owned());
                }
            }
            Err(reason) => {
                run.conflict(turn, vec![reason.clone()]);
                pass.lost.insert(number, reason);
            }
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
    undo.only.is_empty() || undo.only.iter().any(|selector| is_match(turn, selector))
}

/// Whether a selector means a resource: by its name, or by the beginning of it with
/// a `*` behind.
fn is_match(turn: &RecordedTurn, selector: &str) -> bool {
    if is_called(turn, selector) {
        return true;
    }
    let Some(start) = selector.strip_suffix('*') else { return false };
    let alias = turn.event.as_ref().and_then(|event| event.alias.as_ref());
    let kind = &turn.kind;
    let aliases = alias.into_iter().flat_map(|alias| [alias.clone(), format!("{kind}#{alias}")]);
    let paths = turn.paths.iter().map(|change| format!("{kind}#{}", change.path.display()));
    let above = turn.route.iter().map(|manifest| format!("apply#{manifest}"));
    let own = [display(turn), format!("{kind}#{}", turn.name)];
    own.into_iter().chain(aliases).chain(paths).chain(above).any(|name| name.starts_with(start))
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
        if !run.turns.iter().any(|turn| is_match(turn, name)) {
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
    fn undo_files(
        &mut self,
        turn: &RecordedTurn,
        number: usize,
        paths: &mut PathUndo<'_>,
        pass: &mut Pass,
    ) {
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
        if !undone.is_nothing() {
            pass.restored.insert(number);
        }
        if errors.is_empty() {
            pass.back.insert(number);
        }
        if undone.is_held {
            pass.held.insert(number);
        }
        if undone.has_lost {
            pass.lost.insert(number, errors.first().cloned().unwrap_or_default());
        }
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

    /// Takes back a resource by asking for what it was. If it is that now, returns
    /// what was done to it.
    fn undo_by_request(
        &mut self,
        turn: &RecordedTurn,
        source: &ccm_yaml::Source,
    ) -> Option<Vec<Verb>> {
        let event = Request::parse(source).and_then(|request| self.ensure(request));
        match event {
            Ok(event) => {
                let is_done = !event.failed && turn.lost.is_empty();
                let verbs = event.verbs.clone();
                self.keep(event);
                let lost: Vec<String> = turn
                    .lost
                    .iter()
                    .map(|(_, reason)| format!("cannot be undone: {reason}"))
                    .collect();
                if !lost.is_empty() {
                    self.conflict(turn, lost);
                }
                is_done.then_some(verbs)
            }
            Err(error) => {
                let reasons = error.messages().map(|(message, _)| message).collect();
                self.conflict(turn, reasons);
                None
            }
        }
    }

    /// Lets a resource react to what was restored. Returns whether it has.
    fn react(&mut self, run: &RecordedRun, reaction: &Reaction) -> bool {
        let because = refresh::references(run, &reaction.causes);
        let event = request(&reaction.turn, &reaction.properties)
            .and_then(|source| self.reacting(&source, because));
        match event {
            Ok(event) => {
                let is_done = !event.failed;
                self.keep(event);
                is_done
            }
            Err(reason) => {
                self.conflict(&reaction.turn, vec![reason]);
                false
            }
        }
    }

    fn reacting(
        &mut self,
        source: &ccm_yaml::Source,
        because: Vec<ResourceRef>,
    ) -> Result<Event, String> {
        let wrong = |error: ccm_model::RequestError| {
            let messages: Vec<String> = error.messages().map(|(message, _)| message).collect();
            messages.join("; ")
        };
        let request = Request::parse(source).map_err(wrong)?;
        self.ensure_because(request, because).map_err(wrong)
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
