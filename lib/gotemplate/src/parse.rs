//! Tokens made into a tree.

mod pipeline;

use std::collections::HashMap;

use govalue::Span;
use govalue::Str;

use crate::ErrorKind;
use crate::ast::{Branch, Invocation, Loop, Node, Var};
use crate::error::{Error, Fail};
use crate::functions::Function;
use crate::lex::{Token, TokenKind, tokens};

/// Deeper nesting than anyone reads, and far from the end of the stack.
const MAX_DEPTH: usize = 100;

/// Where the names in a template come from.
pub(crate) struct ParseContext<'a> {
    pub(crate) left: &'a str,
    pub(crate) right: &'a str,
    pub(crate) function: &'a dyn Fn(&str) -> Option<Function>,
}

/// The templates one source defines, by name.
pub(crate) type Parsed = HashMap<String, Vec<Node>>;

/// Parses a source into the templates it defines; its own text is the one
/// under `name`.
pub(crate) fn parse(name: &str, text: &str, around: &ParseContext<'_>) -> Result<Parsed, Error> {
    let (tokens, fail) = tokens(text, around.left, around.right);
    let mut parser = Parser {
        text,
        around,
        tokens,
        at: 0,
        bad: fail,
        names: vec!["$".to_owned()],
        variables: vec![Var::ROOT],
        loops: 0,
        depth: 0,
        templates: HashMap::new(),
    };
    match parser.source(name) {
        Ok(()) => Ok(parser.templates),
        Err((fail, span)) => Err(Error::new(fail, name, text, span)),
    }
}

/// Whether nodes are nothing but blanks: such a definition never replaces
/// another.
pub(crate) fn blank(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| matches!(node, Node::Text(text) if text.trim().is_empty()))
}

type Failed = (Fail, Span);
type Parse<T> = Result<T, Failed>;

struct Parser<'a> {
    text: &'a str,
    around: &'a ParseContext<'a>,
    tokens: Vec<Token>,
    at: usize,
    /// What is wrong at the token [`TokenKind::Bad`].
    bad: Option<Fail>,
    names: Vec<String>,
    /// The variables that may be used here.
    variables: Vec<Var>,
    loops: usize,
    depth: usize,
    templates: Parsed,
}

/// What ended a list of nodes.
enum Closer {
    End,
    Else,
    EndOfText,
}

impl Parser<'_> {
    fn text_of(&self, token: Token) -> &str {
        &self.text[token.start..token.end]
    }

    fn span(token: Token) -> Span {
        Span { start: token.start as u32, end: token.end as u32 }
    }

    fn peek(&self) -> Token {
        // The last token ends every text and is never passed.
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn skip_space(&mut self) {
        if self.peek().kind == TokenKind::Space {
            self.at += 1;
        }
    }

    fn peek_solid(&mut self) -> Token {
        self.skip_space();
        self.peek()
    }

    fn next_solid(&mut self) -> Token {
        self.skip_space();
        self.next()
    }

    fn fail<T>(token: Token, message: impl Into<String>) -> Parse<T> {
        Err((Fail::new(ErrorKind::Syntax, message), Self::span(token)))
    }

    fn unexpected<T>(&mut self, token: Token, context: &str) -> Parse<T> {
        let message = match token.kind {
            TokenKind::Bad => {
                if let Some(fail) = self.bad.take() {
                    return Err((fail, Self::span(token)));
                }
                "the text goes wrong here".to_owned()
            }
            TokenKind::End => "unexpected EOF".to_owned(),
            TokenKind::Keyword => format!("unexpected <{}> in {context}", self.text_of(token)),
            _ => format!("unexpected {:?} in {context}", self.text_of(token)),
        };
        Self::fail(token, message)
    }

    fn deeper(&mut self, token: Token) -> Parse<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} deep");
            return Err((Fail::limit(message), Self::span(token)));
        }
        Ok(())
    }

    fn source(&mut self, name: &str) -> Parse<()> {
        let mut nodes = Vec::new();
        loop {
            let start = self.at;
            if self.peek().kind == TokenKind::LeftDelimiter {
                self.next();
                if self.keyword("define") {
                    self.define()?;
                    continue;
                }
                self.at = start;
            }
            let token = self.peek();
            match self.node(&mut nodes)? {
                None => {}
                Some(Closer::EndOfText) => break,
                Some(Closer::End) => return Self::fail(token, "unexpected {{end}}"),
                Some(Closer::Else) => return Self::fail(token, "unexpected {{else}}"),
            }
        }
        let token = self.peek();
        self.add(name.to_owned(), nodes, token)
    }

    /// Consumes the keyword if it comes next.
    fn keyword(&mut self, word: &str) -> bool {
        let token = self.peek_solid();
        let found = token.kind == TokenKind::Keyword && self.text_of(token) == word;
        self.at += usize::from(found);
        found
    }

    /// A name may be defined twice if one of the definitions is blank.
    fn add(&mut self, name: String, nodes: Vec<Node>, token: Token) -> Parse<()> {
        match self.templates.get(&name) {
            Some(earlier) if !blank(earlier) => {
                if blank(&nodes) {
                    return Ok(());
                }
                Self::fail(token, format!("multiple definition of template {name:?}"))
            }
            _ => {
                self.templates.insert(name, nodes);
                Ok(())
            }
        }
    }

    fn define(&mut self) -> Parse<()> {
        let token = self.peek_solid();
        let name = self.template_name("define clause")?;
        self.right_delimiter("define clause")?;
        let nodes = self.separate("define clause")?;
        self.add(name, nodes, token)
    }

    /// A body with variables of its own, up to `{{end}}`.
    fn separate(&mut self, context: &str) -> Parse<Vec<Node>> {
        let variables = std::mem::replace(&mut self.variables, vec![Var::ROOT]);
        let loops = std::mem::take(&mut self.loops);
        let token = self.peek();
        let mut nodes = Vec::new();
        let closer = self.list(&mut nodes)?;
        (self.variables, self.loops) = (variables, loops);
        match closer {
            Closer::End => Ok(nodes),
            Closer::Else => Self::fail(token, format!("unexpected {{{{else}}}} in {context}")),
            Closer::EndOfText => {
                let end = self.peek();
                self.unexpected(end, context)
            }
        }
    }

    fn template_name(&mut self, context: &str) -> Parse<String> {
        let token = self.next_solid();
        if !matches!(token.kind, TokenKind::Quoted | TokenKind::Raw) {
            return self.unexpected(token, context);
        }
        let name = self.string(token)?;
        Ok(name.to_str_lossy().into_owned())
    }

    fn string(&self, token: Token) -> Parse<Str> {
        match govalue::unquote(self.text_of(token)) {
            Some(bytes) => Ok(Str::from(bytes)),
            None => Self::fail(token, "invalid syntax in the quoted string"),
        }
    }

    fn right_delimiter(&mut self, context: &str) -> Parse<()> {
        let token = self.next_solid();
        if token.kind == TokenKind::RightDelimiter {
            return Ok(());
        }
        self.unexpected(token, context)
    }

    fn list(&mut self, nodes: &mut Vec<Node>) -> Parse<Closer> {
        loop {
            if let Some(closer) = self.node(nodes)? {
                return Ok(closer);
            }
        }
    }

    /// Text or one action.
    fn node(&mut self, nodes: &mut Vec<Node>) -> Parse<Option<Closer>> {
        let token = self.next();
        match token.kind {
            TokenKind::Text => {
                nodes.push(Node::Text(self.text_of(token).into()));
                Ok(None)
            }
            TokenKind::LeftDelimiter => self.action(nodes),
            TokenKind::End => {
                self.at -= 1;
                Ok(Some(Closer::EndOfText))
            }
            _ => self.unexpected(token, "input"),
        }
    }

    fn action(&mut self, nodes: &mut Vec<Node>) -> Parse<Option<Closer>> {
        let token = self.peek_solid();
        if token.kind != TokenKind::Keyword || self.text_of(token) == "define" {
            nodes.push(Node::Action(self.pipeline("command", TokenKind::RightDelimiter)?));
            return Ok(None);
        }
        self.at += 1;
        self.deeper(token)?;
        let word = self.text_of(token).to_owned();
        let node = match word.as_str() {
            "if" | "with" => self.branch(&word)?,
            "range" => self.range()?,
            "block" => self.block()?,
            "template" => self.invocation()?,
            "break" | "continue" => self.leave(token, &word)?,
            "else" => {
                self.depth -= 1;
                let next = self.peek_solid();
                let chained =
                    next.kind == TokenKind::Keyword && matches!(self.text_of(next), "if" | "with");
                if !chained {
                    self.right_delimiter("else")?;
                }
                return Ok(Some(Closer::Else));
            }
            _ => {
                self.depth -= 1;
                self.right_delimiter("end")?;
                return Ok(Some(Closer::End));
            }
        };
        self.depth -= 1;
        nodes.push(node);
        Ok(None)
    }

    fn leave(&mut self, token: Token, word: &str) -> Parse<Node> {
        self.right_delimiter(&format!("{{{{{word}}}}}"))?;
        if self.loops == 0 {
            return Self::fail(token, format!("{{{{{word}}}}} outside {{{{range}}}}"));
        }
        Ok(if word == "break" { Node::Break } else { Node::Continue })
    }

    /// `if` and `with`, with their chains of `else if` and `else with`.
    fn branch(&mut self, word: &str) -> Parse<Node> {
        let visible = self.variables.len();
        let mut branch = Branch { arms: Vec::new(), otherwise: Vec::new() };
        loop {
            let pipe = self.pipeline(word, TokenKind::RightDelimiter)?;
            let mut nodes = Vec::new();
            let closer = self.list(&mut nodes)?;
            branch.arms.push((pipe, nodes));
            match closer {
                Closer::Else if self.keyword(word) => {}
                Closer::Else => {
                    self.last_list(&mut branch.otherwise)?;
                    break;
                }
                Closer::End => break,
                Closer::EndOfText => {
                    let end = self.peek();
                    return self.unexpected(end, word);
                }
            }
        }
        self.variables.truncate(visible);
        Ok(if word == "if" { Node::If(branch) } else { Node::With(branch) })
    }

    /// What follows a plain `else`.
    fn last_list(&mut self, nodes: &mut Vec<Node>) -> Parse<()> {
        let token = self.peek();
        match self.list(nodes)? {
            Closer::End => Ok(()),
            Closer::Else => Self::fail(token, "expected end; found {{else}}"),
            Closer::EndOfText => {
                let end = self.peek();
                self.unexpected(end, "else")
            }
        }
    }

    fn range(&mut self) -> Parse<Node> {
        let visible = self.variables.len();
        let pipe = self.pipeline("range", TokenKind::RightDelimiter)?;
        let mut node = Loop { pipe, body: Vec::new(), otherwise: Vec::new() };
        self.loops += 1;
        let closer = self.list(&mut node.body)?;
        self.loops -= 1;
        match closer {
            Closer::End => {}
            Closer::Else => self.last_list(&mut node.otherwise)?,
            Closer::EndOfText => {
                let end = self.peek();
                return self.unexpected(end, "range");
            }
        }
        self.variables.truncate(visible);
        Ok(Node::Range(node))
    }

    fn block(&mut self) -> Parse<Node> {
        let token = self.peek_solid();
        let name = self.template_name("block clause")?;
        let pipe = self.pipeline("block clause", TokenKind::RightDelimiter)?;
        let nodes = self.separate("block clause")?;
        self.add(name.clone(), nodes, token)?;
        Ok(Node::Template(Invocation { span: Self::span(token), name, pipe: Some(pipe) }))
    }

    fn invocation(&mut self) -> Parse<Node> {
        let token = self.peek_solid();
        let name = self.template_name("template clause")?;
        let pipe = if self.peek_solid().kind == TokenKind::RightDelimiter {
            self.at += 1;
            None
        } else {
            Some(self.pipeline("template clause", TokenKind::RightDelimiter)?)
        };
        Ok(Node::Template(Invocation { span: Self::span(token), name, pipe }))
    }
}
