//! System services: whether they run, and whether they start at boot.

mod command_line;
mod predicted;
mod systemd;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use ccm_engine::{
    CommandLine, Context, Declare, Ensure, Error, Findings, Former, Prediction, ProviderDef,
    ResourceType, Result, Step, Together, Trigger,
};
use ccm_host::Host;
use ccm_model::{Change, Common, ResourceRef, Stage, Verb};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::name;

/// The `service` type.
pub struct Service;

/// Manage services
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// Start the service at boot; if omitted, ccm does not change this
    pub(crate) enable: Option<bool>,
    /// Resources whose change restarts the service, as `type#name`
    #[property(short = 'S', value = "TYPE#NAME")]
    pub(crate) subscribe: Vec<ResourceRef>,
    /// Reload the service instead of restarting it when a subscribed resource changes
    pub(crate) reload: bool,
}

impl Properties {
    fn should_run(&self) -> bool {
        self.common.ensure == RUNNING
    }
}

const RUNNING: &str = "running";
const STOPPED: &str = "stopped";

/// Operations of a service provider.
pub trait Provider {
    /// Lets the service manager take note of what has changed on disk.
    fn prepare(&mut self) -> Result<()>;
    /// Whether a service runs, and whether it starts at boot.
    fn status(&mut self, service: &str) -> Result<State>;
    /// Starts a service.
    fn start(&mut self, service: &str) -> Result<()>;
    /// Stops a service.
    fn stop(&mut self, service: &str) -> Result<()>;
    /// Stops a service and starts it again.
    fn restart(&mut self, service: &str) -> Result<()>;
    /// Makes a running service read its configuration again.
    fn reload(&mut self, service: &str) -> Result<()>;
    /// Whether a service can be reloaded. In a preview, unit files that earlier
    /// steps would write count as loaded.
    fn can_reload(&mut self, service: &str) -> Result<bool>;
    /// Makes a service start at boot.
    fn enable(&mut self, service: &str) -> Result<()>;
    /// Keeps a service from starting at boot.
    fn disable(&mut self, service: &str) -> Result<()>;
    /// Reads the states of several services at once, for `status`.
    fn survey(&mut self, services: &[&str]) -> Result<()>;
    /// Gives several services one order.
    fn order(&mut self, order: Order, services: &[&str]) -> Result<()>;
    /// Records what an action would leave behind.
    fn predict(&mut self, action: &Action) -> Result<()>;
}

/// Whether a service runs, and whether it starts at boot.
#[expect(clippy::struct_excessive_bools, reason = "each holds by itself")]
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Its name.
    pub name: String,
    /// The provider's name.
    pub provider: &'static str,
    /// Whether it runs.
    pub running: bool,
    /// Whether it can be started and stopped at all.
    pub manager: Manager,
    /// Whether the run leaves starts and stops to the first boot.
    pub is_deferred: bool,
    /// It was asked to reload and cannot, so a restart takes the place of that.
    pub lacks_reload: bool,
    /// Whether it starts at boot.
    pub enabled: bool,
    /// The service manager's own words for both.
    pub words: (String, String),
    /// The last that it said, where it ended against expectation.
    pub last_words: String,
}

/// The program that starts and stops services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manager {
    /// It runs.
    #[default]
    Online,
    /// It does not run, as in a container or a chroot. No service runs, and only
    /// whether services start at boot can be managed.
    Offline,
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

/// Something to be done with a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    service: String,
    order: Order,
}

/// An operation on a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// It does not run and should.
    Start,
    /// It runs and should not.
    Stop,
    /// It runs, and something that it reads has changed.
    Restart,
    /// It runs, and can read what has changed without a restart.
    Reload,
    /// It does not start at boot and should.
    Enable,
    /// It starts at boot and should not.
    Disable,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
            Self::Reload => "reload",
            Self::Enable => "enable",
            Self::Disable => "disable",
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.order {
            Order::Start => "Would have started",
            Order::Stop => "Would have stopped",
            Order::Restart => "Would have restarted",
            Order::Reload => "Would have reloaded",
            Order::Enable => "Would have enabled",
            Order::Disable => "Would have disabled",
        })
    }
}

impl Declare for Service {
    type Properties = Properties;

    const NAME: &'static str = "service";
    const ABOUT: &'static str = "Manage services";
    const NAME_DOC: &'static str = "Name of the service";
    const ENSURE: Ensure = Ensure::OneOf(&[RUNNING, STOPPED]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        let service = want.common.name.as_str();
        if let Some(problem) = name::unit_problem(service)
            && !service.is_empty()
        {
            findings.add("name", problem);
        }
    }

    fn subscribe(want: &Properties) -> &[ResourceRef] {
        &want.subscribe
    }
}

/// What makes the service run or not run, as wanted.
fn order(want: &Properties, have: &State, why: Trigger) -> Option<Order> {
    match (want.should_run(), have.running) {
        (true, true) if why == Trigger::Turn => None,
        (true, true) if want.reload && !have.lacks_reload => Some(Order::Reload),
        (true, true) => Some(Order::Restart),
        (true, false) => Some(Order::Start),
        (false, true) => Some(Order::Stop),
        (false, false) => None,
    }
}

fn cannot_start(service: &str) -> Error {
    Error::Refused {
        reason: format!("cannot start {service}: systemd is not running here"),
        hint: Some(
            "in an image build or a container, use --offline: ccm enables services and leaves \
             starting them to the first boot"
                .to_owned(),
        ),
    }
}

/// In a preview: generators may make an unknown unit of any file that an earlier
/// resource changes. The one that the service refers to is the likeliest.
fn made_by_generator(error: Error, want: &Properties, host: &Host) -> Error {
    match error {
        Error::Missing { reason, hint, by: None } if host.suppliers().is_empty() => {
            let changers = host.file_changers();
            let references = || want.subscribe.iter().chain(&want.common.require);
            let is_named = |by: &&Arc<str>| references().any(|named| named.to_string() == ***by);
            let by = changers.iter().rfind(is_named).or(changers.last()).cloned();
            Error::Missing { reason, hint, by }
        }
        other => other,
    }
}

impl ResourceType for Service {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[systemd::DEF];

    const TOGETHER: Option<Together<Self>> = Some(Together {
        kind: |action| match action.order {
            Order::Start | Order::Enable => Some("on"),
            Order::Stop | Order::Disable => Some("off"),
            // Whoever reacts does so at its turn.
            Order::Restart | Order::Reload => None,
        },
        survey: |on, names| on.survey(names),
        act: |on, actions, _| {
            for order in [Order::Start, Order::Stop, Order::Enable, Order::Disable] {
                let services: Vec<&str> = actions
                    .iter()
                    .filter(|action| action.order == order)
                    .map(|action| action.service.as_str())
                    .collect();
                if !services.is_empty() {
                    on.order(order, &services)?;
                }
            }
            Ok(())
        },
        // Each is predicted without asking again.
        predict: |_, _, _| Ok(()),
    });

    fn prepare(on: &mut Self::Provider) -> Result<()> {
        on.prepare()
    }

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        let service = &want.common.name;
        let host = cx.templates.host();
        let mut have = on.status(service).map_err(|error| made_by_generator(error, want, host))?;
        have.is_deferred = cx.offline;
        if want.reload && want.should_run() && have.running && cx.trigger == Trigger::Refresh {
            have.lacks_reload = !on.can_reload(service)?;
            if have.lacks_reload {
                host.warn(format!(
                    "{service} has no reload command; ccm restarts it although `reload` is true"
                ));
            }
        }
        Ok(have)
    }

    fn decide(want: &Properties, have: &State, why: Trigger) -> Result<Vec<Step<Action>>> {
        let step =
            |verb, order| Step::new(verb, Action { service: want.common.name.clone(), order });
        let ensure = |from: &str, to: &str| Change::of("ensure").from(from).to(to);
        let order = order(want, have, why).filter(|_| !have.is_deferred);
        if let (Some(_), Manager::Offline) = (order, have.manager) {
            return Err(cannot_start(&want.common.name));
        }
        let now = order.map(|order| match order {
            Order::Start => step(Verb::Started, order).change(ensure(STOPPED, RUNNING)),
            Order::Stop => step(Verb::Stopped, order).change(ensure(RUNNING, STOPPED)),
            Order::Reload => step(Verb::Reloaded, order),
            _ => step(Verb::Restarted, order),
        });
        let enable = want.enable.filter(|&enable| enable != have.enabled);
        let at_boot = enable.map(|enable| {
            let order = if enable { Order::Enable } else { Order::Disable };
            step(Verb::Updated, order).change(Change::of("enable").from(!enable).to(enable))
        });
        Ok(now.into_iter().chain(at_boot).collect())
    }

    fn act(on: &mut Self::Provider, action: &Action, _cx: &mut Context<'_>) -> Result<()> {
        let service = &action.service;
        match action.order {
            Order::Start => on.start(service),
            Order::Stop => on.stop(service),
            Order::Restart => on.restart(service),
            Order::Reload => on.reload(service),
            Order::Enable => on.enable(service),
            Order::Disable => on.disable(service),
        }
    }

    /// What is started because it did not run would have been anyway.
    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Action>,
        _cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        on.predict(&step.action)?;
        Ok(Prediction::Exact)
    }

    /// Only what is managed can have changed.
    fn former(want: &Properties, have: &State) -> Former {
        let mut former = serde_json::json!({"ensure": ccm_engine::State::ensure(have)});
        if want.enable.is_some() {
            former["enable"] = have.enabled.into();
        }
        Former::Properties(former)
    }

    fn reaction(former: &Value, verbs: &[Verb]) -> Option<Value> {
        if former["ensure"] != "running" {
            return None;
        }
        let mut reaction = former.clone();
        reaction["reload"] = verbs.contains(&Verb::Reloaded).into();
        Some(reaction)
    }

    fn is_refresh(step: &Step<Action>) -> bool {
        matches!(step.action.order, Order::Restart | Order::Reload)
    }

    fn deferred(want: &Properties, have: &State, why: Trigger) -> Vec<String> {
        let order = order(want, have, why).filter(|_| have.is_deferred);
        order.iter().map(ToString::to_string).collect()
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        let (active, boot) = &have.words;
        if want.should_run() != have.running && !have.is_deferred {
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
