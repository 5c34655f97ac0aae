//! `KEY=value` assignments. Their values may be secrets.

use ccm_model::{
    FromNode, Node, REDACTED, Reader, Resolve, SecretValues, Secrets, Shape, TemplateError,
    Templates, is_secret_name,
};
use serde::{Serialize, Serializer};

/// A variable for a command's environment. Shown to people and written to
/// events without its value, as that is where passwords are handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    text: String,
    /// Its template reads a secret, so its value is one too.
    is_secret: bool,
}

impl Assignment {
    #[cfg(test)]
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), is_secret: false }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Key and value, neither of them empty.
    pub(super) fn split(&self) -> Option<(String, String)> {
        let (key, value) = self.text.split_once('=')?;
        let is_valid = !key.is_empty() && !value.is_empty() && !self.text.contains('\0');
        is_valid.then(|| (key.to_owned(), value.to_owned()))
    }

    /// The name, where there is one. Without `=` all of it may be a secret.
    fn key(&self) -> Option<&str> {
        self.text.split_once('=').map(|(key, _)| key).filter(|key| !key.is_empty())
    }

    /// What is wrong with one that cannot be split.
    pub(super) fn problem(&self) -> String {
        match self.key() {
            Some(key) => format!("`{key}={REDACTED}` is not `KEY=value`"),
            None => format!("`{REDACTED}` is not `KEY=value`"),
        }
    }
}

impl FromNode for Assignment {
    const SHAPE: Shape = Shape::Text;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        reader.read(node).map(|text| Self { text, is_secret: false })
    }

    fn is_set(&self) -> bool {
        true
    }
}

impl Resolve for Assignment {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.is_secret |= templates.reads_secret(&self.text);
        self.text.resolve(templates, keys)
    }
}

/// What a variable is for cannot be told from its name, so every value counts in
/// the output of its command. In the whole run, only what says that it is secret.
impl Secrets for Assignment {
    fn secrets(&self, into: &mut SecretValues) {
        let Some((key, value)) = self.text.split_once('=') else { return };
        if self.is_secret || is_secret_name(key) {
            into.run.push(value.to_owned());
        } else {
            into.resource.push(value.to_owned());
        }
    }
}

impl Serialize for Assignment {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.key() {
            Some(key) => to.collect_str(&format_args!("{key}={REDACTED}")),
            None => to.serialize_str(REDACTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_never_shown() {
        let assignment = Assignment::new("TOKEN=hunter2");
        assert_eq!(serde_json::to_string(&assignment).unwrap(), "\"TOKEN=[redacted]\"");
        assert_eq!(assignment.split(), Some(("TOKEN".into(), "hunter2".into())));
        for malformed in ["hunter2", "=hunter2", "hunter2 TOKEN"] {
            let assignment = Assignment::new(malformed);
            assert_eq!(serde_json::to_string(&assignment).unwrap(), "\"[redacted]\"");
            assert_eq!(assignment.problem(), "`[redacted]` is not `KEY=value`");
        }
        let empty = Assignment::new("TOKEN=").problem();
        assert_eq!(empty, "`TOKEN=[redacted]` is not `KEY=value`");
    }

    #[test]
    fn both_parts_are_needed() {
        for text in ["", "A", "=b", "A=", "="] {
            assert_eq!(Assignment::new(text).split(), None, "{text:?}");
        }
        assert_eq!(Assignment::new("A=b=c").split(), Some(("A".into(), "b=c".into())));
    }
}
