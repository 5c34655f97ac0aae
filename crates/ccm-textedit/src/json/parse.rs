//! JSON with comments and trailing commas, as a tree with locations.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::change::{Refusal, Result};
use crate::lines;

/// Deeper documents are not read.
const MAX_DEPTH: usize = 120;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar(Value),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

#[derive(Debug)]
pub(super) struct Member {
    /// Where the key begins.
    pub(super) start: usize,
    /// Behind the key.
    pub(super) key_stop: usize,
    pub(super) key: String,
    pub(super) value: Node,
}

impl Node {
    /// What it means. Of equal keys the last one counts.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::Array(items) => items.iter().map(Self::value).collect(),
            Kind::Object(members) => members
                .iter()
                .map(|member| (member.key.clone(), member.value.value()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Node> {
    let mut parser = Parser { text, at: 0 };
    let node = parser.node(0)?;
    parser.skip()?;
    if parser.at < text.len() {
        return Err(parser.unexpected());
    }
    Ok(node)
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn wrong(&self, what: &str) -> Refusal {
        let line = lines::number_at(self.text.as_bytes(), self.at);
        Refusal::new(format!("the file is not JSON (line {line}): {what}"))
    }

    fn unexpected(&self) -> Refusal {
        match self.text[self.at..].chars().next() {
            Some(found) => self.wrong(&format!("unexpected `{}`", found.escape_debug())),
            None => self.wrong("it ends too early"),
        }
    }

    /// Passes blanks and comments.
    fn skip(&mut self) -> Result<()> {
        loop {
            let rest = &self.text[self.at..];
            if let Some(comment) = rest.strip_prefix("//") {
                self.at += 2 + comment.find('\n').unwrap_or(comment.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let stop = comment.find("*/");
                self.at += 4 + stop.ok_or_else(|| self.wrong("a comment has no end"))?;
            } else if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                self.at += 1;
            } else {
                return Ok(());
            }
        }
    }

    fn node(&mut self, depth: usize) -> Result<Node> {
        self.skip()?;
        if depth > MAX_DEPTH {
            return Err(self.wrong("it is nested too deeply"));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => Kind::Object(self.object(depth)?),
            Some(b'[') => Kind::Array(self.array(depth)?),
            Some(b'"') => Kind::Scalar(self.string()?.into()),
            _ => Kind::Scalar(self.word()?),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Vec<Member>> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.skip()?;
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(members);
            }
            let start = self.at;
            let key = self.string()?;
            let key_stop = self.at;
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected());
            }
            self.at += 1;
            let value = self.node(depth + 1)?;
            members.push(Member { start, key_stop, key, value });
            self.end_of_item(b'}')?;
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Node>> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip()?;
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(items);
            }
            items.push(self.node(depth + 1)?);
            self.end_of_item(b']')?;
        }
    }

    /// Passes the comma behind an item; the closing bracket needs none.
    fn end_of_item(&mut self, close: u8) -> Result<()> {
        self.skip()?;
        match self.peek() {
            Some(b',') => self.at += 1,
            Some(byte) if byte == close => {}
            _ => return Err(self.unexpected()),
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.wrong("a string has no end")),
                Some(b'\\') => self.at = (self.at + 2).min(self.text.len()),
                Some(b'"') => break,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let written = self.text.get(start..self.at);
        let read = written.and_then(|written| serde_json::from_str(written).ok());
        read.ok_or_else(|| {
            self.at = start;
            self.wrong("a string is not valid")
        })
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Value> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let rest = &self.text.as_bytes()[self.at..];
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        let word = &self.text[self.at..self.at + length];
        let value: Value = serde_json::from_str(word).map_err(|_| self.unexpected())?;
        self.at += length;
        Ok(value)
    }
}
