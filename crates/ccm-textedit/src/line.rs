//! The format `line`: one line must be there, or must not.

use serde::{Deserialize, Serialize};

use crate::change::{Change, Refusal, Result, listed, shown};
use crate::laws::Plan;
use crate::lines::{self, Line};
use crate::pattern::Pattern;

/// A line that must be there, or must not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LineEdit {
    /// Remove the line.
    pub absent: bool,
    /// The line, without its end.
    pub line: Option<String>,
    /// The line to replace.
    pub pattern: Option<Pattern>,
    /// Which line, if the pattern matches several.
    pub which: Option<Which>,
    /// What to do if the pattern matches no line.
    pub if_missing: IfMissing,
    /// Where a new line goes.
    pub anchor: Anchor,
}

/// Which of several lines that match becomes the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The first.
    First,
    /// The last.
    Last,
    /// One; the others are removed.
    Only,
}

/// What happens if no line matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfMissing {
    /// The line is inserted.
    #[default]
    Insert,
    /// Nothing.
    Skip,
    /// The edit fails.
    Error,
}

/// Where something new goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Anchor {
    /// Before the first line.
    Start,
    /// Behind the last line.
    #[default]
    End,
    /// Behind the last line that matches.
    After(Pattern),
    /// Before the first line that matches.
    Before(Pattern),
}

impl Anchor {
    /// The index of the line that something new goes before.
    pub(crate) fn index(&self, lines: &[Line<'_>]) -> Result<usize> {
        let missing = |word: &str, pattern: &Pattern| {
            Refusal::new(format!("no line matches `{}` of `{word}`", pattern.as_str()))
                .hint("without an anchor, ccm inserts at the end of the file")
        };
        match self {
            Self::Start => Ok(0),
            Self::End => Ok(lines.len()),
            Self::After(pattern) => lines
                .iter()
                .rposition(|line| pattern.is_match(line.text))
                .map(|index| index + 1)
                .ok_or_else(|| missing("after", pattern)),
            Self::Before(pattern) => lines
                .iter()
                .position(|line| pattern.is_match(line.text))
                .ok_or_else(|| missing("before", pattern)),
        }
    }
}

/// The lines of a text that an edit is about.
struct Candidates<'t> {
    lines: Vec<Line<'t>>,
    /// Indices of lines that are the wanted one already.
    equal: Vec<usize>,
    /// Indices of other lines that the pattern matches.
    others: Vec<usize>,
    /// Indices of both, in order.
    all: Vec<usize>,
}

impl<'t> Candidates<'t> {
    fn find(text: &'t [u8], edit: &LineEdit) -> Self {
        let lines = lines::split(text);
        let wanted = edit.line.as_deref().map(str::as_bytes);
        let mut found = Self { lines, equal: Vec::new(), others: Vec::new(), all: Vec::new() };
        for (index, line) in found.lines.iter().enumerate() {
            if wanted == Some(line.text) {
                found.equal.push(index);
            } else if edit.pattern.as_ref().is_some_and(|pattern| pattern.is_match(line.text)) {
                found.others.push(index);
            } else {
                continue;
            }
            found.all.push(index);
        }
        found
    }
}

pub(crate) fn plan(text: &[u8], edit: &LineEdit) -> Result<Plan> {
    let found = Candidates::find(text, edit);
    let mut plan = Plan::default();
    if edit.absent {
        remove(&mut plan, &found, &found.all);
        return Ok(plan);
    }
    let Some(wanted) = edit.line.as_deref() else {
        return Err(Refusal::new("there is no `line`"));
    };
    let (chosen, surplus) = choose(&found, edit)?;
    match (chosen, found.equal.is_empty()) {
        (Some(index), true) => replace(&mut plan, &found, index, wanted),
        (None, true) => insert(&mut plan, text, &found, edit, wanted)?,
        (_, false) => {}
    }
    remove(&mut plan, &found, &surplus);
    plan.changes.sort_by_key(|change| number_of(&change.name));
    Ok(plan)
}

/// The line to replace, if the wanted one is not there, and the lines to remove.
fn choose(found: &Candidates<'_>, edit: &LineEdit) -> Result<(Option<usize>, Vec<usize>)> {
    let Candidates { equal, others, all, .. } = found;
    let is_there = !equal.is_empty();
    Ok(match (edit.which, is_there) {
        (None, _) if others.len() > 1 => return Err(ambiguous(found, edit)),
        (None, true) => (None, others.clone()),
        (None | Some(Which::First), false) => (others.first().copied(), Vec::new()),
        (Some(Which::Last), false) => (others.last().copied(), Vec::new()),
        // The first or last one is the wanted line, if those beyond it go.
        (Some(Which::First), true) => {
            (None, others.iter().copied().filter(|index| *index < equal[0]).collect())
        }
        (Some(Which::Last), true) => {
            let last = equal[equal.len() - 1];
            (None, others.iter().copied().filter(|index| *index > last).collect())
        }
        (Some(Which::Only), _) => {
            let kept = equal.first().or(all.first()).copied();
            (kept, all.iter().copied().filter(|index| Some(*index) != kept).collect())
        }
    })
}

fn ambiguous(found: &Candidates<'_>, edit: &LineEdit) -> Refusal {
    let pattern = edit.pattern.as_ref();
    let is_match =
        |index: &&usize| pattern.is_some_and(|pattern| pattern.is_match(found.lines[**index].text));
    let matching: Vec<usize> = found.all.iter().filter(is_match).map(|index| index + 1).collect();
    let pattern = pattern.map_or("", Pattern::as_str);
    let count = matching.len();
    let numbers = listed(matching);
    Refusal::new(format!("{count} lines match `{pattern}` ({numbers}); set `which`"))
        .hint("`first`, `last`, or `only` to keep one and remove the others")
}

fn replace(plan: &mut Plan, found: &Candidates<'_>, index: usize, wanted: &str) {
    let line = found.lines[index];
    plan.replace(line.start..line.start + line.text.len(), wanted);
    plan.changes.push(Change::new(named(index), Some(shown(line.text)), Some(wanted.to_owned())));
}

fn insert(
    plan: &mut Plan,
    text: &[u8],
    found: &Candidates<'_>,
    edit: &LineEdit,
    wanted: &str,
) -> Result<()> {
    match edit.if_missing {
        IfMissing::Skip => return Ok(()),
        IfMissing::Error => {
            let pattern = edit.pattern.as_ref().map_or("", Pattern::as_str);
            return Err(Refusal::new(format!("no line matches `{pattern}`")));
        }
        IfMissing::Insert => {}
    }
    let index = edit.anchor.index(&found.lines)?;
    let (at, new) = lines::inserted(text, &found.lines, index, &[wanted.as_bytes().to_vec()]);
    plan.insert(at, new);
    plan.changes.push(Change::new(named(index), None, Some(wanted.to_owned())));
    Ok(())
}

fn remove(plan: &mut Plan, found: &Candidates<'_>, surplus: &[usize]) {
    for &index in surplus {
        let line = found.lines[index];
        plan.remove(line.range());
        plan.changes.push(Change::new(named(index), Some(shown(line.text)), None));
    }
}

fn named(index: usize) -> String {
    format!("line {}", index + 1)
}

fn number_of(name: &str) -> usize {
    name.trim_start_matches("line ").parse().unwrap_or(0)
}
