//! Errors and warnings in a manifest, with their location.

use std::sync::Arc;

use ccm_yaml::{Source, Span};

use crate::closest;

/// Severity of a message.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A warning; it does not stop a run.
    Warning,
    /// An error; the manifest cannot be applied.
    Error,
}

/// One thing that is wrong, with its place in the source where it has one.
#[derive(Clone, Debug)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The message, in one line without a final period.
    pub message: String,
    /// The bytes that are at fault; `None` if no part of the source is.
    pub span: Option<Span>,
    /// The text that it stands in, if not in the manifest itself.
    pub source: Option<Arc<Source>>,
    /// The resource it concerns, as `type#name`.
    pub resource: Option<String>,
    /// Advice on how to fix the problem, for the `hint:` line.
    pub hint: Option<String>,
    /// The probable correct spelling at this location.
    pub suggestion: Option<String>,
    /// Where the data of the loop's item is that it was found for, in the manifest.
    pub item: Option<Span>,
}

impl Finding {
    /// An error at a place.
    pub fn error(span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span: span.into(),
            source: None,
            resource: None,
            hint: None,
            suggestion: None,
            item: None,
        }
    }

    /// A warning at a place.
    pub fn warning(span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(span, message) }
    }

    /// The same with advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = hint.into();
        self
    }

    /// The same with the closest of the known words, if one is close: as advice,
    /// and as what to put in the place of what is there.
    #[must_use]
    pub fn suggest<'a>(mut self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        if let Some(meant) = closest(word, known) {
            self.hint = Some(format!("did you mean `{meant}`?"));
            self.suggestion = Some(meant.to_owned());
        }
        self
    }

    /// The same in another text than the manifest's.
    #[must_use]
    pub fn within(mut self, source: &Arc<Source>) -> Self {
        self.source.get_or_insert_with(|| Arc::clone(source));
        self
    }

    /// The same with the resource it concerns.
    #[must_use]
    pub fn of(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }
}
