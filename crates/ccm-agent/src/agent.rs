//! The agent: one loop that waits for something to happen or for a time to
//! come, and never for anything else.
//!
//! Sources, the connection, the run at work and signals have threads of their
//! own, which only send messages to the loop.

mod facts;
mod health;
mod log;
mod perform;
mod reload;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use ccm_hiera::Document;
use ccm_host::{Cancel, Host, ServiceManager, System, local_path};
use ccm_model::redact_credentials;
use ccm_nats::{ConnectionEvent, ContextChoice, KeptConnection, Nats};

use crate::config::{Config, ConfigError};
use crate::lasting::{Lasting, Severity};
use crate::metrics::{RunMode, RunReason, RunResult};
use crate::registrar::{Registrar, Renewal, shown};
use crate::run::registry_name;
use crate::schedule::{Moment, Next, RunRequest, Schedule, Times};
use crate::sources::{Accept, Cache, Source, SourceEvent, SourceKind, SourceSettings};
use crate::{Metrics, Monitor, MonitorError};
use facts::FactStore;
use health::HealthState;
use perform::{Content, Performance, RunControl, RunReport};

/// The loop turns at least this often: a machine that wakes from sleep must
/// not wait for a time that the sleep has made late.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long one attempt to fetch something may take with `--once`.
const ONCE: Duration = Duration::from_secs(15);

/// What the command line says.
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
}

/// What somebody wants of the agent.
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
    Monitor(#[from] MonitorError),
    /// There is no thread or descriptor left.
    #[error("cannot start the agent")]
    Start(#[from] std::io::Error),
}

impl AgentError {
    /// What to do about it.
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
}

/// The connection, and what uses it.
struct Network {
    nats: Nats,
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
    lasting: Lasting,
    running: Option<Running>,
    stopping: Option<i32>,
    next_watchdog: Option<Moment>,
    /// How the last run went, for the status.
    last_run: Option<String>,
    /// Told of every configuration that is used.
    on_config: Box<dyn Fn(&Config)>,
}

impl Agent {
    /// Takes up a configuration: locks the cache, starts the metrics and begins
    /// to watch the sources. `on_config` is told of every configuration that is
    /// used.
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
        metrics.set_resource_metrics(config.has_resource_metrics);
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
        let service = host.service_manager();
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
            lasting: Lasting::default(),
            running: None,
            stopping: None,
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

    /// Works until it is told to stop. After [`AgentEnd::Killed`] the process
    /// should end without further ado.
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
        self.service.tell("READY=1");
        let mut worst = 0;
        if let Some(Err(error)) = self.data.as_ref().map(|data| data.fetch_once(ONCE)) {
            tracing::error!("{}", ccm_engine::chain(&error));
            worst = 1;
        }
        for at in 0..self.workers.len() {
            let worker = &self.workers[at];
            if let Err(error) = worker.source.fetch_once(ONCE) {
                tracing::error!(manifest = worker.name, "{}", ccm_engine::chain(&error));
                worst = worse(worst, 1);
            }
            let manifest = worker.url.clone();
            let (mode, reason) = (RunMode::Apply, RunReason::Signal);
            self.begin(RunRequest { manifest, mode, reason }, self.host.since_boot());
            // A run that did not begin has sent its report already.
            let exit = loop {
                let now = self.host.since_boot();
                let due = self.check_run(now);
                let wait = due.map_or(LONGEST_WAIT, |due| due.saturating_sub(now));
                match self.messages.recv_timeout(wait.min(LONGEST_WAIT)) {
                    Ok(Message::RunEnded(report)) => {
                        let exit = report.exit;
                        self.run_ended(&report);
                        break exit;
                    }
                    Ok(Message::Signal(Signal::Stop(signal))) if self.stopping.is_some() => {
                        self.kill_run();
                        return (u8::try_from(128 + signal).unwrap_or(1), true);
                    }
                    Ok(message) => self.take(message),
                    Err(_) => {}
                }
            };
            worst = worse(worst, exit);
            if let Some(signal) = self.stopping {
                worst = u8::try_from(128 + signal).unwrap_or(1);
                break;
            }
        }
        self.finish();
        (worst, false)
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
        for entry in self.lasting.again(now) {
            log::lasting(Some(entry));
        }
        if let Some(watchdog) = self.service.watchdog()
            && self.next_watchdog.is_none_or(|due| due <= now)
        {
            self.service.tell("WATCHDOG=1");
            self.next_watchdog = Some(now + watchdog / 2);
        }
        [next_run, next_check, self.lasting.next(), self.next_watchdog].into_iter().flatten().min()
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
            Message::Signal(Signal::Reload) => self.reload(),
            Message::Signal(Signal::ApplyAll) => {
                tracing::info!("applying all manifests: SIGUSR1");
                for worker in &self.workers {
                    worker.source.look_now();
                }
                self.data.iter().for_each(|data| data.look_now());
                self.schedule.apply_all();
            }
            Message::Signal(Signal::Stop(signal)) => self.stop(signal, now),
            Message::Manifest(url, event) => self.manifest_event(&url, &event, now),
            Message::Data(url, event) => self.data_event(&url, &event, now),
            Message::Connection(event) => self.connection_event(&event, now),
            Message::RunEnded(report) => self.run_ended(&report),
        }
    }

    fn stop(&mut self, signal: i32, now: Moment) {
        self.stopping = Some(signal);
        self.schedule.stop();
        self.service.tell("STOPPING=1");
        match &mut self.running {
            Some(running) => {
                tracing::info!("stopping after the run at work");
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

    /// Starts a run, or reports at once why there is none.
    fn begin(&mut self, request: RunRequest, now: Moment) {
        let report = match self.start_run(&request, now) {
            Ok(running) => {
                self.running = Some(running);
                self.tell_status();
                return;
            }
            Err(reason) => RunReport::not_made(request, reason),
        };
        let _ = self.sender.send(Message::RunEnded(Box::new(report)));
    }

    fn start_run(&mut self, request: &RunRequest, now: Moment) -> Result<Running, String> {
        let worker = self.workers.iter().find(|worker| worker.url == request.manifest);
        let worker = worker.ok_or("the manifest is not configured any more")?;
        let manifest = Content::of(&worker.source, worker.is_local);
        let is_data_local = self.config.external_data_url.as_deref().is_some_and(is_local);
        let data = self.data.as_ref().map(|data| Content::of(data, is_data_local));
        if request.reason == RunReason::Remediation {
            self.metrics.remediation(&worker.name);
        }
        let performance = Performance {
            request: request.clone(),
            name: worker.name.clone(),
            manifest,
            is_local: worker.is_local,
            data,
            data_name: self.data.as_ref().map(|data| data.name()).unwrap_or_default(),
            facts: Arc::clone(&self.facts),
            noop: self.config.noop,
            register: self.config.registration,
            renewal: Renewal {
                interval: self.config.interval,
                health_check_interval: self.config.health_check_interval,
            },
            registrar: self.network.registrar.clone(),
            nats: self.network.nats.clone(),
            system: self.system.clone(),
            metrics: Arc::clone(&self.metrics),
            args: self.settings.run_args.clone(),
        };
        let control = RunControl::new().map_err(|error| error.to_string())?;
        let (inner, sender) = (control.clone(), self.sender.clone());
        let run = move || {
            let report = performance.perform(&inner);
            let _ = sender.send(Message::RunEnded(Box::new(report)));
        };
        let spawned = std::thread::Builder::new().name("run".to_owned()).spawn(run);
        spawned.map_err(|error| format!("cannot start a run: {error}"))?;
        let (mode, reason) = (request.mode.name(), request.reason.name());
        tracing::debug!(manifest = worker.name, reason, "starting a run: {mode}");
        let stop_at = self.config.run_timeout.map(|limit| now + limit);
        let request = request.clone();
        Ok(Running { request, control, stop_at, kill_at: None, is_timed_out: false })
    }

    /// Stops or kills the run whose time is up; when to look again.
    fn check_run(&mut self, now: Moment) -> Option<Moment> {
        let stop_timeout = self.config.stop_timeout;
        let limit = self.config.run_timeout.unwrap_or_default();
        let running = self.running.as_mut()?;
        let name = redact_credentials(&running.request.manifest).into_owned();
        if running.stop_at.is_some_and(|due| due <= now) {
            let limit = shown(limit);
            tracing::error!(manifest = name, "the run takes longer than {limit}: stopping it");
            running.control.stop(TERMINATE);
            running.is_timed_out = true;
            (running.stop_at, running.kill_at) = (None, Some(now + stop_timeout));
        }
        if running.kill_at.is_some_and(|due| due <= now) {
            let limit = shown(stop_timeout);
            tracing::error!(manifest = name, "the run has not stopped within {limit}: killing it");
            running.control.kill();
            running.kill_at = None;
        }
        running.stop_at.or(running.kill_at)
    }

    fn run_ended(&mut self, report: &RunReport) {
        let now = self.host.since_boot();
        let running = self.running.take();
        let is_timed_out = running.is_some_and(|running| running.is_timed_out);
        let request = &report.request;
        let name = redact_credentials(&request.manifest).into_owned();
        log::summary(&name, report);
        // A run that was ended for its time was ended from outside, however
        // gracefully.
        let result = match report.result {
            RunResult::Failed if is_timed_out || self.stopping.is_some() => RunResult::Killed,
            result => result,
        };
        self.metrics.run(&name, request.mode, request.reason, result, self.host.now());
        match request.mode {
            RunMode::Apply => {
                self.metrics.apply_duration(&name, report.took);
                if report.counts.total > 0 {
                    self.metrics.manifest_apply_duration(&name, report.counts.duration);
                }
            }
            RunMode::Health => self.metrics.health_run_duration(&name, report.took),
        }
        self.schedule.finished(report.is_critical, now);
        let (mode, result) = (request.mode.name(), result.name());
        self.last_run = Some(format!("last run: {mode} of {name} {result}"));
        self.tell_status();
    }

    fn tell_status(&self) {
        let now = self.host.since_boot();
        let running = self.running.as_ref().map(|running| {
            let (request, mode) = (&running.request, running.request.mode.name());
            format!("running: {mode} of {}", redact_credentials(&request.manifest))
        });
        let next = self.schedule.next_due().map(|due| {
            let seconds = Duration::from_secs(due.saturating_sub(now).as_secs());
            format!("next run in {}", shown(seconds.max(Duration::from_secs(1))))
        });
        let parts: Vec<String> =
            [running.or(next), self.last_run.clone()].into_iter().flatten().collect();
        let status = if parts.is_empty() { "waiting".to_owned() } else { parts.join("; ") };
        self.service.tell(&format!("STATUS={}", status.replace('\n', " ")));
    }

    fn manifest_event(&mut self, url: &str, event: &SourceEvent, now: Moment) {
        let Some(worker) = self.workers.iter().find(|worker| worker.url == url) else { return };
        let name = worker.name.clone();
        match event {
            SourceEvent::Changed { digest } => {
                tracing::info!(manifest = name, %digest, "there is a new manifest");
                self.note_availability();
                self.schedule.manifest_changed(url, now);
            }
            SourceEvent::Deleted => {
                self.note_availability();
                let message = "the object was deleted: suspended until it is back".to_owned();
                let key = (&*name, "deleted");
                log::lasting(self.lasting.set(key, Severity::Warning, message, now));
            }
            SourceEvent::Restored => {
                log::lasting(self.lasting.end((&name, "deleted"), "the object is back"));
                self.note_availability();
            }
            SourceEvent::Fetched => self.metrics.manifest_fetched(&name),
            SourceEvent::Failed { message } => {
                self.metrics.manifest_fetch_error(&name);
                let (key, message) = ((&*name, "source"), message.clone());
                log::lasting(self.lasting.set(key, Severity::Error, message, now));
            }
            SourceEvent::Recovered => {
                log::lasting(self.lasting.end((&name, "source"), "the source is back"));
            }
        }
    }

    fn data_event(&mut self, url: &str, event: &SourceEvent, now: Moment) {
        if self.config.external_data_url.as_deref() != Some(url) {
            return;
        }
        let name = redact_credentials(url).into_owned();
        match event {
            SourceEvent::Changed { digest } => {
                tracing::info!(%digest, "there is new external data");
                self.note_availability();
                self.schedule.data_changed(now);
            }
            // What a deleted key said stays.
            SourceEvent::Deleted | SourceEvent::Restored => self.note_availability(),
            SourceEvent::Fetched => {}
            SourceEvent::Failed { message } => {
                self.metrics.data_resolve_error(&name);
                let (key, message) = (("", "data"), message.clone());
                log::lasting(self.lasting.set(key, Severity::Error, message, now));
            }
            SourceEvent::Recovered => {
                log::lasting(self.lasting.end(("", "data"), "external data is back"));
            }
        }
    }

    fn connection_event(&mut self, event: &ConnectionEvent, now: Moment) {
        let key = ("", "connection");
        let entry = match event {
            ConnectionEvent::Connected => {
                self.metrics.nats_connected(true);
                if self.network.nats.connection().connects > 1 {
                    self.metrics.nats_reconnected();
                }
                self.lasting.end(key, "connected to NATS again")
            }
            ConnectionEvent::Lost => {
                self.metrics.nats_connected(false);
                let message = "the connection to NATS was lost".to_owned();
                self.lasting.set(key, Severity::Error, message, now)
            }
            ConnectionEvent::Failed(error) => {
                self.metrics.nats_connected(false);
                self.lasting.set(key, Severity::Error, error.to_string(), now)
            }
        };
        log::lasting(entry);
    }

    /// Tells schedule, metrics and log which manifests and data are there.
    fn note_availability(&mut self) {
        let now = self.host.since_boot();
        let mut without = Vec::new();
        for worker in &self.workers {
            // Each run looks for a local file by itself: here it could keep the
            // loop waiting.
            let copy = if worker.is_local { None } else { worker.source.current() };
            let is_there = worker.is_local || copy.is_some();
            self.schedule.set_available(&worker.url, is_there, now);
            self.metrics.manifest_available(&worker.name, is_there);
            if let Some(at) = copy.and_then(|copy| timestamp(copy.fetched)) {
                self.metrics.manifest_fetched_at(&worker.name, at);
            }
            let key = (&*worker.name, "manifest");
            let entry = if is_there || worker.source.is_suspended() {
                self.lasting.end(key, "there is a manifest now")
            } else {
                let message = "there is no manifest to apply yet".to_owned();
                self.lasting.set(key, Severity::Warning, message, now)
            };
            log::lasting(entry);
            if !is_there {
                without.push(worker.name.clone());
            }
        }
        let Some((url, data)) = self.config.external_data_url.as_ref().zip(self.data.as_ref())
        else {
            self.schedule.set_data(true, now);
            return self.health.set_missing(without, self.config.interval, now);
        };
        let copy = if is_local(url) { None } else { data.current() };
        let is_there = is_local(url) || copy.is_some();
        let name = redact_credentials(url);
        if let Some(at) = copy.and_then(|copy| timestamp(copy.fetched)) {
            self.metrics.data_fetched_at(&name, at);
        }
        self.schedule.set_data(is_there, now);
        let key = ("", "no data");
        log::lasting(if is_there {
            self.lasting.end(key, "there is external data now")
        } else {
            let message = format!("nothing is applied: there is no external data from {name} yet");
            without.push(name.into_owned());
            self.lasting.set(key, Severity::Error, message, now)
        });
        self.health.set_missing(without, self.config.interval, now);
    }

    fn watch_manifest(&self, url: &str) -> Result<Worker, AgentError> {
        let (sender, owned) = (self.sender.clone(), url.to_owned());
        let events = move |event| {
            let _ = sender.send(Message::Manifest(owned.clone(), event));
        };
        let source = self.watch(SourceKind::Manifest, url, None, events)?;
        let name = redact_credentials(url).into_owned();
        let source = Arc::new(source);
        Ok(Worker { url: url.to_owned(), name, is_local: is_local(url), source })
    }

    fn watch_data(&mut self) -> Result<(), AgentError> {
        self.data = None;
        let Some(url) = self.config.external_data_url.clone() else { return Ok(()) };
        let (sender, owned) = (self.sender.clone(), url.clone());
        let events = move |event| {
            let _ = sender.send(Message::Data(owned.clone(), event));
        };
        let accept = self.accept(&url);
        self.data = Some(Arc::new(self.watch(SourceKind::Data, &url, Some(accept), events)?));
        Ok(())
    }

    fn watch(
        &self,
        kind: SourceKind,
        url: &str,
        accept: Option<Accept>,
        events: impl Fn(SourceEvent) + Send + Sync + 'static,
    ) -> Result<Source, AgentError> {
        let Config { interval, splay, .. } = self.config;
        let settings = SourceSettings { kind, url: url.to_owned(), interval, splay, accept };
        let network = self.network.kept.as_ref().map(|_| &self.network.nats);
        Ok(Source::start(settings, &self.cache, &self.network.system, network, events)?)
    }

    /// Judges external data with the facts at hand.
    fn accept(&self, url: &str) -> Accept {
        let (facts, metrics) = (Arc::clone(&self.facts), Arc::clone(&self.metrics));
        let (system, name) = (self.system.clone(), redact_credentials(url).into_owned());
        Arc::new(move |text: &str| {
            let host = system.begin(Cancel::default());
            let layers = facts.at_hand().ok_or("there are no facts to resolve it with")?;
            let begin = host.since_boot();
            let failed = |error: ccm_hiera::Error| ccm_engine::chain(&error);
            let document = Document::parse(&name, text).map_err(failed)?;
            let resolved = document.resolve(&host, &layers.facts(), None).map_err(failed)?;
            metrics.data_resolve_duration(host.since_boot().saturating_sub(begin));
            if resolved.data.is_empty() {
                return Err("it resolves to nothing".to_owned());
            }
            Ok(())
        })
    }

    /// Removes copies of what is not configured any more.
    fn retain_copies(&self) {
        let manifests = self.config.manifests.iter().map(String::as_str);
        let urls: Vec<&str> = manifests.chain(self.config.external_data_url.as_deref()).collect();
        self.cache.retain(&urls);
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
    let Config { interval, health_check_interval, splay, .. } = *config;
    Times { interval, health_check_interval, splay }
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
    let nats = Nats::with_stream(choice, "agent", &config.registration_stream);
    let with_nats = system.clone().with_fetch(Arc::new(nats.clone()));
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
        let registrar = Registrar::start(network.nats.clone(), system, Arc::clone(metrics))?;
        network.registrar = Some(Arc::new(registrar));
    }
    Ok(network)
}
