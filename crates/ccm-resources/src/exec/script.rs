//! A command line, for a shell or split into words.

use ccm_model::{
    FromNode, Node, Reader, Resolve, Shape, TemplateError, Templates, has_placeholder,
    has_script_placeholder,
};
use serde::Serialize;

/// The text of a command. When a shell will read it, `${HOME}` is the shell's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Script {
    text: String,
    #[serde(skip)]
    pub(super) is_for_shell: bool,
}

impl Script {
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn has_placeholder(&self) -> bool {
        if self.is_for_shell {
            has_script_placeholder(&self.text)
        } else {
            has_placeholder(&self.text)
        }
    }
}

impl From<&str> for Script {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), is_for_shell: false }
    }
}

impl FromNode for Script {
    const SHAPE: Shape = Shape::Text;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        reader.read(node).map(|text: String| Self { text, is_for_shell: false })
    }

    fn is_set(&self) -> bool {
        !self.text.is_empty()
    }
}

impl Resolve for Script {
    fn resolve(&mut self, templates: &dyn Templates, _keys: bool) -> Result<(), TemplateError> {
        if self.has_placeholder() {
            self.text = if self.is_for_shell {
                templates.script(&self.text)?
            } else {
                templates.text(&self.text)?
            };
        }
        Ok(())
    }
}
