//! Reads the settings of a program.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ccm_yaml::{Kind, Node, Source, Span};

use super::{FromNode, Reader};
use crate::{Fields, Finding, Required, Shape, duration};

impl Reader {
    /// Reads a whole configuration, and tells where each setting stands as
    /// [`Reader::fill`] does. A setting that is not given has its default.
    pub fn read_settings<T: Fields + Default>(&mut self, root: Node<'_>) -> (T, Vec<(u8, Span)>) {
        let mut settings = T::default();
        let places = match root.kind {
            Kind::Mapping(entries) => self.fill(&mut settings, entries),
            _ if root.is_null() => Vec::new(),
            _ => {
                self.wrong_type::<()>(&root, &format!("a map of {}s", T::ENTRY));
                return (settings, Vec::new());
            }
        };
        for (index, field) in T::FIELDS.iter().enumerate() {
            let is_given = places.iter().any(|&(at, _)| usize::from(at) == index);
            if field.required == Required::Always && !is_given {
                self.findings.push(Finding::error(None, format!("`{}` is required", field.name)));
            }
        }
        (settings, places)
    }

    /// Sets every field that has a default to it.
    pub fn set_defaults<T: Fields>(&mut self, into: &mut T) {
        for (index, field) in T::FIELDS.iter().enumerate() {
            let Some(text) = field.default else { continue };
            let source = Source::new(field.name, text);
            match ccm_yaml::parse(&source) {
                Ok(node) => into.set(index, node, self),
                Err(error) => self.findings.push(Finding::error(error.span, error.to_string())),
            }
        }
    }

    /// Reads one of a few words.
    pub fn read_one_of<T: Copy>(&mut self, node: Node<'_>, words: &[(&str, T)]) -> Option<T> {
        let span = node.span;
        let text: String = self.read(node)?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let known: Vec<&str> =
            words.iter().map(|(word, _)| *word).filter(|word| !word.is_empty()).collect();
        let message = format!("must be one of {}, not `{text}`", known.join(", "));
        self.findings.push(Finding::error(span, message).suggest(&text, known));
        None
    }

    /// Reports a value that does not pass its check; whether it does.
    pub fn check(&mut self, span: Span, checked: Result<(), String>) -> bool {
        let passed = checked.is_ok();
        self.findings.extend(checked.err().map(|message| Finding::error(span, message)));
        passed
    }

    /// Reads a text that has a notation.
    fn parse<T: FromStr>(&mut self, node: Node<'_>, wanted: &str) -> Option<T> {
        let span = node.span;
        let text: String = self.read(node)?;
        let value = text.parse().ok();
        if value.is_none() {
            let message = format!("must be {wanted}, not `{text}`");
            self.findings.push(Finding::error(span, message));
        }
        value
    }
}

impl FromNode for Duration {
    const SHAPE: Shape = Shape::Text;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        let span = node.span;
        let text: String = reader.read(node)?;
        let read = duration::parse_positive(&text);
        read.map_err(|error| reader.findings.push(Finding::error(span, error.to_string()))).ok()
    }

    fn is_set(&self) -> bool {
        !self.is_zero()
    }
}

impl FromNode for u16 {
    const SHAPE: Shape = Shape::Integer;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        reader.parse(node, "0 to 65535")
    }

    fn is_set(&self) -> bool {
        true
    }
}

impl FromNode for IpAddr {
    const SHAPE: Shape = Shape::Text;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        reader.parse(node, "an IP address")
    }

    fn is_set(&self) -> bool {
        true
    }
}

impl FromNode for PathBuf {
    const SHAPE: Shape = Shape::Text;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        reader.read(node).map(|text: String| text.into())
    }

    fn is_set(&self) -> bool {
        !self.as_os_str().is_empty()
    }
}
