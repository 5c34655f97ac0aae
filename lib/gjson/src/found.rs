//! What a path finds.

use std::borrow::Cow;

use govalue::{FloatFormat, Value, format_float, parse_float};

use crate::scan::{self, Piece};
use crate::{Error, decode, text};

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`, and the kind of what was not found
    Null,
    /// `false`
    False,
    /// `true`
    True,
    /// A number
    Number,
    /// A string
    String,
    /// An object or an array
    Json,
}

/// A value found in a JSON text, or made from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    kind: Kind,
    raw: Cow<'a, str>,
}

impl<'a> Found<'a> {
    pub(crate) fn new(kind: Kind, raw: Cow<'a, str>) -> Self {
        Self { kind, raw }
    }

    pub(crate) fn missing() -> Self {
        Self::new(Kind::Null, Cow::Borrowed(""))
    }

    /// The value that a text begins with; objects and arrays keep all the text
    /// that follows them.
    pub(crate) fn parse(json: Cow<'a, str>) -> Self {
        match json {
            Cow::Borrowed(json) => Piece::first(json).into(),
            Cow::Owned(json) => {
                let Piece { kind, raw } = Piece::first(&json);
                // Most often all of the text is the value.
                let raw = if raw.len() == json.len() { json } else { raw.to_owned() };
                Self::new(kind, Cow::Owned(raw))
            }
        }
    }

    pub(crate) fn into_raw(self) -> Cow<'a, str> {
        self.raw
    }

    /// The same, without borrowing from the text.
    pub fn into_owned(self) -> Found<'static> {
        Found::new(self.kind, Cow::Owned(self.raw.into_owned()))
    }

    /// Whether the path found anything; a `null` in the text is something.
    pub fn exists(&self) -> bool {
        self.kind != Kind::Null || !self.raw.is_empty()
    }

    /// The type of the value.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The value as it is written in JSON; empty where nothing was found.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.kind == Kind::Json && self.raw.starts_with('{')
    }

    /// Whether this is an array.
    pub fn is_array(&self) -> bool {
        self.kind == Kind::Json && self.raw.starts_with('[')
    }

    /// The value as text: strings without quotes and escapes, whole numbers as
    /// written, other numbers without exponent, nothing for `null`.
    pub fn text(&self) -> Cow<'_, str> {
        match self.kind {
            Kind::Null => Cow::Borrowed(""),
            Kind::False => Cow::Borrowed("false"),
            Kind::True => Cow::Borrowed("true"),
            Kind::String => text::unescape(body(&self.raw)),
            Kind::Json => Cow::Borrowed(&self.raw),
            Kind::Number => {
                let digits = self.raw.strip_prefix('-').unwrap_or(&self.raw);
                if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    Cow::Borrowed(&self.raw)
                } else {
                    Cow::Owned(format_float(self.number(), FloatFormat::Decimal, None))
                }
            }
        }
    }

    /// The number; 0 for what is not one.
    pub fn number(&self) -> f64 {
        match self.kind {
            Kind::Number => number(&self.raw),
            _ => 0.0,
        }
    }

    /// The value with every number a float. Of repeated keys the first counts.
    pub fn value(&self) -> Result<Value, Error> {
        Ok(match self.kind {
            Kind::Null => Value::Nil,
            Kind::False => Value::Bool(false),
            Kind::True => Value::Bool(true),
            Kind::Number => Value::Float(self.number()),
            Kind::String => Value::from(self.text().into_owned()),
            Kind::Json => decode::container(&self.raw)?,
        })
    }

    /// The value as configuration languages want it: a number that stands alone
    /// and is written without fraction and exponent is an int, if it fits one.
    ///
    /// ```
    /// use govalue::Value;
    ///
    /// let found = |path| gjson::get(r#"{"n": 1, "list": [1, 2.5]}"#, path).unwrap();
    /// assert_eq!(found("n").lookup(), Ok(Value::Int(1)));
    /// assert_eq!(found("n").value(), Ok(Value::Float(1.0)));
    /// assert_eq!(found("list").lookup(), Ok(Value::array([1.0.into(), 2.5.into()])));
    /// ```
    pub fn lookup(&self) -> Result<Value, Error> {
        match self.kind {
            Kind::Number => Ok(self.int().map_or_else(|| Value::Float(self.number()), Value::Int)),
            _ => self.value(),
        }
    }

    fn int(&self) -> Option<i64> {
        if let Ok(int) = self.raw.parse() {
            return Some(int);
        }
        // Text that is no number counts as zero, an int as well.
        let hopeless = !self.raw.contains(['.', 'e', 'E']) && self.number() == 0.0;
        hopeless.then_some(0)
    }

    /// Whether the value speaks for true: `true`, `"1"`, `"t"`, `"true"`, or a
    /// number that is not 0.
    pub(crate) fn is_trueish(&self) -> bool {
        match self.kind {
            Kind::True => true,
            Kind::String => truth(&self.text()) == Some(true),
            Kind::Number => self.number() != 0.0,
            Kind::Null | Kind::False | Kind::Json => false,
        }
    }

    /// Whether the value speaks for false: nothing, `null`, `false`, `"0"`,
    /// `"f"`, `"false"` or 0.
    pub(crate) fn is_falseish(&self) -> bool {
        match self.kind {
            Kind::Null | Kind::False => true,
            Kind::String => truth(&self.text()) == Some(false),
            Kind::Number => self.number() == 0.0,
            Kind::True | Kind::Json => false,
        }
    }
}

impl<'a> From<Piece<'a>> for Found<'a> {
    fn from(piece: Piece<'a>) -> Self {
        Self::new(piece.kind, Cow::Borrowed(piece.raw))
    }
}

fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "1" | "t" | "true" => Some(true),
        "0" | "f" | "false" => Some(false),
        _ => None,
    }
}

/// What is between the quotes of a string; the last may be missing.
pub(crate) fn body(raw: &str) -> &str {
    let end = match scan::string_end(raw.as_bytes(), 0) {
        Some(end) => end - 1,
        None => raw.len(),
    };
    raw.get(1..end).unwrap_or_default()
}

/// The number that a text stands for: 0 if it is none, infinite if too large.
pub(crate) fn number(text: &str) -> f64 {
    let decimal = |byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    if text.bytes().all(decimal) {
        text.parse().unwrap_or(0.0)
    } else {
        parse_float(text).unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Found<'_> {
        Found::parse(json.into())
    }

    #[test]
    fn kinds_and_raw_text() {
        for (json, kind, raw, text) in [
            ("", Kind::Null, "", ""),
            ("x", Kind::Null, "", ""),
            (" null ", Kind::Null, "null", ""),
            ("tru", Kind::True, "tru", "true"),
            ("false,", Kind::False, "false", "false"),
            ("1e3 ", Kind::Number, "1e3", "1000"),
            ("-0", Kind::Number, "-0", "-0"),
            ("8.0", Kind::Number, "8.0", "8"),
            ("1e400", Kind::Number, "1e400", "+Inf"),
            ("NaN", Kind::Number, "NaN", "NaN"),
            (r#""a\tb" x"#, Kind::String, r#""a\tb""#, "a\tb"),
            ("\"open", Kind::String, "\"open", "open"),
            ("\"", Kind::String, "\"", ""),
            (" {} ", Kind::Json, "{} ", "{} "),
        ] {
            let found = parse(json);
            assert_eq!((found.kind(), found.raw(), &*found.text()), (kind, raw, text), "{json}");
            assert_eq!(found, Found::parse(Cow::Owned(json.to_owned())));
        }
    }

    #[test]
    fn lookups() {
        for (json, want) in [
            ("42", Value::Int(42)),
            ("-0", Value::Int(0)),
            ("9223372036854775807", Value::Int(i64::MAX)),
            (
                "123456789012345678901234567890",
                Value::Float(123_456_789_012_345_680_000_000_000_000.0),
            ),
            ("1e3", Value::Float(1000.0)),
            ("8.0", Value::Float(8.0)),
            ("-", Value::Int(0)),
            ("null", Value::Nil),
            ("[1]", Value::array([1.0.into()])),
        ] {
            assert_eq!(parse(json).lookup(), Ok(want), "{json}");
        }
    }

    #[test]
    fn leanings() {
        for (json, trueish, falseish) in [
            ("true", true, false),
            ("\"T\"", true, false),
            ("\"yes\"", false, false),
            ("\"False\"", false, true),
            ("2", true, false),
            ("0.0", false, true),
            ("null", false, true),
            ("{}", false, false),
        ] {
            let found = parse(json);
            assert_eq!((found.is_trueish(), found.is_falseish()), (trueish, falseish), "{json}");
        }
    }
}
