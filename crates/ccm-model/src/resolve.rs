//! Templates in properties: who is resolved, and when.

use crate::ResourceRef;

/// When templates are being resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The manifest is being resolved.
    Parse,
    /// The resource is about to be applied.
    Apply,
}

/// Why a template could not be resolved, in words for its author.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong, with the expression and a caret where there is one.
    pub message: String,
}

/// What resolves templates and expressions.
pub trait Templates {
    /// Replaces every placeholder in a text by its value's printed form.
    fn text(&self, text: &str) -> Result<String, TemplateError>;

    /// The same for a text that a shell will read: there `${` begins a
    /// placeholder only when a blank follows it, so `${HOME}` is the shell's.
    fn script(&self, text: &str) -> Result<String, TemplateError>;

    /// Evaluates an expression that must be boolean.
    fn condition(&self, expression: &str) -> Result<bool, TemplateError>;
}

/// The template engine of a build that has none: text without placeholders is
/// itself, everything else an error, so that nothing is ever taken literally
/// that was meant as a template.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainText;

impl Templates for PlainText {
    fn text(&self, text: &str) -> Result<String, TemplateError> {
        if has_placeholder(text) {
            return Err(not_available(text));
        }
        Ok(text.to_owned())
    }

    fn script(&self, text: &str) -> Result<String, TemplateError> {
        if has_script_placeholder(text) {
            return Err(not_available(text));
        }
        Ok(text.to_owned())
    }

    fn condition(&self, expression: &str) -> Result<bool, TemplateError> {
        match expression.trim() {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(not_available(other)),
        }
    }
}

fn not_available(text: &str) -> TemplateError {
    let line = text.lines().find(|line| has_placeholder(line)).unwrap_or(text);
    TemplateError { message: format!("expressions are not available in this build: {line}") }
}

/// Whether a text holds the beginning of a placeholder: `{{` or `${`.
///
/// ```
/// assert!(ccm_model::has_placeholder("a {{ b }}"));
/// assert!(ccm_model::has_placeholder("${ b }"));
/// assert!(!ccm_model::has_placeholder("$b {c}"));
/// ```
pub fn has_placeholder(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'{', bytes).any(|at| {
        bytes.get(at + 1) == Some(&b'{') || at.checked_sub(1).is_some_and(|p| bytes[p] == b'$')
    })
}

/// Whether a text for a shell holds the beginning of a placeholder: `{{`, or
/// `${` with a blank behind it.
///
/// ```
/// assert!(ccm_model::has_script_placeholder("echo ${ Data.x }"));
/// assert!(!ccm_model::has_script_placeholder("echo ${HOME}"));
/// ```
pub fn has_script_placeholder(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'{', bytes).any(|at| {
        let next = bytes.get(at + 1);
        let is_dollar = at.checked_sub(1).is_some_and(|p| bytes[p] == b'$');
        next == Some(&b'{') || (is_dollar && next.is_some_and(u8::is_ascii_whitespace))
    })
}

/// A value whose templates can be resolved in place.
pub trait Resolve {
    /// Resolves every text in it; keys of maps too if `keys`.
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError>;
}

impl Resolve for String {
    fn resolve(&mut self, templates: &dyn Templates, _keys: bool) -> Result<(), TemplateError> {
        if has_placeholder(self) {
            *self = templates.text(self)?;
        }
        Ok(())
    }
}

impl<T: Resolve> Resolve for Option<T> {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.as_mut().map_or(Ok(()), |value| value.resolve(templates, keys))
    }
}

impl<T: Resolve> Resolve for Vec<T> {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.iter_mut().try_for_each(|value| value.resolve(templates, keys))
    }
}

/// Values that hold no templates.
macro_rules! settled {
    ($($type:ty),*) => {$(
        impl Resolve for $type {
            fn resolve(&mut self, _: &dyn Templates, _: bool) -> Result<(), TemplateError> {
                Ok(())
            }
        }
    )*};
}

settled!(bool, i32);

/// Names may be templated, so what refers to them may be too.
impl Resolve for ResourceRef {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        self.kind.resolve(templates, keys)?;
        self.name.resolve(templates, keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_engine_a_placeholder_is_an_error_not_text() {
        let mut text = "plain".to_owned();
        text.resolve(&PlainText, false).unwrap();
        assert_eq!(text, "plain");
        let mut list = vec!["a".to_owned(), "{{ b }}".to_owned()];
        assert!(list.resolve(&PlainText, false).is_err());
        assert!(PlainText.condition("1 == 1").is_err());
    }
}
