//! Errors and warnings as JSON: with file, line and column.

use ccm_yaml::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Finding, Severity, redact_credentials};

/// An error or a warning, with its location where it has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnostic {
    /// Severity
    pub severity: Severity,
    /// Message
    pub message: String,
    /// The file; empty if no file caused it
    pub file: String,
    /// The line, from 1
    pub line: Option<usize>,
    /// The column in characters, from 1
    pub column: Option<usize>,
    /// The resource that it concerns, as `type#name`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Advice on how to fix the problem
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A finding in a source, or in the text that the finding names itself.
    pub fn new(finding: &Finding, source: &Source) -> Self {
        let source = finding.source.as_deref().unwrap_or(source);
        let location = finding.span.map(|span| source.position(span.start));
        Self {
            severity: finding.severity,
            message: redact_credentials(&finding.message).into_owned(),
            file: source.name().to_owned(),
            line: location.map(|location| location.line),
            column: location.map(|location| location.column),
            resource: finding.resource.clone(),
            hint: finding.hint.clone(),
        }
    }

    /// An error about a file that could not be read.
    pub fn unreadable(file: String, message: String, hint: Option<String>) -> Self {
        let severity = Severity::Error;
        Self { severity, message, file, line: None, column: None, resource: None, hint }
    }

    /// A warning about the machine or the run, with no file at fault.
    pub fn warning(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            message: redact_credentials(&message.into()).into_owned(),
            file: String::new(),
            line: None,
            column: None,
            resource: None,
            hint: None,
        }
    }
}
