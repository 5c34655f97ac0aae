//! Errors in hierarchical data.

use std::sync::Arc;

use ccm_model::{Finding, did_you_mean};
use ccm_yaml::{Kind, Node, Source, Span};

use crate::Failure;

/// Why hierarchical data could not be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The document is neither YAML nor JSON.
    #[error("{message}")]
    Syntax {
        /// Why the parser rejects it.
        message: String,
        /// Advice on how to fix it.
        hint: Option<String>,
    },
    /// The document is something other than a map.
    #[error("hierarchical data must be a map, not {found}")]
    NotAMap {
        /// The type of the document.
        found: &'static str,
    },
    /// A section has the wrong shape.
    #[error("`{section}` must be {wanted}")]
    Shape {
        /// The top-level key, such as `hierarchy`.
        section: &'static str,
        /// The expected type.
        wanted: &'static str,
    },
    /// A way to merge that does not exist.
    #[error("`hierarchy.merge` must be `first` or `deep`, not `{found}`")]
    Merge {
        /// The strategy as it was written.
        found: String,
    },
    /// A key of `hierarchy` that does not exist.
    #[error("unknown key `{key}` in `hierarchy`")]
    UnknownKey {
        /// The key as it was written, for the hint.
        key: String,
    },
    /// A placeholder that cannot be resolved.
    #[error("in `{}`: {source}", path.join("."))]
    Template {
        /// Where: the keys and indices that lead there.
        path: Vec<String>,
        /// Why the placeholder cannot be resolved.
        source: ccm_template::Error,
    },
    /// An error in a document of its own, with its place there.
    #[error("{}: {error}", place(document, *span))]
    Located {
        /// The document.
        document: Arc<Source>,
        /// The bytes of it that are at fault.
        span: Span,
        /// The error that was found at this location.
        error: Box<Self>,
    },
    /// Data that breaks its rules.
    #[error("{}", lines(failures))]
    Rules {
        /// All that is wrong.
        failures: Vec<Failure>,
    },
    /// A source that cannot be read.
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
}

impl Error {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Merge { found } => did_you_mean(&found.to_lowercase(), ["first", "deep"]),
            Self::UnknownKey { key } => did_you_mean(key, KEYS)
                .or_else(|| Some(format!("allowed keys: {}", KEYS.join(", ")))),
            Self::Template { source, .. } => source.hint(),
            Self::Located { error, .. } => error.hint(),
            Self::Syntax { hint, .. } => hint.clone(),
            Self::Host(error) => error.hint(),
            _ => None,
        }
    }

    /// The same without the keys that lead to it, for reports that show the
    /// place itself.
    pub fn brief(&self) -> String {
        match self {
            Self::Template { source, .. } => source.brief(),
            other => other.to_string(),
        }
    }

    /// The document that the error is in and its findings there, if it is in one
    /// of its own.
    pub fn findings(&self) -> Option<(&Arc<Source>, Vec<Finding>)> {
        let Self::Located { document, span, error } = self else { return None };
        let findings = match &**error {
            Self::Rules { failures } => failures.iter().map(Failure::finding).collect(),
            error => vec![Finding::error(*span, error.brief()).hint(error.hint())],
        };
        Some((document, findings))
    }

    /// Where the error is within the document that is being resolved.
    pub fn locate(&self, root: &Node<'_>, source: &Source) -> Option<Span> {
        match self {
            Self::Shape { section, .. } => {
                let path: Vec<&str> = section.split('.').collect();
                span(root, &path).or_else(|| span(root, &path[..1]))
            }
            Self::Merge { .. } => span(root, &["hierarchy", "merge"]),
            Self::UnknownKey { key } => key_span(root, "hierarchy", key),
            Self::Template { path, source: error } => {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                let whole = span(root, &path)?;
                let exact = error.own_place().and_then(|place| place.within(source, whole));
                Some(exact.unwrap_or(whole))
            }
            Self::Rules { failures } => failures.first().map(|failure| failure.span),
            _ => None,
        }
    }
}

fn place(document: &Source, span: Span) -> String {
    let position = document.position(span.start);
    format!("{}:{}:{}", document.name(), position.line, position.column)
}

/// The keys of `hierarchy`.
pub(crate) const KEYS: [&str; 2] = ["order", "merge"];

/// Where the value stands that keys and indices lead to.
fn span(root: &Node<'_>, path: &[&str]) -> Option<Span> {
    let Some((first, rest)) = path.split_first() else { return Some(root.span) };
    match &root.kind {
        Kind::Mapping(entries) => {
            let entry = entries.iter().find(|entry| entry.key.text == *first)?;
            span(&entry.value, rest)
        }
        Kind::Sequence(items) => span(items.get(first.parse::<usize>().ok()?)?, rest),
        Kind::Scalar(_) => None,
    }
}

/// Where an entry of the hierarchy stands.
pub fn entry_span(root: &Node<'_>, index: usize) -> Option<Span> {
    span(root, &["hierarchy", "order", &index.to_string()])
}

/// Where a key of a section stands.
pub(crate) fn key_span(root: &Node<'_>, section: &str, key: &str) -> Option<Span> {
    let Kind::Mapping(entries) = &root.kind else { return None };
    let section = entries.iter().find(|entry| entry.key.text == section)?;
    let Kind::Mapping(entries) = &section.value.kind else { return None };
    entries.iter().find(|entry| entry.key.text == key).map(|entry| entry.key.span)
}

fn lines(failures: &[Failure]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
