//! Text to tokens.

mod literal;

use std::sync::Arc;

use govalue::Span;
use govalue::Str;

use crate::error::{Error, ErrorKind};

/// A token and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Token<'s> {
    pub(crate) kind: Tok<'s>,
    pub(crate) span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tok<'s> {
    Name(&'s str),
    Int(i64),
    Float(f64),
    String(Str),
    Bytes(Arc<[u8]>),
    /// An operator, a bracket or one of the words that act as operators.
    Op(&'s str),
    /// `#`, `#acc`: the name may be empty.
    Pointer(&'s str),
    End,
}

impl Tok<'_> {
    /// How a message calls the token.
    pub(crate) fn describe(&self) -> String {
        match self {
            Tok::Name(name) => format!("name {name}"),
            Tok::Int(_) | Tok::Float(_) => "number".to_owned(),
            Tok::String(_) | Tok::Bytes(_) => "string".to_owned(),
            Tok::Op(op) => format!("\"{op}\""),
            Tok::Pointer(name) => format!("\"#{name}\""),
            Tok::End => "end of the expression".to_owned(),
        }
    }
}

/// Words that are never names, except after a dot.
const WORDS: [&str; 11] = [
    "in",
    "not",
    "and",
    "or",
    "matches",
    "contains",
    "startsWith",
    "endsWith",
    "let",
    "if",
    "else",
];

/// Operators, the longer before their beginnings.
const OPERATORS: [&str; 34] = [
    "..", "?.", "??", "::", "==", "!=", "<=", ">=", "&&", "||", "**", "(", ")", "[", "]", "{", "}",
    ",", ";", ":", "?", ".", "=", "!", "<", ">", "&", "|", "+", "-", "*", "/", "%", "^",
];

pub(crate) fn tokens(source: &str) -> Result<Vec<Token<'_>>, Error> {
    let mut lexer = Lexer { source, at: 0 };
    let mut tokens = Vec::new();
    loop {
        lexer.blanks()?;
        let start = lexer.at;
        let kind = lexer.token()?;
        let end = kind == Tok::End;
        tokens.push(Token { kind, span: Span::new(start, lexer.at) });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Lexer<'s> {
    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, message: impl Into<String>, from: usize) -> Error {
        Error::new(ErrorKind::Syntax, message, Span::new(from, self.at.max(from)))
    }

    /// Skips white space and comments.
    fn blanks(&mut self) -> Result<(), Error> {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches(char::is_whitespace).len();
            self.at += blank;
            let rest = self.rest();
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let Some(end) = comment.find("*/") else {
                    return Err(self.error("comment without an end", self.at));
                };
                self.at += end + 4;
            } else if blank == 0 {
                return Ok(());
            }
        }
    }

    fn token(&mut self) -> Result<Tok<'s>, Error> {
        let Some(first) = self.peek() else {
            return Ok(Tok::End);
        };
        let second = self.rest()[first.len_utf8()..].chars().next();
        match first {
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            '"' | '\'' => self.quoted(),
            '`' => self.raw(),
            'b' | 'B' if matches!(second, Some('"' | '\'')) => self.byte_string(),
            '#' => {
                self.at += 1;
                Ok(Tok::Pointer(self.name()))
            }
            _ if starts_name(first) => {
                let name = self.name();
                Ok(if WORDS.contains(&name) { Tok::Op(name) } else { Tok::Name(name) })
            }
            _ => match OPERATORS.iter().find(|op| self.rest().starts_with(**op)) {
                Some(op) => {
                    self.at += op.len();
                    Ok(Tok::Op(op))
                }
                None => Err(self.error(format!("unexpected character {first:?}"), self.at)),
            },
        }
    }

    /// The name that starts here; empty when none does.
    fn name(&mut self) -> &'s str {
        let rest = self.rest();
        if !rest.starts_with(starts_name) {
            return "";
        }
        let len = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }
}

fn starts_name(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphabetic()
}

fn continues_name(c: char) -> bool {
    starts_name(c) || c.is_numeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<Tok<'_>> {
        tokens(source).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn operators_words_and_names() {
        assert_eq!(
            kinds("a?.b ?? not_x not in #acc // c"),
            [
                Tok::Name("a"),
                Tok::Op("?."),
                Tok::Name("b"),
                Tok::Op("??"),
                Tok::Name("not_x"),
                Tok::Op("not"),
                Tok::Op("in"),
                Tok::Pointer("acc"),
                Tok::End
            ]
        );
        assert_eq!(kinds("/* a */ $env /**/"), [Tok::Name("$env"), Tok::End]);
    }

    #[test]
    fn what_is_no_token() {
        for source in ["~", "/* a", "\u{2665}", "\"a", "`a", "12a", "\"\\q\"", "'a\nb'"] {
            assert!(tokens(source).is_err(), "{source}");
        }
    }
}
