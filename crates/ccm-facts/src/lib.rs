//! Facts about the machine, such as its platform and addresses.
//!
//! [`gather`] asks the kernel, through `/proc`, `/sys` and a few system calls,
//! and overrides the result with custom facts from files. The keys are those
//! that users of gopsutil know.
//!
//! A fact that cannot be read is empty or absent, never an error. A file system
//! or file that hangs does not block the others: see [`Options::timeout`].
//!
//! # Layers
//!
//! Later layers override earlier ones. They are merged by [`merge`]: maps
//! member by member, everything else, lists included, is replaced.
//!
//! 1. What the machine says.
//! 2. The directories of [`Options::directories`], in their order: in each
//!    `facts.json`, then `facts.yaml`, then `facts.d/*.json` and
//!    `facts.d/*.yaml` by name.
//! 3. What the caller adds: a file with [`read_file`], single facts with
//!    [`set`].
//!
//! ```
//! let host = ccm_host::Host::new();
//! let mut facts = ccm_facts::gather(&host, &ccm_facts::Options::new(&host));
//! ccm_facts::set(&mut facts, "site.name=berlin")?;
//! let value = govalue::Value::from(facts);
//! let os = value.get("host").and_then(|host| host.get("info")).and_then(|info| info.get("os"));
//! assert_eq!(os.and_then(govalue::Value::as_str), Some("linux"));
//! # Ok::<(), ccm_facts::Error>(())
//! ```

mod background;
mod cpu;
mod custom;
mod error;
mod file;
mod machine;
mod memory;
mod merge;
mod network;
mod partition;
mod platform;
mod route;
mod tree;
mod user;
mod virtualization;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ccm_host::Host;
use govalue::{Map, Value};

pub use error::{Error, Result};
pub use file::read_file;
pub use merge::{merge, set};

use crate::background::BackgroundTask;
use crate::tree::Tree;

/// Facts by name, in the order in which they were found.
pub type Facts = Map;

/// All facts come within two seconds; what may block gets most of it.
const GATHER_TIMEOUT: Duration = Duration::from_millis(1500);

/// Where [`gather`] looks for facts files, and how long it waits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where facts files are looked for, the later ones winning.
    pub directories: Vec<PathBuf>,
    /// How long to wait for what may block for ever: file systems asked for
    /// their free space, and facts files in a home directory whose server is
    /// gone. What has not answered by then is left out with a warning.
    pub timeout: Duration,
}

impl Options {
    /// The machine's and the caller's own facts files: `/etc/choria/ccm`, then
    /// `$XDG_CONFIG_HOME/choria/ccm`, which is `~/.config/choria/ccm` by default.
    pub fn new(host: &Host) -> Self {
        Self { directories: custom::directories(host), timeout: GATHER_TIMEOUT }
    }
}

/// Facts from one place.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The file; `None` for what the machine says itself.
    pub file: Option<PathBuf>,
    /// The facts in this layer.
    pub facts: Facts,
}

/// Gathers the facts of the machine and the facts files.
pub fn gather(host: &Host, options: &Options) -> Facts {
    merged(gather_layers(host, options).into_iter().map(|layer| layer.facts))
}

/// Layers as one, the strongest last. The first one's names stay as they are
/// found: those of the machine under Go field names too.
pub fn merged(layers: impl IntoIterator<Item = Facts>) -> Facts {
    let mut layers = layers.into_iter();
    let mut facts = layers.next().unwrap_or_default();
    for layer in layers {
        merge(&mut facts, layer);
    }
    facts
}

/// Gathers the layers separately, the one with the highest precedence last.
pub fn gather_layers(host: &Host, options: &Options) -> Vec<Layer> {
    let until = Instant::now() + options.timeout;
    let read = |directory: &PathBuf| {
        let on = host.clone();
        BackgroundTask::start(host, directory, move |path| custom::read_directory(&on, path))
    };
    let reading: Vec<_> = options.directories.iter().map(read).collect();
    let mut all = vec![Layer { file: None, facts: machine_facts(&Tree::new(host), until) }];
    for (directory, layers) in options.directories.iter().zip(reading) {
        match layers.wait(until) {
            Some(layers) => layers.into_iter().for_each(|layer| match layer {
                Ok(layer) => all.push(layer),
                Err(error) => report(host, &error),
            }),
            None => host.warn(format!(
                "the facts files in {} did not answer in time; ccm ignores them",
                directory.display()
            )),
        }
    }
    all
}

fn report(host: &Host, error: &Error) {
    let mut reason = String::new();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        reason.push_str(": ");
        reason.push_str(&error.to_string());
        source = error.source();
    }
    let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
    let line = match error {
        Error::Syntax { document, finding } => {
            let span = finding.span.unwrap_or_default();
            format!("\n{}", ccm_model::excerpt(document, span, &[]))
        }
        _ => String::new(),
    };
    host.warn(format!("{error}{reason}; ccm ignores the file{hint}{line}"));
}

fn machine_facts(tree: &Tree<'_>, until: Instant) -> Facts {
    let partitions = partition::Partitions::start(tree);
    let mut facts = Facts::new();
    facts.insert("host", machine::facts(tree));
    facts.insert("cpu", cpu::facts(tree));
    facts.insert("memory", memory::facts(tree));
    facts.insert("network", network::facts(tree));
    facts.insert("user", user::facts(tree.host));
    facts.insert("partition", partitions.finish(until));
    with_any_initial(facts)
}

/// Lets built-in facts be found under the names of Go's fields, too:
/// `PlatformFamily` as well as `platformFamily`. For facts of the machine that
/// come from elsewhere than [`gather`].
pub fn with_any_initial(facts: Facts) -> Facts {
    fn value(found: Value) -> Value {
        match found {
            Value::Map(map) => with_any_initial(Arc::unwrap_or_clone(map)).into(),
            Value::Array(items) => Value::array(Arc::unwrap_or_clone(items).into_iter().map(value)),
            other => other,
        }
    }
    let members = facts.into_iter().map(|(key, found)| (key, value(found)));
    members.collect::<Facts>().with_any_initial()
}

/// A map of these members.
fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
    members.into_iter().collect::<Map>().into()
}

/// A count or size. Go's unsigned numbers beyond `i64` do not occur here.
fn count(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// How much of the whole a part is; nothing of nothing.
fn percent(part: u64, whole: u64) -> Value {
    Value::Float(if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(value: &Value) -> Vec<&str> {
        value.as_map().unwrap().keys().filter_map(|key| key.as_str()).collect()
    }

    #[test]
    fn a_machine_that_says_nothing_has_all_keys() {
        let empty = tempfile::tempdir().unwrap();
        let host = Host::new();
        let facts = machine_facts(&Tree::at(&host, empty.path()), Instant::now());
        let facts = Value::from(facts);
        assert_eq!(keys(&facts), ["host", "cpu", "memory", "network", "user", "partition"]);
        let at = |path: &str| path.split('.').fold(&facts, |value, key| value.get(key).unwrap());
        assert_eq!(at("host.info.os").as_str(), Some("linux"));
        assert_eq!(at("host.info.platform").as_str(), Some(""));
        assert_eq!(at("memory.virtual.total").as_int(), Some(0));
        assert_eq!(at("memory.virtual.usedPercent"), &Value::Float(0.0));
        assert_eq!(at("network.default_ipv4").as_str(), Some(""));
        assert_eq!(at("network.primaryIP").as_str(), Some(""));
        for list in ["cpu.info", "memory.swap.devices", "partition.partitions", "partition.usage"] {
            assert_eq!(at(list).as_array(), Some(&[][..]), "{list}");
        }
    }

    #[test]
    fn a_part_of_nothing_is_nothing() {
        assert_eq!(percent(0, 0), Value::Float(0.0));
        assert_eq!(percent(1, 4), Value::Float(25.0));
        assert_eq!(count(u64::MAX), Value::Int(i64::MAX));
    }
}
