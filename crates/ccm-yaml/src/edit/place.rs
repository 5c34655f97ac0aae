//! Converts paths to locations and back.

use super::editor::Editor;
use super::law::Read;
use super::tree::{Id, Kind};
use super::{Document, Place, Step, span};
use crate::{Entry, Key, Kind as NodeKind, Node, Scalar};

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

    /// How many items or entries are written in what is at a path.
    pub fn count(&self, path: &[Step]) -> Option<usize> {
        let read = self.read().ok()?;
        let id = Editor::new(read, false).own(path)?;
        read.tree.nodes[id].collection().map(|found| found.children.len())
    }

    /// The index of what is at a path among what is written beside it.
    pub fn index(&self, path: &[Step]) -> Option<usize> {
        let read = self.read().ok()?;
        let id = Editor::new(read, false).own(path)?;
        read.tree.nodes[id].parent.map(|(_, index)| index)
    }

    /// The document as [`crate::parse`] reads it, without reading it again. None
    /// if it has anchors, tags or merge keys.
    pub fn node(&self) -> Option<Node<'_>> {
        let read = self.read().ok()?;
        read.tree.is_plain.then(|| node(read, read.tree.root))
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

fn node(read: Read<'_>, id: Id) -> Node<'_> {
    let found = &read.tree.nodes[id];
    let kind = match &found.kind {
        Kind::List(list) => {
            NodeKind::Sequence(list.children.iter().map(|child| node(read, child.value)).collect())
        }
        Kind::Map(map) => {
            let entries = map.children.iter().filter_map(|child| {
                let id = child.key?;
                let text = read.tree.key(read.text, id).into();
                let key = Key { text, span: span(&read.tree.nodes[id].span) };
                Some(Entry { key, value: node(read, child.value) })
            });
            NodeKind::Mapping(entries.collect())
        }
        Kind::Scalar(_) | Kind::Alias(_) => {
            let (text, plain) = read.tree.scalar(read.text, id).unwrap_or(("", true));
            NodeKind::Scalar(Scalar { text: text.into(), plain })
        }
    };
    Node { span: span(&found.span), kind }
}
