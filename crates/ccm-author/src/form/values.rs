//! One resource of a text for a form: each property with its value, its
//! default, and whether a form can edit it.

use std::collections::BTreeMap;

use ccm_engine::{AnyType, Manifest, find_type};
use ccm_model::{Field, Required, Shape, has_placeholder};
use ccm_yaml::Source;
use ccm_yaml::edit::{Document, Step};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::edit::ResourceId;
use crate::outline::{OutlineEntry, ResourceShape, outline_of};

/// A place in a text: line, column, line, column, from 0, columns in UTF-16
/// units.
type Range = [usize; 4];

/// A resource with all that a form shows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResourceForm {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its name, placeholders as written.
    pub name: String,
    /// Its properties: those of its type, and unknown ones that are written.
    #[schemars(with = "BTreeMap<String, PropertyForm>")]
    pub properties: Map<String, Value>,
    /// The resources that refer to it.
    pub used_by: Vec<User>,
    /// Its place in the order of the text, from 1.
    pub number: usize,
    /// How many resources there are.
    pub total: usize,
    /// Where it is: the value of this path has its properties.
    pub path: Vec<Step>,
    #[serde(skip)]
    own_span: u32,
}

/// A resource that refers to another one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct User {
    /// `type#name`
    pub resource: String,
    /// `require` or `subscribe`.
    pub relation: &'static str,
}

/// Why there is no form.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    /// The text is not YAML.
    #[error("{0}")]
    NotYaml(String),
    /// There is no such resource.
    #[error("{message}")]
    Missing {
        /// The message.
        message: String,
        /// A suggestion.
        hint: Option<String>,
    },
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Property")]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own for the page")]
struct PropertyForm {
    /// The value that is written; secrets are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    own: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<DefaultValue>,
    /// The own value, or else the default one.
    shown: Value,
    /// What the placeholders of the shown value stand for.
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved: Option<Value>,
    /// Where its own value is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
    /// The name that it is written under, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<String>,
    /// Whether it has a value that is not sent because it is a secret.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    /// Whether the type does not have it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unknown: bool,
    /// Suggestion for an unknown property.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggestion: Option<String>,
    /// Whether it must be set, with the values that others have.
    required: bool,
    editable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How many aliases elsewhere change with it.
    #[serde(skip_serializing_if = "is_zero")]
    aliases: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Serialize, JsonSchema)]
struct DefaultValue {
    value: Value,
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
}

/// The form of one resource of a text, valid or not.
///
/// # Errors
///
/// Returns an error if the text has no such resource.
pub fn resource_form(
    types: &[&'static dyn AnyType],
    document: &Document,
    id: &ResourceId,
) -> Result<ResourceForm, FormError> {
    let found = outline_of(document).map_err(|error| FormError::NotYaml(error.message))?;
    let entry = find(&found, id)?;
    let reading = Reading { document, entry };
    let fields = find_type(types, &entry.kind).map_or(&[][..], AnyType::fields);
    let own = match entry.shape {
        ResourceShape::BareItem => Map::new(),
        _ => reading.map(&entry.path),
    };
    let defaults = entry.block.defaults.as_deref().map(|path| reading.map(path));
    let defaults = defaults.unwrap_or_default();
    let mut properties = Map::new();
    for field in fields.iter().filter(|field| field.name != "name") {
        let property = reading.property(field, &own, &defaults);
        properties.insert(field.name.to_owned(), to_json(&property));
    }
    let is_known = |key: &str| fields.iter().any(|field| field.is_called(key));
    let is_name = |key: &str| key == "name" && entry.shape == ResourceShape::Single;
    for (key, value) in own.iter().filter(|(key, _)| !is_known(key) && !is_name(key)) {
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let suggestion = ccm_model::closest(key, known.iter().copied()).map(str::to_owned);
        properties.insert(key.clone(), to_json(&reading.unknown(key, value, suggestion)));
    }
    let is_this = |reference: &String| {
        let (kind, name) = reference.split_once('#').unwrap_or((reference, ""));
        entry.is_called(kind, name)
    };
    let mut used_by = Vec::new();
    for other in &found {
        for (relation, all) in [("require", &other.require), ("subscribe", &other.subscribe)] {
            if all.iter().any(is_this) {
                used_by.push(User { resource: other.reference(), relation });
            }
        }
    }
    Ok(ResourceForm {
        kind: entry.kind.clone(),
        name: entry.name.clone(),
        properties,
        used_by,
        number: entry.number,
        total: found.len(),
        path: entry.path.clone(),
        own_span: entry.span.start,
    })
}

impl ResourceForm {
    /// Whether any value that is shown has a placeholder.
    pub fn has_placeholders(&self) -> bool {
        self.properties.values().any(|property| holds_placeholder(&property["shown"]))
    }

    /// Adds what placeholders stand for, from the manifest that the text is.
    pub fn add_resolved(&mut self, manifest: &Manifest) {
        let resources = &manifest.declarations.resources;
        // By its place: names may be made by templates, and repeat.
        let is_this =
            |span: ccm_model::Span| span.start <= self.own_span && self.own_span < span.end;
        let found = resources
            .iter()
            .filter(|resource| resource.kind() == self.kind)
            .find(|resource| resource.span().is_some_and(is_this));
        let Some(resource) = found else { return };
        let values = resource.properties();
        for (name, property) in &mut self.properties {
            if !holds_placeholder(&property["shown"]) {
                continue;
            }
            // What is resolved later is resolved as it would be now.
            let now = match values.get(name) {
                Some(Value::String(text)) if has_placeholder(text) => {
                    let templates = ccm_engine::templates_of(&**resource, &manifest.templates);
                    let done = templates.text(text).ok();
                    done.map(|done| Value::from(done.text.to_string()))
                }
                Some(value) => Some(value.clone()).filter(|value| !holds_placeholder(value)),
                None => None,
            };
            if let Some(now) = now {
                property["resolved"] = now;
            }
        }
    }
}

fn to_json(property: &PropertyForm) -> Value {
    serde_json::to_value(property).unwrap_or_default()
}

fn holds_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => has_placeholder(text),
        Value::Array(items) => items.iter().any(holds_placeholder),
        Value::Object(map) => map.values().any(holds_placeholder),
        _ => false,
    }
}

fn find<'o>(found: &'o [OutlineEntry], id: &ResourceId) -> Result<&'o OutlineEntry, FormError> {
    match id {
        ResourceId::Number(number) => {
            let entry = number.checked_sub(1).and_then(|index| found.get(index));
            entry.ok_or_else(|| FormError::Missing {
                message: format!("there is no resource number {number}"),
                hint: None,
            })
        }
        ResourceId::Name(name) => {
            let (kind, rest) = name.split_once('#').unwrap_or((name, ""));
            let entry = found.iter().find(|entry| entry.is_called(kind, rest));
            entry.ok_or_else(|| {
                let known: Vec<String> = found.iter().map(OutlineEntry::reference).collect();
                let hint = ccm_model::did_you_mean(name, known.iter().map(String::as_str));
                FormError::Missing { message: format!("{name} is not in this text"), hint }
            })
        }
    }
}

struct Reading<'d> {
    document: &'d Document,
    entry: &'d OutlineEntry,
}

impl Reading<'_> {
    fn map(&self, path: &[Step]) -> Map<String, Value> {
        match self.document.value(path) {
            Some(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }

    fn property(
        &self,
        field: &Field,
        own: &Map<String, Value>,
        defaults: &Map<String, Value>,
    ) -> PropertyForm {
        let names = || std::iter::once(field.name).chain(field.aliases.iter().copied());
        let has = |map: &Map<String, Value>| {
            let is_set = |key: &&str| map.get(*key).is_some_and(|value| !value.is_null());
            names().find(is_set)
        };
        let written = has(own).or_else(|| names().find(|name| own.contains_key(*name)));
        let place = written.map(|key| below(&self.entry.path, key));
        let value = written.and_then(|key| own.get(key)).filter(|value| !value.is_null());
        let value = value.map(|value| self.as_text(field, value, place.as_deref()));
        let default = has(defaults).and_then(|key| {
            let path = below(self.entry.block.defaults.as_deref()?, key);
            let value = self.as_text(field, defaults.get(key)?, Some(&path));
            Some(DefaultValue { value, origin: "defaults", range: self.range(&path) })
        });
        let other = |name: &str| own.get(name).or_else(|| defaults.get(name));
        let required = match field.required {
            Required::Never => false,
            Required::Always => true,
            Required::UnlessSet(name) => other(name).is_none_or(serde_json::Value::is_null),
            Required::UnlessEnsure(words) => {
                let ensure = other("ensure").and_then(|value| value.as_str());
                !ensure.is_some_and(|ensure| words.contains(&ensure))
            }
        };
        let is_secret = field.secret || field.secret_values;
        let hidden = is_secret && (value.is_some() || default.is_some());
        let (own, default) = if hidden {
            (None, default.map(|default| DefaultValue { value: Value::Null, ..default }))
        } else {
            (value, default)
        };
        let shown = own.clone().or_else(|| default.as_ref().map(|default| default.value.clone()));
        let reason = place.as_deref().and_then(|path| self.obstacle(path));
        PropertyForm {
            own,
            default,
            shown: shown.unwrap_or_default(),
            resolved: None,
            range: place.as_deref().and_then(|path| self.range(path)),
            written: written.filter(|key| *key != field.name).map(str::to_owned),
            hidden,
            unknown: false,
            suggestion: None,
            required,
            editable: reason.is_none(),
            aliases: match (&place, &reason) {
                (Some(path), None) => self.document.aliases(path),
                _ => 0,
            },
            reason,
        }
    }

    fn unknown(&self, key: &str, value: &Value, suggestion: Option<String>) -> PropertyForm {
        let path = below(&self.entry.path, key);
        // It may be a secret whose name is misspelled.
        PropertyForm {
            own: (!ccm_model::is_secret_name(key)).then(|| value.clone()),
            default: None,
            shown: Value::Null,
            resolved: None,
            range: self.range(&path),
            written: None,
            hidden: ccm_model::is_secret_name(key),
            unknown: true,
            suggestion,
            required: false,
            editable: false,
            reason: Some("the type has no such property".to_owned()),
            aliases: 0,
        }
    }

    fn range(&self, path: &[Step]) -> Option<Range> {
        let place = self.document.locate(path)?;
        Some(self.document.source().range(place.value))
    }

    /// A value as its field reads it: what is a text there is not `0644` as a
    /// number, but as it is written.
    fn as_text(&self, field: &Field, value: &Value, path: Option<&[Step]>) -> Value {
        let is_text = matches!(field.shape, Shape::Text | Shape::Reference);
        let is_plain = value.is_number() || value.is_boolean();
        let written = path.filter(|_| is_text && is_plain).and_then(|path| self.written(path));
        written.map_or_else(|| value.clone(), Value::from)
    }

    /// The text at a path.
    fn written(&self, path: &[Step]) -> Option<String> {
        let place = self.document.locate(path)?;
        let source: &Source = self.document.source();
        Some(source.text()[source.clamp(place.value)].trim().to_owned())
    }

    /// Why a form cannot edit what is at a path.
    fn obstacle(&self, path: &[Step]) -> Option<String> {
        let Some(place) = self.document.locate(path) else {
            return Some("it comes from an alias or a merge".to_owned());
        };
        let source = self.document.source();
        let value = &source.text()[source.clamp(place.value)];
        if value.starts_with('*') {
            return Some("it is an alias of a value that is written elsewhere".to_owned());
        }
        let between =
            place.key.map(|key| ccm_model::Span { start: key.end, end: place.value.start });
        let before = between.map_or("", |span| &source.text()[source.clamp(span)]);
        let has_tag =
            before.split_whitespace().any(|word| word.starts_with('!') && word != "!!str");
        has_tag.then(|| "it has a tag".to_owned())
    }
}

fn below(path: &[Step], key: &str) -> Vec<Step> {
    let mut path = path.to_vec();
    path.push(key.into());
    path
}
