//! Applies changes: the new text as pieces of the old one.

use std::ops::Range;

use super::{Change, span};

enum Piece {
    Old(Range<usize>),
    New(String),
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Old(range) => range.len(),
            Self::New(text) => text.len(),
        }
    }

    fn split(self, at: usize) -> (Self, Self) {
        match self {
            Self::Old(range) => {
                let middle = range.start + at;
                (Self::Old(range.start..middle), Self::Old(middle..range.end))
            }
            Self::New(mut text) => {
                let right = text.split_off(at);
                (Self::New(text), Self::New(right))
            }
        }
    }
}

/// What a text is made of after some changes.
pub(super) struct Pieces {
    pieces: Vec<Piece>,
    length: usize,
}

impl Pieces {
    pub(super) fn new(length: usize) -> Self {
        Self { pieces: vec![Piece::Old(0..length)], length }
    }

    /// Replaces bytes of the text as it is now.
    pub(super) fn replace(&mut self, range: &Range<usize>, text: String) {
        let first = self.cut(range.start);
        let last = self.cut(range.end);
        self.pieces.splice(first..last, [Piece::New(text)]);
    }

    /// The index of the piece that begins at a byte.
    fn cut(&mut self, at: usize) -> usize {
        let mut start = 0;
        for index in 0..self.pieces.len() {
            if start >= at {
                return index;
            }
            let length = self.pieces[index].len();
            if at < start + length {
                let piece = std::mem::replace(&mut self.pieces[index], Piece::Old(0..0));
                let (left, right) = piece.split(at - start);
                self.pieces[index] = left;
                self.pieces.insert(index + 1, right);
                return index + 1;
            }
            start += length;
        }
        self.pieces.len()
    }

    /// The changes that make this text of the one before.
    pub(super) fn changes(self) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut at = 0;
        let mut new = String::new();
        let end = Piece::Old(self.length..self.length);
        for piece in self.pieces.into_iter().chain([end]) {
            match piece {
                Piece::New(text) => new.push_str(&text),
                Piece::Old(range) if range.is_empty() && range.start != self.length => {}
                Piece::Old(range) => {
                    if at != range.start || !new.is_empty() {
                        let text = std::mem::take(&mut new);
                        changes.push(Change { span: span(&(at..range.start)), text });
                    }
                    at = range.end;
                }
            }
        }
        changes
    }
}

/// A text with changes made that are in order and do not overlap.
pub(super) fn replaced(text: &str, changes: &[(Range<usize>, String)]) -> String {
    let grown: usize = changes.iter().map(|(_, new)| new.len()).sum();
    let mut out = String::with_capacity(text.len() + grown);
    let mut at = 0;
    for (range, new) in changes {
        out.push_str(&text[at..range.start]);
        out.push_str(new);
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}
