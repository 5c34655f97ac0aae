//! Chooses the style of new text by its neighbours and parents.

use super::editor::Editor;
use super::lines;
use super::tree::{Child, Id, Kind, Style};
use super::write::{Manner, Quotes};

impl Editor<'_> {
    /// How new text is written in a collection, as its neighbours are.
    pub(super) fn manner(&self, near: Id) -> Manner {
        let tree = self.tree();
        let quotes = if tree.quotes[0] > tree.quotes[1] { Quotes::Single } else { Quotes::Double };
        let step = self.map_step(near);
        Manner {
            quotes,
            quote_all: self.quote_all(near),
            has_blanks: self.has_blanks(near),
            step,
            list_step: self.list_step(near).unwrap_or(step),
            dash_step: self.dash_step(near),
            is_careful: self.is_careful,
        }
    }

    fn ancestors(&self, id: Id) -> impl Iterator<Item = Id> {
        let tree = self.tree();
        std::iter::successors(Some(id), move |&id| tree.nodes[id].parent.map(|(parent, _)| parent))
    }

    /// Columns from the key of a block collection to its children.
    fn offset(&self, id: Id, is_list: bool) -> Option<usize> {
        let tree = self.tree();
        let node = &tree.nodes[id];
        if !node.is_block_collection() || matches!(node.kind, Kind::List(_)) != is_list {
            return None;
        }
        let (parent, index) = node.parent?;
        let key = &tree.children(parent)[index];
        key.key?;
        if key.is_explicit
            || lines::start(self.text(), key.start) == lines::start(self.text(), node.span.start)
        {
            return None;
        }
        let column = |at| lines::column(self.text(), at);
        column(node.span.start).checked_sub(column(key.start))
    }

    fn map_step(&self, near: Id) -> usize {
        self.nearest_offset(near, false).filter(|&step| step > 0).unwrap_or(2)
    }

    fn list_step(&self, near: Id) -> Option<usize> {
        self.nearest_offset(near, true)
    }

    /// Of the nearest block collection: beside it, around it, or anywhere.
    fn nearest_offset(&self, near: Id, is_list: bool) -> Option<usize> {
        let tree = self.tree();
        let beside =
            |id: Id| tree.children(id).iter().find_map(|child| self.offset(child.value, is_list));
        let below = |id: Id| tree.children(id).iter().find_map(|child| beside(child.value));
        beside(near)
            .or_else(|| below(near))
            .or_else(|| self.ancestors(near).find_map(|id| self.offset(id, is_list)))
            .or_else(|| (0..tree.nodes.len()).find_map(|id| self.offset(id, is_list)))
    }

    /// Columns from a dash to what stands behind it.
    fn dash_step(&self, near: Id) -> usize {
        let tree = self.tree();
        let step = |child: &Child| {
            let value = &tree.nodes[child.value];
            let dash = child.indicator.filter(|_| child.key.is_none())?;
            let start = value.start();
            let is_beside = !value.span.is_empty()
                && lines::start(self.text(), dash) == lines::start(self.text(), start);
            is_beside.then(|| start - dash)
        };
        let list = self
            .ancestors(near)
            .find(|&id| matches!(tree.nodes[id].kind, Kind::List(_)) && !self.is_flow(id));
        let found = list.and_then(|list| tree.children(list).iter().find_map(step));
        found.filter(|step| *step < 10).unwrap_or(2)
    }

    fn has_blanks(&self, near: Id) -> bool {
        let tree = self.tree();
        let is_braced = |id: Id| {
            let node = &tree.nodes[id];
            let is_map = matches!(&node.kind, Kind::Map(map) if map.is_flow && !map.is_pair && !map.children.is_empty());
            is_map.then(|| self.text()[node.span.start + 1..].starts_with(' '))
        };
        let inside = tree.children(near).iter().find_map(|child| is_braced(child.value));
        let found = is_braced(near).or(inside);
        found.or_else(|| self.ancestors(near).find_map(is_braced)).unwrap_or(false)
    }

    /// The quotes that all keys of the flow map around a place have.
    fn quote_all(&self, near: Id) -> Option<Quotes> {
        let tree = self.tree();
        let quotes_of = |id: Id| match &tree.nodes[id].kind {
            Kind::Scalar(scalar) => match scalar.style {
                Style::Single => Some(Quotes::Single),
                Style::Double => Some(Quotes::Double),
                _ => None,
            },
            _ => None,
        };
        for id in self.ancestors(near).take_while(|&id| self.is_flow(id)) {
            let children = tree.children(id);
            let is_map = matches!(tree.nodes[id].kind, Kind::Map(_));
            // A list of texts speaks only for a document of JSON.
            if children.is_empty() || !(is_map || id == tree.root) {
                continue;
            }
            let quotes: Option<Vec<_>> =
                children.iter().map(|child| quotes_of(child.key.unwrap_or(child.value))).collect();
            return quotes?.first().copied();
        }
        None
    }
}
