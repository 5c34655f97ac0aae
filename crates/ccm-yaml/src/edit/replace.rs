//! Replaces a value with another.

use serde_json::Value;

use super::editor::{Edited, Editor, unspeakable};
use super::lines;
use super::tree::{Id, Kind, Style};
use super::write::{Manner, Unspeakable, Written};

impl Editor<'_> {
    /// Puts a value in the place of a node, whatever that was.
    pub(super) fn replace(&mut self, id: Id, value: &Value) -> Edited {
        let node = &self.tree().nodes[id];
        let near = node.parent.map_or(id, |(parent, _)| parent);
        let mut manner = self.manner(near);
        let said = |_: Unspeakable| unspeakable(Some(node.span.clone()));
        let style = match &node.kind {
            Kind::Scalar(scalar) if !node.is_empty() => Some(&scalar.style),
            _ => None,
        };
        if node.in_flow {
            let text = match (value, style) {
                (Value::String(text), Some(style)) if manner.quote_all.is_none() => {
                    manner.restyled(text, style, true, false)
                }
                _ => manner.flow(value),
            };
            self.put_in_flow(id, text.map_err(said)?);
            return Ok(());
        }
        let (column, is_item) = match node.parent {
            None => (0, true),
            Some((parent, index)) => {
                let child = &self.tree().children(parent)[index];
                if let (None, Some(dash)) = (child.key, child.indicator)
                    && !node.is_empty()
                    && lines::start(self.text(), dash) == lines::start(self.text(), node.start())
                {
                    manner.dash_step = node.start() - dash;
                }
                (lines::column(self.text(), child.start), child.key.is_none())
            }
        };
        let mut written = match (value, style) {
            (Value::String(text), style) => {
                let block = self.literal(id, text, &manner, column, is_item);
                match (block, style) {
                    (Some(written), _) => written,
                    (None, Some(style)) => Written {
                        first: manner.restyled(text, style, false, false).map_err(said)?,
                        rest: Vec::new(),
                    },
                    (None, None) => Written { first: manner.text(text, false), rest: Vec::new() },
                }
            }
            _ if node.parent.is_none() => manner.document(value).map_err(said)?,
            _ => manner.value(value, column, is_item).map_err(said)?,
        };
        let is_block = match value {
            Value::Object(map) => !map.is_empty(),
            Value::Array(_) => !written.first.starts_with('['),
            _ => false,
        };
        if is_block && node.has_properties() && !written.first.is_empty() {
            // An anchor before a key on the same line would be the key's.
            let step = if is_item { manner.dash_step } else { manner.step };
            let below = if node.parent.is_none() { 0 } else { column + step };
            let first = std::mem::take(&mut written.first);
            written.rest.insert(0, format!("{:below$}{first}", ""));
        }
        self.put(id, written);
        Ok(())
    }

    /// Text as a literal block in the place of a node, if it is to be one.
    fn literal(
        &self,
        id: Id,
        text: &str,
        manner: &Manner,
        column: usize,
        is_item: bool,
    ) -> Option<Written> {
        let node = &self.tree().nodes[id];
        let mut below = column + if is_item { manner.dash_step.max(1) } else { manner.step };
        if node.parent.is_none() {
            below = manner.step;
        }
        let mut last = node.span.end;
        match &node.kind {
            Kind::Scalar(scalar) => match &scalar.style {
                Style::Block { content, indent, .. } => {
                    if *indent > column || (node.parent.is_none() && *indent > 0) {
                        below = *indent;
                    }
                    last = last.max(content.end);
                }
                _ if !text.contains('\n') => return None,
                _ => {}
            },
            _ if !text.contains('\n') => return None,
            _ => {}
        }
        if node.is_empty() && node.parent.is_none() {
            return None;
        }
        let source = self.text();
        let last = last.min(source.len());
        let keeps = text.ends_with("\n\n");
        let after = lines::next(source, last);
        if lines::line_break(source, last).is_empty() || (keeps && lines::is_blank(source, after)) {
            return None;
        }
        manner.block(text, below, column)
    }
}
