//! A value that is looked into often.

use std::sync::OnceLock;

use govalue::Value;

use crate::path::{find, write};
use crate::{Error, Path};

/// A dynamic value that keeps its JSON text, written when a path first needs it.
#[derive(Debug, Default)]
pub struct Document {
    root: Value,
    text: OnceLock<Result<String, Error>>,
}

impl Document {
    /// A document of this value.
    pub fn new(root: Value) -> Self {
        Self { root, text: OnceLock::new() }
    }

    /// The value.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// The value as JSON with its keys sorted.
    pub fn text(&self) -> Result<&str, Error> {
        match self.text.get_or_init(|| write(&self.root)) {
            Ok(text) => Ok(text),
            Err(error) => Err(error.clone()),
        }
    }

    /// The same as [`Path::lookup`] of the value.
    pub fn lookup(&self, path: &Path) -> Result<Option<Value>, Error> {
        if path.is_plain() {
            path.lookup_plain(&self.root)
        } else if path.leads_nowhere(&self.root) {
            Ok(None)
        } else {
            find(self.text()?, path.as_str())
        }
    }
}

impl From<Value> for Document {
    fn from(root: Value) -> Self {
        Self::new(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use govalue::Map;

    #[test]
    fn the_text_is_written_when_needed() {
        let document = Document::new(Map::from_iter([("b", 1), ("a", 2)]).into());
        assert_eq!(document.lookup(&Path::compile("b")), Ok(Some(Value::Int(1))));
        assert_eq!(document.lookup(&Path::compile("b.#")), Ok(None));
        assert!(document.text.get().is_none());
        assert_eq!(document.lookup(&Path::compile("*")), Ok(Some(Value::Int(2))));
        assert_eq!(document.text(), Ok(r#"{"a":2,"b":1}"#));
    }

    #[test]
    fn scalars_are_documents_too() {
        let document = Document::from(Value::Int(5));
        assert_eq!(document.lookup(&Path::compile("..0")), Ok(Some(Value::Int(5))));
        assert_eq!(document.lookup(&Path::compile("a.#")), Ok(None));
    }
}
