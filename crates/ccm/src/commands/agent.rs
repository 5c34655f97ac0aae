//! `ccm agent`

use std::path::PathBuf;

use ccm_agent::config::{self, Config, ConfigError, LogFormat, LogLevel};
use ccm_agent::{Agent, AgentEnd, AgentError, Settings};
use ccm_engine::{ManifestError, RunExit};
use ccm_host::{Cancel, System, process};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{Result, example, flags};
use crate::error::Error;
use crate::exit::Exit;
use crate::logging::{self, AgentLog};
use crate::signals;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("agent")
        .about("Apply manifests on a schedule and when they change")
        .before_help(
            "The agent downloads manifests and data, applies them, runs health checks and serves \
             metrics. SIGHUP makes it read its configuration again, SIGUSR1 apply everything now.",
        )
        .after_help(example(
            "ccm agent --check\n  ccm agent --once\n  ccm agent --config /etc/choria/ccm/config.yaml",
        ))
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help(
                    "Read the configuration from this file; defaults to \
                     `/etc/choria/ccm/config.yaml`, else `/etc/choria/ccm/agent.yaml`",
                ),
        )
        .arg(flags::context())
        .arg(flag("check", "Check the configuration and exit"))
        .arg(flag("once", "Apply every manifest once, then exit").conflicts_with("check"))
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = flags::system(matches, "agent").begin(Cancel::default());
    if !matches.get_flag("check") && !matches.get_flag("once") {
        process::without_huge_pages();
    }
    let path = match matches.get_one::<PathBuf>("config") {
        Some(given) => flags::from_here(&host, given),
        None => config::default_path(&host).to_owned(),
    };
    let (config, warnings) = Config::read(&host, &path).map_err(invalid)?;
    if !warnings.findings.is_empty() {
        ui.diagnosis(&warnings);
    }
    if matches.get_flag("check") {
        ui.line(&format!("{} is valid", path.display()));
        return Ok(Exit::Done);
    }
    let flags = LogFlags::new(matches);
    let log = logging::start_agent(process::logs_to_journal(&host));
    let run_args = flags.run_args();
    let on_config = move |config: &Config| flags.apply(config, &log);
    let settings = Settings {
        config: path,
        context: matches.get_one::<String>("context").cloned(),
        version: env!("CARGO_PKG_VERSION"),
        commit: env!("CCM_COMMIT"),
        run_args,
        with_network: flags::with_network,
    };
    let mut agent = Agent::start(settings, config, &System::default(), on_config)
        .map_err(|error| failed(&error))?;
    let mailbox = agent.mailbox();
    signals::forward(move |signal| mailbox.send(signal)).map_err(|error| failed(&error.into()))?;
    if matches.get_flag("once") {
        let (code, is_sudden) = agent.once();
        if is_sudden {
            end_now(code);
        }
        return Ok(Exit::Code(code));
    }
    match agent.run() {
        AgentEnd::Stopped => Ok(Exit::Done),
        AgentEnd::Killed(signal) => end_now(RunExit::Interrupted(signal).code(false)),
    }
}

#[expect(clippy::exit, reason = "whoever sends a second signal does not want to wait")]
fn end_now(code: u8) -> ! {
    std::process::exit(code.into())
}

/// What the command line says about logs, which overrides the configuration.
#[derive(Clone, Copy)]
struct LogFlags {
    is_debug: bool,
    is_info: bool,
    is_json: bool,
}

impl LogFlags {
    fn new(matches: &ArgMatches) -> Self {
        Self {
            is_debug: matches.get_flag("debug"),
            is_info: matches.get_flag("info"),
            is_json: matches.get_one::<String>("log-format").is_some_and(|format| format == "json"),
        }
    }

    fn apply(self, config: &Config, log: &AgentLog) {
        let level = match config.log_level {
            _ if self.is_debug => tracing::Level::DEBUG,
            _ if self.is_info => tracing::Level::INFO,
            LogLevel::Debug => tracing::Level::DEBUG,
            LogLevel::Info => tracing::Level::INFO,
            LogLevel::Warn => tracing::Level::WARN,
            LogLevel::Error => tracing::Level::ERROR,
        };
        log.set(level, self.is_json || config.log_format == LogFormat::Json);
    }

    /// The same for runs.
    fn run_args(self) -> Vec<String> {
        let mut args = Vec::new();
        if self.is_debug {
            args.push("--debug".to_owned());
        }
        if self.is_json {
            args.push("--log-format=json".to_owned());
        }
        args
    }
}

fn invalid(error: ConfigError) -> Error {
    match error {
        ConfigError::Invalid(diagnosis) => Error::Manifest(ManifestError::Invalid(diagnosis)),
        error @ ConfigError::Read(_) => failed(&AgentError::Config(error)),
    }
}

fn failed(error: &AgentError) -> Error {
    Error::Invalid { message: ccm_engine::chain(error), hint: error.hint() }
}
