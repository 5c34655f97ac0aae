//! The agent's configuration: one YAML file. All errors are reported together.

mod rules;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ccm_engine::Diagnosis;
use ccm_host::{Fetchers, Host, Registry};
use ccm_model::{Fields as _, Finding, Reader, Severity, Span};
use ccm_nats::{DEFAULT_STREAM, Nats};
use ccm_yaml::Source;
use rules::{absolute, at_least, not_empty, zero_or_at_least};

/// Where the configuration is unless another file is named.
pub const DEFAULT_PATH: &str = "/etc/choria/ccm/config.yaml";

/// Where the package of Choria CCM puts it.
const OTHER_PATH: &str = "/etc/choria/ccm/agent.yaml";

/// The file to read if none is named: [`DEFAULT_PATH`], or the one of Choria CCM
/// if only that exists.
pub fn default_path(host: &Host) -> &'static Path {
    let exists = |path: &str| matches!(host.stat(Path::new(path)), Ok(Some(_)));
    let is_other = !exists(DEFAULT_PATH) && exists(OTHER_PATH);
    Path::new(if is_other { OTHER_PATH } else { DEFAULT_PATH })
}

/// A configuration larger than this was not written for one machine.
const MAX_SIZE: u64 = 1 << 20;
/// The longest splay unless the configuration sets another.
const DEFAULT_SPLAY: Duration = Duration::from_secs(30);

/// How much the agent logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Everything that is done.
    Debug,
    /// Normal activity.
    #[default]
    Info,
    /// Changes, and what needs attention.
    Warn,
    /// Failures.
    Error,
}

const LOG_LEVELS: &[(&str, LogLevel)] = &[
    ("debug", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("warn", LogLevel::Warn),
    ("error", LogLevel::Error),
];

/// How a line of the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

const LOG_FORMATS: &[(&str, LogFormat)] = &[("text", LogFormat::Text), ("json", LogFormat::Json)];

const REGISTRIES: &[(&str, Option<Registry>)] =
    &[("nats", Some(Registry::Nats)), ("jetstream", Some(Registry::JetStream)), ("", None)];

/// The agent's configuration. The first paragraph of a field's comment is its row
/// in the documentation.
#[derive(Clone, Debug, PartialEq, Eq, ccm_model::Settings)]
pub struct Config {
    /// List of the manifests to apply, at least one, each once: an absolute path, or the URL of
    /// a tarball, such as `obj://BUCKET/NAME.tar.gz` or `https://HOST/NAME.tgz`
    #[property(required, check = not_empty)]
    pub manifests: Vec<String>,
    /// How often to apply each manifest; at least `30s`
    #[property(default = "5m", check = at_least("30s"))]
    pub interval: Duration,
    /// How often to run health checks; `0` is never, otherwise at least `5s`. Must be `0` with
    /// `noop`
    #[property(default = "0", check = zero_or_at_least("5s"))]
    pub health_check_interval: Duration,
    /// Hierarchical data that overrides that of the manifests: an absolute path, or the URL of a
    /// document, such as `kv://BUCKET/KEY` or `https://HOST/NAME.yaml`; none by default
    pub external_data_url: Option<String>,
    /// Absolute path of the directory for the last good copies of manifests and data
    #[property(default = "/var/lib/ccm/source", check = absolute)]
    pub cache_dir: PathBuf,
    /// Port of the metrics, 0 to 65535; `0` is none
    #[property(default = "0")]
    pub monitor_port: u16,
    /// IP address to serve the metrics on; all by default
    pub monitor_address: Option<IpAddr>,
    /// `debug`, `info`, `warn` or `error`; `--debug` and `--info` override it
    #[property(default = "info", one_of = LOG_LEVELS)]
    pub log_level: LogLevel,
    /// `text` or `json`; `--log-format json` overrides it
    #[property(default = "text", one_of = LOG_FORMATS)]
    pub log_format: LogFormat,
    /// NATS context; `--context` and `NATS_CONTEXT` override it
    #[property(default = "CCM")]
    pub nats_context: String,
    /// Where to publish services: `nats` or `jetstream`; nowhere by default
    #[property(one_of = REGISTRIES)]
    pub registration: Option<Registry>,
    /// Stream of the registry, for publishing and for `registrations()`
    #[property(default = DEFAULT_STREAM, check = Nats::check_stream)]
    pub registration_stream: String,
    /// Maximum random delay before a run, so that a fleet does not run all at once; `0` to
    /// `interval`, by default a tenth of `interval` and at most `30s`
    pub splay: Option<Duration>,
    /// Timeout of a run; at least `1m`, or `0` for no limit
    #[property(default = "1h", check = zero_or_at_least("1m"))]
    pub run_timeout: Duration,
    /// How long ccm waits for a run to stop before it kills the run
    #[property(default = "2m")]
    pub stop_timeout: Duration,
    /// Only preview: `true` changes nothing
    #[property(default = "false")]
    pub noop: bool,
    /// Whether the metrics have series for each resource
    #[property(default = "true")]
    pub resource_metrics: bool,
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
    /// Reads a file; the second value is what is worth knowing about it. Sources
    /// may have the schemes that the host can fetch.
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
        let (config, more) = Self::parse(&source, host.fetchers());
        findings.extend(more);
        let diagnosis = Diagnosis { source, findings };
        match config {
            Some(config) if !diagnosis.has_errors() => Ok((config, diagnosis)),
            _ => Err(ConfigError::Invalid(diagnosis)),
        }
    }

    /// Reads a text. With an error among what is found there is no
    /// configuration.
    pub fn parse(source: &Source, fetchers: &Fetchers) -> (Option<Self>, Vec<Finding>) {
        let root = match ccm_yaml::parse(source) {
            Ok(root) => root,
            Err(error) => return (None, vec![Finding::error(error.span, error.to_string())]),
        };
        let mut reader = Reader::default();
        let (mut config, places) = reader.read_settings::<Self>(root);
        config.external_data_url.take_if(|url| url.is_empty());
        let mut findings = reader.findings;
        findings.extend(config.check(&places, fetchers));
        findings.sort_by_key(|finding| finding.span.map(|span| span.start));
        let is_valid = findings.iter().all(|finding| finding.severity != Severity::Error);
        (is_valid.then_some(config), findings)
    }

    /// Checks that need more than one value, or the ways to fetch URLs.
    fn check(&self, places: &[(u8, Span)], fetchers: &Fetchers) -> Vec<Finding> {
        let spans = |name: &str| {
            let is_it = |at: u8| Self::FIELDS[usize::from(at)].name == name;
            places.iter().filter(|(at, _)| is_it(*at)).map(|(_, span)| *span).collect::<Vec<_>>()
        };
        let place = |name: &str| spans(name).first().copied();
        // The first span is that of the whole list.
        let manifests = spans("manifests");
        let items = manifests.get(1..).unwrap_or_default();
        let mut findings = rules::manifests(&self.manifests, items, fetchers);
        let name = "external_data_url";
        let url = self.external_data_url.as_deref();
        if let Some((reason, hint)) = url.and_then(|url| rules::data(url, fetchers).err()) {
            findings.push(Finding::error(place(name), format!("{name}: {reason}")).hint(hint));
        }
        if self.splay.is_some_and(|splay| splay > self.interval) {
            let message = "splay: must not be longer than `interval`";
            findings.push(Finding::error(place("splay"), message));
        }
        if self.noop && !self.health_check_interval.is_zero() {
            let message = "health_check_interval: must be 0 with `noop: true`: a preview makes no \
                           changes that health checks could test";
            findings.push(Finding::error(place("health_check_interval"), message));
        }
        findings
    }

    /// The longest random delay before a run.
    pub fn splay(&self) -> Duration {
        self.splay.unwrap_or_else(|| DEFAULT_SPLAY.min(self.interval / 10))
    }

    /// Whether anything of it needs a connection to NATS.
    pub fn needs_network(&self) -> bool {
        let mut urls = self.manifests.iter().chain(&self.external_data_url);
        self.registration.is_some() || urls.any(|url| Nats::serves(url))
    }
}

#[cfg(test)]
mod tests;
