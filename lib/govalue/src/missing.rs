//! What a template prints though it is not there.

use std::sync::Arc;

use crate::{Excerpt, Map, Span};

/// A member that a template prints though it is not in its map.
///
/// ```
/// use std::sync::Arc;
/// use govalue::{Map, MissingMember, Span};
///
/// let map = Arc::new(Map::from_iter([("port", 80)]));
/// let text = "port\n  {{ web.prot }}\n";
/// let span = Span::new(10, 18);
/// let one = MissingMember { template: "t", text, span, map: &map, member: "prot" };
/// assert_eq!((one.expression(), one.position()), ("web.prot", (2, 6)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MissingMember<'a> {
    /// The name of the template.
    pub template: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Where the expression is in the text.
    pub span: Span,
    /// The map.
    pub map: &'a Arc<Map>,
    /// The name of the member.
    pub member: &'a str,
}

impl<'a> MissingMember<'a> {
    /// The expression as it is written.
    pub fn expression(&self) -> &'a str {
        self.text.get(self.span.range()).unwrap_or_default()
    }

    /// Line and column, both from 1. Counts lines from the beginning of the text.
    pub fn position(&self) -> (usize, usize) {
        let excerpt = Excerpt::new(self.template, self.text, self.span);
        (excerpt.line(), excerpt.column())
    }
}
