//! Values written as JSON.

use std::fmt;

use crate::{FloatFormat, Map, Time, Value, format_float, layout};

/// How [`encode`] writes.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Write `<`, `>` and `&` as escapes, as Go does unless told otherwise.
    pub escape_html: bool,
    /// Spread over lines with this indentation.
    pub indent: Option<&'a str>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { escape_html: true, indent: None }
    }
}

/// JSON has no form for this value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "json: unsupported {}", self.0)
    }
}

impl std::error::Error for Unsupported {}

impl Unsupported {
    /// A map with keys that are no strings.
    pub(crate) fn map(map: &Map) -> Self {
        Self(format!("type: {}", map.type_name()))
    }
}

pub(crate) fn rfc3339(time: &Time) -> Result<String, Unsupported> {
    if !(0..=9999).contains(&time.year()) {
        return Err(Unsupported("year outside of 0 to 9999".to_owned()));
    }
    Ok(time.format(layout::RFC3339_NANO))
}

/// Writes a value as Go's `json.Marshal`, or `json.MarshalIndent`.
///
/// ```
/// use govalue::{Map, json};
/// let map = Map::from_iter([("b", 1.0), ("a", 2.5)]);
/// assert_eq!(json::encode(&map.into(), json::Options::default()).unwrap(), r#"{"a":2.5,"b":1}"#);
/// ```
pub fn encode(value: &Value, options: Options<'_>) -> Result<String, Unsupported> {
    let mut writer = Writer { out: String::new(), options, depth: 0 };
    writer.value(value)?;
    Ok(writer.out)
}

/// Deeper than any sensible document, and far from the end of the stack.
pub(crate) const MAX_DEPTH: usize = 1_000;

struct Writer<'a> {
    out: String,
    options: Options<'a>,
    depth: usize,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value) -> Result<(), Unsupported> {
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Int(value) => self.out.push_str(&value.to_string()),
            Value::Sized(kind, value) => self.out.push_str(&kind.decimal(*value)),
            Value::Duration(duration) => self.out.push_str(&duration.0.to_string()),
            Value::Float(value) => self.out.push_str(&finite_number(*value)?),
            Value::String(text) => self.string(&text.to_str_lossy()),
            Value::Bytes(bytes) => {
                self.out.push('"');
                self.out.push_str(&crate::base64::encode(bytes));
                self.out.push('"');
            }
            Value::Time(time) => self.string(&rfc3339(time)?),
            // A location has no exported fields.
            Value::Location(_) => self.out.push_str("{}"),
            Value::Array(items) => {
                self.open('[')?;
                for (index, item) in items.iter().enumerate() {
                    self.separate(index);
                    self.value(item)?;
                }
                self.close(']', items.is_empty());
            }
            Value::Map(map) => self.map(map)?,
        }
        Ok(())
    }

    fn map(&mut self, map: &Map) -> Result<(), Unsupported> {
        if !map.shape().string_keys() {
            return Err(Unsupported::map(map));
        }
        self.open('{')?;
        for (index, (key, value)) in map.sorted().into_iter().enumerate() {
            self.separate(index);
            if let Value::String(text) = key.value() {
                self.string(&text.to_str_lossy());
            }
            self.out.push(':');
            if self.options.indent.is_some() {
                self.out.push(' ');
            }
            self.value(value)?;
        }
        self.close('}', map.is_empty());
        Ok(())
    }

    fn open(&mut self, bracket: char) -> Result<(), Unsupported> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unsupported("value: nested too deeply".to_owned()));
        }
        self.out.push(bracket);
        Ok(())
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.newline();
    }

    fn close(&mut self, bracket: char, empty: bool) {
        self.depth -= 1;
        if !empty {
            self.newline();
        }
        self.out.push(bracket);
    }

    fn newline(&mut self) {
        if let Some(indent) = self.options.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(indent, self.depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\x08' => self.out.push_str("\\b"),
                '\x0c' => self.out.push_str("\\f"),
                '\u{2028}' | '\u{2029}' => self.escape(c),
                '<' | '>' | '&' if self.options.escape_html => self.escape(c),
                _ if c < ' ' => self.escape(c),
                _ => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, c: char) {
        push!(self.out, "\\u{:04x}", c as u32);
    }
}

/// Plain notation between 1e-6 and 1e21, else an exponent without padding.
pub(crate) fn finite_number(value: f64) -> Result<String, Unsupported> {
    if !value.is_finite() {
        return Err(Unsupported(format!("value: {}", crate::float::shortest(value))));
    }
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return Ok(format_float(value, FloatFormat::Decimal, None));
    }
    let text = format_float(value, FloatFormat::Exponent, None);
    // Go drops the zero of e-09, but not that of e+09, which cannot occur.
    Ok(text.replace("e-0", "e-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IntType, Key, MapShape};

    fn plain(value: impl Into<Value>) -> String {
        encode(&value.into(), Options::default()).unwrap()
    }

    #[test]
    fn scalars() {
        assert_eq!(
            plain("<a>&\"\n\u{1}\u{2028}\u{7f}é"),
            "\"\\u003ca\\u003e\\u0026\\\"\\n\\u0001\\u2028\u{7f}é\""
        );
        let raw = Options { escape_html: false, indent: None };
        assert_eq!(encode(&"<&>".into(), raw).unwrap(), "\"<&>\"");
        for (value, want) in [
            (1.0, "1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (-0.5, "-0.5"),
        ] {
            assert_eq!(plain(value), want);
        }
        assert!(encode(&f64::NAN.into(), raw).is_err());
        assert_eq!(plain(Value::bytes(*b"abcd")), "\"YWJjZA==\"");
        assert_eq!(plain(Time::zero()), "\"0001-01-01T00:00:00Z\"");
        assert_eq!(plain(Value::Sized(IntType::Month, 3)), "3");
    }

    #[test]
    fn indentation_and_keys() {
        let value = Value::from(Map::from_iter([
            ("b", Value::array([])),
            ("a", Value::array([1.into(), Value::Nil])),
        ]));
        let options = Options { indent: Some("  "), ..Options::default() };
        assert_eq!(
            encode(&value, options).unwrap(),
            "{\n  \"a\": [\n    1,\n    null\n  ],\n  \"b\": []\n}"
        );
        let mut other = Map::with_shape(MapShape::AnyAny);
        other.insert(Key::from("a"), 1);
        assert!(encode(&other.into(), Options::default()).is_err());
    }
}
