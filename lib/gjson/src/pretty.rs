//! JSON for people: `@pretty`.

use crate::Error;
use crate::decode::MAX_DEPTH;
use crate::found::{Found, Kind, body};
use crate::modifier::options;
use crate::run::{Output, Run};
use crate::scan::{Children, Piece};
use crate::text::unescape;

/// How to lay it out.
#[derive(Debug)]
pub(crate) struct Style {
    sort_keys: bool,
    indent: String,
    prefix: String,
    /// Arrays without objects stay on one line if it does not get longer.
    width: i64,
}

impl Style {
    /// The style that an argument such as `{"width":20,"sortKeys":true}` asks for.
    pub(crate) fn from_argument(argument: &str) -> Self {
        let mut style =
            Self { sort_keys: false, indent: "  ".into(), prefix: String::new(), width: 80 };
        for (key, value) in options(argument) {
            match &*key {
                "sortKeys" => style.sort_keys = value.is_trueish(),
                "indent" => style.indent = blanks(&value.text()),
                "prefix" => style.prefix = blanks(&value.text()),
                "width" => style.width = whole(&value),
                _ => {}
            }
        }
        style
    }
}

/// The blanks of a text: nothing else may be put between values.
fn blanks(text: &str) -> String {
    text.chars().filter(|char| matches!(char, ' ' | '\t' | '\n' | '\r')).collect()
}

fn whole(value: &Found<'_>) -> i64 {
    match value.kind() {
        Kind::Number => value.number() as i64,
        Kind::String => value.text().parse().unwrap_or(0),
        Kind::True => 1,
        Kind::Null | Kind::False | Kind::Json => 0,
    }
}

/// Lays a value out, with a line break at its end.
pub(crate) fn write(run: &Run, piece: Piece<'_>, style: &Style) -> Result<String, Error> {
    if piece.raw.is_empty() {
        return Ok(String::new());
    }
    let mut writer = Writer { out: Output::new(run), run, style, line: 0 };
    writer.out.push(&style.prefix)?;
    writer.value(piece, 0)?;
    writer.out.push("\n")?;
    Ok(writer.out.finish())
}

struct Writer<'r> {
    out: Output<'r>,
    run: &'r Run,
    style: &'r Style,
    /// From where the length of the line is counted.
    line: usize,
}

impl Writer<'_> {
    fn value(&mut self, piece: Piece<'_>, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        self.run.spend(piece.raw.len())?;
        match piece.kind {
            Kind::Json if piece.is_object() => self.object(piece.raw, depth),
            Kind::Json => self.array(piece.raw, depth),
            _ => self.out.push(scalar(piece)),
        }
    }

    fn object(&mut self, raw: &str, depth: usize) -> Result<(), Error> {
        let mut members: Vec<_> = Children::of(raw).collect();
        if self.style.sort_keys {
            members.sort_by_cached_key(|(key, _)| unescape(body(key.unwrap_or_default())));
        }
        self.out.push("{")?;
        for (index, (key, value)) in members.iter().enumerate() {
            self.out.push(if index == 0 { "" } else { "," })?;
            self.line = self.out.as_str().len();
            self.new_line(depth + 1)?;
            self.out.push(key.unwrap_or_default())?;
            self.out.push(": ")?;
            self.value(*value, depth + 1)?;
        }
        if !members.is_empty() {
            self.new_line(depth)?;
        }
        self.out.push("}")
    }

    fn array(&mut self, raw: &str, depth: usize) -> Result<(), Error> {
        let start = self.out.as_str().len();
        let room = self.style.width - (start - self.line) as i64;
        if self.style.width > 0 && room > 3 {
            if self.one_line(raw, start + room as usize, depth)? {
                return Ok(());
            }
            self.out.truncate(start);
        }
        self.out.push("[")?;
        let mut empty = true;
        for (_, value) in Children::of(raw) {
            self.out.push(if empty { "" } else { "," })?;
            // The break after a comma does not count as part of the line, the
            // one after the bracket does.
            self.line = self.out.as_str().len() + usize::from(!empty);
            self.new_line(depth + 1)?;
            self.value(value, depth + 1)?;
            empty = false;
        }
        if !empty {
            self.new_line(depth)?;
        }
        self.out.push("]")
    }

    /// Writes an array on one line, if it has no objects and ends before `limit`.
    fn one_line(&mut self, raw: &str, limit: usize, depth: usize) -> Result<bool, Error> {
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep);
        }
        self.out.push("[")?;
        for (index, (_, value)) in Children::of(raw).enumerate() {
            self.out.push(if index == 0 { "" } else { ", " })?;
            let fits = if value.is_object() {
                false
            } else if value.is_array() {
                self.one_line(value.raw, limit, depth + 1)?
            } else {
                self.out.push(scalar(value))?;
                true
            };
            if !fits || self.out.as_str().len() > limit {
                return Ok(false);
            }
        }
        self.out.push("]")?;
        Ok(self.out.as_str().len() <= limit)
    }

    fn new_line(&mut self, depth: usize) -> Result<(), Error> {
        self.out.push("\n")?;
        self.out.push(&self.style.prefix)?;
        for _ in 0..depth {
            self.out.push(&self.style.indent)?;
        }
        Ok(())
    }
}

fn scalar(piece: Piece<'_>) -> &str {
    match piece.kind {
        Kind::Null => "null",
        Kind::False => "false",
        Kind::True => "true",
        Kind::Number | Kind::String | Kind::Json => piece.raw,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pretty(json: &str, argument: &str) -> String {
        let style = Style::from_argument(argument);
        write(&Run::new(json), Piece::first(json), &style).unwrap()
    }

    #[test]
    fn layouts() {
        assert_eq!(pretty("5", ""), "5\n");
        assert_eq!(pretty("", ""), "");
        assert_eq!(pretty("{ }", ""), "{}\n");
        assert_eq!(pretty("[1,[2],[ ]]", ""), "[1, [2], []]\n");
        assert_eq!(pretty("[1,{}]", ""), "[\n  1,\n  {}\n]\n");
        assert_eq!(
            pretty(r#"{"b":[1,2],"a":tru}"#, r#"{"sortKeys":true,"indent":"\tx","prefix":" "}"#),
            " {\n \t\"a\": true,\n \t\"b\": [1, 2]\n }\n"
        );
        assert_eq!(pretty("[1,2]", r#"{"width":0}"#), "[\n  1,\n  2\n]\n");
    }

    #[test]
    fn widths() {
        assert_eq!(pretty("[1,2,3]", r#"{"width":9}"#), "[1, 2, 3]\n");
        assert_eq!(pretty("[1,2,3]", r#"{"width":8}"#), "[\n  1,\n  2,\n  3\n]\n");
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = "[".repeat(100_000);
        let style = Style::from_argument("");
        assert!(write(&Run::new(&deep), Piece::first(&deep), &style).is_err());
    }
}
