//! The agent's main loop. It waits only for messages and timers.
//!
//! Sources, the connection, the current run and signals have separate threads,
//! which only send messages to the loop.

mod facts;
mod health;
mod log;
mod perform;
mod reload;
mod runs;
mod watching;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ccm_engine::RunExit;
use ccm_host::{Cancel, Digest, Host, ServiceManager, System, local_path};
use ccm_nats::{ConnectionEvent, ContextChoice, KeptConnection, Nats};

use crate::Metrics;
use crate::config::{Config, ConfigError};
use crate::metrics::{RunMode, RunReason};
use crate::monitor::{self, Monitor};
use crate::problems::{Problems, Severity};
use crate::registrar::Registrar;
use crate::run::registry_name;
use crate::schedule::{Moment, Next, RunRequest, Schedule, Times};
use crate::sources::{Cache, Source, SourceEvent};
use facts::FactStore;
use health::HealthState;
use perform::{RunControl, RunReport};

/// The loop turns at least this often: a machine that wakes from sleep must
/// not wait for a time that the sleep has made late.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long one attempt to fetch something may take with `--once`.
const ONCE: Duration = Duration::from_secs(15);

/// Settings from the command line.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file of the configuration.
    pub config: PathBuf,
    /// The context that was named.
    pub context: Option<String>,
    /// The version of this program.
    pub version: &'static str,
    /// The commit that it was built from.
    pub commit: &'static str,
    /// Flags that runs are started with.
    pub run_args: Vec<String>,
    /// Adds the connection, and everything else that downloads, to a system.
    pub with_network: fn(System, &Arc<Nats>) -> System,
}

/// A request to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Read the configuration again.
    Reload,
    /// Apply everything now.
    ApplyAll,
    /// Stop; the second time at once. With the number of the signal.
    Stop(i32),
}

/// How the agent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentEnd {
    /// As it was told.
    Stopped,
    /// At once, by this signal.
    Killed(i32),
}

/// Why the agent does not start.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The cache or a source cannot be used.
    #[error(transparent)]
    Source(#[from] crate::sources::Error),
    /// The machine said no.
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
    /// The metrics cannot be served.
    #[error(transparent)]
    Monitor(#[from] monitor::Error),
    /// There is no thread or descriptor left.
    #[error("cannot start the agent")]
    Start(#[from] std::io::Error),
}

impl AgentError {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Source(error) => error.hint(),
            Self::Host(error) | Self::Config(ConfigError::Read(error)) => error.hint(),
            Self::Monitor(error) => error.hint().map(str::to_owned),
            Self::Config(ConfigError::Invalid(_)) | Self::Start(_) => None,
        }
    }
}

/// What the loop waits for.
enum Message {
    Signal(Signal),
    Manifest(String, SourceEvent),
    Data(String, SourceEvent),
    Connection(ConnectionEvent),
    RunEnded(Box<RunReport>),
    /// A check of a source with `--once`, and why it failed.
    Fetched(Option<String>),
}

/// Sends signals to the agent.
#[derive(Clone)]
pub struct Mailbox(Sender<Message>);

impl Mailbox {
    /// Hands a signal over. Does not wait.
    pub fn send(&self, signal: Signal) {
        let _ = self.0.send(Message::Signal(signal));
    }
}

/// A manifest and where it comes from.
struct Worker {
    url: String,
    /// The URL without credentials.
    name: String,
    is_local: bool,
    source: Arc<Source>,
    /// The digest of the last manifest that a run found invalid.
    rejected: Arc<Mutex<Option<Digest>>>,
    invalid: Invalid,
}

/// Whether the newest manifest is invalid, and who has found out.
#[derive(Clone, Copy, Default)]
struct Invalid {
    /// The source: what was fetched is no manifest, or does not parse.
    source: bool,
    /// A run, which could not load it.
    run: bool,
}

/// The connection, and what uses it.
struct Network {
    nats: Arc<Nats>,
    /// With `nats`, for what fetches.
    system: System,
    kept: Option<KeptConnection>,
    registrar: Option<Arc<Registrar>>,
}

/// The run at work.
struct Running {
    request: RunRequest,
    control: RunControl,
    /// When it is to be stopped.
    stop_at: Option<Moment>,
    /// When it is to be killed.
    kill_at: Option<Moment>,
    is_timed_out: bool,
}

/// The agent.
pub struct Agent {
    settings: Settings,
    config: Config,
    host: Host,
    /// Without a connection.
    system: System,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    service: ServiceManager,
    metrics: Arc<Metrics>,
    monitor: Option<Monitor>,
    health: Arc<HealthState>,
    cache: Cache,
    network: Network,
    facts: Arc<FactStore>,
    workers: Vec<Worker>,
    data: Option<Arc<Source>>,
    schedule: Schedule,
    problems: Problems,
    running: Option<Running>,
    stopping: Option<i32>,
    /// Applies everything once: the list of manifests stays what it is.
    is_once: bool,
    next_watchdog: Option<Moment>,
    /// How the last run went, for the status.
    last_run: Option<String>,
    /// Told of every configuration that is used.
    on_config: Box<dyn Fn(&Config)>,
}

impl Agent {
    /// Starts the agent with a configuration: locks the cache, starts the
    /// metrics and watches the sources. Calls `on_config` for every
    /// configuration that comes into use.
    ///
    /// # Errors
    ///
    /// Returns why it cannot begin.
    pub fn start(
        settings: Settings,
        config: Config,
        system: &System,
        on_config: impl Fn(&Config) + 'static,
    ) -> Result<Self, AgentError> {
        let host = system.begin(Cancel::default());
        let (sender, messages) = channel();
        let metrics = Arc::new(Metrics::new(settings.version, settings.commit));
        metrics.set_resource_metrics(config.resource_metrics);
        metrics.config_reload(true);
        on_config(&config);
        let cache = Cache::open(&config.cache_dir, &host)?;
        let health = Arc::new(HealthState::default());
        let monitor = start_monitor(&config, &metrics, &health, &host)?;
        let network = start_network(&settings, &config, system, &metrics, &sender)?;
        let facts = Arc::new(FactStore::new(system.clone(), Arc::clone(&metrics)));
        let random_host = host.clone();
        let random = move |longest| random(&random_host, longest);
        let has_data = config.external_data_url.as_deref().is_none_or(is_local);
        let schedule = Schedule::new(times(&config), &config.manifests, has_data, random);
        let service = ServiceManager::find(&host);
        let mut agent = Self {
            settings,
            host,
            system: system.clone(),
            sender,
            messages,
            service,
            metrics,
            monitor,
            health,
            cache,
            network,
            facts,
            workers: Vec::new(),
            data: None,
            schedule,
            problems: Problems::default(),
            running: None,
            stopping: None,
            is_once: false,
            next_watchdog: None,
            last_run: None,
            on_config: Box::new(on_config),
            config,
        };
        agent.retain_copies();
        agent.watch_data()?;
        for url in agent.config.manifests.clone() {
            let worker = agent.watch_manifest(&url)?;
            agent.workers.push(worker);
        }
        agent.note_availability();
        Ok(agent)
    }

    /// Where signals go.
    pub fn mailbox(&self) -> Mailbox {
        Mailbox(self.sender.clone())
    }

    /// Runs until a signal stops the agent. After [`AgentEnd::Killed`], the
    /// caller should exit immediately.
    pub fn run(&mut self) -> AgentEnd {
        tracing::info!("the agent has started with {} manifests", self.workers.len());
        self.service.tell("READY=1");
        self.tell_status();
        loop {
            let now = self.host.since_boot();
            let wait = self.turn(now);
            if self.stopping.is_some() && self.running.is_none() {
                return self.finish();
            }
            if let Some(signal) = self.wait(now, wait) {
                return AgentEnd::Killed(signal);
            }
        }
    }

    /// Applies every manifest once, in order; the exit code of `apply`, the worst
    /// of all. The second value is true after a second signal, when the process
    /// should end without further ado.
    pub fn once(&mut self) -> (u8, bool) {
        self.is_once = true;
        self.service.tell("READY=1");
        let mut worst = 0;
        if let Some(data) = self.data.clone()
            && let Some(error) = self.fetch(data)
        {
            self.not_fetched(("", "data"), error);
            worst = 1;
        }
        for at in 0..self.workers.len() {
            let (source, name) = (&self.workers[at].source, self.workers[at].name.clone());
            if let Some(error) = self.fetch(Arc::clone(source)) {
                self.not_fetched((&name, "source"), error);
                worst = worse(worst, 1);
            }
            if let Some(signal) = self.stopping {
                worst = RunExit::Interrupted(signal).code(false);
                break;
            }
            let manifest = self.workers[at].url.clone();
            let (mode, reason) = (RunMode::Apply, RunReason::Signal);
            self.begin(RunRequest { manifest, mode, reason }, self.host.since_boot());
            // A run that did not begin has sent its report already.
            let exit = loop {
                let now = self.host.since_boot();
                let due = self.check_run(now);
                let wait = due.map_or(LONGEST_WAIT, |due| due.saturating_sub(now));
                match self.messages.recv_timeout(wait.min(LONGEST_WAIT)) {
                    Ok(Message::RunEnded(report)) => {
                        // The last valid manifest is not what was asked for.
                        let is_invalid = report.counts.invalid.is_some();
                        let exit = worse(report.exit, u8::from(is_invalid));
                        self.run_ended(&report);
                        break exit;
                    }
                    Ok(Message::Signal(Signal::Stop(signal))) if self.stopping.is_some() => {
                        self.kill_run();
                        return (RunExit::Interrupted(signal).code(false), true);
                    }
                    Ok(message) => self.take(message),
                    Err(_) => {}
                }
            };
            worst = worse(worst, exit);
            if let Some(signal) = self.stopping {
                worst = RunExit::Interrupted(signal).code(false);
                break;
            }
        }
        self.finish();
        (worst, false)
    }

    /// Looks at a source and waits for what it says, or for a signal: why there
    /// is nothing new.
    fn fetch(&mut self, source: Arc<Source>) -> Option<String> {
        let sender = self.sender.clone();
        let check = move || {
            let failure = source.fetch_once(ONCE).err().map(|error| ccm_engine::chain(&error));
            let _ = sender.send(Message::Fetched(failure));
        };
        if let Err(error) = std::thread::Builder::new().name("fetch".into()).spawn(check) {
            return Some(format!("cannot start a thread: {error}"));
        }
        while self.stopping.is_none() {
            match self.messages.recv() {
                Ok(Message::Fetched(failure)) => return failure,
                Ok(message) => self.take(message),
                Err(_) => break,
            }
        }
        None
    }

    /// Logs why there is nothing new, unless the source has told so itself.
    fn not_fetched(&mut self, key: (&str, &'static str), error: String) {
        let now = self.host.since_boot();
        log::problems(self.problems.set(key, Severity::Error, error, now));
    }

    /// Does everything whose time has come; when to do so next.
    fn turn(&mut self, now: Moment) -> Option<Moment> {
        self.health.turned(now);
        let next_run = loop {
            match self.schedule.next(now) {
                Next::Start(request) => self.begin(request, now),
                Next::Wait(next) => break next,
            }
        };
        let next_check = self.check_run(now);
        for entry in self.problems.again(now) {
            log::problems(Some(entry));
        }
        if let Some(watchdog) = self.service.watchdog()
            && self.next_watchdog.is_none_or(|due| due <= now)
        {
            self.service.tell("WATCHDOG=1");
            self.next_watchdog = Some(now + watchdog / 2);
        }
        [next_run, next_check, self.problems.next(), self.next_watchdog].into_iter().flatten().min()
    }

    /// Waits for something to happen, and takes it in. A second signal to stop is
    /// given back.
    fn wait(&mut self, now: Moment, due: Option<Moment>) -> Option<i32> {
        let wait = due.map_or(LONGEST_WAIT, |due| due.saturating_sub(now)).min(LONGEST_WAIT);
        // Not less than a millisecond: times are compared to the nanosecond.
        match self.messages.recv_timeout(wait.max(Duration::from_millis(1))) {
            Ok(Message::Signal(Signal::Stop(signal))) if self.stopping.is_some() => {
                self.kill_run();
                return Some(signal);
            }
            Ok(message) => self.take(message),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        None
    }

    fn take(&mut self, message: Message) {
        let now = self.host.since_boot();
        match message {
            Message::Signal(Signal::Reload | Signal::ApplyAll)
                if self.is_once || self.stopping.is_some() =>
            {
                tracing::info!("ignored a signal: the agent ends after its current runs");
            }
            Message::Signal(Signal::Reload) => self.reload(),
            Message::Signal(Signal::ApplyAll) => {
                tracing::info!("received SIGUSR1: applying all manifests");
                for worker in &self.workers {
                    worker.source.check_now();
                }
                self.data.iter().for_each(|data| data.check_now());
                self.schedule.apply_all();
            }
            Message::Signal(Signal::Stop(signal)) => self.stop(signal, now),
            Message::Manifest(url, event) => self.manifest_event(&url, &event, now),
            Message::Data(url, event) => self.data_event(&url, &event, now),
            Message::Connection(event) => self.connection_event(&event, now),
            Message::RunEnded(report) => self.run_ended(&report),
            Message::Fetched(_) => {}
        }
    }

    fn stop(&mut self, signal: i32, now: Moment) {
        self.stopping = Some(signal);
        self.schedule.stop();
        self.service.tell("STOPPING=1");
        match &mut self.running {
            Some(running) => {
                tracing::info!("stopping: waiting for the current run to end");
                running.control.stop(signal);
                running.stop_at = None;
                running.kill_at = Some(now + self.config.stop_timeout);
            }
            None => tracing::info!("stopping"),
        }
    }

    fn kill_run(&mut self) {
        if let Some(running) = &self.running {
            running.control.kill();
        }
    }

    fn finish(&mut self) -> AgentEnd {
        if let Some(registrar) = &self.network.registrar {
            registrar.finish(&self.host);
        }
        self.network.kept = None;
        tracing::info!("the agent has stopped");
        AgentEnd::Stopped
    }
}

/// SIGTERM.
const TERMINATE: i32 = 15;

fn is_local(url: &str) -> bool {
    local_path(url).is_some()
}

fn timestamp(seconds: i64) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_second(seconds).ok()
}

/// The worse of two exit codes: signals, then failures, then a lock that others
/// hold.
fn worse(one: u8, other: u8) -> u8 {
    let rank = |code: u8| match code {
        0 => 0,
        75 => 1,
        code if code > 128 => 3,
        _ => 2,
    };
    if rank(other) > rank(one) { other } else { one }
}

fn times(config: &Config) -> Times {
    let Config { interval, health_check_interval, .. } = *config;
    Times { interval, health_check_interval, splay: config.splay() }
}

/// A random time up to this one.
fn random(host: &Host, longest: Duration) -> Duration {
    let nanoseconds = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
    let random = u64::from_ne_bytes(host.random());
    match nanoseconds.checked_add(1) {
        Some(count) => Duration::from_nanos(random % count),
        None => Duration::from_nanos(random),
    }
}

fn start_monitor(
    config: &Config,
    metrics: &Arc<Metrics>,
    health: &Arc<HealthState>,
    host: &Host,
) -> Result<Option<Monitor>, AgentError> {
    if config.monitor_port == 0 {
        return Ok(None);
    }
    let (state, on) = (Arc::clone(health), host.clone());
    let health = move || state.check(on.since_boot());
    let (address, port) = (config.monitor_address, config.monitor_port);
    Ok(Some(Monitor::start(address, port, Arc::clone(metrics), health, host)?))
}

fn start_network(
    settings: &Settings,
    config: &Config,
    system: &System,
    metrics: &Arc<Metrics>,
    sender: &Sender<Message>,
) -> Result<Network, AgentError> {
    let choice = ContextChoice {
        flag: settings.context.clone(),
        configured: Some(config.nats_context.clone()),
    };
    let nats = Arc::new(Nats::with_stream(choice, "agent", &config.registration_stream));
    let with_nats = (settings.with_network)(system.clone(), &nats);
    let is_used = config.needs_network();
    metrics.set_network(is_used);
    let mut network = Network { nats, system: with_nats, kept: None, registrar: None };
    if !is_used {
        return Ok(network);
    }
    let sender = sender.clone();
    let tell = move |event| {
        let _ = sender.send(Message::Connection(event));
    };
    let host = system.begin(Cancel::default());
    network.kept = Some(network.nats.keep_connected(&host, tell)?);
    if let Some(registry) = config.registration {
        let destination = registry_name(registry);
        metrics.registrations_published(destination, 0);
        metrics.registrations_failed(destination, 0);
        let registrar = Registrar::start((*network.nats).clone(), system, Arc::clone(metrics))?;
        network.registrar = Some(Arc::new(registrar));
    }
    Ok(network)
}
