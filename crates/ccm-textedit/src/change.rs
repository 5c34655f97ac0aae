//! What an edit changes, and why it is refused.

use serde::{Deserialize, Serialize};

/// One line, block or entry before and after an edit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// `line 14`, `block`, or the name of the entry.
    pub name: String,
    /// What was there, if anything was.
    pub from: Option<String>,
    /// What is there after the edit, if anything is.
    pub to: Option<String>,
}

impl Change {
    pub(crate) fn new(name: impl Into<String>, from: Option<String>, to: Option<String>) -> Self {
        Self { name: name.into(), from, to }
    }
}

/// A text after an edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edited {
    /// The text.
    pub text: Vec<u8>,
    /// What is different; nothing if the text is as it was.
    pub changes: Vec<Change>,
}

/// Why an edit was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The message, in one line.
    pub message: String,
    /// Advice on how to fix the problem, for the `hint:` line.
    pub hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The third law does not hold.
    pub(crate) fn unsafe_here(reason: impl std::fmt::Display) -> Self {
        Self::new("the edit cannot be expressed safely in this file")
            .hint(format!("{reason}; ccm changed nothing"))
    }
}

pub(crate) type Result<T, E = Refusal> = std::result::Result<T, E>;

/// Numbers as they are listed in messages.
pub(crate) fn listed(numbers: impl IntoIterator<Item = usize>) -> String {
    numbers.into_iter().map(|number| number.to_string()).collect::<Vec<_>>().join(", ")
}

/// Bytes as a message or a change shows them.
pub(crate) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
