//! The format `block`: lines between two markers.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::change::{Change, Refusal, Result, listed, shown};
use crate::laws::Plan;
use crate::line::Anchor;
use crate::lines::{self, Line};

/// Lines between two markers that must be there, or must not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockEdit {
    /// Remove the block and its markers.
    pub absent: bool,
    /// The name in the markers.
    pub name: String,
    /// The lines.
    pub block: String,
    /// How the markers are written.
    pub comment: Comment,
    /// Where a new block goes.
    pub anchor: Anchor,
}

/// How a file writes comments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comment {
    /// `# …`
    #[default]
    #[serde(rename = "#")]
    Hash,
    /// `; …`
    #[serde(rename = ";")]
    Semicolon,
    /// `// …`
    #[serde(rename = "//")]
    Slashes,
    /// `-- …`
    #[serde(rename = "--")]
    Dashes,
    /// `<!-- … -->`
    #[serde(rename = "<!-- -->")]
    Markup,
}

impl Comment {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Hash, Self::Semicolon, Self::Slashes, Self::Dashes, Self::Markup];

    /// It, as a manifest writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hash => "#",
            Self::Semicolon => ";",
            Self::Slashes => "//",
            Self::Dashes => "--",
            Self::Markup => "<!-- -->",
        }
    }

    fn of(self, text: &str) -> String {
        match self {
            Self::Markup => format!("<!-- {text} -->"),
            comment => format!("{} {text}", comment.as_str()),
        }
    }
}

impl BlockEdit {
    /// The lines that stand around the block.
    pub fn markers(&self) -> [String; 2] {
        ["BEGIN", "END"].map(|word| {
            let marker = self.comment.of(&format!("{word} ccm {}", self.name));
            marker.trim_end_matches([' ', '\t']).to_owned()
        })
    }

    /// The lines of the block. A manifest may write line ends of either kind.
    fn lines(&self) -> Vec<Vec<u8>> {
        let text = self.block.strip_suffix('\n').unwrap_or(&self.block);
        if self.block.is_empty() {
            return Vec::new();
        }
        text.split('\n').map(|line| line.trim_end_matches('\r').as_bytes().to_vec()).collect()
    }

    /// The first line of the block that is one of its own markers.
    pub fn own_marker(&self) -> Option<String> {
        let markers = self.markers();
        let lines = self.lines();
        let is_marker = |line: &&Vec<u8>| markers.iter().any(|marker| is_marker(line, marker));
        lines.iter().find(is_marker).map(|line| shown(line))
    }
}

fn is_marker(line: &[u8], marker: &str) -> bool {
    lines::trim_end(line) == marker.as_bytes()
}

/// Where a block is: the indices of its marker lines.
fn find(lines: &[Line<'_>], edit: &BlockEdit) -> Result<Option<Range<usize>>> {
    let [begins, ends] = edit.markers().map(|marker| {
        let indices = lines.iter().enumerate().filter(|(_, line)| is_marker(line.text, &marker));
        indices.map(|(index, _)| index).collect::<Vec<usize>>()
    });
    match (&begins[..], &ends[..]) {
        ([], []) => Ok(None),
        ([begin], [end]) if begin < end => Ok(Some(*begin..*end)),
        _ => Err(damaged(edit, &begins, &ends)),
    }
}

fn damaged(edit: &BlockEdit, begins: &[usize], ends: &[usize]) -> Refusal {
    let [begin, end] = edit.markers();
    let place = |marker: &str, found: &[usize]| match found {
        [] => format!("`{marker}` is missing"),
        [index] => format!("`{marker}` is line {}", index + 1),
        several => {
            format!("`{marker}` is in lines {}", listed(several.iter().map(|index| index + 1)))
        }
    };
    Refusal::new(format!(
        "the markers of the block are not in order: {}, {}",
        place(&begin, begins),
        place(&end, ends)
    ))
    .hint("repair or remove the marker lines; ccm changed nothing")
}

pub(crate) fn plan(text: &[u8], edit: &BlockEdit) -> Result<Plan> {
    if let Some(line) = edit.own_marker() {
        return Err(Refusal::new(format!("the block contains its own marker line `{line}`")));
    }
    let lines = lines::split(text);
    let wanted = edit.lines();
    let mut plan = Plan::default();
    match find(&lines, edit)? {
        Some(found) if edit.absent => {
            let former = &lines[found.start + 1..found.end];
            plan.remove(lines[found.start].start..lines[found.end].stop());
            plan.changes.push(Change::new("block", Some(joined(former)), None));
        }
        Some(found) => {
            let inner = &lines[found.start + 1..found.end];
            let same = inner.iter().map(|line| line.text).eq(wanted.iter().map(Vec::as_slice));
            if !same {
                let range = lines[found.start].stop()..lines[found.end].start;
                plan.replace(range, lines::ended(&wanted, lines[found.start].end));
                let change = Change::new("block", Some(joined(inner)), Some(text_of(&wanted)));
                plan.changes.push(change);
            }
        }
        None if edit.absent => {}
        None => {
            let index = edit.anchor.index(&lines)?;
            let [begin, end] = edit.markers().map(String::into_bytes);
            let all: Vec<Vec<u8>> =
                std::iter::once(begin).chain(wanted.iter().cloned()).chain([end]).collect();
            let (at, new) = lines::inserted(text, &lines, index, &all);
            plan.insert(at, new);
            plan.changes.push(Change::new("block", None, Some(text_of(&wanted))));
        }
    }
    Ok(plan)
}

fn joined(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| shown(line.text) + "\n").collect()
}

fn text_of(lines: &[Vec<u8>]) -> String {
    lines.iter().map(|line| shown(line) + "\n").collect()
}
