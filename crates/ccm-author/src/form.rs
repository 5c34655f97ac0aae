//! Descriptions of the types for forms: every property with its allowed values.
//! Forms built from these descriptions support new types and properties without
//! a change.

mod values;

use ccm_engine::{AnyType, Ensure};
use ccm_model::{Common, Field, Fields as _, Format, Phase, Required, Shape};
use schemars::JsonSchema;
use serde::Serialize;

pub use values::{FormError, ResourceForm, User, resource_form};

/// All types with their properties.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Types")]
pub struct TypesForm {
    /// The types.
    pub types: Vec<TypeForm>,
    /// The names of the properties that all types have.
    pub common: Vec<&'static str>,
}

/// A type.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Type")]
pub struct TypeForm {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// The values of `ensure`.
    pub ensure: EnsureForm,
    /// The names of its providers.
    pub providers: Vec<&'static str>,
    /// A command line that uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<&'static str>,
    /// Its properties.
    pub fields: Vec<FieldForm>,
}

/// The values of `ensure`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EnsureForm {
    /// The one that is meant where none is written.
    pub default: &'static str,
    /// All of them, if it is not free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<&'static [&'static str]>,
}

/// A property of a type.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Field")]
pub struct FieldForm {
    /// Its name.
    pub name: &'static str,
    /// Its documentation.
    pub doc: &'static str,
    /// Its other names.
    pub aliases: &'static [&'static str],
    /// What its values look like.
    #[serde(flatten)]
    pub shape: ShapeForm,
    /// What its texts must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<&'static str>,
    /// The texts that are allowed, if these are all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<&'static [&'static str]>,
    /// The heading that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<&'static str>,
    /// When its placeholders are resolved.
    pub phase: PhaseForm,
    /// Whether its value must not be shown.
    pub secret: bool,
    /// Whether it must be set, at least with some values of others.
    pub required: bool,
    /// The properties that exclude it.
    pub conflicts: &'static [&'static str],
}

/// What values look like, and what is inside of them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Shape")]
pub struct ShapeForm {
    /// The name of the shape.
    pub shape: ShapeName,
    /// What the items of a list look like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<ShapeForm>>,
    /// The parts of a struct, or of the map that a text can be instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<FieldForm>>,
}

/// The name of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each is what its name says")]
pub enum ShapeName {
    Text,
    Boolean,
    Integer,
    Reference,
    List,
    Texts,
    Data,
    Struct,
    Rules,
}

/// When placeholders are resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PhaseForm {
    /// While the manifest is read.
    Parse,
    /// While the manifest is read, in keys alone.
    Keys,
    /// Just before the resource is managed.
    Deferred,
    /// Not at all.
    Never,
}

/// Describes types.
pub fn types(types: &[&'static dyn AnyType]) -> TypesForm {
    TypesForm {
        types: types.iter().map(|kind| one(*kind)).collect(),
        common: Common::FIELDS.iter().map(|field| field.name).collect(),
    }
}

fn one(kind: &'static dyn AnyType) -> TypeForm {
    let words = match kind.ensure() {
        Ensure::OneOf(words) => Some(words),
        Ensure::Any(_) => None,
    };
    let mut fields: Vec<FieldForm> = kind.fields().iter().map(described).collect();
    if let Some(name) = fields.iter_mut().find(|field| field.name == "name") {
        name.doc = kind.name_doc();
    }
    TypeForm {
        name: kind.name(),
        about: kind.about(),
        ensure: EnsureForm { default: kind.ensure().default(), words },
        providers: kind.providers(),
        example: kind.command_line().map(|view| view.example),
        fields,
    }
}

fn described(field: &Field) -> FieldForm {
    let words = match field.format {
        Some(Format::OneOf(words)) => Some(words),
        _ => None,
    };
    FieldForm {
        name: field.name,
        doc: field.doc,
        aliases: field.aliases,
        shape: shape_of(&field.shape),
        format: field.format.map(Format::word),
        words,
        group: field.group,
        phase: match field.phase {
            Phase::Parse => PhaseForm::Parse,
            Phase::Keys => PhaseForm::Keys,
            Phase::Deferred => PhaseForm::Deferred,
            Phase::Never => PhaseForm::Never,
        },
        secret: field.secret || field.secret_values,
        required: field.required != Required::Never,
        conflicts: field.conflicts,
    }
}

fn shape_of(shape: &Shape) -> ShapeForm {
    let name = match shape {
        Shape::Text | Shape::TextOr(_) => ShapeName::Text,
        Shape::Boolean => ShapeName::Boolean,
        Shape::Integer => ShapeName::Integer,
        Shape::Reference => ShapeName::Reference,
        Shape::List(_) => ShapeName::List,
        Shape::Texts => ShapeName::Texts,
        Shape::Data => ShapeName::Data,
        Shape::Struct(_) => ShapeName::Struct,
        Shape::Rules => ShapeName::Rules,
    };
    let items = match shape {
        Shape::List(inner) => Some(Box::new(shape_of(inner))),
        _ => None,
    };
    let fields = match shape {
        Shape::Struct(fields) | Shape::TextOr(fields) => {
            Some(fields.iter().map(described).collect())
        }
        _ => None,
    };
    ShapeForm { shape: name, items, fields }
}
