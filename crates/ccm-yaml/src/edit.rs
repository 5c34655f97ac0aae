//! Edits of YAML texts that change nothing but what they say.
//!
//! An [`Operation`] names a place by its path and what becomes of it. It turns
//! into [`Change`]s of the text; comments, styles, blank lines and line ends of
//! everything else stay as they are. After each edit the new text is read and
//! compared with what the operation makes of the old one. If that does not hold,
//! the edit is refused and the text stays.
//!
//! ```
//! use ccm_yaml::Source;
//! use ccm_yaml::edit::{Document, Operation, path};
//!
//! let source = Source::new("m.yaml", "mode: '0644'  # octal\nowner: root\n");
//! let mut document = Document::parse(source)?;
//! let set = Operation::Set { path: path(["mode"]), value: "0600".into(), beside: None };
//! let changes = document.apply(&[set]).unwrap();
//! assert_eq!(document.text(), "mode: '0600'  # octal\nowner: root\n");
//! assert_eq!(changes[0].text, "'0600'");
//! # Ok::<(), ccm_yaml::SyntaxError>(())
//! ```

mod block;
mod editor;
mod flow;
mod law;
mod lexer;
mod lines;
mod local;
mod neighbours;
mod paths;
mod pieces;
mod place;
mod plain;
mod replace;
mod tree;
mod write;

use std::fmt;
use std::ops::Range;
use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Source, Span, SyntaxError};
use editor::Editor;
use law::{Expected, Read};
use pieces::Pieces;
use tree::{Tree, Unread};

/// One step of a path: into a map by key, into a list by index.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Step {
    /// The key of a map.
    Key(String),
    /// The index of a list, from 0.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<String> for Step {
    fn from(key: String) -> Self {
        Self::Key(key)
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => write!(f, "{index}"),
        }
    }
}

/// A path of keys, or of indices.
pub fn path<T: Into<Step>>(steps: impl IntoIterator<Item = T>) -> Vec<Step> {
    steps.into_iter().map(Into::into).collect()
}

/// What is to be done to a document. As JSON: `{"op": "set", "path": ["a", 0],
/// "value": 1, "before": "b"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// Replaces the value at a path, or adds the last key of it to its map.
    Set {
        /// Where.
        path: Vec<Step>,
        /// The new value.
        value: Value,
        /// Where a new key goes; at the end if not said.
        #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
        beside: Option<Beside>,
    },
    /// Removes an entry or item with the comments that belong to it.
    Remove {
        /// Where.
        path: Vec<Step>,
    },
    /// Adds an item to a list, which then has the index.
    Insert {
        /// The list.
        path: Vec<Step>,
        /// The index that the item will have.
        index: usize,
        /// The new item.
        value: Value,
    },
    /// Moves an item within its list, or an entry within its map.
    Move {
        /// The item.
        path: Vec<Step>,
        /// The index that it will have.
        to: usize,
    },
    /// Repeats the text of an item, with its comments.
    Copy {
        /// The item.
        path: Vec<Step>,
        /// The index that the copy will have.
        to: usize,
    },
    /// Gives the last key of a path another name.
    Rename {
        /// Where.
        path: Vec<Step>,
        /// The new name.
        key: String,
    },
}

impl Operation {
    /// The path that it concerns.
    pub fn path(&self) -> &[Step] {
        match self {
            Self::Set { path, .. }
            | Self::Remove { path }
            | Self::Insert { path, .. }
            | Self::Move { path, .. }
            | Self::Copy { path, .. }
            | Self::Rename { path, .. } => path,
        }
    }
}

/// Where a new key goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Beside {
    /// Before this key.
    Before(String),
    /// Behind this key.
    After(String),
}

/// A part of the text before, and what stands there after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Bytes of the text before.
    pub span: Span,
    /// The replacement.
    pub text: String,
}

/// Where something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The key, for an entry of a map.
    pub key: Option<Span>,
    /// The value, without anchor and tag.
    pub value: Span,
    /// All that belongs to it: comments above it and behind it.
    pub whole: Span,
}

/// Why an edit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditErrorKind {
    /// The text is not YAML.
    Syntax,
    /// Nothing is at the path.
    Missing,
    /// The path or operation needs a map or a list, and there is something else.
    Kind,
    /// The key is there already.
    Duplicate,
    /// The place is inside of an alias.
    Alias,
    /// The key comes from a merge.
    Merged,
    /// An alias needs what would go.
    Anchored,
    /// The place cannot be edited as it is written.
    Unsupported,
}

impl EditErrorKind {
    /// The kind in one word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Missing => "missing",
            Self::Kind => "kind",
            Self::Duplicate => "duplicate",
            Self::Alias => "alias",
            Self::Merged => "merged",
            Self::Anchored => "anchored",
            Self::Unsupported => "unsupported",
        }
    }
}

/// An edit that was refused. The text is as it was.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct EditError {
    /// Why.
    pub kind: EditErrorKind,
    /// The message, in one line without a location.
    pub message: String,
    /// The bytes that are in the way.
    pub span: Option<Span>,
    /// Advice on how to fix the problem, for the `hint:` line.
    pub hint: Option<String>,
}

impl EditError {
    fn new(kind: EditErrorKind, at: Option<Range<usize>>, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), span: at.map(|at| span(&at)), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Nothing is there by that name.
    pub fn missing(message: String, hint: Option<String>) -> Self {
        Self { kind: EditErrorKind::Missing, message, span: None, hint }
    }

    /// There is one already.
    pub fn duplicate(message: String, span: Span) -> Self {
        Self { kind: EditErrorKind::Duplicate, message, span: Some(span), hint: None }
    }

    /// The edit is not made, for this reason.
    pub fn refused(message: String, hint: &str) -> Self {
        let hint = Some(hint.to_owned());
        Self { kind: EditErrorKind::Unsupported, message, span: None, hint }
    }

    fn unsupported(at: Option<Range<usize>>, message: impl Into<String>) -> Self {
        Self::new(EditErrorKind::Unsupported, at, message).hint("edit the text itself")
    }
}

impl From<SyntaxError> for EditError {
    fn from(error: SyntaxError) -> Self {
        let SyntaxError { message, span, hint } = error;
        Self { kind: EditErrorKind::Syntax, message, span: Some(span), hint }
    }
}

fn span(range: &Range<usize>) -> Span {
    Span { start: range.start as u32, end: range.end as u32 }
}

/// One list of changes out of several that were made one after the other;
/// `length` is that of the text before the first.
pub fn compose(length: usize, steps: impl IntoIterator<Item = Vec<Change>>) -> Vec<Change> {
    let mut pieces = Pieces::new(length);
    for changes in steps {
        for change in changes.into_iter().rev() {
            pieces.replace(&(change.span.start as usize..change.span.end as usize), change.text);
        }
    }
    pieces.changes()
}

/// A YAML document that can be edited.
#[derive(Debug)]
pub struct Document {
    source: Source,
    /// The tree, or from which byte on the text cannot be edited. An edit that
    /// was checked without it leaves it to whoever needs it next.
    tree: OnceLock<Result<Tree, usize>>,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// Returns why the text is not YAML.
    pub fn parse(source: Source) -> Result<Self, SyntaxError> {
        let tree = match Tree::read(&source) {
            Ok(tree) => Ok(tree),
            Err(Unread::OutOfStep(at)) => Err(at),
            Err(Unread::Syntax(error)) => return Err(error),
        };
        Ok(Self { source, tree: tree.into() })
    }

    fn tree(&self) -> Result<&Tree, usize> {
        let read = || {
            Tree::read(&self.source).map_err(|error| match error {
                Unread::OutOfStep(at) => at,
                Unread::Syntax(error) => error.span.start as usize,
            })
        };
        self.tree.get_or_init(read).as_ref().map_err(|at| *at)
    }

    /// The text as it is now.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// The source, for locations in the text.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the value at a path, with aliases and merges resolved.
    pub fn value(&self, path: &[Step]) -> Option<Value> {
        let read = self.read().ok()?;
        let id = Editor::new(read, false).reach(path)?;
        Some(read.value(id))
    }

    /// Whether comments belong to what is at a path, or stand in it.
    pub fn has_comments(&self, path: &[Step]) -> bool {
        let (Some(place), Ok(read)) = (self.locate(path), self.read()) else { return false };
        let whole = place.whole.start as usize..place.whole.end as usize;
        read.tree.comments.iter().any(|comment| whole.contains(&comment.start))
    }

    /// How many aliases repeat what is at a path, or what it stands in: an edit
    /// there changes these places too.
    pub fn aliases(&self, path: &[Step]) -> usize {
        let Ok(read) = self.read() else { return 0 };
        let tree = &read.tree;
        if tree.is_plain {
            return 0;
        }
        let Some(id) = Editor::new(read, false).reach(path) else { return 0 };
        let repeats = |node: &&tree::Node| match node.kind {
            tree::Kind::Alias(target) => tree.is_within(id, target),
            _ => false,
        };
        tree.nodes.iter().filter(repeats).count()
    }

    /// Applies operations one after the other, all of them or none. Returns the
    /// changes in order, not overlapping, by bytes of the text before.
    ///
    /// # Errors
    ///
    /// Returns why one of them was refused; the text is then as it was.
    pub fn apply(&mut self, operations: &[Operation]) -> Result<Vec<Change>, EditError> {
        let (changes, edited) = self.edited(operations)?;
        if let Some(edited) = edited {
            *self = edited;
        }
        Ok(changes)
    }

    /// As [`Document::apply`], with the new document beside this one; none if
    /// nothing changes.
    ///
    /// # Errors
    ///
    /// Returns why one of them was refused.
    pub fn edited(
        &self,
        operations: &[Operation],
    ) -> Result<(Vec<Change>, Option<Self>), EditError> {
        let mut pieces = Pieces::new(self.text().len());
        let mut edited: Option<Self> = None;
        let mut rest = operations;
        while !rest.is_empty() {
            let current = edited.as_ref().unwrap_or(self);
            let (count, changes, next) = current.step(rest)?;
            for (range, text) in changes.into_iter().rev() {
                pieces.replace(&range, text);
            }
            if let Some(next) = next {
                edited = Some(next);
            }
            rest = &rest[count..];
        }
        Ok((pieces.changes(), edited))
    }

    fn read(&self) -> Result<Read<'_>, EditError> {
        match self.tree() {
            Ok(tree) => Ok(Read { text: self.text(), tree }),
            Err(at) => {
                Err(EditError::unsupported(Some(at..at), "ccm cannot edit text in this YAML style"))
            }
        }
    }

    /// Does the first of the operations, with those behind it that can be done
    /// in the same pass. Gives their count, the changes, and what they make if
    /// that is something new.
    #[expect(clippy::type_complexity, reason = "only apply calls it")]
    fn step(
        &self,
        operations: &[Operation],
    ) -> Result<(usize, Vec<(Range<usize>, String)>, Option<Self>), EditError> {
        let read = self.read()?;
        let mut refused = None;
        for (is_careful, keeps_break) in [(false, false), (true, false), (true, true)] {
            let mut editor = Editor::new(read, is_careful);
            editor.keeps_break = keeps_break;
            let (count, expected) = editor.run(operations)?;
            let changes = editor.into_changes()?;
            if changes.is_empty() {
                return Ok((count, changes, None));
            }
            match self.made(&changes, &expected) {
                Ok(next) => return Ok((count, changes, Some(next))),
                Err(error) => refused.get_or_insert(error),
            };
        }
        let at = Editor::new(read, false).nearest(operations[0].path());
        Err(refused.unwrap_or_else(|| EditError::unsupported(None, String::new())).at(at))
    }

    /// The document that changes make, if it means what is expected.
    fn made(
        &self,
        changes: &[(Range<usize>, String)],
        expected: &Expected<'_>,
    ) -> Result<Self, EditError> {
        let refuse = |what: &str| {
            EditError::unsupported(None, format!("the edit would {what}, so ccm did not make it"))
        };
        let text = pieces::replaced(self.text(), changes);
        let source = Source::new(self.source.name(), text);
        if local::holds(self.read()?, changes, expected) {
            return Ok(Self { source, tree: OnceLock::new() });
        }
        let next = Self::parse(source)
            .map_err(|error| refuse(&format!("produce invalid YAML ({error})")))?;
        let (old, new) = (self.read()?, next.read()?);
        if !law::holds(old, new, expected) {
            return Err(refuse("change more than it says"));
        }
        Ok(next)
    }
}

impl EditError {
    fn at(mut self, at: Range<usize>) -> Self {
        self.span.get_or_insert_with(|| span(&at));
        self
    }
}
