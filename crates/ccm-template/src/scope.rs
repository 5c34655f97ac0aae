//! The scope of templates.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use ccm_host::Host;
use govalue::{Map, MapShape, Value};

type Gather = Box<dyn FnOnce() -> Gathered + Send>;

/// Facts, and the layers that they were made of, each over the one before it.
struct Gathered {
    facts: Value,
    layers: Vec<(String, Map)>,
}

/// The facts about the machine, gathered when they are first needed. Clones
/// share them.
///
/// ```
/// use ccm_template::Facts;
///
/// let facts = Facts::lazy(|| govalue::Map::from_iter([("os", "linux")]));
/// assert_eq!(facts.get().to_string(), "map[os:linux]");
/// ```
#[derive(Clone)]
pub struct Facts(Arc<LazyLock<Gathered, Gather>>);

impl Facts {
    /// Facts that are known already.
    pub fn known(facts: Map) -> Self {
        Self::lazy(move || facts)
    }

    /// Facts that `gather` finds out when something needs them, once.
    pub fn lazy(gather: impl FnOnce() -> Map + Send + 'static) -> Self {
        Self::layered(move || (gather(), Vec::new()))
    }

    /// As [`Facts::lazy`], with the layers that the facts were made of and what
    /// each is called, the strongest last.
    pub fn layered(gather: impl FnOnce() -> (Map, Vec<(String, Map)>) + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(move || {
            let (facts, layers) = gather();
            Gathered { facts: facts.into(), layers }
        }))))
    }

    /// Returns the facts as a map; gathers them on first use.
    pub fn get(&self) -> &Value {
        &self.0.facts
    }

    /// The layers that have a fact, the strongest first.
    pub fn origins(&self, path: &[String]) -> Vec<&str> {
        let has = |layer: &Map| {
            let mut at = Some(layer);
            let mut found = None;
            for key in path {
                found = at.and_then(|map| map.get(key));
                at = found.and_then(Value::as_map);
            }
            found.is_some()
        };
        let having = self.0.layers.iter().rev().filter(|(_, layer)| has(layer));
        having.map(|(name, _)| name.as_str()).collect()
    }
}

impl Default for Facts {
    fn default() -> Self {
        Self::known(Map::new())
    }
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Facts").finish_non_exhaustive()
    }
}

/// The scope of templates: facts, data, environment and files.
#[derive(Clone, Debug)]
pub struct Scope {
    /// `Facts`: about the machine.
    pub facts: Facts,
    /// `Data`: what the manifest and its hierarchy say.
    pub data: Map,
    /// `Environ`: variables of the environment, all strings.
    pub environ: Map,
    /// The directory that the paths of files start from.
    pub directory: PathBuf,
    /// The host that files are read through.
    pub host: Host,
    /// The directory that files must lie in, if there is one.
    pub beneath: Option<PathBuf>,
}

impl Scope {
    /// A scope without facts, data and variables, which reads files through this
    /// host.
    pub fn new(host: &Host) -> Self {
        Self {
            facts: Facts::default(),
            data: Map::new(),
            environ: Map::with_shape(MapShape::Strings),
            directory: PathBuf::new(),
            host: host.clone(),
            beneath: None,
        }
    }

    /// Variables of the environment as templates see them.
    ///
    /// ```
    /// use ccm_template::{Resolver, Scope};
    ///
    /// let host = ccm_host::Host::new();
    /// let environ = Scope::environ([("HOME", "/root")]);
    /// let resolver = Resolver::new(Scope { environ, ..Scope::new(&host) });
    /// assert_eq!(resolver.text("{{ Environ.HOME }}")?.text, "/root");
    /// # Ok::<(), ccm_template::Error>(())
    /// ```
    pub fn environ<K: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Map {
        let mut map = Map::with_shape(MapShape::Strings);
        for (name, value) in variables {
            map.insert(name.as_ref(), value.as_ref());
        }
        map
    }
}
