//! Tokens into statements.

mod assign;
mod expr;

use std::sync::Arc;

use govalue::Span;

use crate::ast::{
    Action, Block, Blocks, Branch, Catch, Command, Expr, ExprKind, List, Name, Node, Param, Range,
    Yield,
};
use crate::error::{Error, ErrorKind};
use crate::lexer::{self, Delimiters, Keyword, Mark, Token, TokenKind};
use crate::source::Source;

/// Statements and expressions may be nested this deep. Deeper than anyone
/// writes, and far from the end of the stack.
const MAX_NESTING: usize = 60;

/// One template as written, before the templates it names are loaded.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) extends: Option<(String, Span)>,
    pub(crate) imports: Vec<(String, Span)>,
    pub(crate) root: List,
    pub(crate) blocks: Blocks,
}

pub(crate) fn parse(source: &Arc<Source>, delimiters: &Delimiters) -> Result<Parsed, Error> {
    let tokens = lexer::tokens(source, delimiters)?;
    let mut parser = Parser { source, tokens, pos: 0, nesting: 0, blocks: Blocks::new() };
    let (extends, imports) = parser.head()?;
    let mut nodes = Vec::new();
    loop {
        match parser.list("the template", &mut nodes)? {
            None => break,
            Some((Keyword::Catch, _)) => parser.skip(Keyword::Catch)?,
            Some((keyword, span)) => {
                let message = format!("unexpected `{}`", keyword.text());
                return Err(parser.error(span, message));
            }
        }
    }
    let root = List(nodes);
    Ok(Parsed { extends, imports, root, blocks: parser.blocks })
}

struct Parser<'a> {
    source: &'a Arc<Source>,
    tokens: Vec<Token>,
    pos: usize,
    nesting: usize,
    blocks: Blocks,
}

/// What ended a list of statements; `None` is the end of the template. Right
/// after the keyword stands whatever follows it.
type Ending = Option<(Keyword, Span)>;

type Head = (Option<(String, Span)>, Vec<(String, Span)>);

impl Parser<'_> {
    fn peek(&self) -> &Token {
        // The last token is always `End`, and never passed.
        &self.tokens[self.pos.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if token.kind != TokenKind::End {
            self.pos += 1;
        }
        token
    }

    fn text(&self, span: Span) -> &str {
        &self.source.text[span.start as usize..span.end as usize]
    }

    fn error(&self, span: Span, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Syntax, message, self.source, span)
    }

    fn unexpected(&self, token: &Token, place: &str, wanted: &str) -> Error {
        let shown = self.text(token.span).trim();
        let message = match token.kind {
            TokenKind::End => format!("unexpected end of the template in {place}: {wanted}"),
            _ => format!("unexpected `{shown}` in {place}: {wanted}"),
        };
        self.error(token.span, message)
    }

    fn at(&self, mark: Mark) -> bool {
        self.peek().kind == TokenKind::Mark(mark)
    }

    fn accept(&mut self, mark: Mark) -> bool {
        let found = self.at(mark);
        if found {
            self.pos += 1;
        }
        found
    }

    fn expect(&mut self, kind: &TokenKind, place: &str, wanted: &str) -> Result<Span, Error> {
        let token = self.next();
        if token.kind == *kind {
            return Ok(token.span);
        }
        Err(self.unexpected(&token, place, wanted))
    }

    fn right(&mut self, place: &str) -> Result<(), Error> {
        self.expect(&TokenKind::Right, place, "the action should end here").map(drop)
    }

    fn name(&mut self, place: &str) -> Result<(Name, Span), Error> {
        let token = self.next();
        if token.kind == TokenKind::Name {
            return Ok((Name::from(self.text(token.span)), token.span));
        }
        Err(self.unexpected(&token, place, "a name is missing"))
    }

    /// One level deeper into statements or expressions.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.nesting >= MAX_NESTING {
            let message = format!("more than {MAX_NESTING} levels of nesting");
            return Err(self.error(self.peek().span, message));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    /// `extends` and `import` at the beginning, and the blank text around them.
    fn head(&mut self) -> Result<Head, Error> {
        let (mut extends, mut imports) = (None, Vec::new());
        loop {
            let token = self.peek().clone();
            match token.kind {
                TokenKind::Text if self.text(token.span).trim().is_empty() => {
                    self.pos += 1;
                    continue;
                }
                TokenKind::Left => {}
                _ => break,
            }
            let keyword = match self.tokens.get(self.pos + 1) {
                Some(Token { kind: TokenKind::Keyword(keyword), .. }) => *keyword,
                _ => break,
            };
            if !matches!(keyword, Keyword::Extends | Keyword::Import) {
                break;
            }
            self.pos += 2;
            let path = self.next();
            let TokenKind::Quoted(text) = &path.kind else {
                return Err(self.unexpected(&path, keyword.text(), "a quoted path is missing"));
            };
            let found = (text.to_string(), path.span);
            self.right(keyword.text())?;
            match keyword {
                Keyword::Import => imports.push(found),
                _ if extends.is_some() => {
                    return Err(self.error(path.span, "a template can extend only one other"));
                }
                _ if !imports.is_empty() => {
                    return Err(self.error(path.span, "`extends` must stand before `import`"));
                }
                _ => extends = Some(found),
            }
        }
        Ok((extends, imports))
    }

    /// Adds statements up to a keyword that may end them, or the end of the
    /// template.
    fn list(&mut self, place: &str, nodes: &mut Vec<(Node, Span)>) -> Result<Ending, Error> {
        loop {
            let token = self.next();
            match token.kind {
                TokenKind::End => return Ok(None),
                TokenKind::Text => {
                    nodes.push((Node::Text(self.text(token.span).into()), token.span));
                }
                TokenKind::Left => match self.peek().kind {
                    TokenKind::Keyword(keyword) => {
                        let span = self.next().span;
                        match self.statement(keyword, span)? {
                            Some(node) => nodes.push((node, span)),
                            None => return Ok(Some((keyword, span))),
                        }
                    }
                    _ => nodes.push((self.action()?, token.span)),
                },
                _ => return Err(self.unexpected(&token, place, "text or an action belongs here")),
            }
        }
    }

    /// A list with one more level of nesting, which one of the keywords must end.
    /// Others that could end a list say nothing here, and are passed over.
    fn body(
        &mut self,
        place: &str,
        open: Span,
        ends: &[Keyword],
    ) -> Result<(List, Keyword), Error> {
        let mut nodes = Vec::new();
        loop {
            match self.nested(|parser| parser.list(place, &mut nodes))? {
                Some((keyword, _)) if ends.contains(&keyword) => {
                    return Ok((List(nodes), keyword));
                }
                Some((keyword, _)) => self.skip(keyword)?,
                None => return Err(self.error(open, format!("`{place}` has no `end`"))),
            }
        }
    }

    /// The rest of a list up to its `end`, which is read as well.
    fn last_body(&mut self, place: &str, open: Span) -> Result<List, Error> {
        let (list, _) = self.body(place, open, &[Keyword::End])?;
        self.right("end")?;
        Ok(list)
    }

    /// Passes over a keyword that has nothing to end here; a `catch` has a list
    /// of its own.
    fn skip(&mut self, keyword: Keyword) -> Result<(), Error> {
        if keyword == Keyword::Catch {
            return self.catch().map(drop);
        }
        self.right(keyword.text())
    }

    /// What follows the keyword `catch`, up to its `end`.
    fn catch(&mut self) -> Result<Catch, Error> {
        let open = self.peek().span;
        let error = match self.peek().kind {
            TokenKind::Name => Some(self.name("catch")?.0),
            _ => None,
        };
        self.right("catch")?;
        Ok(Catch { error, body: self.last_body("catch", open)? })
    }

    /// A statement that begins with a keyword; `None` if the keyword ends a
    /// list instead.
    fn statement(&mut self, keyword: Keyword, span: Span) -> Result<Option<Node>, Error> {
        let node = match keyword {
            Keyword::If => self.if_statement(span)?,
            Keyword::Range => self.range_statement(span)?,
            Keyword::Try => self.try_statement(span)?,
            Keyword::Block => self.block_statement(span)?,
            Keyword::Yield => self.yield_statement(span)?,
            Keyword::Include => {
                let path = self.expression("include")?;
                Node::Include { path, context: self.context("include")? }
            }
            Keyword::Return => {
                let value = self.expression("return")?;
                self.right("return")?;
                Node::Return(value)
            }
            Keyword::End | Keyword::Else | Keyword::Catch | Keyword::Content => return Ok(None),
            Keyword::Not | Keyword::Nil => {
                self.pos -= 1;
                self.action()?
            }
            Keyword::Extends | Keyword::Import => {
                let message =
                    format!("`{}` must stand at the beginning of the template", keyword.text());
                return Err(self.error(span, message));
            }
            Keyword::And | Keyword::Or | Keyword::Msg | Keyword::Trans => {
                let message = format!("unexpected keyword `{}`", keyword.text());
                return Err(self.error(span, message));
            }
        };
        Ok(Some(node))
    }

    fn if_statement(&mut self, open: Span) -> Result<Node, Error> {
        let mut branches = Vec::new();
        loop {
            let (assign, condition) = match self.assignment("if")? {
                (Some(assign), None) => {
                    self.expect(
                        &TokenKind::Mark(Mark::Semicolon),
                        "if",
                        "the condition is missing",
                    )?;
                    (Some(assign), self.expression("if")?)
                }
                (assign, Some(condition)) => (assign, condition),
                (None, None) => return Err(self.unexpected(self.peek(), "if", "a condition")),
            };
            self.right("if")?;
            let (body, keyword) = self.body("if", open, &[Keyword::Else, Keyword::End])?;
            branches.push(Branch { assign, condition, body });
            if keyword == Keyword::End {
                self.right("end")?;
                return Ok(Node::If { branches, otherwise: None });
            }
            if self.peek().kind == TokenKind::Keyword(Keyword::If) {
                self.pos += 1;
                continue;
            }
            self.right("else")?;
            let otherwise = Some(self.last_body("if", open)?);
            return Ok(Node::If { branches, otherwise });
        }
    }

    fn range_statement(&mut self, open: Span) -> Result<Node, Error> {
        let (targets, declare, over) = self.range_head()?;
        self.right("range")?;
        let (body, keyword) = self.body("range", open, &[Keyword::Else, Keyword::End])?;
        self.right(keyword.text())?;
        let otherwise = match keyword {
            Keyword::Else => Some(self.last_body("range", open)?),
            _ => None,
        };
        Ok(Node::Range(Box::new(Range { targets, declare, over, body, otherwise })))
    }

    fn try_statement(&mut self, open: Span) -> Result<Node, Error> {
        self.right("try")?;
        let (body, keyword) = self.body("try", open, &[Keyword::Catch, Keyword::End])?;
        if keyword == Keyword::Catch {
            return Ok(Node::Try { body, catch: Some(self.catch()?) });
        }
        self.right("end")?;
        Ok(Node::Try { body, catch: None })
    }

    fn block_statement(&mut self, open: Span) -> Result<Node, Error> {
        let (name, span) = self.name("block")?;
        let params = self.params("block", true)?;
        let context = self.context("block")?;
        let (body, keyword) = self.body("block", open, &[Keyword::Content, Keyword::End])?;
        self.right(keyword.text())?;
        let content = match keyword {
            Keyword::Content => Some(Arc::new(self.last_body("block", open)?)),
            _ => None,
        };
        let source = Arc::clone(self.source);
        let block = Block { name, params, context, body, content, source, span };
        let block = Arc::new(block);
        self.blocks.insert(Arc::clone(&block.name), Arc::clone(&block));
        Ok(Node::Block(block))
    }

    fn yield_statement(&mut self, open: Span) -> Result<Node, Error> {
        if self.peek().kind == TokenKind::Keyword(Keyword::Content) {
            self.pos += 1;
            return Ok(Node::YieldContent { context: self.context("yield content")? });
        }
        let (name, span) = self.name("yield")?;
        let params = self.params("yield", false)?;
        let context = match self.peek().kind {
            TokenKind::Right | TokenKind::Keyword(Keyword::Content) => None,
            _ => Some(self.expression("yield")?),
        };
        let mut content = None;
        if self.peek().kind == TokenKind::Keyword(Keyword::Content) {
            self.pos += 1;
            self.right("yield")?;
            content = Some(Arc::new(self.last_body("yield", open)?));
        } else {
            self.right("yield")?;
        }
        Ok(Node::Yield(Box::new(Yield { name, params, context, content, span })))
    }

    /// The optional expression at the end of an action that becomes `.`.
    fn context(&mut self, place: &str) -> Result<Option<Expr>, Error> {
        let context = match self.peek().kind {
            TokenKind::Right => None,
            _ => Some(self.expression(place)?),
        };
        self.right(place)?;
        Ok(context)
    }

    /// `(a, b=1)`: a definition names what it takes, a use may also give values
    /// without a name.
    fn params(&mut self, place: &str, definition: bool) -> Result<Vec<Param>, Error> {
        let open = TokenKind::Mark(Mark::OpenParen);
        self.expect(&open, place, "an opening parenthesis is missing")?;
        let mut params = Vec::new();
        while !self.at(Mark::CloseParen) {
            let expr = self.expression(place)?;
            let param = match expr.kind {
                ExprKind::Name(name) if self.accept(Mark::Assign) => {
                    Param { name: Some(name), value: Some(self.expression(place)?) }
                }
                ExprKind::Name(name) if definition => Param { name: Some(name), value: None },
                _ if definition => return Err(self.error(expr.span, "a parameter is a name")),
                kind => Param { name: None, value: Some(Expr::new(kind, expr.span)) },
            };
            params.push(param);
            if !self.accept(Mark::Comma) {
                break;
            }
        }
        let close = TokenKind::Mark(Mark::CloseParen);
        self.expect(&close, place, "a closing parenthesis is missing")?;
        Ok(params)
    }

    /// An assignment, an expression with pipes, or the first and then the
    /// second.
    fn action(&mut self) -> Result<Node, Error> {
        let (assign, first) = self.assignment("an action")?;
        let first = match (&assign, first) {
            (_, Some(first)) => Some(first),
            (Some(_), None) if self.accept(Mark::Semicolon) => Some(self.expression("an action")?),
            _ => None,
        };
        let pipeline = match first {
            Some(first) => self.pipeline(first)?,
            None => Vec::new(),
        };
        self.right("an action")?;
        Ok(Node::Action(Action { assign, pipeline }))
    }

    fn pipeline(&mut self, first: Expr) -> Result<Vec<Command>, Error> {
        let mut commands = vec![self.command(first)?];
        while self.accept(Mark::Pipe) {
            let token = self.peek();
            if !matches!(
                token.kind,
                TokenKind::Name | TokenKind::Field | TokenKind::Mark(Mark::Dot)
            ) {
                return Err(self.unexpected(token, "a pipeline", "a function belongs here"));
            }
            let base = self.nested(|parser| parser.operand("a pipeline"))?;
            commands.push(self.command(base)?);
        }
        Ok(commands)
    }

    /// A stage whose arguments may follow a colon.
    fn command(&mut self, base: Expr) -> Result<Command, Error> {
        let span = base.span;
        if self.accept(Mark::Colon) {
            let args = Some(self.arguments()?);
            return Ok(Command { base, args, span });
        }
        Ok(match base.kind {
            ExprKind::Call(callee, args) => Command { base: *callee, args: Some(args), span },
            _ => Command { base, args: None, span },
        })
    }
}

#[cfg(test)]
mod tests;
