//! The property `register_when_stable`.

use std::collections::BTreeMap;

use ccm_yaml::{Entry, Kind, Node};
use govalue::Value;
use serde::{Serialize, Serializer};

use super::{ADDRESS_PATTERN, NAME_PATTERN, RegistryEntry, Ttl, check_address, check_name};
use crate::{FromNode, Reader, Resolve, Shape, TemplateError, Templates};

/// All annotations of an entry together have at most this many bytes.
const MAX_ANNOTATIONS: usize = 32 << 10;

/// Where the service of a resource can be found
#[derive(Clone, Debug, Default, ccm_macros::Properties)]
pub struct Registration {
    /// Cluster that the service belongs to
    #[property(required, format = Name(NAME_PATTERN))]
    pub cluster: String,
    /// Name of the service
    #[property(required, format = Name(NAME_PATTERN))]
    pub service: String,
    /// Protocol that it speaks
    #[property(required, format = Name(NAME_PATTERN))]
    pub protocol: String,
    /// IPv4 or IPv6 address
    #[property(required, format = Pattern(ADDRESS_PATTERN))]
    pub address: String,
    /// Port, from 1 to 65535
    #[property(format = Within(1, 65535))]
    pub port: Option<Whole>,
    /// From 1 to 255; clients prefer the lowest
    #[property(required, format = Within(1, 255))]
    pub priority: Option<Whole>,
    /// How long the entry lasts: `never`, or a duration of at least `1s`
    #[property(format = Lifetime)]
    pub ttl: Option<String>,
    /// Annotations of the service, as names and values
    pub annotations: Annotations,
}

impl Registration {
    /// The entry to publish.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong.
    pub fn entry(&self) -> Result<RegistryEntry, Vec<String>> {
        let mut problems = Vec::new();
        for (what, name) in
            [("cluster", &self.cluster), ("service", &self.service), ("protocol", &self.protocol)]
        {
            problems.extend(check_name(what, name).err());
        }
        problems.extend(check_address(&self.address).err());
        let port = self.port.as_ref().map(|port| port.within("port", 1..=65_535));
        let port = port.transpose().unwrap_or_else(|problem| {
            problems.push(problem);
            None
        });
        let priority = match &self.priority {
            None => Err("`priority` is required".to_owned()),
            Some(priority) => priority.within("priority", 1..=255),
        };
        let priority = priority.unwrap_or_else(|problem| {
            problems.push(problem);
            0
        });
        let ttl = self.ttl.as_deref().map(str::parse::<Ttl>).transpose();
        let ttl = ttl.unwrap_or_else(|error| {
            problems.push(format!("ttl: {error}"));
            None
        });
        let annotations = self.annotations.0.clone();
        let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        if size > MAX_ANNOTATIONS {
            let limit = MAX_ANNOTATIONS >> 10;
            problems.push(format!("annotations: all together have at most {limit} KiB"));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(RegistryEntry {
            cluster: self.cluster.clone(),
            service: self.service.clone(),
            protocol: self.protocol.clone(),
            address: self.address.clone(),
            port,
            priority,
            annotations,
            ttl,
        })
    }
}

/// A whole number that a template may give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whole(String);

impl Whole {
    fn number(&self) -> Option<i64> {
        let is_number = !self.0.is_empty() && self.0.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| self.0.parse().ok())?
    }

    fn within(&self, what: &str, range: std::ops::RangeInclusive<i64>) -> Result<i64, String> {
        let (least, most) = (range.start(), range.end());
        match self.number() {
            Some(number) if range.contains(&number) => Ok(number),
            _ => {
                let shown: String = self.0.chars().take(60).collect();
                let shown = shown.escape_debug();
                Err(format!("{what}: must be a whole number from {least} to {most}, not `{shown}`"))
            }
        }
    }
}

impl From<i64> for Whole {
    fn from(number: i64) -> Self {
        Self(number.to_string())
    }
}

impl FromNode for Whole {
    const SHAPE: Shape = Shape::Integer;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        match ccm_yaml::to_value(&node) {
            Value::Int(number) => Some(number.into()),
            Value::String(text) => Some(Self(text.to_str_lossy().into_owned())),
            _ => reader.wrong_type(&node, "a whole number"),
        }
    }

    fn is_set(&self) -> bool {
        true
    }
}

impl Resolve for Whole {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.0.resolve(templates, keys)
    }
}

impl Serialize for Whole {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.number() {
            Some(number) => to.serialize_i64(number),
            None => to.serialize_str(&self.0),
        }
    }
}

/// Names and values; values may be templates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations(pub BTreeMap<String, String>);

impl FromNode for Annotations {
    const SHAPE: Shape = Shape::Texts;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        let Kind::Mapping(entries) = node.kind else {
            return reader.wrong_type(&node, "a map from names to values");
        };
        let pair = |Entry { key, value }: Entry<'_>| {
            reader.read(value).map(|value| (key.text.into_owned(), value))
        };
        Some(Self(entries.into_iter().filter_map(pair).collect()))
    }

    fn is_set(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Resolve for Annotations {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.0.values_mut().try_for_each(|value| value.resolve(templates, keys))
    }
}

impl Serialize for Annotations {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(&self.0)
    }
}
