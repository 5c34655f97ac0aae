//! Reads values from YAML nodes and collects all errors.

mod settings;

use ccm_yaml::{Entry, Kind, Node, Span};
use serde::{Serialize, Serializer};

use crate::{Fields, Finding, Resolve, ResourceRef, Shape, TemplateError, Templates};

/// Collects errors while values are read.
#[derive(Debug, Default)]
pub struct Reader {
    /// Everything found so far.
    pub findings: Vec<Finding>,
    /// Where the items of the list that was read last stand.
    items: Vec<Span>,
}

/// A value that can be read from a node.
pub trait FromNode: Sized {
    /// What it takes, for schemas, flags and documentation.
    const SHAPE: Shape;

    /// Reads it; what is wrong goes into the reader.
    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self>;

    /// Whether there is anything to show.
    fn is_set(&self) -> bool;
}

impl Reader {
    /// Reads one value; `None` means that a finding says what is wrong with it.
    pub fn read<T: FromNode>(&mut self, node: Node<'_>) -> Option<T> {
        T::from_node(node, self)
    }

    /// Reads a map with known fields.
    pub fn read_struct<T: Fields + Default>(&mut self, node: Node<'_>) -> Option<T> {
        let Kind::Mapping(entries) = node.kind else {
            return self.wrong_type(&node, "a map");
        };
        let mut value = T::default();
        self.fill(&mut value, entries);
        Some(value)
    }

    /// Sets every entry on `into` and tells where each stands, by its index in
    /// the table. The items of a list stand behind the list, with the same index.
    pub fn fill<T: Fields>(&mut self, into: &mut T, entries: Vec<Entry<'_>>) -> Vec<(u8, Span)> {
        let mut places: Vec<(u8, Span)> = Vec::with_capacity(entries.len());
        for Entry { key, value } in entries {
            let Some(index) = T::FIELDS.iter().position(|field| field.is_called(&key.text)) else {
                let names = T::FIELDS.iter().map(|field| field.name);
                let message = format!("unknown {} `{}`", T::ENTRY, key.text);
                let hint = T::hint(&key.text).map(str::to_owned);
                let finding = Finding::error(key.span, message).hint(hint);
                self.findings.push(finding.suggest(&key.text, names));
                continue;
            };
            if places.iter().any(|&(at, _)| usize::from(at) == index) {
                let name = T::FIELDS[index].name;
                let message =
                    format!("`{}` is the same as `{name}`; set only one of them", key.text);
                self.findings.push(Finding::error(key.span, message));
                continue;
            }
            if value.is_null() {
                continue;
            }
            places.push((index as u8, value.span));
            let known = self.findings.len();
            into.set(index, value, self);
            places.extend(self.items.drain(..).map(|span| (index as u8, span)));
            for finding in &mut self.findings[known..] {
                finding.message.insert_str(0, ": ");
                finding.message.insert_str(0, T::FIELDS[index].name);
            }
        }
        places
    }

    /// Reports a value of the wrong type.
    pub fn wrong_type<T>(&mut self, node: &Node<'_>, wanted: &str) -> Option<T> {
        let message = format!("expected {wanted}, found {}", node.describe());
        self.findings.push(Finding::error(node.span, message));
        None
    }
}

/// A value with its location.
#[derive(Clone, Debug, Default)]
pub struct Spanned<T> {
    /// The value, as its own type reads it.
    pub value: T,
    /// The bytes of the source that the value was read from.
    pub span: Span,
}

impl<T: FromNode> FromNode for Spanned<T> {
    const SHAPE: Shape = T::SHAPE;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        let span = node.span;
        reader.read(node).map(|value| Self { value, span })
    }

    fn is_set(&self) -> bool {
        self.value.is_set()
    }
}

impl<T: Resolve> Resolve for Spanned<T> {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.value.resolve(templates, keys)
    }
}

impl<T: Serialize> Serialize for Spanned<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(to)
    }
}

impl FromNode for String {
    const SHAPE: Shape = Shape::Text;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        match node.kind {
            Kind::Scalar(scalar) => Some(scalar.text.into_owned()),
            _ => reader.wrong_type(&node, "a string"),
        }
    }

    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl FromNode for bool {
    const SHAPE: Shape = Shape::Boolean;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        match node.scalar().map(|scalar| (scalar.boolean(), &*scalar.text)) {
            Some((Some(flag), _)) => Some(flag),
            Some((None, word)) => {
                let message = format!("expected `true` or `false`, found `{word}`");
                let hint = matches!(word, "true" | "false" | "yes" | "no" | "on" | "off")
                    .then(|| "write it as unquoted `true` or `false`".to_owned());
                reader.findings.push(Finding::error(node.span, message).hint(hint));
                None
            }
            None => reader.wrong_type(&node, "`true` or `false`"),
        }
    }

    fn is_set(&self) -> bool {
        *self
    }
}

impl FromNode for i32 {
    const SHAPE: Shape = Shape::Integer;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        let number = node.scalar().and_then(|scalar| scalar.text.parse().ok());
        if number.is_none() {
            return reader.wrong_type(&node, "a whole number");
        }
        number
    }

    fn is_set(&self) -> bool {
        true
    }
}

impl FromNode for ResourceRef {
    const SHAPE: Shape = Shape::Reference;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        let span = node.span;
        let text: String = reader.read(node)?;
        match text.parse() {
            Ok(reference) => Some(reference),
            Err(error) => {
                let error: crate::ResourceRefError = error;
                reader.findings.push(Finding::error(span, error.to_string()));
                None
            }
        }
    }

    fn is_set(&self) -> bool {
        true
    }
}

impl<T: FromNode> FromNode for Option<T> {
    const SHAPE: Shape = T::SHAPE;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        T::from_node(node, reader).map(Some)
    }

    fn is_set(&self) -> bool {
        self.is_some()
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    const SHAPE: Shape = Shape::List(&T::SHAPE);

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        match node.kind {
            Kind::Sequence(items) => {
                let mut places = Vec::with_capacity(items.len());
                let mut read = |item: Node<'_>| {
                    let span = item.span;
                    reader.read(item).inspect(|_| places.push(span))
                };
                let values = items.into_iter().filter_map(&mut read).collect();
                reader.items = places;
                Some(values)
            }
            _ => reader.wrong_type(&node, "a list"),
        }
    }

    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}
