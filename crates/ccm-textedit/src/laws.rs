//! Makes an edit, and holds the result to the laws.

use std::ops::Range;

use crate::change::{Change, Edited, Refusal, Result};
use crate::json::Json;
use crate::splice::{self, Splice};
use crate::toml::Toml;
use crate::yaml::Yaml;
use crate::{Edit, block, ini, line, lines, properties, typed};

/// The largest text that is edited.
pub const MAX_SIZE: u64 = 16 << 20;

/// How much of a text decides whether it is one.
const HEAD: usize = 8 << 10;

/// What a format makes of an edit: the replaced bytes of the text before.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) splices: Vec<Splice>,
    /// The bytes of the lines or entries that the edit names.
    pub(crate) touched: Vec<Range<usize>>,
    pub(crate) changes: Vec<Change>,
}

impl Plan {
    /// Replaces something that the edit names.
    pub(crate) fn replace(&mut self, range: Range<usize>, new: impl Into<Vec<u8>>) {
        self.touched.push(range.clone());
        self.splices.push(Splice::new(range, new));
    }

    /// Removes something that the edit names.
    pub(crate) fn remove(&mut self, range: Range<usize>) {
        self.replace(range, []);
    }

    /// Adds something.
    pub(crate) fn insert(&mut self, at: usize, new: impl Into<Vec<u8>>) {
        self.splices.push(Splice::insert(at, new));
    }

    /// The text that the plan makes. The second law holds for it.
    pub(crate) fn carry_out(mut self, text: &[u8]) -> Result<Edited> {
        if !splice::are_within(&self.splices, &self.touched) {
            return Err(Refusal::unsafe_here("bytes beside the entry would change"));
        }
        Ok(Edited { text: splice::apply(text, &mut self.splices), changes: self.changes })
    }
}

/// Fails if a text is none that can be edited.
///
/// # Errors
///
/// Returns what is wrong with it.
pub fn check_text(text: &[u8]) -> Result<()> {
    if text.len() as u64 > MAX_SIZE {
        return Err(Refusal::new("the file is larger than 16 MiB"));
    }
    if text.iter().take(HEAD).any(|byte| *byte == 0) {
        return Err(Refusal::new("the file is binary: it contains a NUL byte"));
    }
    Ok(())
}

/// Makes an edit. The result without changes has the text as it was.
///
/// # Errors
///
/// Returns why the edit was not made: the text does not allow it, or the result
/// would break one of the laws.
pub fn apply(text: &[u8], edit: &Edit) -> Result<Edited> {
    check_text(text)?;
    let edited = make(text, edit)?;
    if edited.changes.is_empty() && edited.text == text {
        return Ok(edited);
    }
    check_text(&edited.text)?;
    match make(&edited.text, edit) {
        Ok(again) if again.text == edited.text => Ok(edited),
        Ok(again) => {
            let line = first_difference(&edited.text, &again.text);
            let message =
                format!("the edit is not idempotent: a second run would change line {line}");
            Err(Refusal::new(message))
        }
        Err(refusal) => {
            let message = format!("the edit is not idempotent: a second run would fail: {refusal}");
            Err(Refusal { message, hint: refusal.hint })
        }
    }
}

fn make(text: &[u8], edit: &Edit) -> Result<Edited> {
    match edit {
        Edit::Line(edit) => line::plan(text, edit)?.carry_out(text),
        Edit::Block(edit) => block::plan(text, edit)?.carry_out(text),
        Edit::Ini(entries) => ini::apply(text, entries),
        Edit::Json(entries) => typed::apply(&Json, text, entries),
        Edit::Yaml(entries, document) => typed::apply(&Yaml { document: *document }, text, entries),
        Edit::Toml(entries) => typed::apply(&Toml, text, entries),
        Edit::Properties(entries, dialect) => properties::apply(text, entries, *dialect),
    }
}

/// The first line that is different, from 1.
fn first_difference(one: &[u8], other: &[u8]) -> usize {
    let (one, other) = (lines::split(one), lines::split(other));
    let same = |(left, right): &(&lines::Line<'_>, &lines::Line<'_>)| {
        (left.text, left.end) == (right.text, right.end)
    };
    one.iter().zip(&other).take_while(same).count() + 1
}
