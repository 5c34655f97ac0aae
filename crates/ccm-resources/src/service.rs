//! System services: whether they run, and whether they start at boot.

mod command_line;
mod systemd;
#[cfg(test)]
mod tests;

use std::fmt;

use ccm_engine::{
    CommandLine, Context, Ensure, Findings, ProviderDef, ResourceType, Result, Trigger,
};
use ccm_model::{Common, ResourceRef, Stage};
use serde::{Serialize, Serializer};

use crate::name;

/// The `service` type.
pub struct Service;

/// Manage services
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// Start the service at boot; unmanaged when unset
    pub(crate) enable: Option<bool>,
    /// Resources whose change restarts the service, as `type#name`
    #[property(short = 'S', value = "TYPE#NAME")]
    pub(crate) subscribe: Vec<ResourceRef>,
}

impl Properties {
    fn should_run(&self) -> bool {
        self.common.ensure == RUNNING
    }
}

const RUNNING: &str = "running";
const STOPPED: &str = "stopped";

/// What a service provider can do.
pub trait Provider {
    /// Lets the service manager take note of what has changed on disk.
    fn prepare(&mut self) -> Result<()>;
    /// What a service does now, and will do at boot.
    fn status(&mut self, service: &str) -> Result<State>;
    /// Starts a service.
    fn start(&mut self, service: &str) -> Result<()>;
    /// Stops a service.
    fn stop(&mut self, service: &str) -> Result<()>;
    /// Stops a service and starts it again.
    fn restart(&mut self, service: &str) -> Result<()>;
    /// Makes a service start at boot.
    fn enable(&mut self, service: &str) -> Result<()>;
    /// Keeps a service from starting at boot.
    fn disable(&mut self, service: &str) -> Result<()>;
}

/// What a service does now, and will do at boot.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Its name.
    pub name: String,
    /// The provider's name.
    pub provider: &'static str,
    /// Whether it runs.
    pub running: bool,
    /// Whether it starts at boot.
    pub enabled: bool,
    /// The service manager's own words for both.
    pub words: (String, String),
    /// The last that it said, where it ended against expectation.
    pub last_words: String,
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        if self.running { RUNNING } else { STOPPED }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Outer<'a> {
            metadata: Metadata<'a>,
        }
        #[derive(Serialize)]
        struct Metadata<'a> {
            name: &'a str,
            provider: &'a str,
            enabled: bool,
            running: bool,
        }
        let Self { name, provider, running, enabled, .. } = self;
        let metadata = Metadata { name, provider, enabled: *enabled, running: *running };
        Outer { metadata }.serialize(to)
    }
}

/// A step towards the desired state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It does not run and should.
    Start,
    /// It runs and should not.
    Stop,
    /// It runs, and something that it reads has changed.
    Restart,
    /// It does not start at boot and should.
    Enable,
    /// It starts at boot and should not.
    Disable,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "Would have started",
            Self::Stop => "Would have stopped",
            Self::Restart => "Would have restarted",
            Self::Enable => "Would have enabled",
            Self::Disable => "Would have disabled",
        })
    }
}

impl ResourceType for Service {
    type Properties = Properties;
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const NAME: &'static str = "service";
    const ABOUT: &'static str = "Manage services";
    const ENSURE: Ensure = Ensure::OneOf(&[RUNNING, STOPPED]);
    const PROVIDERS: &'static [ProviderDef<Self>] = &[systemd::DEF];
    const COMMAND_LINE: CommandLine = command_line::VIEW;

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        let service = want.common.name.as_str();
        if let Some(problem) = name::problem("service name", service)
            && !service.is_empty()
        {
            findings.add("name", problem);
        }
    }

    fn subscribe(want: &Properties) -> &[ResourceRef] {
        &want.subscribe
    }

    fn prepare(on: &mut Self::Provider) -> Result<()> {
        on.prepare()
    }

    fn observe(on: &mut Self::Provider, want: &Properties, _cx: &mut Context<'_>) -> Result<State> {
        on.status(&want.common.name)
    }

    fn decide(want: &Properties, have: &State, why: Trigger) -> Result<Vec<Action>> {
        let now = match (want.should_run(), have.running) {
            (true, true) if why == Trigger::Refresh => Some(Action::Restart),
            (true, false) => Some(Action::Start),
            (false, true) => Some(Action::Stop),
            (true, true) | (false, false) => None,
        };
        let at_boot = match (want.enable, have.enabled) {
            (Some(true), false) => Some(Action::Enable),
            (Some(false), true) => Some(Action::Disable),
            _ => None,
        };
        Ok(now.into_iter().chain(at_boot).collect())
    }

    fn act(
        on: &mut Self::Provider,
        want: &Properties,
        step: &Action,
        _cx: &mut Context<'_>,
    ) -> Result<()> {
        let service = &want.common.name;
        match step {
            Action::Start => on.start(service),
            Action::Stop => on.stop(service),
            Action::Restart => on.restart(service),
            Action::Enable => on.enable(service),
            Action::Disable => on.disable(service),
        }
    }

    /// What is started because it did not run would have been anyway.
    fn is_refresh(step: &Action) -> bool {
        *step == Action::Restart
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        let (active, boot) = &have.words;
        if want.should_run() != have.running {
            let found = ccm_engine::State::ensure(have);
            let reason = format!("ensure is {found} ({active}), should be {}", want.common.ensure);
            return Some(match have.last_words.as_str() {
                "" => reason,
                words => format!("{reason}\n{words}"),
            });
        }
        let enable = want.enable.filter(|&enable| enable != have.enabled)?;
        Some(format!("enable is {} ({boot}), should be {enable}", have.enabled))
    }
}
