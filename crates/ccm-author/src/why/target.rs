//! The target of an explanation: a resource, a property or a data key.

use ccm_engine::{AnyResource, AnyType, Manifest};
use ccm_model::{closest, did_you_mean, redact_credentials};
use govalue::{Map, Value};

/// Keys beyond this many are not looked through for suggestions.
const MAX_KEYS: usize = 10_000;

/// The target of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyTarget {
    /// A resource, or one property of it.
    Resource {
        /// Its index in the manifest.
        index: usize,
        /// The property, by the name that the table has.
        property: Option<&'static str>,
    },
    /// A data key.
    Data {
        /// The path of keys.
        path: Vec<String>,
    },
}

/// Why there is nothing to explain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WhyError {
    /// The message.
    pub message: String,
    /// Advice on how to fix the problem, for the `hint:` line.
    pub hint: Option<String>,
    /// The manifest does not have it; a child manifest may.
    pub is_elsewhere: bool,
}

impl WhyError {
    pub(super) fn new(message: &str, hint: Option<String>) -> Self {
        Self { message: redact_credentials(message).into_owned(), hint, is_elsewhere: false }
    }
}

impl WhyTarget {
    /// Reads `type#name`, `type#name.property` or `data:KEY`. The longest name
    /// that the manifest has is the name, as names may contain dots.
    ///
    /// # Errors
    ///
    /// Returns what the manifest does not have, and what may have been meant.
    pub fn find(
        text: &str,
        manifest: &Manifest,
        types: &[&'static dyn AnyType],
    ) -> Result<Self, WhyError> {
        if let Some(key) = text.strip_prefix("data:") {
            return find_key(key, manifest.templates.data());
        }
        let Some((kind, name)) = text.split_once('#').filter(|(_, name)| !name.is_empty()) else {
            let hint = "write `type#name`, `type#name.property` or `data:KEY`".to_owned();
            return Err(WhyError::new(
                &format!("`{text}` is not a resource, a property or a data key"),
                Some(hint),
            ));
        };
        let Some(kind) = types.iter().find(|known| known.name() == kind) else {
            let hint = did_you_mean(kind, types.iter().map(|kind| kind.name()));
            return Err(WhyError::new(&format!("unknown resource type `{kind}`"), hint));
        };
        let resources = &manifest.declarations.resources;
        let find = |name: &str| {
            resources.iter().position(|resource| {
                let common = resource.common();
                let is_called = common.name == name || common.alias.as_deref() == Some(name);
                resource.kind() == kind.name() && is_called
            })
        };
        if let Some(index) = find(name) {
            return Ok(Self::Resource { index, property: None });
        }
        for (at, _) in name.rmatch_indices('.') {
            let Some(index) = find(&name[..at]) else { continue };
            let property = &name[at + 1..];
            let field = kind.fields().iter().find(|field| field.is_called(property));
            let Some(field) = field else {
                let hint = did_you_mean(property, kind.fields().iter().map(|field| field.name));
                let message =
                    format!("{} has no property `{property}`", resources[index].display());
                return Err(WhyError::new(&message, hint));
            };
            return Ok(Self::Resource { index, property: Some(field.name) });
        }
        let message = format!("{}#{name} is not in {}", kind.name(), manifest.name);
        let error = WhyError::new(&message, resource_hint(kind.name(), name, resources));
        Err(WhyError { is_elsewhere: true, ..error })
    }
}

/// The resource that was meant.
fn resource_hint(kind: &str, name: &str, resources: &[Box<dyn AnyResource>]) -> Option<String> {
    let same = resources.iter().filter(|resource| resource.kind() == kind);
    let names = same.flat_map(|resource| {
        let common = resource.common();
        std::iter::once(&*common.name).chain(common.alias.as_deref())
    });
    // What is behind a dot may be a property.
    let shorter = name.rsplit_once('.').map(|(name, _)| name);
    let meant = closest(name, names.clone())
        .or_else(|| shorter.and_then(|shorter| closest(shorter, names)));
    meant.map(|meant| redact_credentials(&format!("did you mean `{kind}#{meant}`?")).into_owned())
}

fn find_key(key: &str, data: &Value) -> Result<WhyTarget, WhyError> {
    if let Some(path) = split_key(key, data) {
        return Ok(WhyTarget::Data { path });
    }
    let mut known = Vec::new();
    add_keys(data, "", &mut known);
    let hint = did_you_mean(key, known.iter().map(String::as_str));
    let hint = hint.or_else(|| known.is_empty().then(|| "the manifest has no data".to_owned()));
    Err(WhyError::new(&format!("there is no data key `{key}`"), hint))
}

/// The keys that a dotted key stands for: at each map the longest that is there,
/// as keys may contain dots.
fn split_key(key: &str, value: &Value) -> Option<Vec<String>> {
    let map = value.as_map()?;
    if map.get(key).is_some() {
        return Some(vec![key.to_owned()]);
    }
    key.rmatch_indices('.').find_map(|(at, _)| {
        let below = split_key(&key[at + 1..], map.get(&key[..at])?)?;
        Some(std::iter::once(key[..at].to_owned()).chain(below).collect())
    })
}

fn add_keys(value: &Value, before: &str, into: &mut Vec<String>) {
    for (key, below) in value.as_map().into_iter().flat_map(Map::iter) {
        if into.len() == MAX_KEYS {
            return;
        }
        let key = format!("{before}{}", key.value());
        add_keys(below, &format!("{key}."), into);
        into.push(key);
    }
}
