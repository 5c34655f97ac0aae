//! Resolves strings with placeholders to values.

use std::sync::Arc;

use govalue::{Key, Map, Str, Value};

use crate::budget::{MAX_TEXT, Nesting, size};
use crate::placeholder::{Openers, Placeholder, scan};
use crate::{Error, Resolver};

/// A text whose placeholders have been replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The text; expressions can make bytes that are not UTF-8.
    pub text: Str,
    /// Whether any placeholder gave something other than the empty string, or, without placeholders, whether there is any text.
    pub matched: bool,
    /// Whether there were placeholders.
    pub has_expression: bool,
}

impl Resolver {
    /// String mode: every placeholder becomes its value's printed form. Nil is
    /// an error: it must not be written into files unnoticed.
    pub fn text(&self, text: &str) -> Result<Resolved, Error> {
        self.text_with(text, Openers::All)
    }

    /// String mode, with a choice of what begins a placeholder.
    pub fn text_with(&self, text: &str, openers: Openers) -> Result<Resolved, Error> {
        self.resolve_text(text, openers, None)
    }

    /// Typed mode: a text that is nothing but one placeholder, blanks around it
    /// aside, gives the value as it is; any other is resolved in string mode.
    pub fn value(&self, text: &str) -> Result<Value, Error> {
        self.resolve_value(text, None)
    }

    /// Resolves every text inside a value in typed mode; keys of maps, in
    /// string mode, only if `keys`.
    ///
    /// ```
    /// use govalue::{Map, Value};
    ///
    /// let host = ccm_host::Host::new();
    /// let resolver = ccm_template::Resolver::new(ccm_template::Scope::new(&host));
    /// let list = Value::array(["{{ 1 + 1 }}".into(), "n{{ 1 }}".into(), true.into()]);
    /// assert_eq!(resolver.expand(&list, false)?.to_string(), "[2 n1 true]");
    /// # Ok::<(), ccm_template::Error>(())
    /// ```
    pub fn expand(&self, value: &Value, keys: bool) -> Result<Value, Error> {
        Ok(match value {
            Value::String(text) => match text.as_str() {
                Some(text) if memchr::memchr(b'{', text.as_bytes()).is_some() => {
                    self.value(text)?
                }
                _ => value.clone(),
            },
            Value::Array(items) => {
                let items: Result<Vec<_>, _> =
                    items.iter().map(|item| self.expand(item, keys)).collect();
                Value::Array(Arc::new(items?))
            }
            Value::Map(map) => {
                let mut expanded = Map::with_shape(map.shape());
                for (key, item) in map.iter() {
                    let item = self.expand(item, keys)?;
                    let key = match key.as_str().filter(|_| keys) {
                        Some(text) => Key::from(self.text(text)?.text),
                        None => key.clone(),
                    };
                    expanded.insert(key, item);
                }
                expanded.into()
            }
            _ => value.clone(),
        })
    }

    pub(crate) fn resolve_value(
        &self,
        text: &str,
        nesting: Option<&Nesting>,
    ) -> Result<Value, Error> {
        let mut placeholders = scan(text, Openers::All);
        if let Some(first) = placeholders.next().transpose()?
            && text[..first.start].trim().is_empty()
            && text[first.end..].trim().is_empty()
        {
            let value = self.placeholder(text, &first, nesting)?;
            size(&value)?;
            return Ok(value);
        }
        Ok(self.resolve_text(text, Openers::All, nesting)?.text.into())
    }

    fn resolve_text(
        &self,
        text: &str,
        openers: Openers,
        nesting: Option<&Nesting>,
    ) -> Result<Resolved, Error> {
        let mut out = Vec::new();
        let (mut matched, mut has_expression, mut copied) = (false, false, 0);
        // What is wrong with other placeholders is always wrong; nil may be so
        // on this machine only.
        let mut no_value = None;
        for placeholder in scan(text, openers) {
            let placeholder = placeholder?;
            let value = self.placeholder(text, &placeholder, nesting)?;
            if !has_expression {
                out.reserve(text.len());
                has_expression = true;
            }
            out.extend_from_slice(&text.as_bytes()[copied..placeholder.start]);
            copied = placeholder.end;
            match &value {
                Value::String(printed) => {
                    matched |= !printed.is_empty();
                    out.extend_from_slice(printed.as_bytes());
                }
                Value::Nil => {
                    no_value.get_or_insert_with(|| self.no_value(placeholder.inner));
                }
                _ => {
                    matched = true;
                    size(&value)?;
                    out.extend_from_slice(value.to_go_string().as_bytes());
                }
            }
            if out.len() > MAX_TEXT {
                return Err(Error::Limit { what: "the result is larger than 64 MiB" });
            }
        }
        if let Some(error) = no_value {
            return Err(error);
        }
        if !has_expression {
            return Ok(Resolved { text: text.into(), matched: !text.is_empty(), has_expression });
        }
        out.extend_from_slice(&text.as_bytes()[copied..]);
        let text = String::from_utf8(out)
            .map_or_else(|error| Str::from_bytes(error.as_bytes()), Str::from);
        Ok(Resolved { text, matched, has_expression })
    }

    fn placeholder(
        &self,
        text: &str,
        placeholder: &Placeholder<'_>,
        nesting: Option<&Nesting>,
    ) -> Result<Value, Error> {
        if placeholder.inner.is_empty() {
            let placeholder = text[placeholder.start..placeholder.end].to_owned();
            return Err(Error::Empty { placeholder });
        }
        self.run(placeholder.inner, nesting)
    }
}
