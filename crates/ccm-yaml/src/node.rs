//! The nodes of the tree.

use std::borrow::Cow;

use crate::Span;

/// One YAML node with its place.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// The bytes of the source that it was read from.
    pub span: Span,
    /// A scalar, a list or a map.
    pub kind: Kind<'a>,
}

/// The type of a node.
#[derive(Clone, Debug)]
pub enum Kind<'a> {
    /// Text; its reader decides what it means.
    Scalar(Scalar<'a>),
    /// A list in block or flow style.
    Sequence(Vec<Node<'a>>),
    /// A map in the order written, without duplicate keys.
    Mapping(Vec<Entry<'a>>),
}

/// A scalar as written, quotes and escapes undone.
#[derive(Clone, Debug)]
pub struct Scalar<'a> {
    /// The text with quotes and escapes resolved.
    pub text: Cow<'a, str>,
    /// Whether it was written without quotes or block markers, so that words
    /// such as `null`, `true` or `5.9` may mean more than their text.
    pub plain: bool,
}

/// One key and its value.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The key; only scalars are accepted.
    pub key: Key<'a>,
    /// The value; null if nothing follows the key.
    pub value: Node<'a>,
}

/// A key of a mapping.
#[derive(Clone, Debug)]
pub struct Key<'a> {
    /// The text with quotes and escapes resolved.
    pub text: Cow<'a, str>,
    /// The bytes of the source that it was read from.
    pub span: Span,
}

impl<'a> Node<'a> {
    /// A scalar that behaves as if it had been quoted in a manifest.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        let scalar = Scalar { text: text.into(), plain: false };
        Self { span: Span::default(), kind: Kind::Scalar(scalar) }
    }

    /// A scalar that behaves as if it had been written without quotes.
    pub fn plain(text: impl Into<Cow<'a, str>>) -> Self {
        let scalar = Scalar { text: text.into(), plain: true };
        Self { span: Span::default(), kind: Kind::Scalar(scalar) }
    }

    /// A list of nodes.
    pub fn sequence(items: Vec<Self>) -> Self {
        Self { span: Span::default(), kind: Kind::Sequence(items) }
    }

    /// A map of nodes.
    pub fn mapping(entries: Vec<Entry<'a>>) -> Self {
        Self { span: Span::default(), kind: Kind::Mapping(entries) }
    }

    /// The value of a key; none if there is no such key, or this is no map.
    pub fn entry(&self, name: &str) -> Option<&Self> {
        let Kind::Mapping(entries) = &self.kind else { return None };
        entries.iter().find(|entry| entry.key.text == name).map(|entry| &entry.value)
    }

    /// The same, without borrowing from the source.
    pub fn into_owned(self) -> Node<'static> {
        let kind = match self.kind {
            Kind::Scalar(Scalar { text, plain }) => {
                Kind::Scalar(Scalar { text: Cow::Owned(text.into_owned()), plain })
            }
            Kind::Sequence(items) => {
                Kind::Sequence(items.into_iter().map(Node::into_owned).collect())
            }
            Kind::Mapping(entries) => {
                let entry = |Entry { key: Key { text, span }, value }: Entry<'a>| Entry {
                    key: Key { text: Cow::Owned(text.into_owned()), span },
                    value: value.into_owned(),
                };
                Kind::Mapping(entries.into_iter().map(entry).collect())
            }
        };
        Node { span: self.span, kind }
    }

    /// The scalar, if it is one.
    pub fn scalar(&self) -> Option<&Scalar<'a>> {
        match &self.kind {
            Kind::Scalar(scalar) => Some(scalar),
            Kind::Sequence(_) | Kind::Mapping(_) => None,
        }
    }

    /// Whether this is YAML's null: nothing, `~` or `null`, unquoted.
    pub fn is_null(&self) -> bool {
        self.scalar().is_some_and(Scalar::is_null)
    }

    /// Returns a phrase for messages: `a list`, `text` and so on.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar(scalar) if scalar.is_null() => "null",
            Kind::Scalar(scalar) if scalar.boolean().is_some() => "a boolean",
            Kind::Scalar(scalar) if scalar.plain && scalar.text.parse::<f64>().is_ok() => {
                "a number"
            }
            Kind::Scalar(_) => "a string",
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a map",
        }
    }
}

impl Scalar<'_> {
    /// Whether this is an unquoted null.
    pub fn is_null(&self) -> bool {
        self.plain && matches!(&*self.text, "" | "~" | "null" | "Null" | "NULL")
    }

    /// The boolean this is when unquoted.
    pub fn boolean(&self) -> Option<bool> {
        match &*self.text {
            "true" | "True" | "TRUE" if self.plain => Some(true),
            "false" | "False" | "FALSE" if self.plain => Some(false),
            _ => None,
        }
    }
}
