//! The type `exec`: runs commands, with guards that make them idempotent.

mod assignment;
mod command_line;
mod posix;
mod script;
mod shell;
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

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use ccm_engine::{
    CommandLine, Context, Declare, Ensure, Error, Findings, Former, Prediction, ProviderDef,
    ResourceType, Result, Step, Trigger,
};
use ccm_host::{Command, Environment, Exit, Host, Output};
use ccm_model::{Change, Common, ResourceRef, Stage, Verb, duration, has_placeholder, shellquote};
use serde::{Deserialize, Serialize};

use assignment::Assignment;
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
        }
    }

    fn accepts(&self, code: i32) -> bool {
        if self.returns.is_empty() { code == 0 } else { self.returns.contains(&code) }
    }
}

/// Directory, environment and timeout of a command.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    directory: String,
    environment: Vec<(String, String)>,
    path: Option<String>,
    timeout: Option<Duration>,
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
    finished: Option<Output>,
}

/// Whether the guards hold.
#[derive(Clone, Copy, Debug, Default)]
struct Guards {
    onlyif: bool,
    unless: bool,
}

impl Runner {
    fn new(host: &Host, words: fn(&str) -> Result<Vec<String>>) -> Self {
        Self { host: host.clone(), words, guards: Guards::default(), finished: None }
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
            .timeout(setting.timeout))
    }

    /// In a preview: what keeps the command from running may look different once
    /// an earlier resource has done its work.
    fn check_foreseeable(&self, want: &Properties) -> Result<()> {
        if !self.host.is_preview() || want.refresh_only {
            return Ok(());
        }
        let guards = [&want.onlyif, &want.unless].into_iter().flatten().map(Script::as_str);
        let by = guards.clone().find_map(|guard| self.host.predicted_in(guard));
        let is_guarded = want.creates.is_some() || guards.count() > 0;
        let supplier = || self.host.suppliers().pop().map(|supplier| supplier.origin);
        match by.or_else(supplier).filter(|_| is_guarded) {
            None => Ok(()),
            by => {
                self.predict_touched(want.command(), &want.setting());
                Err(Error::Missing {
                    reason: "whether the command runs is known only in the run".to_owned(),
                    hint: None,
                    by,
                })
            }
        }
    }

    /// In a preview: what the arguments and the environment of a command name may
    /// be something else afterwards. Where it looks for programs and who runs it
    /// is no such thing.
    fn predict_touched(&self, command: &str, setting: &Setting) {
        let arguments = command.trim_start().split_once(char::is_whitespace);
        let mut words = arguments.map_or("", |(_, arguments)| arguments).to_owned();
        for (name, value) in &setting.environment {
            if value.contains('/') && !name.ends_with("PATH") && name != "HOME" {
                words.push(' ');
                words.push_str(value);
            }
        }
        self.host.predict_touched(&words, Path::new(&setting.directory));
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

/// Results of the guards, and the exit of the command if it ran.
#[derive(Clone, Debug, Default, Serialize)]
pub struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    exitcode: Option<i32>,
    creates_satisfied: bool,
    onlyif_satisfied: bool,
    unless_satisfied: bool,
    #[serde(skip)]
    ended: Option<Exit>,
    #[serde(skip)]
    last_words: String,
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &'static str {
        "present"
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
            Ok(_) if want.command.is_none() && !want.is_shell() && settled(&want.common.name) => {
                warn_of_shell_syntax("name", &want.common.name, findings);
            }
            Ok(_) => {}
        }
        if let Some(command) = script(&want.command) {
            if !command.is_empty() && command.trim().is_empty() {
                let is_shell = want.is_shell();
                let message =
                    if is_shell { "no command to execute" } else { "no command specified" };
                findings.add("command", message);
            } else if !want.is_shell() {
                match shellquote::split(&command) {
                    Err(error) => findings.add("command", error.to_string()),
                    Ok(_) => warn_of_shell_syntax("command", &command, findings),
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
    }

    fn settle(want: &mut Properties) {
        let is_shell = want.is_shell();
        let scripts = [&mut want.command, &mut want.onlyif, &mut want.unless];
        for script in scripts.into_iter().flatten() {
            script.is_for_shell = is_shell;
        }
    }

    fn subscribe(want: &Properties) -> &[ResourceRef] {
        &want.subscribe
    }

    /// Its command can do anything.
    fn can_create(_want: &Properties, _path: &Path) -> bool {
        true
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
        if let Some(creates) = &want.creates {
            state.creates_satisfied = on.host.exists(Path::new(creates))?;
        }
        if let Some(output) = &on.finished {
            state.onlyif_satisfied = on.guards.onlyif;
            state.unless_satisfied = on.guards.unless;
            state.ended = Some(output.exit);
            state.last_words = output.stderr_tail(10);
            if let Exit::Code(code) = output.exit {
                state.exitcode = Some(code);
            }
            return Ok(state);
        }
        // What is triggered runs whatever the guards would say.
        if state.creates_satisfied || cx.trigger == Trigger::Refresh {
            return Ok(state);
        }
        on.check_foreseeable(want)?;
        if let Some(guard) = &want.onlyif {
            state.onlyif_satisfied = on.guard(guard.as_str(), &want.setting())?;
        }
        if let Some(guard) = &want.unless {
            state.unless_satisfied = on.guard(guard.as_str(), &want.setting())?;
        }
        on.guards = Guards { onlyif: state.onlyif_satisfied, unless: state.unless_satisfied };
        Ok(state)
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
        on.finished = Some(on.run(&action.command, &action.setting, &mut show)?);
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
        let reason = match have.ended? {
            Exit::Code(code) if want.accepts(code) => return None,
            Exit::Code(code) => {
                let accepted = if want.returns.is_empty() { &[0] } else { &want.returns[..] };
                let accepted: Vec<String> = accepted.iter().map(ToString::to_string).collect();
                format!("the command exited with code {code}, not {}", accepted.join(" or "))
            }
            Exit::Signal(signal) => format!("the command was killed by signal {signal}"),
        };
        Some(match have.last_words.as_str() {
            "" => reason,
            words => format!("{reason}\n{words}"),
        })
    }
}
