//! The text of a template cut into tokens.

use crate::ErrorKind;
use crate::error::Fail;

/// What a token is; its text is the piece of source it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Text,
    LeftDelimiter,
    RightDelimiter,
    Space,
    Assign,
    Declare,
    Pipe,
    LeftParen,
    RightParen,
    /// A single printable character that starts nothing.
    Char,
    Quoted,
    Raw,
    CharConstant,
    Number,
    Complex,
    Bool,
    Nil,
    Dot,
    Field,
    Variable,
    Identifier,
    Keyword,
    End,
    /// The text goes wrong here; the message is kept beside the tokens.
    Bad,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

const KEYWORDS: [&str; 10] =
    ["block", "break", "continue", "define", "else", "end", "if", "range", "template", "with"];

/// Cuts the whole text. A failure ends the tokens with [`TokenKind::Bad`], so that
/// the parser may complain about something earlier first.
pub(crate) fn tokens<'a>(
    text: &'a str,
    left: &'a str,
    right: &'a str,
) -> (Vec<Token>, Option<Fail>) {
    let mut lexer = Lexer { text, left, right, at: 0, tokens: Vec::new() };
    let fail = lexer.template().err();
    let kind = if fail.is_some() { TokenKind::Bad } else { TokenKind::End };
    let end = lexer.at.min(text.len());
    lexer.tokens.push(Token { kind, start: end, end });
    (lexer.tokens, fail)
}

struct Lexer<'a> {
    text: &'a str,
    left: &'a str,
    right: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

type Lexed = Result<(), Fail>;

fn bad(message: impl Into<String>) -> Fail {
    Fail::new(ErrorKind::Syntax, message)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        self.tokens.push(Token { kind, start, end: self.at });
    }

    /// Consumes characters while they satisfy the test.
    fn skip(&mut self, test: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !test(c)).unwrap_or(rest.len());
    }

    fn accept(&mut self, set: &str) -> bool {
        let found = self.peek().filter(|c| set.contains(*c));
        self.at += found.map_or(0, char::len_utf8);
        found.is_some()
    }

    fn template(&mut self) -> Lexed {
        loop {
            let start = self.at;
            let Some(length) = self.rest().find(self.left) else {
                self.at = self.text.len();
                if start < self.at {
                    self.push(TokenKind::Text, start);
                }
                return Ok(());
            };
            let delimiter = start + length;
            let inside = &self.text[delimiter + self.left.len()..];
            let trim = left_trim(inside);
            self.at = delimiter;
            let kept = &self.text[start..delimiter];
            let kept = if trim { kept.trim_end_matches(is_space) } else { kept };
            if !kept.is_empty() {
                self.tokens.push(Token { kind: TokenKind::Text, start, end: start + kept.len() });
            }
            let marker = if trim { 2 } else { 0 };
            let left = self.left.len();
            if inside[marker..].starts_with("/*") {
                self.at += left + marker;
                self.comment()?;
            } else {
                self.at += left;
                self.push(TokenKind::LeftDelimiter, delimiter);
                self.at += marker;
                self.action()?;
            }
        }
    }

    fn comment(&mut self) -> Lexed {
        let Some(length) = self.rest()[2..].find("*/") else {
            return Err(bad("unclosed comment"));
        };
        self.at += length + 4;
        match self.right_delimiter() {
            Some(trim) => {
                self.close(trim);
                Ok(())
            }
            None => Err(bad("comment ends before closing delimiter")),
        }
    }

    /// Whether the closing delimiter comes next, and with a trim marker.
    fn right_delimiter(&self) -> Option<bool> {
        let rest = self.rest();
        if right_trim(rest) && rest[2..].starts_with(self.right) {
            return Some(true);
        }
        rest.starts_with(self.right).then_some(false)
    }

    /// Moves past the closing delimiter and the space it trims.
    fn close(&mut self, trim: bool) {
        self.at += self.right.len() + if trim { 2 } else { 0 };
        if trim {
            self.skip(is_space);
        }
    }

    fn action(&mut self) -> Lexed {
        let mut parens = 0usize;
        loop {
            let start = self.at;
            if let Some(trim) = self.right_delimiter() {
                if parens > 0 {
                    return Err(bad("unclosed left paren"));
                }
                let end = self.at + self.right.len() + if trim { 2 } else { 0 };
                self.tokens.push(Token { kind: TokenKind::RightDelimiter, start, end });
                self.close(trim);
                return Ok(());
            }
            let Some(next) = self.peek() else { return Err(bad("unclosed action")) };
            match next {
                _ if is_space(next) => self.space(start),
                '=' => self.single(TokenKind::Assign),
                ':' => {
                    self.at += 1;
                    if !self.accept("=") {
                        return Err(bad("expected :="));
                    }
                    self.push(TokenKind::Declare, start);
                }
                '|' => self.single(TokenKind::Pipe),
                '(' => {
                    parens += 1;
                    self.single(TokenKind::LeftParen);
                }
                ')' => {
                    let Some(fewer) = parens.checked_sub(1) else {
                        return Err(bad("unexpected right paren"));
                    };
                    parens = fewer;
                    self.single(TokenKind::RightParen);
                }
                '"' => self.quoted('"', TokenKind::Quoted, "unterminated quoted string")?,
                '\'' => {
                    self.quoted('\'', TokenKind::CharConstant, "unterminated character constant")?;
                }
                '`' => self.raw()?,
                '$' => self.name(TokenKind::Variable, TokenKind::Variable)?,
                '.' if !self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                    self.name(TokenKind::Field, TokenKind::Dot)?;
                }
                '.' | '+' | '-' | '0'..='9' => self.number()?,
                _ if is_word(next) => self.identifier()?,
                _ if next.is_ascii_graphic() => self.single(TokenKind::Char),
                _ => {
                    return Err(bad(format!(
                        "unrecognized character in action: {}",
                        describe(next)
                    )));
                }
            }
        }
    }

    fn single(&mut self, kind: TokenKind) {
        let start = self.at;
        self.at += 1;
        self.push(kind, start);
    }

    /// Blanks, up to but not into a closing delimiter that trims.
    fn space(&mut self, start: usize) {
        while self.peek().is_some_and(is_space) && self.right_delimiter() != Some(true) {
            self.at += 1;
        }
        self.push(TokenKind::Space, start);
    }

    fn quoted(&mut self, mark: char, kind: TokenKind, unterminated: &str) -> Lexed {
        let start = self.at;
        let mut escaped = false;
        for (offset, c) in self.text[start + 1..].char_indices() {
            if c == '\n' {
                break;
            }
            if c == mark && !escaped {
                self.at = start + 1 + offset + 1;
                self.push(kind, start);
                return Ok(());
            }
            escaped = c == '\\' && !escaped;
        }
        Err(bad(unterminated))
    }

    fn raw(&mut self) -> Lexed {
        let start = self.at;
        let Some(length) = self.rest()[1..].find('`') else {
            return Err(bad("unterminated raw quoted string"));
        };
        self.at += length + 2;
        self.push(TokenKind::Raw, start);
        Ok(())
    }

    /// `.field` or `$variable`; alone they are the dot and the root.
    fn name(&mut self, named: TokenKind, alone: TokenKind) -> Lexed {
        let start = self.at;
        self.at += 1;
        self.skip(is_word);
        self.terminated()?;
        self.push(if self.at == start + 1 { alone } else { named }, start);
        Ok(())
    }

    fn identifier(&mut self) -> Lexed {
        let start = self.at;
        self.skip(is_word);
        self.terminated()?;
        let kind = match &self.text[start..self.at] {
            "true" | "false" => TokenKind::Bool,
            "nil" => TokenKind::Nil,
            word if KEYWORDS.contains(&word) => TokenKind::Keyword,
            _ => TokenKind::Identifier,
        };
        self.push(kind, start);
        Ok(())
    }

    /// A name must be followed by something that cannot be part of one.
    fn terminated(&self) -> Lexed {
        match self.peek() {
            None | Some('.' | ',' | '|' | ':' | ')' | '(') => Ok(()),
            Some(c) if is_space(c) || self.rest().starts_with(self.right) => Ok(()),
            Some(c) => Err(bad(format!("bad character {}", describe(c)))),
        }
    }

    fn number(&mut self) -> Lexed {
        let start = self.at;
        self.scan_number(start)?;
        if matches!(self.peek(), Some('+' | '-')) {
            // `1+2i`, without spaces
            self.scan_number(start)?;
            if !self.text[..self.at].ends_with('i') {
                return Err(self.bad_number(start));
            }
            self.push(TokenKind::Complex, start);
        } else {
            self.push(TokenKind::Number, start);
        }
        Ok(())
    }

    fn bad_number(&self, start: usize) -> Fail {
        bad(format!("bad number syntax: {:?}", &self.text[start..self.at]))
    }

    fn scan_number(&mut self, start: usize) -> Lexed {
        const DECIMAL: &str = "0123456789_";
        const HEXADECIMAL: &str = "0123456789abcdefABCDEF_";
        self.accept("+-");
        let mut digits = DECIMAL;
        if self.accept("0") {
            if self.accept("xX") {
                digits = HEXADECIMAL;
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.skip(|c| digits.contains(c));
        if self.accept(".") {
            self.skip(|c| digits.contains(c));
        }
        let exponent = match digits {
            DECIMAL => self.accept("eE"),
            HEXADECIMAL => self.accept("pP"),
            _ => false,
        };
        if exponent {
            self.accept("+-");
            self.skip(|c| DECIMAL.contains(c));
        }
        self.accept("i");
        if let Some(c) = self.peek().filter(|c| is_word(*c)) {
            self.at += c.len_utf8();
            return Err(self.bad_number(start));
        }
        Ok(())
    }
}

/// `- ` after the opening delimiter: `{{-3}}` is a number.
fn left_trim(inside: &str) -> bool {
    inside.starts_with('-') && inside[1..].starts_with(is_space)
}

/// ` -` before the closing delimiter.
fn right_trim(rest: &str) -> bool {
    rest.starts_with(is_space) && rest[1..].starts_with('-')
}

/// `U+002D '-'`
fn describe(c: char) -> String {
    format!("U+{:04X} '{c}'", c as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(TokenKind, &str)> {
        let (tokens, fail) = tokens(text, "{{", "}}");
        assert!(fail.is_none(), "{text}: {fail:?}");
        tokens.iter().map(|token| (token.kind, &text[token.start..token.end])).collect()
    }

    #[test]
    fn trim_markers_need_their_space() {
        assert_eq!(kinds("a {{- 3 -}} b")[0], (TokenKind::Text, "a"));
        assert_eq!(kinds("a {{-3}} b")[0], (TokenKind::Text, "a "));
        assert_eq!(kinds("a {{-3}} b")[2], (TokenKind::Number, "-3"));
        assert_eq!(kinds("a {{- /* c */ -}} b").len(), 3);
    }

    #[test]
    fn names_end_where_they_must() {
        let fail = |text| tokens(text, "{{", "}}").1.map(|fail| fail.message);
        assert_eq!(fail("{{.a-b}}").unwrap(), "bad character U+002D '-'");
        assert_eq!(fail("{{$x=1}}").unwrap(), "bad character U+003D '='");
        assert_eq!(fail("{{1a}}").unwrap(), "bad number syntax: \"1a\"");
        assert_eq!(fail("{{(1}}").unwrap(), "unclosed left paren");
        assert_eq!(fail("{{$é := .ü}}"), None);
    }

    #[test]
    fn delimiters_may_be_anything() {
        for (text, left, right) in
            [("@ .a @", "@", "@"), ("<!-- .a --->", "<!--", "-->"), ("«.a»", "«", "»")]
        {
            let (tokens, fail) = tokens(text, left, right);
            assert!(fail.is_none(), "{text}");
            assert!(tokens.iter().any(|token| token.kind == TokenKind::Field), "{text}");
        }
    }
}
