//! Errors in templates.

use ccm_model::{TemplateError, TemplatePlace};

use crate::placeholder::ScanError;

/// Why a template could not be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An expression cannot be compiled, or failed when it ran.
    #[error("{}", source.snippet(expression))]
    Expression {
        /// The expression as the placeholder has it.
        expression: String,
        /// The error and its location.
        source: expr::Error,
    },
    /// A placeholder with nothing in it.
    #[error("an empty placeholder: there is no expression in `{placeholder}`")]
    Empty {
        /// The placeholder with its delimiters.
        placeholder: String,
    },
    /// A condition that is neither true nor false.
    #[error("`{expression}` must be true or false, but is {found}")]
    NotBoolean {
        /// The expression as the placeholder has it.
        expression: String,
        /// The actual type.
        found: String,
    },
    /// A result that text cannot hold.
    #[error("the result of `{template}` is not UTF-8")]
    NotText {
        /// The beginning of the template.
        template: String,
    },
    /// A Jet template that cannot be parsed, or failed when it was rendered.
    #[error(transparent)]
    Jet(#[from] jet::Error),
    /// A file that a template names.
    #[error("{message}")]
    File {
        /// The message.
        message: String,
    },
    /// A Jet or Go template that printed a member that does not exist, with
    /// `CCM_STRICT=1`.
    #[error("{message}")]
    UnknownMember {
        /// The template with the place in it, and the member.
        message: String,
    },
    /// A GJSON path that does not exist in the data.
    #[error("the key `{key}` does not exist{}", did_you_mean(suggestion.as_deref()))]
    Missing {
        /// The GJSON path that `lookup` was given.
        key: String,
        /// The path that may have been meant.
        suggestion: Option<String>,
    },
    /// A path that cannot be evaluated.
    #[error("cannot look up the key `{key}`: {source}")]
    Path {
        /// The GJSON path that `lookup` was given.
        key: String,
        /// Why the path cannot be followed.
        source: gjson::Error,
    },
    /// A placeholder that never ends.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// A placeholder in text whose expression gave nil.
    #[error("`{member}` has no value{}", did_you_mean(suggestion.as_deref()))]
    NoValue {
        /// The expression as the placeholder has it.
        expression: String,
        /// The part of it that has no value, or all of it.
        member: String,
        /// A suggestion.
        suggestion: Option<String>,
    },
    /// An expression that asks something of what has no value.
    #[error("{message}")]
    NoMember {
        /// The part of the expression that failed.
        part: String,
        /// What has no value, and what may have been meant.
        message: String,
        /// The keys that exist there.
        hint: Option<String>,
    },
    /// A template that wants more than any sensible one.
    #[error("{what}")]
    Limit {
        /// Which bound was met.
        what: &'static str,
    },
}

impl Error {
    pub(crate) fn expression(expression: &str, source: expr::Error) -> Self {
        Self::Expression { expression: expression.to_owned(), source }
    }

    /// The error within the message of another, on as few lines as possible.
    pub(crate) fn nested(&self) -> String {
        match self {
            Self::Expression { expression, source } => {
                format!("in `{}`: {}", beginning(expression), source.message())
            }
            other => other.to_string(),
        }
    }
}

impl Error {
    /// Which part of a template the error is about.
    pub fn place(&self, template: &str) -> Option<TemplatePlace> {
        let range = match self {
            Self::Scan(ScanError::Unclosed { start, .. }) => {
                let line = template.get(*start..)?.lines().next().unwrap_or_default();
                *start..start + line.trim_end().len()
            }
            Self::Expression { expression, source } => {
                let start = template.find(&**expression)?;
                let span = source.span();
                let span = span.clamp(expression);
                start + span.start..start + span.end
            }
            Self::NoValue { expression: part, .. }
            | Self::NoMember { part, .. }
            | Self::NotBoolean { expression: part, .. }
            | Self::Empty { placeholder: part } => {
                let start = template.find(&**part)?;
                start..start + part.len()
            }
            _ => return None,
        };
        TemplatePlace::new(template, range)
    }

    /// Which part of its own expression the error is about, for those who do
    /// not have the template at hand.
    pub fn own_place(&self) -> Option<TemplatePlace> {
        match self {
            Self::Expression { expression: text, .. }
            | Self::NoValue { expression: text, .. }
            | Self::NoMember { part: text, .. }
            | Self::Empty { placeholder: text } => self.place(text),
            _ => None,
        }
    }

    /// The message without the expression and caret.
    pub fn brief(&self) -> String {
        match self {
            Self::Expression { source, .. } => source.message().to_owned(),
            Self::Jet(error) => error.message().to_owned(),
            other => other.to_string(),
        }
    }

    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoValue { expression, suggestion: None, .. } => {
                let expression = beginning(expression);
                Some(format!("for an optional value, write `{expression} ?? \"default\"`"))
            }
            Self::NoMember { hint, .. } => hint.clone(),
            Self::Scan(ScanError::Unclosed { opener, in_quotes: false, .. }) => {
                let end = if *opener == "{{" { "}}" } else { "}" };
                let literal = format!("{opener} \"{opener}\" {end}");
                Some(format!(
                    "close it with `{end}`, or write `{literal}` for a literal `{opener}`"
                ))
            }
            _ => None,
        }
    }

    /// The same for the model, with its place in the template.
    pub(crate) fn in_template(self, template: &str) -> TemplateError {
        let place = self.place(template);
        let picture = match &self {
            Self::Jet(error) => format!("\n{}", error.excerpt()),
            _ => place.as_ref().map(TemplatePlace::picture).unwrap_or_default(),
        };
        let (message, hint) = (self.brief(), self.hint());
        TemplateError { message, picture, place: place.map(Box::new), hint }
    }
}

impl From<Error> for TemplateError {
    fn from(error: Error) -> Self {
        Self { hint: error.hint(), ..Self::new(error.to_string()) }
    }
}

pub(crate) fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
}

/// As much of a text as fits into a message.
pub(crate) fn beginning(text: &str) -> String {
    const FITS: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(FITS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_templates_are_cut_in_messages() {
        assert_eq!(beginning("short"), "short");
        assert_eq!(beginning("one\ntwo"), "one…");
        assert_eq!(beginning(&"é".repeat(100)).chars().count(), 61);
    }
}
