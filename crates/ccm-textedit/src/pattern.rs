//! Regular expressions over one line.

use govalue::regexp::{self, Regex};
use serde::{Deserialize, Serialize};

/// A regular expression in RE2's syntax. It sees one line without its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Pattern {
    text: String,
    regex: Regex,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        Ok(Self { text: text.to_owned(), regex: regexp::compile(&text.into())? })
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches anywhere in a line.
    pub fn is_match(&self, line: &[u8]) -> bool {
        self.regex.is_match(line)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text)
    }
}
