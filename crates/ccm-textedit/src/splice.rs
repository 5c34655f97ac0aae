//! Changes of a text as replaced ranges.

use std::ops::Range;

/// Bytes of the text before, and what stands there after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) new: Vec<u8>,
}

impl Splice {
    pub(crate) fn new(range: Range<usize>, new: impl Into<Vec<u8>>) -> Self {
        Self { range, new: new.into() }
    }

    pub(crate) fn insert(at: usize, new: impl Into<Vec<u8>>) -> Self {
        Self::new(at..at, new)
    }
}

/// The text with these splices, which must not overlap.
pub(crate) fn apply(text: &[u8], splices: &mut [Splice]) -> Vec<u8> {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut made = Vec::with_capacity(text.len());
    let mut at = 0;
    for splice in splices {
        made.extend_from_slice(&text[at..splice.range.start]);
        made.extend_from_slice(&splice.new);
        at = splice.range.end;
    }
    made.extend_from_slice(&text[at..]);
    made
}

/// Whether nothing is replaced but parts of what was touched.
pub(crate) fn are_within(splices: &[Splice], touched: &[Range<usize>]) -> bool {
    splices.iter().all(|Splice { range, .. }| {
        range.is_empty()
            || touched
                .iter()
                .any(|touched| touched.start <= range.start && range.end <= touched.end)
    })
}
