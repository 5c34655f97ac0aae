//! HTTP headers of a request. Their values may be secrets.

use ccm_engine::Findings;
use ccm_model::{
    FromNode, Node, REDACTED, Reader, Resolve, SecretValues, Secrets, Shape, TemplateError,
    Templates, header_secrets,
};
use ccm_yaml::{Entry, Kind};
use serde::{Serialize, Serializer};

/// Names and values, written to events without the values, as that is where
/// tokens are handed over.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn check(&self, findings: &mut Findings) {
        for (name, value) in self.entries() {
            let is_token =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            if name.is_empty() || !name.bytes().all(is_token) {
                findings
                    .add("headers", format!("`{}` is not a header's name", name.escape_debug()));
            } else if value.contains(|c: char| c.is_control() && c != '\t') {
                findings
                    .add("headers", format!("the value of `{name}` contains control characters"));
            }
        }
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.entries().map(|(name, _)| (name, REDACTED))).finish()
    }
}

impl FromNode for Headers {
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

impl Resolve for Headers {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.0.iter_mut().try_for_each(|(_, value)| value.resolve(templates, keys))
    }
}

impl Secrets for Headers {
    fn secrets(&self, into: &mut SecretValues) {
        for (name, value) in self.entries() {
            into.run.extend(header_secrets(name, value).map(str::to_owned));
        }
    }
}

impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.entries().map(|(name, _)| (name, REDACTED)))
    }
}
