//! Common mistakes in YAML, recognized by the parser's error. The parser names
//! the violated rule of YAML; this module suggests what to write.

use crate::SyntaxError;
use govalue::Span;

/// Rewrites an error whose cause is a common mistake.
pub(crate) fn explain(text: &str, error: SyntaxError) -> SyntaxError {
    let at = text.floor_char_boundary(error.span.start as usize);
    let line = line_at(text, at);
    unquoted_placeholder(text, line)
        .or_else(|| tab(text, &error, line))
        .or_else(|| colon(text, &error, line))
        .or_else(|| unclosed_quote(text, &error, at))
        .unwrap_or(error)
}

/// The bytes of a line, without its end.
#[derive(Clone, Copy)]
struct Line {
    start: usize,
    end: usize,
}

impl Line {
    fn text(self, text: &str) -> &str {
        &text[self.start..self.end]
    }

    /// What comes before the value on this line, such as `- name: `, and the
    /// value.
    fn value(self, text: &str) -> (&str, &str) {
        let whole = self.text(text);
        let mut at = whole.len() - whole.trim_start().len();
        while whole[at..].starts_with("- ") {
            at += 2;
            at += whole[at..].len() - whole[at..].trim_start().len();
        }
        if let Some(colon) = whole[at..].find(": ").filter(|_| !starts_quoted(&whole[at..])) {
            at += colon + 2;
            at += whole[at..].len() - whole[at..].trim_start().len();
        }
        whole.split_at(at)
    }
}

fn starts_quoted(text: &str) -> bool {
    text.starts_with(['"', '\''])
}

fn line_at(text: &str, at: usize) -> Line {
    let start = text[..at].rfind('\n').map_or(0, |found| found + 1);
    let end = text[at..].find('\n').map_or(text.len(), |found| at + found);
    Line { start, end: start + text[start..end].trim_end_matches('\r').len() }
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}

fn found(place: Span, message: &str, hint: String) -> SyntaxError {
    SyntaxError { message: message.to_owned(), span: place, hint: Some(hint) }
}

/// `owner: {{ Data.owner }}` is a map in a map to YAML.
fn unquoted_placeholder(text: &str, line: Line) -> Option<SyntaxError> {
    let (before, value) = line.value(text);
    if !value.starts_with("{{") || value.starts_with("{{{") {
        return None;
    }
    let length = value.find("}}").map_or(value.len(), |at| at + 2);
    let start = line.start + before.len();
    let quoted = format!("{}\"{}\"", before.trim_start(), &value[..length]);
    Some(found(
        span(start, start + length),
        "unquoted placeholder",
        format!("quote the value: {quoted}"),
    ))
}

fn tab(text: &str, error: &SyntaxError, line: Line) -> Option<SyntaxError> {
    if !error.message.contains("tab") {
        return None;
    }
    let at = line.text(text).find('\t').map_or(error.span.start as usize, |at| line.start + at);
    Some(found(span(at, at + 1), "a tab in the indentation", "indent with spaces".to_owned()))
}

/// `content: port: 8080` has two keys to YAML.
fn colon(text: &str, error: &SyntaxError, line: Line) -> Option<SyntaxError> {
    if !error.message.contains("mapping values are not allowed") {
        return None;
    }
    let (before, value) = line.value(text);
    let is_plain = !value.is_empty() && !value.starts_with(['"', '\'', '{', '[', '|', '>']);
    if !before.contains(": ") || !is_plain || !value.contains(':') {
        return None;
    }
    let start = line.start + before.len();
    // The value itself may be a secret, and a hint is not masked.
    let hint = format!("quote the value: {}\"…\"", before.trim_start());
    Some(found(span(start, line.end), "unquoted value contains `: `", hint))
}

/// A quote without its end swallows lines until something does not fit, so the
/// place that the parser names is far from the mistake.
fn unclosed_quote(text: &str, error: &SyntaxError, at: usize) -> Option<SyntaxError> {
    if !error.message.contains("quoted") && !error.message.contains("unexpected end") {
        return None;
    }
    let mut end = at;
    for _ in 0..1000 {
        let line = line_at(text, end);
        let (before, value) = line.value(text);
        let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote));
        if let Some(quote) = quote.filter(|&quote| !is_closed(&value[1..], quote)) {
            let start = line.start + before.len();
            return Some(found(
                span(start, start + 1),
                "this quote is never closed",
                format!("add the closing {quote} where the string ends"),
            ));
        }
        end = line.start.checked_sub(1)?;
    }
    None
}

/// Whether the quote ends on the line that it begins on.
fn is_closed(rest: &str, quote: char) -> bool {
    let mut characters = rest.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' if quote == '"' => {
                characters.next();
            }
            found if found == quote => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use crate::{Source, parse};

    fn told(text: &str) -> String {
        let source = Source::new("t", text);
        let error = parse(&source).unwrap_err();
        let place = source.position(error.span.start);
        let hint = error.hint.unwrap_or_default();
        format!("{}:{}: {}; {hint}", place.line, place.column, error.message)
    }

    #[test]
    fn placeholders_need_quotes() {
        for text in ["a:\n  owner: {{ Data.owner }}\n", "a:\n  owner: {{ Data.owner }}/b\n"] {
            assert_eq!(
                told(text),
                "2:10: unquoted placeholder; quote the value: owner: \"{{ Data.owner }}\""
            );
        }
        assert_eq!(
            told("- {{ Data.a }}\n"),
            "1:3: unquoted placeholder; quote the value: - \"{{ Data.a }}\""
        );
    }

    #[test]
    fn tabs_are_named() {
        assert_eq!(told("a:\n\t- b\n"), "2:1: a tab in the indentation; indent with spaces");
    }

    #[test]
    fn a_colon_in_a_value_needs_quotes() {
        assert_eq!(
            told("a:\n  - command: echo port: 8080\n"),
            "2:14: unquoted value contains `: `; quote the value: - command: \"…\""
        );
        // Here the second key is what is wrong, not the value.
        assert!(told("a: b\n c: d\n").contains("mapping values"));
    }

    #[test]
    fn an_unclosed_quote_is_told_where_it_begins() {
        for (text, place) in [
            ("a:\n  - b: \"echo a\n  - c: d\n", "2:8"),
            ("a: 'it\nb: c\n", "1:4"),
            ("- x: \"a \\\" b\n- y: z\n", "1:6"),
        ] {
            let told = told(text);
            assert!(told.starts_with(&format!("{place}: this quote is never closed")), "{told}");
        }
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        assert_eq!(told("a: [1, 2\n"), "1:4: unclosed bracket '['; ");
        assert_eq!(told("a: 1\na: 2\n").split(';').next(), Some("2:1: duplicate key `a`"));
    }
}
