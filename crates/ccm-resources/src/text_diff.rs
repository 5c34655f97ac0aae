//! What changes in a text, as a unified diff.

use std::fmt::Write as _;

use similar::TextDiff;

/// Longer diffs are cut: a person wants to see what changes, not all of it.
const MAX_LINES: usize = 500;

/// Texts longer than this are not compared line by line.
pub(crate) const MAX_TEXT: u64 = 1 << 20;

/// What is said of a file that a diff must not show.
pub(crate) fn hidden(path: &str) -> String {
    format!("{path}: not shown, its mode hides it from others (--diff=all)\n")
}

/// What is said of a file that has no diff.
pub(crate) fn no_text(path: &str) -> String {
    format!("{path}: not shown, not a short text\n")
}

/// The diff of a file, which was not there before if `old` is `None`.
pub(crate) fn unified(path: &str, old: Option<&str>, new: &str) -> String {
    let (before, old) = old.map_or(("/dev/null", ""), |old| (path, old));
    if old.contains('\0') || new.contains('\0') {
        return no_text(path);
    }
    let diff = TextDiff::from_lines(old, new);
    let text = diff.unified_diff().context_radius(3).header(before, path).to_string();
    let lines = text.lines().count();
    if lines <= MAX_LINES {
        return text;
    }
    let mut cut: String = text.split_inclusive('\n').take(MAX_LINES).collect();
    let _ = writeln!(cut, "… {} more lines", lines - MAX_LINES);
    cut
}
