//! Text into tokens.
//!
//! A template alternates between text, which is copied, and actions between
//! delimiters. Comments are `{* … *}` whatever the delimiters are.

mod literal;

use std::sync::Arc;

use govalue::Span;
use govalue::Str;

use crate::error::{Error, ErrorKind};
use crate::source::Source;

/// What opens and closes an action.
#[derive(Clone, Debug)]
pub(crate) struct Delimiters {
    pub(crate) left: String,
    pub(crate) right: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
    /// Whether white space stands before it: `.name` continues an expression
    /// only without.
    pub(crate) spaced: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenKind {
    /// Text to copy; the span is what is left after trimming.
    Text,
    Left,
    Right,
    Name,
    /// `.name`; the span includes the dot.
    Field,
    Keyword(Keyword),
    Bool(bool),
    Number(f64),
    /// `2i`, which nothing can be done with.
    Imaginary,
    Quoted(Str),
    Mark(Mark),
    End,
}

macro_rules! words {
    ($name:ident { $($variant:ident $text:literal,)* }) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant,)* }

        impl $name {
            const ALL: &'static [(&'static str, Self)] = &[$(($text, Self::$variant),)*];
        }
    };
}

words!(Keyword {
    Extends "extends",
    Import "import",
    Include "include",
    Block "block",
    Yield "yield",
    Content "content",
    End "end",
    If "if",
    Else "else",
    Range "range",
    Try "try",
    Catch "catch",
    Return "return",
    And "and",
    Or "or",
    Not "not",
    Nil "nil",
    // Reserved for translations, without a meaning yet.
    Msg "msg",
    Trans "trans",
});

// Longer marks first: the first that fits is taken.
words!(Mark {
    Declare ":=",
    Equal "==",
    Unequal "!=",
    LessEqual "<=",
    GreaterEqual ">=",
    And "&&",
    Or "||",
    Colon ":",
    Assign "=",
    Not "!",
    Less "<",
    Greater ">",
    Pipe "|",
    Comma ",",
    Semicolon ";",
    Question "?",
    Plus "+",
    Minus "-",
    Times "*",
    Divide "/",
    Modulo "%",
    OpenParen "(",
    CloseParen ")",
    OpenBracket "[",
    CloseBracket "]",
    Dot ".",
    Slot "_",
});

impl Keyword {
    pub(crate) fn text(self) -> &'static str {
        Self::ALL.iter().find(|(_, keyword)| *keyword == self).map_or("", |(text, _)| text)
    }
}

const COMMENT: (&str, &str) = ("{*", "*}");

/// What follows the left and stands before the right delimiter to trim.
const TRIM: (&str, &str) = ("- ", " -");

pub(crate) fn tokens(source: &Arc<Source>, delimiters: &Delimiters) -> Result<Vec<Token>, Error> {
    let text = &source.text;
    let opener = delimiters.left.as_bytes().first().copied().unwrap_or_default();
    let tail = text.bytes().rposition(|byte| byte == opener).map_or(0, |at| at + 1);
    let mut lexer = Lexer { source, text, delimiters, pos: 0, tail, tokens: Vec::new() };
    lexer.run()?;
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    source: &'a Arc<Source>,
    text: &'a str,
    delimiters: &'a Delimiters,
    pos: usize,
    /// From here on no character could open an action.
    tail: usize,
    tokens: Vec<Token>,
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

impl<'a> Lexer<'a> {
    fn run(&mut self) -> Result<(), Error> {
        while self.pos < self.text.len() {
            self.copied_text()?;
        }
        self.push(TokenKind::End, self.pos, self.pos, false);
        Ok(())
    }

    fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    fn push(&mut self, kind: TokenKind, start: usize, end: usize, spaced: bool) {
        self.tokens.push(Token { kind, span: Span::new(start, end), spaced });
    }

    fn push_text(&mut self, start: usize, end: usize) {
        if end > start {
            self.push(TokenKind::Text, start, end, false);
        }
    }

    fn error(&self, start: usize, end: usize, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Syntax, message, self.source, Span::new(start, end))
    }

    /// Text up to and including the next comment or action.
    ///
    /// A comment counts only while some character that could open an action
    /// still follows: the tail of a template is copied as it is.
    fn copied_text(&mut self) -> Result<(), Error> {
        let start = self.pos;
        let bytes = self.text.as_bytes();
        let opener = self.delimiters.left.as_bytes().first().copied().unwrap_or_default();
        let comment = COMMENT.0.as_bytes()[0];
        while self.pos < self.tail {
            match memchr::memchr2(opener, comment, &bytes[self.pos..self.tail]) {
                Some(at) => self.pos += at,
                None => break,
            }
            if bytes[self.pos..].starts_with(self.delimiters.left.as_bytes()) {
                return self.action(start);
            }
            if bytes[self.pos..].starts_with(COMMENT.0.as_bytes()) {
                self.push_text(start, self.pos);
                return self.comment();
            }
            self.pos += 1;
        }
        self.pos = bytes.len();
        self.push_text(start, self.pos);
        Ok(())
    }

    fn comment(&mut self) -> Result<(), Error> {
        let start = self.pos;
        match self.rest().find(COMMENT.1) {
            Some(at) => self.pos += at + COMMENT.1.len(),
            None => return Err(self.error(start, start + 2, "the comment is not closed")),
        }
        Ok(())
    }

    /// One action, with the text from `text_start` before it.
    fn action(&mut self, text_start: usize) -> Result<(), Error> {
        let open = self.pos;
        self.pos += self.delimiters.left.len();
        let mut text_end = open;
        if self.rest().starts_with(TRIM.0) {
            let text = &self.text.as_bytes()[text_start..open];
            text_end -= text.iter().rev().take_while(|byte| is_space(**byte)).count();
            self.pos += TRIM.0.len();
        }
        self.push_text(text_start, text_end);
        self.push(TokenKind::Left, open, self.pos, false);
        let mut parens = Vec::new();
        loop {
            let (spaced, trim) = self.spaces();
            if trim || self.rest().starts_with(&self.delimiters.right) {
                if let Some(at) = parens.pop() {
                    return Err(self.error(at, at + 1, "the parenthesis is not closed"));
                }
                let start = self.pos;
                self.pos += if trim { TRIM.1.len() } else { 0 } + self.delimiters.right.len();
                self.push(TokenKind::Right, start, self.pos, spaced);
                if trim {
                    let after = self.rest().bytes().take_while(|byte| is_space(*byte)).count();
                    self.pos += after;
                }
                return Ok(());
            }
            if self.rest().is_empty() {
                let end = open + self.delimiters.left.len();
                return Err(self.error(open, end, "the action is not closed"));
            }
            self.token(spaced, &mut parens)?;
        }
    }

    /// Skips white space; the second answer is whether a trimming right
    /// delimiter stands here, whose space is then not skipped.
    fn spaces(&mut self) -> (bool, bool) {
        let start = self.pos;
        loop {
            if let Some(after) = self.rest().strip_prefix(TRIM.1)
                && after.starts_with(&self.delimiters.right)
            {
                return (true, true);
            }
            match self.rest().bytes().next() {
                Some(byte) if is_space(byte) => self.pos += 1,
                _ => return (self.pos > start, false),
            }
        }
    }

    fn token(&mut self, spaced: bool, parens: &mut Vec<usize>) -> Result<(), Error> {
        let start = self.pos;
        let mut chars = self.rest().chars();
        let (first, second) = (chars.next().unwrap_or_default(), chars.next().unwrap_or_default());
        let kind = match first {
            '"' | '\'' | '`' => self.quoted(first)?,
            '.' if second.is_ascii_digit() => self.number()?,
            '.' if is_word(second) => {
                self.pos += 1;
                self.word()?;
                TokenKind::Field
            }
            '+' | '-' if second.is_ascii_digit() && !self.is_operator(spaced) => self.number()?,
            _ if first.is_ascii_digit() => self.number()?,
            '_' if !is_word(second) => self.mark(parens)?,
            _ if is_word(first) => {
                let word = self.word()?;
                classify(word)
            }
            _ => self.mark(parens)?,
        };
        self.push(kind, start, self.pos, spaced);
        Ok(())
    }

    /// Whether a sign here is an operator: it is right after an operand or
    /// another sign, while after a space it belongs to its number (`5 -3` is no
    /// subtraction).
    fn is_operator(&self, spaced: bool) -> bool {
        let adjacent = self.tokens.last().is_some_and(|token| {
            matches!(
                token.kind,
                TokenKind::Name
                    | TokenKind::Field
                    | TokenKind::Bool(_)
                    | TokenKind::Number(_)
                    | TokenKind::Imaginary
                    | TokenKind::Quoted(_)
                    | TokenKind::Mark(
                        Mark::CloseParen
                            | Mark::CloseBracket
                            | Mark::Dot
                            | Mark::Plus
                            | Mark::Minus
                    )
            )
        });
        adjacent && !spaced
    }

    fn mark(&mut self, parens: &mut Vec<usize>) -> Result<TokenKind, Error> {
        let start = self.pos;
        let found = Mark::ALL.iter().find(|(text, _)| self.rest().starts_with(text));
        let Some((text, mark)) = found else {
            let c = self.rest().chars().next().unwrap_or_default();
            let message = format!("unexpected character `{}`", c.escape_debug());
            return Err(self.error(start, start + c.len_utf8(), message));
        };
        match mark {
            Mark::OpenParen => parens.push(start),
            Mark::CloseParen if parens.pop().is_none() => {
                return Err(self.error(start, start + 1, "unexpected closing parenthesis"));
            }
            _ => {}
        }
        self.pos += text.len();
        Ok(TokenKind::Mark(*mark))
    }

    fn word(&mut self) -> Result<&'a str, Error> {
        let start = self.pos;
        let len = self.rest().find(|c| !is_word(c)).unwrap_or(self.rest().len());
        self.pos += len;
        let next = self.rest().chars().next();
        let ends = next.is_none_or(|c| c.is_whitespace() || ".,|:)=(;?[]+-/%*&!<>".contains(c))
            || self.rest().starts_with(&self.delimiters.right);
        if !ends {
            let c = next.unwrap_or_default();
            let message = format!("unexpected character `{}` after a name", c.escape_debug());
            return Err(self.error(self.pos, self.pos + c.len_utf8(), message));
        }
        Ok(&self.text[start..self.pos])
    }
}

fn classify(word: &str) -> TokenKind {
    match word {
        "true" => TokenKind::Bool(true),
        "false" => TokenKind::Bool(false),
        _ => Keyword::ALL
            .iter()
            .find(|(text, _)| *text == word)
            .map_or(TokenKind::Name, |(_, keyword)| TokenKind::Keyword(*keyword)),
    }
}

#[cfg(test)]
mod tests;
