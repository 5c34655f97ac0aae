//! Rules as a tree of values with locations.

use ccm_model::{TemplateError, Templates, has_placeholder};
use ccm_yaml::{Kind, Node, Span};
use govalue::{Exact, Value};

/// A part of the rules with its place.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) span: Span,
    pub(crate) item: Item,
}

/// What a part is.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// Anything but a list or a map, and how it was written.
    Scalar { value: Value, written: String },
    /// A list.
    List(Vec<Tree>),
    /// A map in the order written.
    Map(Vec<(Key, Tree)>),
    /// Text with a placeholder, whose value is known only when the check runs.
    Open(String),
}

/// A key with its place.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) span: Span,
    /// Whether it holds a placeholder that is not resolved yet.
    pub(crate) is_open: bool,
}

/// Whether placeholders in a text mean something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    /// They are resolved when the check runs.
    Templates,
    /// They are as good as any other text.
    Literal,
}

impl Tree {
    pub(crate) fn from_node(node: &Node<'_>, texts: Texts) -> Self {
        let is_open = |text: &str| texts == Texts::Templates && has_placeholder(text);
        let item = match &node.kind {
            Kind::Scalar(scalar) if is_open(&scalar.text) => {
                Item::Open(scalar.text.clone().into_owned())
            }
            Kind::Scalar(scalar) => Item::Scalar {
                value: ccm_yaml::to_value(node),
                written: scalar.text.clone().into_owned(),
            },
            Kind::Sequence(items) => {
                Item::List(items.iter().map(|item| Self::from_node(item, texts)).collect())
            }
            Kind::Mapping(entries) => {
                let entries = entries.iter().map(|entry| {
                    let text = entry.key.text.clone().into_owned();
                    let is_open = is_open(&text);
                    let key = Key { text, span: entry.key.span, is_open };
                    (key, Self::from_node(&entry.value, texts))
                });
                Item::Map(entries.collect())
            }
        };
        Self { span: node.span, item }
    }

    /// What a placeholder became, at its place.
    pub(crate) fn from_value(value: Value, span: Span) -> Self {
        let item = match &value {
            Value::Array(items) => {
                Item::List(items.iter().map(|item| Self::from_value(item.clone(), span)).collect())
            }
            Value::Map(map) => {
                let entries = map.iter().map(|(key, value)| {
                    let text = key.value().to_string();
                    (Key { text, span, is_open: false }, Self::from_value(value.clone(), span))
                });
                Item::Map(entries.collect())
            }
            _ => Item::Scalar { written: value.to_string(), value },
        };
        Self { span, item }
    }

    /// The same with every placeholder resolved: values keep their types, keys
    /// are text.
    pub(crate) fn resolve(self, templates: &dyn Templates) -> Result<Self, TemplateError> {
        let item = match self.item {
            Item::Open(text) => return Ok(Self::from_value(templates.value(&text)?, self.span)),
            Item::List(items) => {
                let items = items.into_iter().map(|item| item.resolve(templates));
                Item::List(items.collect::<Result<_, _>>()?)
            }
            Item::Map(entries) => {
                let entries = entries.into_iter().map(|(mut key, value)| {
                    if key.is_open {
                        key.text = templates.text(&key.text)?;
                        key.is_open = false;
                    }
                    Ok((key, value.resolve(templates)?))
                });
                Item::Map(entries.collect::<Result<_, TemplateError>>()?)
            }
            scalar @ Item::Scalar { .. } => scalar,
        };
        Ok(Self { span: self.span, item })
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.item, Item::Scalar { value: Value::Nil, .. })
    }

    /// What to call it in a sentence.
    pub(crate) fn describe(&self) -> &'static str {
        match &self.item {
            Item::Scalar { value: Value::Nil, .. } => "null",
            Item::Scalar { value: Value::Bool(_), .. } => "a boolean",
            Item::Scalar { value, .. } if value.is_number() => "a number",
            Item::Scalar { .. } | Item::Open(_) => "a string",
            Item::List(_) => "a list",
            Item::Map(_) => "a map",
        }
    }

    /// As a plain value.
    pub(crate) fn value(&self) -> Value {
        match &self.item {
            Item::Scalar { value, .. } => value.clone(),
            Item::Open(text) => text.as_str().into(),
            Item::List(items) => Value::array(items.iter().map(Self::value)),
            Item::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.text.as_str(), value.value()));
                entries.collect::<govalue::Map>().into()
            }
        }
    }
}

/// A value as JSON shows it.
pub(crate) fn to_json(value: &Value) -> serde_json::Value {
    serde_json::to_value(Exact(value)).unwrap_or_default()
}
