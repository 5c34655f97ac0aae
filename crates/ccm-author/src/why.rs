//! Explains a resource or a data key: what set each property, what its
//! expressions read, where that comes from, and what a run would do now.

mod explain;
mod find;
mod reads;
mod target;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

pub use explain::why;
pub use find::{WhyFound, find_why};
pub use target::{WhyError, WhyTarget};

use ccm_model::Outcome;

use crate::decision::Decision;

/// An explanation of one resource, or of one data key.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Why {
    /// The resource, as `type#name`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The child manifest that contains the resource; absent for the first manifest
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// The data key
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The properties by name, or the data key alone
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "BTreeMap<String, WhyProperty>")]
    pub properties: Vec<(String, WhyProperty)>,
    /// Every entry of the hierarchy, for a data key
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hierarchy: Vec<WhyEntry>,
    /// What a run would do to the resource now
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Required resources
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Vec<WhyReference>>,
    /// Subscribed resources
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscribe: Option<Vec<WhyReference>>,
    /// The alias of the resource.
    #[serde(skip)]
    pub alias: Option<String>,
    /// The one property that was asked about.
    #[serde(skip)]
    pub property: Option<&'static str>,
}

fn as_map<S: Serializer>(properties: &[(String, WhyProperty)], to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(properties.len()))?;
    for (name, property) in properties {
        map.serialize_entry(name, property)?;
    }
    map.end()
}

/// One property.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct WhyProperty {
    /// Final value; null if nothing sets it
    pub value: Value,
    /// Location that set it; null for a default of the type
    pub set_by: Option<SetBy>,
    /// Values that its expressions read
    pub reads: Vec<WhyRead>,
    /// Why the value could not be resolved
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The location that set a property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SetBy {
    /// The file
    pub file: String,
    /// The line, from 1
    pub line: Option<usize>,
    /// Kind of the location
    pub kind: SetKind,
}

/// The kind of location that set a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SetKind {
    /// The resource's own entry, or a data key
    Own,
    /// The `defaults` of its block
    Default,
    /// A block around its type, with `for_each` or without
    Block,
    /// A template that renders resources; file and line are those of its output
    Template,
}

/// Something that an expression reads.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct WhyRead {
    /// Kind of the value
    pub kind: WhyReadKind,
    /// The key, with dots between its parts, `*` for all keys; it ends in `[…]` where the
    /// rest is computed
    pub key: String,
    /// Value; null for a file, and if there is none
    pub value: Value,
    /// The data key behind a variable of a loop
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The location that supplied the value of a data key or a fact
    pub origin: Option<WhyOrigin>,
    /// Locations whose values it overrides, highest precedence first
    pub overrode: Vec<WhyOrigin>,
    /// Locations whose maps or lists were merged into the value, highest precedence first
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<WhyOrigin>,
    /// The expression, unless its property is secret.
    #[serde(skip)]
    pub expression: Option<String>,
}

/// The kind of value that an expression reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhyReadKind {
    /// A data key
    #[default]
    Data,
    /// A fact
    Fact,
    /// An environment variable
    Environment,
    /// A file, which may be a template
    File,
    /// A variable of a loop
    Item,
}

impl WhyReadKind {
    /// The word, as JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Fact => "fact",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Item => "item",
        }
    }
}

/// The location of a data key or a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WhyOrigin {
    /// The file
    pub file: Option<String>,
    /// The line, from 1
    pub line: Option<usize>,
    /// For a data key the level of the hierarchy: `data`, the name of an override, or
    /// `inherited`. For a fact `built-in`, `facts file` or `--fact`
    pub level: String,
}

/// An entry of the hierarchy.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyEntry {
    /// The entry as written
    pub entry: String,
    /// The entry with its placeholders resolved
    pub name: Option<String>,
    /// Whether it applies
    pub applies: bool,
    /// Why the entry matched or not, in words
    pub state: String,
}

/// A reference to another resource.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WhyReference {
    /// The other resource, as `type#name`
    pub resource: String,
    /// What a run would do to it; null if unknown
    pub outcome: Option<Outcome>,
}
