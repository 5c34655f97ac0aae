//! Templates in properties: which properties are resolved, and when.

use std::ops::Range;

use ccm_yaml::{Source, Span};
use govalue::{Excerpt, Key, Map, Value};

use crate::ResourceRef;

/// When templates are being resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The manifest is being resolved.
    Parse,
    /// The resource is about to be applied.
    Apply,
}

/// Why a template could not be resolved, in words for its author. Displayed, it
/// has the part that is wrong below it, with a caret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{picture}")]
pub struct TemplateError {
    /// The message, in one line.
    pub message: String,
    /// The part that is wrong with a caret, for messages without a source: what
    /// follows the message.
    pub picture: String,
    /// Which part of the template is wrong.
    pub place: Option<Box<TemplatePlace>>,
    /// Advice on how to fix the problem, for the `hint:` line.
    pub hint: Option<String>,
}

impl TemplateError {
    /// An error that concerns no part in particular.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), picture: String::new(), place: None, hint: None }
    }
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatePlace {
    /// The number of the line in the template, from 1.
    number: usize,
    /// The line that it begins in, without blanks around it.
    line: String,
    /// The part within this line.
    range: Range<usize>,
}

impl TemplatePlace {
    /// The part of a template with these bytes.
    pub fn new(template: &str, range: Range<usize>) -> Option<Self> {
        let before = template.get(..range.start)?;
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = template[line_start..].lines().next().unwrap_or_default();
        let trimmed = line.trim_start();
        let skipped = line_start + line.len() - trimmed.len();
        let line = trimmed.trim_end();
        let start = range.start.checked_sub(skipped)?;
        let end = range.end.checked_sub(skipped)?.clamp(start, line.len().max(start));
        line.get(start..end)?;
        let number = before.matches('\n').count() + 1;
        Some(Self { number, line: line.to_owned(), range: start..end })
    }

    /// The line with carets below the part, to follow a message.
    pub fn picture(&self) -> String {
        let excerpt = Excerpt::of_line("template", self.number, &self.line, self.range.clone());
        format!("\n{excerpt}")
    }

    /// Where the part stands in a source, if the template was written there
    /// within `span` as it is: without escapes and line breaks of YAML.
    pub fn within(&self, source: &Source, span: Span) -> Option<Span> {
        let written = source.text().get(span.start as usize..span.end as usize)?;
        let at = written.find(&self.line)?;
        let offset = |inner: usize| span.start + (at + inner) as u32;
        Some(Span { start: offset(self.range.start), end: offset(self.range.end) })
    }
}

/// Resolves templates and expressions.
pub trait Templates {
    /// Replaces every placeholder in a text by its value's printed form.
    fn text(&self, text: &str) -> Result<String, TemplateError>;

    /// The same for a text that a shell will read: there `${` begins a
    /// placeholder only when a blank follows it, so `${HOME}` is the shell's.
    fn script(&self, text: &str) -> Result<String, TemplateError>;

    /// What a text means where any value may stand: the value itself when the
    /// text is nothing but one placeholder, else the same as [`Self::text`].
    fn value(&self, text: &str) -> Result<Value, TemplateError> {
        self.text(text).map(Value::from)
    }

    /// Whether a placeholder of a text reads something secret.
    fn reads_secret(&self, _text: &str) -> bool {
        false
    }
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

/// Texts inside of free data may become anything.
impl Resolve for Value {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        match self {
            Self::String(text) => {
                let resolved = match text.as_str().filter(|text| has_placeholder(text)) {
                    Some(text) => templates.value(text)?,
                    None => return Ok(()),
                };
                *self = resolved;
                Ok(())
            }
            Self::Array(items) => {
                let items = std::sync::Arc::make_mut(items);
                items.iter_mut().try_for_each(|item| item.resolve(templates, keys))
            }
            Self::Map(map) => {
                let mut resolved = Map::with_shape(map.shape());
                for (key, value) in map.iter() {
                    let mut value = value.clone();
                    value.resolve(templates, keys)?;
                    let key = match key.as_str().filter(|key| keys && has_placeholder(key)) {
                        Some(text) => Key::from(templates.text(text)?),
                        None => key.clone(),
                    };
                    resolved.insert(key, value);
                }
                *self = resolved.into();
                Ok(())
            }
            _ => Ok(()),
        }
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
pub(crate) use plain::PlainText;

#[cfg(test)]
mod plain {
    use super::*;

    /// No template engine at all: text without placeholders is itself, everything
    /// else an error.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct PlainText;

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
    }

    fn not_available(text: &str) -> TemplateError {
        let line = text.lines().find(|line| has_placeholder(line)).unwrap_or(text);
        TemplateError::new(format!("no expressions here: {line}"))
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
    }

    #[test]
    fn places_are_found_in_sources_that_show_the_template_as_it_is() {
        let template = "one\n  é {{ x }} \n";
        let place = TemplatePlace::new(template, 12..16).unwrap();
        assert_eq!(place.picture(), "\n --> template:2:6\n  |\n2 | é {{ x }}\n  |      ^^^^");
        let text = "a: |\n  one\n    é {{ x }}\nb: c\n";
        let source = Source::new("t", text);
        let span = Span { start: 3, end: 25 };
        let found = place.within(&source, span).unwrap();
        assert_eq!(&text[found.start as usize..found.end as usize], "x }}");
        assert_eq!(place.within(&source, Span { start: 3, end: 12 }), None);
        assert_eq!(place.within(&source, Span { start: 3, end: 99 }), None);
        for (start, end) in [(6, 5), (5, 6), (90, 91)] {
            let _ = TemplatePlace::new(template, start..end);
        }
    }

    #[test]
    fn free_data_is_resolved_all_the_way_down() {
        struct Shout;
        impl Templates for Shout {
            fn text(&self, text: &str) -> Result<String, TemplateError> {
                Ok(text.to_uppercase())
            }
            fn script(&self, text: &str) -> Result<String, TemplateError> {
                self.text(text)
            }
        }
        let inner = Map::from_iter([("{{ k }}", Value::array(["${ v }".into(), 5.into()]))]);
        let data = Value::from(Map::from_iter([("m", inner)]));
        let resolved = |keys| {
            let mut value = data.clone();
            value.resolve(&Shout, keys).unwrap();
            value.to_string()
        };
        assert_eq!(resolved(false), "map[m:map[{{ k }}:[${ V } 5]]]");
        assert_eq!(resolved(true), "map[m:map[{{ K }}:[${ V } 5]]]");
        assert!(data.clone().resolve(&PlainText, false).is_err());
    }
}
