//! Edits of manifests by resource.
//!
//! Each [`ResourceOperation`] becomes operations of [`ccm_yaml::edit`], by where
//! the resource is written: in a list of names, in a map of names, or alone in
//! its block. Nothing else of the text changes.

mod moves;
mod operations;

use std::sync::Arc;

use ccm_engine::AnyType;
use ccm_model::{did_you_mean, redact_credentials};
use ccm_template::placeholder::{Openers, scan};
use ccm_yaml::edit::{Change, Document, EditError, Operation, compose};
use ccm_yaml::{Kind, Node, Source};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::outline::{OutlineEntry, outline_of};

/// Which resource is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResourceId {
    /// Its number in the outline, where names repeat.
    Number(usize),
    /// `type#name`, by its name or alias.
    Name(String),
}

impl From<&str> for ResourceId {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

/// An edit of one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum ResourceOperation {
    /// Sets a property.
    SetProperty {
        /// Which resource.
        resource: ResourceId,
        /// The property, by any of its names.
        property: String,
        /// The new value.
        value: Value,
    },
    /// Takes a property away.
    UnsetProperty {
        /// Which resource.
        resource: ResourceId,
        /// The property, by any of its names.
        property: String,
    },
    /// Adds a resource.
    Add {
        /// Its type.
        #[serde(rename = "type")]
        kind: String,
        /// Its name.
        name: String,
        /// Its properties.
        #[serde(default)]
        properties: Map<String, Value>,
        /// The resource that it comes behind; at the end if not said.
        #[serde(default)]
        after: Option<ResourceId>,
    },
    /// Removes a resource.
    Remove {
        /// Which resource.
        resource: ResourceId,
    },
    /// Moves a resource in the order in which they run.
    MoveBefore {
        /// Which resource.
        resource: ResourceId,
        /// The one that it then comes before; null for the end.
        before: Option<ResourceId>,
        /// Also where that breaks a reference.
        #[serde(default)]
        force: bool,
    },
    /// Repeats a resource under another name, directly behind it.
    Duplicate {
        /// Which resource.
        resource: ResourceId,
        /// The name of the new one.
        name: String,
    },
    /// Gives a resource another name, also where others refer to it.
    Rename {
        /// Which resource.
        resource: ResourceId,
        /// The new name.
        name: String,
    },
}

/// An operation by resource or by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EditOperation {
    /// By path.
    Path(Operation),
    /// By resource.
    Resource(ResourceOperation),
}

/// Edits the text of a manifest, all operations or none. Returns the changes in
/// order, not overlapping, by bytes of the text before.
///
/// # Errors
///
/// Returns why one of them was refused; the text is then as it was.
///
/// ```
/// # use ccm_author::edit::{EditOperation, ResourceOperation, edit};
/// # use ccm_yaml::{Source, edit::Document};
/// let text = "ccm:\n  resources:\n    - apply:\n        - child.yaml:\n            noop: true  # for now\n";
/// let mut document = Document::parse(Source::new("m.yaml", text))?;
/// let set = ResourceOperation::SetProperty {
///     resource: "apply#child.yaml".into(),
///     property: "noop".to_owned(),
///     value: false.into(),
/// };
/// edit(&mut document, &[], &[EditOperation::Resource(set)]).unwrap();
/// assert!(document.text().ends_with("            noop: false  # for now\n"));
/// # Ok::<(), ccm_yaml::SyntaxError>(())
/// ```
pub fn edit(
    document: &mut Document,
    types: &[&'static dyn AnyType],
    operations: &[EditOperation],
) -> Result<Vec<Change>, EditError> {
    let (changes, edited) = edited(document, types, operations)?;
    if let Some(edited) = edited {
        *document = edited;
    }
    Ok(changes)
}

/// As [`edit`], with the new document beside the old one; none if nothing
/// changes.
///
/// # Errors
///
/// Returns why one of the operations was refused.
pub fn edited(
    document: &Document,
    types: &[&'static dyn AnyType],
    operations: &[EditOperation],
) -> Result<(Vec<Change>, Option<Document>), EditError> {
    let mut edited: Option<Document> = None;
    let mut steps = Vec::new();
    for operation in operations {
        let current = edited.as_ref().unwrap_or(document);
        let (changes, next) = match operation {
            EditOperation::Path(operation) => current.edited(std::slice::from_ref(operation))?,
            EditOperation::Resource(operation) => {
                let operations = Planner::new(current, types)?.plan(operation)?;
                current.edited(&operations)?
            }
        };
        steps.push(changes);
        edited = next.or(edited);
    }
    Ok((compose(document.text().len(), steps), edited))
}

/// Makes operations by path of operations by resource.
struct Planner<'d> {
    document: &'d Document,
    types: &'d [&'static dyn AnyType],
    found: Vec<OutlineEntry>,
}

impl<'d> Planner<'d> {
    fn new(document: &'d Document, types: &'d [&'static dyn AnyType]) -> Result<Self, EditError> {
        Ok(Self { document, types, found: outline_of(document)? })
    }

    /// The resource that is meant.
    fn find(&self, id: &ResourceId) -> Result<&OutlineEntry, EditError> {
        let name = match id {
            ResourceId::Number(number) => {
                let found = number.checked_sub(1).and_then(|index| self.found.get(index));
                let message = || format!("there is no resource number {number}");
                return found.ok_or_else(|| EditError::missing(message(), None));
            }
            ResourceId::Name(name) => name,
        };
        let Some((kind, rest)) = name.split_once('#') else {
            let hint = "name the resource as `type#name`".to_owned();
            return Err(EditError::missing(format!("`{name}` is not a resource"), Some(hint)));
        };
        let mut found = self.found.iter().filter(|entry| entry.is_called(kind, rest));
        match (found.next(), found.next()) {
            (Some(entry), None) => Ok(entry),
            (Some(first), Some(second)) => Err(EditError::missing(
                format!("`{name}` exists twice, as number {} and {}", first.number, second.number),
                Some("rename one of them in the text itself".to_owned()),
            )),
            (None, _) => {
                let known: Vec<_> = self.found.iter().map(OutlineEntry::reference).collect();
                let hint = written_as(name, &known)
                    .or_else(|| did_you_mean(name, known.iter().map(String::as_str)));
                let shown = redact_credentials(name);
                Err(EditError::missing(format!("{shown} is not in this manifest"), hint))
            }
        }
    }

    /// The key that a property is written under in a resource, or its own name.
    fn property(&self, entry: &OutlineEntry, property: &str) -> Result<String, EditError> {
        let Some(kind) = self.types.iter().find(|kind| kind.name() == entry.kind) else {
            return Ok(property.to_owned());
        };
        let Some(field) = kind.fields().iter().find(|field| field.is_called(property)) else {
            let known = kind.fields().iter().map(|field| field.name);
            let hint = did_you_mean(property, known);
            let message = format!("{} has no property `{property}`", entry.kind);
            return Err(EditError::missing(message, hint));
        };
        if field.name == "name" {
            return Err(EditError::missing(
                "`name` cannot be edited as a property".to_owned(),
                Some("rename the resource instead".to_owned()),
            ));
        }
        let names = field.aliases.iter().copied().chain([field.name]);
        let written = names.into_iter().find(|name| {
            let mut path = entry.path.clone();
            path.push((*name).into());
            self.document.locate(&path).is_some()
        });
        Ok(written.unwrap_or(field.name).to_owned())
    }

    /// Refuses a name that another resource of the type has, and what is none.
    fn check_free(&self, kind: &str, name: &str) -> Result<(), EditError> {
        if name.is_empty() {
            return Err(EditError::missing("a resource needs a name".to_owned(), None));
        }
        if name == "defaults" {
            return Err(EditError::refused(
                "`defaults` is not the name of a resource".to_owned(),
                "in a block it holds the properties that all its resources share",
            ));
        }
        match self.found.iter().find(|entry| entry.is_called(kind, name)) {
            Some(taken) => {
                let message = format!("{} already exists", redact_credentials(&taken.reference()));
                Err(EditError::duplicate(message, taken.span))
            }
            None => Ok(()),
        }
    }

    /// The resources of the same block.
    fn siblings(&self, entry: &OutlineEntry) -> impl Iterator<Item = &OutlineEntry> {
        let block = Arc::clone(&entry.block);
        self.found.iter().filter(move |other| Arc::ptr_eq(&other.block, &block))
    }
}

/// A value given as YAML for a field: texts are taken as written, as they are
/// in a manifest, so `0644` stays `0644`.
///
/// # Errors
///
/// Returns why the text is not YAML.
pub fn property_value(
    types: &[&'static dyn AnyType],
    kind: &str,
    property: &str,
    text: &str,
) -> Result<Value, ccm_yaml::SyntaxError> {
    let kind = types.iter().find(|known| known.name() == kind);
    let field = kind.and_then(|kind| kind.fields().iter().find(|field| field.is_called(property)));
    let shape = field.map(|field| field.shape);
    let source = Source::new("the value", text);
    let is_text = matches!(shape, Some(ccm_model::Shape::Text | ccm_model::Shape::Reference));
    // What is not clearly quoted is taken as it is typed: `#`, `&` and line
    // breaks mean something to YAML, but not to whoever types a command.
    let is_quoted = text.trim_start().starts_with(['"', '\'', '|', '>']);
    if is_text && !is_quoted && !matches!(text.trim(), "null" | "~") {
        return Ok(text.into());
    }
    match ccm_yaml::parse(&source) {
        Ok(node) if !is_text || node.scalar().is_some() => Ok(read_value(&node, shape.as_ref())),
        // `{{ Data.x }}` is no scalar to YAML, but to everyone else.
        _ if is_text => Ok(text.into()),
        Ok(node) => Ok(read_value(&node, shape.as_ref())),
        Err(error) => Err(error),
    }
}

pub(crate) fn read_value(node: &Node<'_>, shape: Option<&ccm_model::Shape>) -> Value {
    use ccm_model::Shape;
    match (&node.kind, shape) {
        (Kind::Scalar(scalar), _) if scalar.is_null() => Value::Null,
        (
            Kind::Scalar(scalar),
            Some(Shape::Text | Shape::Reference | Shape::Texts | Shape::TextOr(_)),
        ) => scalar.text.clone().into(),
        (Kind::Scalar(scalar), _) => {
            let value = ccm_yaml::to_value(node);
            serde_json::to_value(&value).unwrap_or_else(|_| scalar.text.clone().into())
        }
        (Kind::Sequence(items), shape) => {
            let inner = match shape {
                Some(Shape::List(inner)) => Some(*inner),
                other => other,
            };
            items.iter().map(|item| read_value(item, inner)).collect()
        }
        (Kind::Mapping(entries), shape) => {
            let field = |key: &str| match shape {
                Some(Shape::Struct(fields) | Shape::TextOr(fields)) => {
                    fields.iter().find(|field| field.is_called(key)).map(|field| &field.shape)
                }
                Some(Shape::Texts) => shape,
                _ => None,
            };
            let read = |entry: &ccm_yaml::Entry<'_>| {
                (entry.key.text.to_string(), read_value(&entry.value, field(&entry.key.text)))
            };
            Value::Object(entries.iter().map(read).collect())
        }
    }
}
/// The hint for the name that a resource of a loop gets: what is edited is the text,
/// which has a placeholder there.
fn written_as(name: &str, known: &[String]) -> Option<String> {
    let literal = |written: &str| {
        let placeholders = scan(written, Openers::All).filter_map(Result::ok);
        written.len() - placeholders.map(|found| found.end - found.start).sum::<usize>()
    };
    let able = known.iter().filter(|written| may_become(written, name));
    let best = able.min_by_key(|written| std::cmp::Reverse(literal(written)))?;
    Some(format!("name a resource of a loop as it is written: `{best}`"))
}

/// Whether a text with placeholders can come to be this one.
fn may_become(written: &str, name: &str) -> bool {
    let (mut rest, mut from) = (name, 0);
    for found in scan(written, Openers::All).filter_map(Result::ok) {
        let literal = &written[from..found.start];
        let next = match from {
            0 => rest.strip_prefix(literal),
            _ => rest.split_once(literal).map(|(_, behind)| behind),
        };
        let Some(next) = next else { return false };
        (rest, from) = (next, found.end);
    }
    from > 0 && rest.ends_with(&written[from..])
}
