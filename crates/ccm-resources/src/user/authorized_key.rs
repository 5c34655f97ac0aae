//! An authorized key as a manifest has it: a line, or a line and its options.

use ccm_model::{FromNode, Node, Reader, Resolve, Shape, TemplateError, Templates};
use ccm_yaml::Kind;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::keys::{KeyLine, check_options, parse};

/// The parts of a key that has options.
#[derive(Clone, Debug, Default, ccm_model::Properties)]
struct Parts {
    /// Line of the key, as in `id_ed25519.pub`
    #[property(required)]
    key: String,
    /// What the key may be used for, such as `restrict,pty`
    options: Option<String>,
}

/// An authorized key of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizedKey {
    text: String,
    options: Option<String>,
}

impl AuthorizedKey {
    #[cfg(test)]
    pub(super) fn new(text: &str, options: Option<&str>) -> Self {
        Self { text: text.to_owned(), options: options.map(str::to_owned) }
    }

    /// The key, or what is wrong with it.
    pub(super) fn read(&self) -> Result<KeyLine, String> {
        let key = parse(&self.text)?;
        match &self.options {
            None => Ok(key),
            Some(_) if key.options.is_some() => {
                Err("has options in its line too; give them in one place".to_owned())
            }
            Some(options) => {
                let options = options.trim();
                if !options.is_empty() {
                    check_options(options)?;
                }
                Ok(key.with_options(options))
            }
        }
    }

    /// A placeholder may give several lines, each of which is a key.
    pub(super) fn split(&self) -> impl Iterator<Item = Self> {
        let lines = self.text.lines().map(str::trim);
        let is_key = |line: &&str| !line.is_empty() && !line.starts_with('#');
        let of = |line: &str| Self { text: line.to_owned(), options: self.options.clone() };
        lines.filter(is_key).map(of).collect::<Vec<_>>().into_iter()
    }

    /// Whether it is more than one line.
    pub(super) fn has_several(&self) -> bool {
        self.text.trim_end().contains('\n')
    }
}

impl FromNode for AuthorizedKey {
    const SHAPE: Shape = Shape::TextOr(<Parts as ccm_model::Fields>::FIELDS);

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        if matches!(node.kind, Kind::Mapping(_)) {
            let Parts { key, options } = reader.read_struct(node)?;
            return Some(Self { text: key, options });
        }
        reader.read(node).map(|text| Self { text, options: None })
    }

    fn is_set(&self) -> bool {
        true
    }
}

impl Resolve for AuthorizedKey {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.text.resolve(templates, keys)?;
        self.options.resolve(templates, keys)
    }
}

impl Serialize for AuthorizedKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some(options) = &self.options else { return to.serialize_str(&self.text) };
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("key", &self.text)?;
        map.serialize_entry("options", options)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::tests::{ANN, BOB};
    use super::*;

    #[test]
    fn options_stand_in_the_line_or_beside_it() {
        let read = |text: &str, options| AuthorizedKey::new(text, options).read();
        assert_eq!(read(ANN, None).unwrap().options, None);
        assert_eq!(read(ANN, Some("restrict")).unwrap().to_string(), format!("restrict {ANN}"));
        assert_eq!(read(ANN, Some("")).unwrap().options.as_deref(), Some(""));
        let restricted = format!("restrict {ANN}");
        assert_eq!(read(&restricted, None).unwrap().options.as_deref(), Some("restrict"));
        assert!(read(&restricted, Some("pty")).unwrap_err().contains("in one place"));
        assert!(read(ANN, Some("a b")).unwrap_err().contains("blank"));
        assert!(read("x", None).is_err());
    }

    #[test]
    fn several_lines_are_several_keys() {
        let several = AuthorizedKey::new(&format!("{ANN}\n\n# comment\n{BOB}\n"), Some("pty"));
        assert!(several.has_several() && !AuthorizedKey::new(ANN, None).has_several());
        let keys: Vec<AuthorizedKey> = several.split().collect();
        assert_eq!(keys, [ANN, BOB].map(|key| AuthorizedKey::new(key, Some("pty"))));
    }

    #[test]
    fn it_comes_back_as_it_was_written() {
        let written = |key: &AuthorizedKey| serde_json::to_value(key).unwrap();
        assert_eq!(written(&AuthorizedKey::new("k", None)), "k");
        let with_options = AuthorizedKey::new("k", Some("pty"));
        assert_eq!(written(&with_options), serde_json::json!({"key": "k", "options": "pty"}));
    }
}
