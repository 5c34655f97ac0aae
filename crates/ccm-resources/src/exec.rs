//! The type `exec`: runs commands, with guards that make them idempotent.

mod assignment;
mod command_line;
mod posix;
mod retry;
mod script;
mod shell;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ccm_engine::{
    CommandLine, Context, Declare, Ensure, Error, Extent, Findings, Former, ManagedPath,
    ONLY_IN_THE_RUN, Prediction, ProviderDef, ResourceType, Result, Step, Trigger,
};
use ccm_host::{Command, Environment, Exit, Host, Identity, Output, Reach};
use ccm_model::{Change, Common, ResourceRef, Stage, Verb, duration, has_placeholder, shellquote};
use serde::{Deserialize, Serialize};

use assignment::Assignment;
use retry::{Attempt, Retry};
use script::Script;

/// The `exec` type.
pub struct Exec;

/// Run commands
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// Command to run; defaults to the name
    #[property(template = deferred, format = Command, group = "Command")]
    pub(crate) command: Option<Script>,
    /// Directory to run the command in
    #[property(template = deferred, value = "DIR", format = Path, group = "Command")]
    pub(crate) cwd: Option<String>,
    /// Environment variables to add, as `KEY=value`
    #[property(
        secret_values,
        template = deferred,
        short = 'e',
        value = "KEY=VALUE",
        format = Assignment,
        group = "Command"
    )]
    pub(crate) environment: Vec<Assignment>,
    /// Search path for executables, separated by colons
    #[property(group = "Command")]
    pub(crate) path: Option<String>,
    /// Exit codes that mean success; defaults to 0
    #[property(value = "CODE", group = "Command")]
    pub(crate) returns: Vec<i32>,
    /// Timeout of the command, such as `30s` or `5m`
    #[property(value = "DURATION", cli_default = "1m", format = Duration, group = "Command")]
    pub(crate) timeout: Option<String>,
    /// User to run the command and its guards as, by name or ID
    #[property(format = User, group = "Command")]
    pub(crate) user: Option<String>,
    /// Group to run the command and its guards with, by name or ID; defaults to
    /// the primary group of `user`
    #[property(format = Group, group = "Command")]
    pub(crate) group: Option<String>,
    /// Permissions in octal that new files do not get; `0022` with `user` or
    /// `group`
    #[property(format = Mode, group = "Command")]
    pub(crate) umask: Option<String>,
    /// How often to try until the command succeeds, 100 at most; defaults to 1
    #[property(value = "N", format = Within(1, 100), group = "Command")]
    pub(crate) tries: Option<i32>,
    /// Time between two tries; defaults to `1s`
    #[property(value = "DURATION", format = Duration, group = "Command")]
    pub(crate) try_sleep: Option<String>,
    /// Skip the command if this file exists and no subscribed resource changed
    #[property(template = deferred, value = "FILE", format = Path, group = "When to run")]
    pub(crate) creates: Option<String>,
    /// Guard: run only if this command exits 0
    #[property(
        template = deferred,
        flag = "exec-if",
        value = "COMMAND",
        format = Command,
        group = "When to run"
    )]
    pub(crate) onlyif: Option<Script>,
    /// Guard: run only if this command does not exit 0
    #[property(
        template = deferred,
        flag = "exec-unless",
        value = "COMMAND",
        format = Command,
        group = "When to run"
    )]
    pub(crate) unless: Option<Script>,
    /// Run only if a subscribed resource changed
    #[property(alias = "refreshonly", group = "When to run")]
    pub(crate) refresh_only: bool,
    /// Run the command if one of these resources changed, as `type#name`
    #[property(short = 'S', value = "TYPE#NAME", group = "When to run")]
    pub(crate) subscribe: Vec<ResourceRef>,
    /// Show the command's output while it runs
    #[property(group = "Output")]
    pub(crate) logoutput: bool,
}

impl Properties {
    fn command(&self) -> &str {
        let command = self.command.as_ref().map(Script::as_str);
        command.filter(|command| !command.is_empty()).unwrap_or(&self.common.name)
    }

    fn is_shell(&self) -> bool {
        self.common.provider.as_deref() == Some(shell::NAME)
    }

    fn setting(&self) -> Setting {
        let timeout = self.timeout.as_deref().and_then(|text| duration::parse_positive(text).ok());
        Setting {
            directory: self.cwd.clone().unwrap_or_else(|| "/".to_owned()),
            environment: self.environment.iter().filter_map(Assignment::split).collect(),
            path: self.path.clone(),
            timeout: timeout.filter(|timeout| !timeout.is_zero()),
            identity: Identity {
                user: self.user.clone(),
                group: self.group.clone(),
                umask: self.umask.as_deref().and_then(parse_umask),
            },
        }
    }

    fn tries(&self) -> u32 {
        self.tries.and_then(|tries| u32::try_from(tries).ok()).unwrap_or(1)
    }

    fn retry(&self) -> Retry {
        let sleep = self.try_sleep.as_deref().and_then(|text| duration::parse_positive(text).ok());
        Retry {
            resource: format!("{}#{}", Exec::NAME, self.common.name),
            tries: self.tries(),
            sleep: sleep.unwrap_or(retry::SLEEP),
            returns: self.returns.clone(),
            creates: self.creates.clone(),
        }
    }
}

/// Directory, environment, timeout and user of a command.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    directory: String,
    environment: Vec<(String, String)>,
    path: Option<String>,
    timeout: Option<Duration>,
    identity: Identity,
}

/// Without the values of the environment, which may be secret.
impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Setting")
            .field("directory", &self.directory)
            .field("environment", &names)
            .field("path", &self.path)
            .field("timeout", &self.timeout)
            .field("identity", &self.identity)
            .finish()
    }
}

/// Runs commands for one resource, and remembers how the command itself ended.
/// The providers differ only in how a text becomes words.
pub struct Runner {
    host: Host,
    words: fn(&str) -> Result<Vec<String>>,
    /// Results of the guards before the command ran; guards run once.
    guards: Guards,
    /// In a preview: the results that an earlier resource may change.
    open: Vec<&'static str>,
    finished: Option<Attempt>,
}

/// Whether the guards hold.
#[derive(Clone, Copy, Debug, Default)]
struct Guards {
    onlyif: bool,
    unless: bool,
}

impl Runner {
    fn new(host: &Host, words: fn(&str) -> Result<Vec<String>>) -> Self {
        Self {
            host: host.clone(),
            words,
            guards: Guards::default(),
            open: Vec::new(),
            finished: None,
        }
    }

    fn run(&self, text: &str, setting: &Setting, on_line: &mut dyn FnMut(&str)) -> Result<Output> {
        let command = self.command(text, setting)?;
        Ok(self.host.run(&command, &mut |_, line| on_line(line))?)
    }

    fn command(&self, text: &str, setting: &Setting) -> Result<Command> {
        let words = (self.words)(text)?;
        let Some((program, args)) = words.split_first() else {
            return Err(Error::refused("no command specified"));
        };
        let environment =
            Environment::Inherited { add: setting.environment.clone(), path: setting.path.clone() };
        Ok(Command::new(program, args)
            .directory(&setting.directory)
            .environment(environment)
            .identity(setting.identity.clone())
            .timeout(setting.timeout))
    }

    /// Whether the file exists that shows that the command ran.
    fn created(&self, path: &Path) -> Result<Guard> {
        let result = "creates_satisfied";
        match self.host.exists(path) {
            Ok(true) => Ok(Guard { result, keeps: true, by: None }),
            Ok(false) => Ok(Guard { result, keeps: false, by: self.changer() }),
            // Below a directory that an earlier step fills.
            Err(ccm_host::Error::Unpredictable { by, .. }) => {
                Ok(Guard { result, keeps: self.host.exists_now(path)?, by: Some(by) })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Runs a guard. One that cannot run yet in a preview is left to the run, if
    /// an earlier step may change that.
    fn guarded(&self, text: &str, keeps_if: bool, setting: &Setting) -> Result<Guard> {
        let result = if keeps_if { "unless_satisfied" } else { "onlyif_satisfied" };
        let by = self.changed_by(text, setting);
        match (self.guard(text, setting), by) {
            (Ok(holds), by) => Ok(Guard { result, keeps: holds == keeps_if, by }),
            (Err(Error::Host(error)), Some(by)) if !self.host.cancel().is_cancelled() => {
                Err(Error::Missing { reason: error.to_string(), hint: error.hint(), by: Some(by) })
            }
            (Err(error), _) => Err(error),
        }
    }

    /// In a preview: the earlier resource that may change what a guard answers,
    /// because it decides about something that the guard names or works in, or may
    /// do anything.
    fn changed_by(&self, guard: &str, setting: &Setting) -> Option<Arc<str>> {
        let directory = Path::new(&setting.directory);
        let named = self.host.predicted_in(&with_paths(guard, setting), directory);
        let within =
            || self.host.predicted_below(directory).filter(|_| directory.parent().is_some());
        named.or_else(within).or_else(|| self.changer())
    }

    fn changer(&self) -> Option<Arc<str>> {
        self.host.changer().map(|supplier| supplier.origin)
    }

    /// In a preview: what the arguments and the environment of a command name may
    /// be something else afterwards. Where it looks for programs and who runs it
    /// is no such thing.
    fn predict_touched(&self, command: &str, setting: &Setting) {
        let arguments = command.trim_start().split_once(char::is_whitespace);
        let arguments = arguments.map_or("", |(_, arguments)| arguments);
        let directory = Path::new(&setting.directory);
        self.host.predict_touched(&with_paths(arguments, setting), directory);
    }

    /// Whether a guard command exits 0.
    fn guard(&self, text: &str, setting: &Setting) -> Result<bool> {
        if text.trim().is_empty() {
            return Err(Error::refused("empty guard command"));
        }
        match self.run(text, setting, &mut |_| {}) {
            Ok(Output { exit: Exit::Code(code), .. }) => Ok(code == 0),
            Ok(Output { exit: Exit::Signal(signal), .. }) => {
                Err(Error::refused(format!("the guard `{text}` was killed by signal {signal}")))
            }
            Err(Error::Refused { reason, hint }) => {
                Err(Error::Refused { reason: format!("invalid guard command: {reason}"), hint })
            }
            Err(error) => Err(error),
        }
    }
}

/// What `creates`, `onlyif` or `unless` says.
#[derive(Debug)]
struct Guard {
    /// The field of the state that has its result.
    result: &'static str,
    /// It keeps the command from running.
    keeps: bool,
    /// In a preview: the earlier resource that may change that.
    by: Option<Arc<str>>,
}

/// A command line, and the paths in the environment that it runs with.
fn with_paths(command: &str, setting: &Setting) -> String {
    let mut words = command.to_owned();
    for (name, value) in &setting.environment {
        if value.contains('/') && !name.ends_with("PATH") && name != "HOME" {
            words.push(' ');
            words.push_str(value);
        }
    }
    words
}

/// Results of the guards, and the exit of the command if it ran.
#[derive(Clone, Debug, Default, Serialize)]
pub struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    exitcode: Option<i32>,
    creates_satisfied: bool,
    onlyif_satisfied: bool,
    unless_satisfied: bool,
    #[serde(skip)]
    finished: Option<Attempt>,
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &'static str {
        "present"
    }

    fn tries(&self) -> Option<u32> {
        self.finished.as_ref().map(|attempt| attempt.tries)
    }
}

/// The one thing that can be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Execute {
    command: String,
    setting: Setting,
    /// Show the output while the command runs.
    logoutput: bool,
    via_subscribe: bool,
    retry: Retry,
}

impl fmt::Display for Execute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Would have executed")?;
        if self.via_subscribe { f.write_str(" via subscribe") } else { Ok(()) }
    }
}

impl Declare for Exec {
    type Properties = Properties;

    const NAME: &'static str = "exec";
    const ABOUT: &'static str = "Run commands";
    const NAME_DOC: &'static str = "Name of the resource, and the command if you omit `command`";
    const ENSURE: Ensure = Ensure::OneOf(&["present"]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);
    const REACH: Reach = Reach::Anything;
    const NO_STATUS: Option<&'static str> =
        Some("a command has no state of its own: it runs, or its guards keep it from running");

    fn validate(want: &Properties, stage: Stage, findings: &mut Findings) {
        // A template decides later what such a text will be.
        let settled = |text: &str| stage == Stage::Apply || !has_placeholder(text);
        let script = |script: &Option<Script>| {
            let script = script.as_ref()?;
            (stage == Stage::Apply || !script.has_placeholder()).then(|| script.as_str().to_owned())
        };
        match shellquote::split(&want.common.name) {
            Err(error) => findings.add("name", error.to_string()),
            Ok(words) if want.command.is_none() && settled(&want.common.name) => {
                if want.is_shell() {
                    warn_of_symlink_in_script("name", &want.common.name, findings);
                } else {
                    warn_of_symlink("name", &words, findings);
                    warn_of_shell_syntax("name", &want.common.name, findings);
                }
            }
            Ok(_) => {}
        }
        if let Some(command) = script(&want.command) {
            if !command.is_empty() && command.trim().is_empty() {
                let is_shell = want.is_shell();
                let message =
                    if is_shell { "no command to execute" } else { "no command specified" };
                findings.add("command", message);
            } else if want.is_shell() {
                warn_of_symlink_in_script("command", &command, findings);
            } else {
                match shellquote::split(&command) {
                    Err(error) => findings.add("command", error.to_string()),
                    Ok(words) => {
                        warn_of_symlink("command", &words, findings);
                        warn_of_shell_syntax("command", &command, findings);
                    }
                }
            }
        }
        for (property, guard) in [("onlyif", &want.onlyif), ("unless", &want.unless)] {
            let Some(guard) = script(guard) else { continue };
            if guard.trim().is_empty() {
                findings.add(property, "empty guard command");
            } else if !want.is_shell()
                && let Err(error) = shellquote::split(&guard)
            {
                findings.add(property, format!("invalid guard command: {error}"));
            }
        }
        for (property, path) in [("cwd", &want.cwd), ("creates", &want.creates)] {
            if let Some(path) = path.as_deref().filter(|text| settled(text)) {
                findings.check_path(property, path);
            }
        }
        for assignment in &want.environment {
            if settled(assignment.as_str()) && assignment.split().is_none() {
                findings.add("environment", assignment.problem());
            }
        }
        if let Some(path) = &want.path
            && !path.split(':').all(|directory| directory.starts_with('/'))
        {
            findings.add("path", format!("every directory in `{path}` must be absolute"));
        }
        if let Some(timeout) = &want.timeout
            && let Err(error) = duration::parse_positive(timeout)
        {
            findings.add("timeout", error.to_string());
        }
        for (property, name) in [("user", &want.user), ("group", &want.group)] {
            let Some(name) = name.as_deref().filter(|name| settled(name)) else { continue };
            if name.is_empty() {
                findings.add(property, format!("{property} name cannot be empty"));
            } else if name.contains(':') {
                let hint = "set `user` and `group`";
                findings.add_with_hint(property, format!("`{name}` is not a name or ID"), hint);
            }
        }
        if let Some(umask) = want.umask.as_deref().filter(|text| settled(text))
            && parse_umask(umask).is_none()
        {
            findings
                .add("umask", format!("`{umask}` is not an octal number from `0000` to `0777`"));
        }
        retry::validate(want, findings);
    }

    fn settle(want: &mut Properties) {
        let is_shell = want.is_shell();
        let scripts = [&mut want.command, &mut want.onlyif, &mut want.unless];
        for script in scripts.into_iter().flatten() {
            script.is_for_shell = is_shell;
        }
        for guard in [&mut want.onlyif, &mut want.unless] {
            guard.take_if(|guard| guard.as_str().is_empty());
        }
        for path in [&mut want.cwd, &mut want.creates].into_iter().flatten() {
            let end = path.trim_end_matches('/').len().max(1);
            path.truncate(end);
        }
    }

    fn subscribe(want: &Properties) -> &[ResourceRef] {
        &want.subscribe
    }

    fn is_refresh_only(want: &Properties) -> bool {
        want.refresh_only
    }

    /// Its command can do anything.
    fn can_create(_want: &Properties, _path: &Path) -> bool {
        true
    }

    /// Without the file that it creates, it would run again.
    fn managed_paths(want: &Properties) -> Vec<ManagedPath> {
        let managed = |path: &String| ManagedPath { path: path.into(), extent: Extent::Itself };
        want.creates.iter().map(managed).collect()
    }
}

impl ResourceType for Exec {
    type State = State;
    type Action = Execute;
    type Provider = Runner;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[posix::DEF, shell::DEF];

    fn former(_want: &Properties, _have: &State) -> Former {
        Former::Lost("ccm does not know what a command has changed")
    }

    fn observe(on: &mut Runner, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        let mut state = State::default();
        if let Some(directory) = &want.cwd {
            on.host.check_managed_directory(Path::new(directory))?;
        }
        let mut guards = Vec::new();
        if let Some(creates) = &want.creates {
            let guard = on.created(Path::new(creates))?;
            state.creates_satisfied = guard.keeps;
            guards.push(guard);
        }
        if let Some(attempt) = &on.finished {
            state.onlyif_satisfied = on.guards.onlyif;
            state.unless_satisfied = on.guards.unless;
            state.exitcode = attempt.code();
            state.finished = Some(attempt.clone());
            return Ok(state);
        }
        // What is triggered runs whatever the guards would say.
        if cx.trigger == Trigger::Refresh && cx.awaited.is_none() {
            return Ok(state);
        }
        if !state.creates_satisfied {
            let setting = want.setting();
            if let Some(guard) = &want.onlyif {
                let guard = on.guarded(guard.as_str(), false, &setting)?;
                state.onlyif_satisfied = !guard.keeps;
                guards.push(guard);
            }
            if let Some(guard) = &want.unless {
                let guard = on.guarded(guard.as_str(), true, &setting)?;
                state.unless_satisfied = guard.keeps;
                guards.push(guard);
            }
            on.guards = Guards { onlyif: state.onlyif_satisfied, unless: state.unless_satisfied };
        }
        on.open =
            guards.iter().filter(|guard| guard.by.is_some()).map(|guard| guard.result).collect();
        // What keeps it from running whatever happens before settles the matter.
        let is_settled =
            want.refresh_only || guards.iter().any(|guard| guard.keeps && guard.by.is_none());
        if !is_settled && let Some(by) = guards.iter().find_map(|guard| guard.by.clone()) {
            if guards.iter().any(|guard| guard.keeps) {
                // It may run all the same, and change what it names.
                on.predict_touched(want.command(), &want.setting());
            }
            cx.unsettled = Some(by);
        }
        Ok(state)
    }

    fn evidence(on: &mut Runner, _want: &Properties, have: &State) -> serde_json::Value {
        let mut state = serde_json::to_value(have).unwrap_or_default();
        for name in &on.open {
            state[*name] = ONLY_IN_THE_RUN.into();
        }
        state
    }

    fn decide(want: &Properties, have: &State, why: Trigger) -> Result<Vec<Step<Execute>>> {
        let is_kept_from_running = have.creates_satisfied
            || (want.onlyif.is_some() && !have.onlyif_satisfied)
            || (want.unless.is_some() && have.unless_satisfied)
            || want.refresh_only;
        if why == Trigger::Turn && is_kept_from_running {
            return Ok(vec![]);
        }
        let action = Execute {
            command: want.command().to_owned(),
            setting: want.setting(),
            logoutput: want.logoutput,
            via_subscribe: why == Trigger::Refresh,
            retry: want.retry(),
        };
        let change = Change::of("command").to(want.command());
        Ok(vec![Step::new(Verb::Executed, action).change(change)])
    }

    fn act(on: &mut Runner, action: &Execute, cx: &mut Context<'_>) -> Result<()> {
        let output = &mut cx.output;
        let mut show = |line: &str| {
            if action.logoutput {
                output(line);
            }
        };
        let run = |show: &mut dyn FnMut(&str)| on.run(&action.command, &action.setting, show);
        on.finished = Some(action.retry.run(&on.host, run, &mut show)?);
        Ok(())
    }

    fn places(want: &Properties) -> Vec<&Path> {
        want.cwd.iter().chain(&want.creates).map(Path::new).collect()
    }

    fn predict(
        on: &mut Runner,
        step: &mut Step<Execute>,
        _cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        let command = on.command(&step.action.command, &step.action.setting)?;
        on.host.check_command(&command)?;
        on.predict_touched(&step.action.command, &step.action.setting);
        Ok(Prediction::Open)
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        // The file counts first, after a run as before it.
        if have.creates_satisfied {
            return None;
        }
        have.finished.as_ref()?.problem(&want.retry(), want.command())
    }
}

/// Warns of what only a shell would understand. Whoever means the character quotes
/// it, here as in a shell.
fn warn_of_shell_syntax(property: &'static str, command: &str, findings: &mut Findings) {
    if let Some(found) = shellquote::shell_syntax(command) {
        findings.warn(
            property,
            format!("`{found}` is passed to the program as an argument, because this provider does not use a shell"),
            "set `provider: shell`, or quote the character",
        );
    }
}

/// Warns of a command whose work `file` does better: only that can be previewed and
/// undone.
fn warn_of_symlink(property: &'static str, words: &[String], findings: &mut Findings) {
    if makes_symlink(words) {
        findings.warn(
            property,
            "a symlink that a command makes cannot be previewed or undone",
            "use `file` with `ensure: link` and `target`",
        );
    }
}

fn makes_symlink(words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let is_symbolic = |word: &String| {
        word == "--symbolic"
            || word
                .strip_prefix('-')
                .is_some_and(|letters| !letters.starts_with('-') && letters.contains('s'))
    };
    program.rsplit('/').next() == Some("ln") && arguments.iter().any(is_symbolic)
}

/// The same for each command of a script, as far as the words tell them apart.
fn warn_of_symlink_in_script(property: &'static str, script: &str, findings: &mut Findings) {
    let commands = script.split(['\n', ';', '&', '|']);
    let mut commands = commands.filter_map(|command| shellquote::split(command).ok());
    if let Some(words) = commands.find(|words| makes_symlink(words)) {
        warn_of_symlink(property, &words, findings);
    }
}

/// A umask, written as the mode of a file.
fn parse_umask(text: &str) -> Option<u32> {
    crate::file::mode::parse(text).ok()
}
