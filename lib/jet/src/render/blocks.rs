//! Blocks and the content handed to them.

use std::rc::Rc;
use std::sync::Arc;

use super::Runtime;
use super::scope::Scope;
use govalue::Span;

use crate::ast::{Block, Expr, List, Param, Yield};
use crate::error::{Error, ErrorKind};
use crate::source::Source;

/// Statements that a block renders where it says `yield content`.
pub(super) struct Content {
    body: Arc<List>,
    scope: Rc<Scope>,
    source: Arc<Source>,
    /// What `yield content` means inside these.
    outer: Option<Rc<Self>>,
}

/// How a block is used: by its own definition or by `yield`.
struct Use<'a> {
    params: &'a [Param],
    context: Option<&'a Expr>,
    content: Option<&'a Arc<List>>,
    span: Span,
}

impl Runtime<'_> {
    /// A definition, which is also a use, of the block that goes by its name
    /// now.
    pub(super) fn block(&mut self, defined: &Arc<Block>) -> Result<(), Error> {
        let block = self.scope.block(&defined.name).unwrap_or_else(|| Arc::clone(defined));
        let used = Use {
            params: &block.params,
            context: block.context.as_ref(),
            content: block.content.as_ref(),
            span: defined.span,
        };
        self.use_block(&block, &used)
    }

    pub(super) fn yield_block(&mut self, used: &Yield) -> Result<(), Error> {
        let Some(block) = self.scope.block(&used.name) else {
            let message = format!("there is no block `{}`", used.name);
            return Err(self.error(ErrorKind::NotFound, used.span, message));
        };
        let used = Use {
            params: &used.params,
            context: used.context.as_ref(),
            content: used.content.as_ref(),
            span: used.span,
        };
        self.use_block(&block, &used)
    }

    fn use_block(&mut self, block: &Arc<Block>, used: &Use<'_>) -> Result<(), Error> {
        let outer = Rc::clone(&self.scope);
        if !block.params.is_empty() || !used.params.is_empty() {
            self.scope = Scope::inside(&outer);
            self.bind(block, used)?;
        }
        let context = used.context.map(|context| self.eval(context)).transpose()?;
        let outer_content = self.content.clone();
        if let Some(body) = used.content {
            self.content = Some(Rc::new(Content {
                body: Arc::clone(body),
                scope: Rc::clone(&self.scope),
                source: Arc::clone(&self.source),
                outer: outer_content.clone(),
            }));
        }
        let saved = context.map(|context| std::mem::replace(&mut self.context, context));
        let source = std::mem::replace(&mut self.source, Arc::clone(&block.source));
        self.list(&block.body)?;
        (self.scope, self.source, self.content) = (outer, source, outer_content);
        if let Some(context) = saved {
            self.context = context;
        }
        Ok(())
    }

    /// Parameters by name: those given, then the defaults of the others.
    fn bind(&mut self, block: &Block, used: &Use<'_>) -> Result<(), Error> {
        for param in used.params {
            let Some(value) = &param.value else { continue };
            let item = self.eval(value)?;
            if let Some(name) = &param.name {
                self.scope.declare(name, item);
            }
        }
        for param in &block.params {
            let Some(name) = &param.name else { continue };
            if self.scope.own(name).is_some() {
                continue;
            }
            let Some(default) = &param.value else {
                let message = format!("block `{}` needs a value for `{name}`", block.name);
                return Err(self.error(ErrorKind::Arguments, used.span, message));
            };
            // Defaults are written with the block, not with its use.
            let source = std::mem::replace(&mut self.source, Arc::clone(&block.source));
            let item = self.eval(default)?;
            self.source = source;
            self.scope.declare(name, item);
        }
        Ok(())
    }

    pub(super) fn yield_content(&mut self, context: Option<&Expr>) -> Result<(), Error> {
        let Some(content) = self.content.clone() else { return Ok(()) };
        let context = context.map(|context| self.eval(context)).transpose()?;
        let saved = context.map(|context| std::mem::replace(&mut self.context, context));
        let scope = std::mem::replace(&mut self.scope, Rc::clone(&content.scope));
        let source = std::mem::replace(&mut self.source, Arc::clone(&content.source));
        let outer = std::mem::replace(&mut self.content, content.outer.clone());
        self.list(&content.body)?;
        (self.scope, self.source, self.content) = (scope, source, outer);
        if let Some(context) = saved {
            self.context = context;
        }
        Ok(())
    }
}
