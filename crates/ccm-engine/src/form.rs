//! Descriptions of the types for forms: every property with its allowed values.
//! Forms built from these descriptions support new types and properties without
//! a change.

mod values;

use ccm_model::{Common, Field, Fields as _, Format, Phase, Required, Shape};
use serde_json::{Map, Value, json};

pub use values::{FormError, ResourceForm, User, resource_form};

use crate::declare::Ensure;
use crate::resource::AnyType;

/// All types with their properties, and the names of those that all types have.
///
/// `{types: [{name, about, ensure: {default, words?}, providers, example?,
/// fields: [{name, doc, aliases, shape, items?, fields?, format?, words?, group?,
/// phase, secret, required, required_unless?, conflicts}]}], common: [names]}`
pub fn types(types: &[&'static dyn AnyType]) -> Value {
    let types: Vec<Value> = types.iter().map(|kind| one(*kind)).collect();
    let common: Vec<_> = Common::FIELDS.iter().map(|field| field.name).collect();
    json!({"types": types, "common": common})
}

fn one(kind: &'static dyn AnyType) -> Value {
    let mut ensure = json!({"default": kind.ensure().default()});
    if let Ensure::OneOf(words) = kind.ensure() {
        ensure["words"] = json!(words);
    }
    let mut fields: Vec<Value> = kind.fields().iter().map(described).collect();
    if let Some(name) = fields.iter_mut().find(|field| field["name"] == "name") {
        name["doc"] = kind.name_doc().into();
    }
    json!({
        "name": kind.name(),
        "about": kind.about(),
        "ensure": ensure,
        "providers": kind.providers(),
        "example": kind.command_line().map(|view| view.example),
        "fields": fields,
    })
}

fn described(field: &Field) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), field.name.into());
    entry.insert("doc".into(), field.doc.into());
    entry.insert("aliases".into(), json!(field.aliases));
    add_shape(&field.shape, &mut entry);
    if let Some(format) = field.format {
        entry.insert("format".into(), format.word().into());
    }
    if let Some(Format::OneOf(words)) = field.format {
        entry.insert("words".into(), json!(words));
    }
    if let Some(group) = field.group {
        entry.insert("group".into(), group.into());
    }
    let phase = match field.phase {
        Phase::Parse => "parse",
        Phase::Keys => "keys",
        Phase::Deferred => "deferred",
        Phase::Never => "never",
    };
    entry.insert("phase".into(), phase.into());
    entry.insert("secret".into(), (field.secret || field.secret_values).into());
    entry.insert("required".into(), (field.required != Required::Never).into());
    match field.required {
        Required::UnlessEnsure(word) => {
            entry.insert("required_unless".into(), word.into());
        }
        Required::UnlessSet(other) => {
            entry.insert("required_unless_set".into(), other.into());
        }
        Required::Never | Required::Always => {}
    }
    entry.insert("conflicts".into(), json!(field.conflicts));
    Value::Object(entry)
}

/// The name of a shape, and what is inside of it.
fn add_shape(shape: &Shape, into: &mut Map<String, Value>) {
    let name = match shape {
        Shape::Text => "text",
        Shape::Boolean => "boolean",
        Shape::Integer => "integer",
        Shape::Reference => "reference",
        Shape::List(_) => "list",
        Shape::Texts => "texts",
        Shape::Data => "data",
        Shape::Struct(_) => "struct",
        Shape::Rules => "rules",
    };
    into.insert("shape".into(), name.into());
    match shape {
        Shape::List(inner) => {
            let mut items = Map::new();
            add_shape(inner, &mut items);
            into.insert("items".into(), Value::Object(items));
        }
        Shape::Struct(fields) => {
            into.insert("fields".into(), fields.iter().map(described).collect());
        }
        _ => {}
    }
}
