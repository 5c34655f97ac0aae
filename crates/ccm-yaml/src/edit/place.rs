//! From paths to places, and from places to paths.

use super::editor::Editor;
use super::tree::Kind;
use super::{Document, Place, Step, span};

impl Document {
    /// The place of a path: key, value, and all that belongs to the entry.
    pub fn locate(&self, path: &[Step]) -> Option<Place> {
        let editor = Editor::new(self.read().ok()?, false);
        let id = editor.own(path)?;
        let node = &editor.tree().nodes[id];
        let value = span(&node.span);
        let Some((parent, index)) = node.parent else {
            return Some(Place { key: None, value, whole: value });
        };
        let child = &editor.tree().children(parent)[index];
        let key = child.key.map(|key| span(&editor.tree().nodes[key].span));
        let segment = editor.segment(parent, index);
        Some(Place { key, value, whole: span(&(segment.head..segment.end)) })
    }

    /// The innermost path at a byte: of what stands there, or belongs to what
    /// stands there.
    pub fn path_at(&self, offset: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        let Ok(read) = self.read() else { return steps };
        let editor = Editor::new(read, false);
        let offset = offset as usize;
        let mut id = read.tree.root;
        loop {
            let children = read.tree.children(id);
            // Children are in the order of the text.
            let after = children.partition_point(|child| child.start <= offset);
            let found = [after.checked_sub(1), Some(after)].into_iter().flatten().find(|&index| {
                index < children.len() && {
                    let segment = editor.segment(id, index);
                    (segment.head..=segment.end).contains(&offset)
                }
            });
            let Some(index) = found else { return steps };
            let child = &children[index];
            steps.push(match (&read.tree.nodes[id].kind, child.key) {
                (Kind::Map(_), Some(key)) => Step::Key(read.tree.key(read.text, key).to_owned()),
                _ => Step::Index(index),
            });
            id = child.value;
        }
    }
}
