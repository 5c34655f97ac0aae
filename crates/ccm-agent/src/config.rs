//! The agent's configuration: one YAML file. All errors are reported together.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ccm_engine::Diagnosis;
use ccm_host::{Fetch as _, Host, Registry};
use ccm_model::{Finding, Severity, duration, redact_credentials};
use ccm_nats::{ContextChoice, DEFAULT_STREAM, Nats};
use ccm_yaml::{Kind, Node, Source, Span};

/// Where the configuration is unless another file is named.
pub const DEFAULT_PATH: &str = "/etc/choria/ccm/config.yaml";

/// A configuration larger than this was not written for one machine.
const MAX_SIZE: u64 = 1 << 20;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
/// The longest splay unless the configuration names another.
const DEFAULT_SPLAY: Duration = Duration::from_secs(30);

/// A key of the configuration, for messages and the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// How it is written.
    pub name: &'static str,
    /// Default value, as shown in the documentation.
    pub default: &'static str,
    /// Description and allowed values.
    pub rule: &'static str,
}

const fn key(name: &'static str, default: &'static str, rule: &'static str) -> Key {
    Key { name, default, rule }
}

/// Every key, in the order of the documentation.
pub const KEYS: &[Key] = &[
    key(
        "manifests",
        "",
        "List of the manifests to apply, at least one, each once: an absolute path, `obj://BUCKET/NAME.tar.gz`, or an `http://` or `https://` URL that ends in `.tar.gz` or `.tgz`",
    ),
    key("interval", "5m", "How often to apply each manifest; at least `30s`"),
    key(
        "health_check_interval",
        "0",
        "How often to run health checks; `0` is never, otherwise at least `5s`. Must be `0` with `noop`",
    ),
    key(
        "external_data_url",
        "none",
        "Hierarchical data that overrides that of the manifests: an absolute path, or a `file://`, `kv://`, `http://` or `https://` URL",
    ),
    key(
        "cache_dir",
        "/var/lib/ccm/source",
        "Absolute path of the directory for the last good copies of manifests and data",
    ),
    key("monitor_port", "0", "Port of the metrics, 0 to 65535; `0` is none"),
    key("monitor_address", "all", "IP address to serve the metrics on"),
    key(
        "log_level",
        "info",
        "`debug`, `info`, `warn` or `error`; `--debug` and `--info` override it",
    ),
    key("log_format", "text", "`text` or `json`; `--log-format json` overrides it"),
    key("nats_context", "CCM", "NATS context; `--context` and `NATS_CONTEXT` override it"),
    key("registration", "none", "Where to publish services: `nats` or `jetstream`"),
    key(
        "registration_stream",
        "REGISTRATION",
        "Stream of the registry, for publishing and for `registrations()`",
    ),
    key(
        "splay",
        "a tenth of `interval`, at most `30s`",
        "Longest random delay before an apply that many machines make at the same time; `0` to `interval`",
    ),
    key("run_timeout", "1h", "Timeout of a run; at least `1m`, or `0` for no limit"),
    key("stop_timeout", "2m", "How long ccm waits for a run to stop before it kills the run"),
    key("noop", "false", "Only preview: `true` changes nothing"),
    key("resource_metrics", "true", "Whether the metrics have series for each resource"),
];

/// How much the agent logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything that is done.
    Debug,
    /// Normal activity.
    Info,
    /// Changes, and what needs attention.
    Warn,
    /// Failures.
    Error,
}

/// The agent's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The manifests, in their order.
    pub manifests: Vec<String>,
    /// How often each is applied.
    pub interval: Duration,
    /// How often its health checks run; zero is never.
    pub health_check_interval: Duration,
    /// Where data comes from that overrides that of the manifests.
    pub external_data_url: Option<String>,
    /// Where last good copies are kept.
    pub cache_dir: PathBuf,
    /// The port of the metrics; zero is none.
    pub monitor_port: u16,
    /// The address of the metrics; all if not given.
    pub monitor_address: Option<IpAddr>,
    /// How much is logged.
    pub log_level: LogLevel,
    /// Whether logs are JSON.
    pub has_json_logs: bool,
    /// The context of NATS, unless something else names one.
    pub nats_context: String,
    /// Where services are published.
    pub registration: Option<Registry>,
    /// The stream of the registry.
    pub registration_stream: String,
    /// The longest random delay.
    pub splay: Duration,
    /// How long a run may take.
    pub run_timeout: Option<Duration>,
    /// How long a run that was told to stop may take.
    pub stop_timeout: Duration,
    /// Whether runs only preview.
    pub noop: bool,
    /// Whether metrics have series for each resource.
    pub has_resource_metrics: bool,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration")]
    Read(#[from] ccm_host::Error),
    /// Everything that is wrong with it.
    #[error("the configuration is not valid")]
    Invalid(Diagnosis),
}

impl Config {
    /// Reads a file; the second value is what is worth knowing about it.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong, with its place.
    pub fn read(host: &Host, path: &Path) -> Result<(Self, Diagnosis), ConfigError> {
        let (text, doubt) = host.read_judged(path, MAX_SIZE)?;
        let source = Arc::new(Source::new(path.display().to_string(), text.unwrap_or_default()));
        let mut findings = Vec::new();
        if let Some(doubt) = &doubt {
            let is_strict = host.is_strict();
            let finding = Finding::warning(None, doubt.to_string()).hint(doubt.hint());
            let severity = if is_strict { Severity::Error } else { Severity::Warning };
            findings.push(Finding { severity, ..finding });
            if is_strict {
                return Err(ConfigError::Invalid(Diagnosis { source, findings }));
            }
        }
        let (config, more) = Self::parse(&source);
        findings.extend(more);
        let diagnosis = Diagnosis { source, findings };
        match config {
            Some(config) if !diagnosis.has_errors() => Ok((config, diagnosis)),
            _ => Err(ConfigError::Invalid(diagnosis)),
        }
    }

    /// Reads a text. With an error among what is found there is no
    /// configuration.
    pub fn parse(source: &Source) -> (Option<Self>, Vec<Finding>) {
        let mut reader = Reader::default();
        let config = match ccm_yaml::parse(source) {
            Ok(root) => reader.config(root),
            Err(error) => {
                reader.error(error.span, error.to_string());
                None
            }
        };
        let mut findings = reader.findings;
        findings.sort_by_key(|finding| finding.span.map(|span| span.start));
        let is_valid = findings.iter().all(|finding| finding.severity != Severity::Error);
        (config.filter(|_| is_valid), findings)
    }

    /// Whether anything of it needs a connection to NATS.
    pub fn needs_network(&self) -> bool {
        let data = self.external_data_url.as_deref();
        self.registration.is_some()
            || self.manifests.iter().any(|url| has_scheme(url, "obj"))
            || data.is_some_and(|url| has_scheme(url, "kv"))
    }
}

fn has_scheme(url: &str, scheme: &str) -> bool {
    ccm_host::url_scheme(url).is_some_and(|found| found.eq_ignore_ascii_case(scheme))
}

/// Collects errors while values are read.
#[derive(Default)]
struct Reader {
    findings: Vec<Finding>,
}

impl Reader {
    fn error(&mut self, span: impl Into<Option<Span>>, message: impl Into<String>) {
        self.findings.push(Finding::error(span, message));
    }

    fn config(&mut self, root: Node<'_>) -> Option<Config> {
        let whole = root.span;
        let is_empty = root.is_null();
        let Kind::Mapping(entries) = root.kind else {
            if is_empty {
                self.error(whole, "the configuration is empty: `manifests` is required");
            } else {
                let message = format!("expected a map of settings, found {}", root.describe());
                self.error(whole, message);
            }
            return None;
        };
        let mut config = Config::default();
        let mut splay = None;
        let mut has_manifests = false;
        let mut health_span = None;
        for entry in entries {
            let (name, value) = (&*entry.key.text, entry.value);
            let span = value.span;
            if !KEYS.iter().any(|key| key.name == name) {
                let names = KEYS.iter().map(|key| key.name);
                let message = format!("unknown setting `{name}`");
                self.findings.push(Finding::error(entry.key.span, message).suggest(name, names));
                continue;
            }
            if value.is_null() {
                continue;
            }
            match name {
                "manifests" => {
                    has_manifests = true;
                    config.manifests = self.manifests(value);
                }
                "interval" => {
                    let rule = "must be at least 30s";
                    let found = self.duration(name, &value, |found| found >= 30 * SECOND, rule);
                    config.interval = found.unwrap_or(config.interval);
                }
                "health_check_interval" => {
                    health_span = Some(span);
                    let is_right = |found: Duration| found.is_zero() || found >= 5 * SECOND;
                    let rule = "must be 0, or at least 5s";
                    let found = self.duration(name, &value, is_right, rule);
                    config.health_check_interval = found.unwrap_or_default();
                }
                "external_data_url" => {
                    config.external_data_url =
                        self.text(name, &value).filter(|url| !url.is_empty());
                    if let Some(url) = &config.external_data_url
                        && let Err(reason) = check_data_url(url)
                    {
                        self.error(span, format!("{name}: {reason}"));
                    }
                }
                "cache_dir" => {
                    let path = PathBuf::from(self.text(name, &value).unwrap_or_else(|| "/".into()));
                    if path.is_absolute() {
                        config.cache_dir = path;
                    } else {
                        self.error(span, format!("{name}: must be an absolute path"));
                    }
                }
                "monitor_port" => {
                    let text = self.text(name, &value).unwrap_or_default();
                    match text.parse() {
                        Ok(port) => config.monitor_port = port,
                        Err(_) => self.error(span, format!("{name}: must be 0 to 65535")),
                    }
                }
                "monitor_address" => {
                    let text = self.text(name, &value).unwrap_or_default();
                    match text.parse() {
                        Ok(address) => config.monitor_address = Some(address),
                        Err(_) => self.error(span, format!("{name}: must be an IP address")),
                    }
                }
                "log_level" => {
                    use LogLevel::{Debug, Error, Info, Warn};
                    let levels =
                        [("debug", Debug), ("info", Info), ("warn", Warn), ("error", Error)];
                    config.log_level = self.one_of(name, &value, &levels).unwrap_or(Info);
                }
                "log_format" => {
                    let formats = [("text", false), ("json", true)];
                    config.has_json_logs = self.one_of(name, &value, &formats).unwrap_or(false);
                }
                "nats_context" => {
                    config.nats_context = self.text(name, &value).unwrap_or_default();
                }
                "registration" => {
                    let destinations = [
                        ("nats", Some(Registry::Nats)),
                        ("jetstream", Some(Registry::JetStream)),
                        ("", None),
                    ];
                    config.registration = self.one_of(name, &value, &destinations).flatten();
                }
                "registration_stream" => {
                    config.registration_stream = self.text(name, &value).unwrap_or_default();
                    if let Err(reason) = Nats::check_stream(&config.registration_stream) {
                        self.error(span, format!("{name}: {reason}"));
                    }
                }
                "splay" => {
                    splay = self.duration(name, &value, |_| true, "").map(|found| (found, span));
                }
                "run_timeout" => {
                    let is_right = |found: Duration| found.is_zero() || found >= MINUTE;
                    let found = self.duration(name, &value, is_right, "must be 0, or at least 1m");
                    config.run_timeout = found.filter(|found| !found.is_zero());
                }
                "stop_timeout" => {
                    let found = self.duration(name, &value, |_| true, "");
                    config.stop_timeout = found.unwrap_or(config.stop_timeout);
                }
                "noop" => config.noop = self.flag(name, &value).unwrap_or(false),
                "resource_metrics" => {
                    config.has_resource_metrics = self.flag(name, &value).unwrap_or(true);
                }
                // All keys are above, which a test checks.
                _ => self.error(span, format!("{name}: ccm cannot read this setting")),
            }
        }
        if !has_manifests {
            self.error(None, "`manifests` is required: name at least one manifest");
        }
        match splay {
            Some((splay, span)) if splay > config.interval => {
                self.error(span, "splay: must not be longer than `interval`");
            }
            Some((splay, _)) => config.splay = splay,
            None => config.splay = DEFAULT_SPLAY.min(config.interval / 10),
        }
        if config.noop && !config.health_check_interval.is_zero() {
            let message = "health_check_interval: must be 0 with `noop: true`: a preview makes no \
                           changes that health checks could test";
            self.error(health_span, message);
        }
        Some(config)
    }

    fn manifests(&mut self, node: Node<'_>) -> Vec<String> {
        let span = node.span;
        let described = node.describe();
        let Kind::Sequence(items) = node.kind else {
            self.error(span, format!("manifests: expected a list, found {described}"));
            return Vec::new();
        };
        if items.is_empty() {
            self.error(span, "manifests: name at least one manifest");
        }
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for item in items {
            let Some(url) = self.text("manifests", &item) else { continue };
            let shown = redact_credentials(&url).into_owned();
            if let Err(reason) = check_manifest_url(&url) {
                self.error(item.span, format!("manifests: {reason}"));
            } else if !seen.insert(url.clone()) {
                self.error(item.span, format!("manifests: {shown} is named twice"));
            } else {
                found.push(url);
            }
        }
        found
    }

    fn text(&mut self, name: &str, node: &Node<'_>) -> Option<String> {
        if let Some(scalar) = node.scalar() {
            return Some(scalar.text.clone().into_owned());
        }
        self.error(node.span, format!("{name}: expected a string, found {}", node.describe()));
        None
    }

    fn duration(
        &mut self,
        name: &str,
        node: &Node<'_>,
        is_right: impl Fn(Duration) -> bool,
        rule: &str,
    ) -> Option<Duration> {
        let text = self.text(name, node)?;
        match duration::parse_positive(&text) {
            Ok(found) if is_right(found) => Some(found),
            Ok(_) => {
                self.error(node.span, format!("{name}: {rule}, not {text}"));
                None
            }
            Err(error) => {
                self.error(node.span, format!("{name}: {error}"));
                None
            }
        }
    }

    fn one_of<T: Copy>(&mut self, name: &str, node: &Node<'_>, known: &[(&str, T)]) -> Option<T> {
        let text = self.text(name, node)?;
        if let Some((_, value)) = known.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let words: Vec<&str> =
            known.iter().map(|(word, _)| *word).filter(|word| !word.is_empty()).collect();
        let message = format!("{name}: must be one of {}, not `{text}`", words.join(", "));
        self.findings.push(Finding::error(node.span, message).suggest(&text, words));
        None
    }

    fn flag(&mut self, name: &str, node: &Node<'_>) -> Option<bool> {
        let found = node.scalar().and_then(ccm_yaml::Scalar::boolean);
        if found.is_none() {
            self.error(node.span, format!("{name}: expected `true` or `false`"));
        }
        found
    }
}

/// Checks what a manifest is fetched from.
fn check_manifest_url(url: &str) -> Result<(), String> {
    let shown = redact_credentials(url);
    match ccm_host::url_scheme(url).map(str::to_ascii_lowercase).as_deref() {
        None if Path::new(url).is_absolute() => Ok(()),
        None => Err(format!("`{shown}` must be an absolute path or a URL")),
        Some("obj") => nats_check(url),
        Some("http" | "https") => {
            let path = url.split(['?', '#']).next().unwrap_or_default();
            if [".tar.gz", ".tgz"].iter().any(|end| path.ends_with(end)) {
                check_http(url)
            } else {
                Err(format!("{shown} must end in `.tar.gz` or `.tgz`"))
            }
        }
        Some(scheme) => {
            Err(format!("`{scheme}` is not a scheme for manifests: use a path, obj, http or https"))
        }
    }
}

/// Checks what data is fetched from.
fn check_data_url(url: &str) -> Result<(), String> {
    let shown = redact_credentials(url);
    match ccm_host::url_scheme(url).map(str::to_ascii_lowercase).as_deref() {
        None if Path::new(url).is_absolute() => Ok(()),
        None => Err(format!("`{shown}` must be an absolute path or a URL")),
        Some("file") if url["file://".len()..].starts_with('/') => Ok(()),
        Some("file") => Err(format!("`{shown}` must name an absolute path")),
        Some("kv") => nats_check(url),
        Some("http" | "https") => check_http(url),
        Some(scheme) => {
            Err(format!("`{scheme}` is not a scheme for data: use a path, file, kv, http or https"))
        }
    }
}

fn nats_check(url: &str) -> Result<(), String> {
    Nats::new(ContextChoice::default(), "agent").check(url)
}

fn check_http(url: &str) -> Result<(), String> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || url.contains(char::is_whitespace) {
        return Err(format!("`{}` is not a URL", redact_credentials(url)));
    }
    Ok(())
}

impl Default for Config {
    fn default() -> Self {
        Self {
            manifests: Vec::new(),
            interval: 5 * MINUTE,
            health_check_interval: Duration::ZERO,
            external_data_url: None,
            cache_dir: PathBuf::from("/var/lib/ccm/source"),
            monitor_port: 0,
            monitor_address: None,
            log_level: LogLevel::Info,
            has_json_logs: false,
            nats_context: "CCM".to_owned(),
            registration: None,
            registration_stream: DEFAULT_STREAM.to_owned(),
            splay: DEFAULT_SPLAY,
            run_timeout: Some(60 * MINUTE),
            stop_timeout: 2 * MINUTE,
            noop: false,
            has_resource_metrics: true,
        }
    }
}

#[cfg(test)]
mod tests;
