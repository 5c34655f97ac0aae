//! Unified diffs of texts.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use ccm_model::Redactor;
use similar::TextDiff;

/// Longer diffs are cut: a person wants to see what changes, not all of it.
const MAX_LINES: usize = 500;

/// Texts longer than this are not compared line by line.
pub(crate) const MAX_TEXT: u64 = 1 << 20;

/// Of texts with more lines than this, changed lines are only counted: the time
/// that a diff takes grows with the square of the lines that differ.
const MAX_COMPARED: usize = 10_000;

/// A diff that takes longer becomes coarser: still right, not the shortest.
const MAX_TIME: Duration = Duration::from_millis(200);

/// The line for a file whose diff must not be shown, with the number of its
/// lines where that is known.
pub(crate) fn hidden(path: &str, lines: Option<u64>) -> String {
    let what = match lines {
        None => "not shown".to_owned(),
        Some(1) => "1 line not shown".to_owned(),
        Some(lines) => format!("{lines} lines not shown"),
    };
    format!("{path}: {what}, not world-readable; use --diff=all\n")
}

/// What the diff of a file leaves out that must not be shown, such as `12 lines`.
pub fn hidden_part(diff: &str) -> Option<&str> {
    let is_said = |line: &&str| line.ends_with("not shown, not world-readable; use --diff=all");
    let (before, _) = diff.lines().find(is_said)?.rsplit_once("not shown,")?;
    let (_, lines) = before.rsplit_once(": ").unwrap_or_default();
    let lines = lines.trim_end();
    Some(if lines.is_empty() { "some lines" } else { lines })
}

/// The line for a file without a diff.
pub(crate) fn no_text(path: &str) -> String {
    format!("{path}: not shown, binary or larger than 1 MiB\n")
}

/// The diff of a file, which was not there before if `old` is `None`.
pub fn unified(path: &str, old: Option<&str>, new: &str) -> String {
    let (before, old) = old.map_or(("/dev/null", ""), |old| (path, old));
    if old.contains('\0') || new.contains('\0') {
        return no_text(path);
    }
    if is_long(old) || is_long(new) {
        let (added, removed) = changed_lines(old, new);
        return format!("{path}: too long for a diff, +{added} -{removed} lines\n");
    }
    if old.is_empty() {
        return added(before, path, new);
    }
    let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(old, new);
    let text = diff.unified_diff().context_radius(3).header(before, path).to_string();
    let lines = text.lines().count();
    if lines <= MAX_LINES {
        return text;
    }
    let mut cut: String = text.split_inclusive('\n').take(MAX_LINES).collect();
    let _ = writeln!(cut, "… {} more lines", lines - MAX_LINES);
    cut
}

/// The diff of a file that the redactor finds secrets in. The lines that go may
/// hold a former secret that it does not know, so they are only counted.
pub(crate) fn redacted(redactor: &Redactor, path: &str, old: Option<&str>, new: &str) -> String {
    let diff = unified(path, old, new);
    let has_secrets = redactor.finds_in(new) || old.is_some_and(|old| redactor.finds_in(old));
    if has_secrets { without_removed(&diff) } else { diff }
}

/// A diff with the number of removed lines in their place.
fn without_removed(diff: &str) -> String {
    let mut lines = diff.split_inclusive('\n').peekable();
    let mut text = String::with_capacity(diff.len());
    // The names of the file begin so too.
    text.extend(lines.by_ref().take(2));
    while let Some(line) = lines.next() {
        if !line.starts_with('-') {
            text.push_str(line);
            continue;
        }
        let mut count = 1;
        while lines.next_if(|next| next.starts_with(['-', '\\'])).is_some_and(|next| {
            count += usize::from(next.starts_with('-'));
            true
        }) {}
        let noun = if count == 1 { "line" } else { "lines" };
        let _ = writeln!(text, "-[{count} {noun} not shown, the file contains secrets]");
    }
    text
}

/// Whether a text has too many lines for a diff; each has a byte at least.
fn is_long(text: &str) -> bool {
    text.len() > MAX_COMPARED && text.lines().nth(MAX_COMPARED).is_some()
}

/// The diff of a text that has only new lines: nothing need be compared.
fn added(before: &str, path: &str, new: &str) -> String {
    let mut text = String::with_capacity(new.len() + new.len() / 8 + 2 * path.len() + 64);
    let count = new.lines().count();
    let _ = match count {
        0 => return text,
        1 => writeln!(text, "--- {before}\n+++ {path}\n@@ -0,0 +1 @@"),
        _ => writeln!(text, "--- {before}\n+++ {path}\n@@ -0,0 +1,{count} @@"),
    };
    let is_whole = new.ends_with('\n');
    // The lines above count too, and the one about a missing line break.
    let total = count + 3 + usize::from(!is_whole);
    let shown = if total > MAX_LINES { MAX_LINES - 3 } else { count };
    for line in new.split_inclusive('\n').take(shown) {
        text.push('+');
        text.push_str(line);
    }
    if total > MAX_LINES {
        let _ = writeln!(text, "… {} more lines", total - MAX_LINES);
    } else if !is_whole {
        text.push_str("\n\\ No newline at end of file\n");
    }
    text
}

/// How many lines a diff of two texts adds and takes away.
pub(crate) fn line_counts(old: &str, new: &str) -> (u64, u64) {
    if is_long(old) || is_long(new) {
        return changed_lines(old, new);
    }
    let diff = TextDiff::configure().timeout(MAX_TIME).diff_lines(old, new);
    diff.iter_all_changes().fold((0, 0), |(added, removed), change| match change.tag() {
        similar::ChangeTag::Insert => (added + 1, removed),
        similar::ChangeTag::Delete => (added, removed + 1),
        similar::ChangeTag::Equal => (added, removed),
    })
}

/// How many lines only the new text has, and how many only the old one,
/// wherever they stand.
fn changed_lines(old: &str, new: &str) -> (u64, u64) {
    let mut balance: HashMap<&str, i64> = HashMap::new();
    for line in new.lines() {
        *balance.entry(line).or_default() += 1;
    }
    for line in old.lines() {
        *balance.entry(line).or_default() -= 1;
    }
    balance.values().fold((0, 0), |(added, removed), &count| match count {
        0.. => (added + count.unsigned_abs(), removed),
        _ => (added, removed + count.unsigned_abs()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(lines: std::ops::Range<usize>) -> String {
        lines.map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn what_is_hidden_is_found_again() {
        for (lines, part) in [(None, "some lines"), (Some(1), "1 line"), (Some(12), "12 lines")] {
            assert_eq!(hidden_part(&hidden("/etc/a: b", lines)), Some(part));
        }
        assert_eq!(hidden_part(&unified("/a", None, "not shown, not world-readable\n")), None);
    }

    #[test]
    fn long_texts_are_only_counted() {
        let most = numbered(0..MAX_COMPARED);
        let diff = unified("f", Some(&most), &most.replace("\n77\n", "\nx\n"));
        assert!(diff.contains("-77\n+x\n"), "{diff}");
        let more = numbered(5..MAX_COMPARED + 6);
        assert_eq!(unified("f", Some(&most), &more), "f: too long for a diff, +6 -5 lines\n");
        assert_eq!(unified("f", None, &more), "f: too long for a diff, +10001 -0 lines\n");
        assert_eq!(line_counts(&most, &more), (6, 5));
    }

    #[test]
    fn new_texts_are_shown_as_a_comparison_would_show_them() {
        for text in ["", "a", "a\n", "a\nb", "a\n\n", "\n", "a\r\nb\r\n", "é\tx\n--- y\n"] {
            let diff = TextDiff::configure().diff_lines("", text);
            let wanted = diff.unified_diff().context_radius(3).header("/dev/null", "f").to_string();
            assert_eq!(unified("f", None, text), wanted, "{text:?}");
            assert_eq!(unified("f", Some(""), text), wanted.replace("/dev/null", "f"), "{text:?}");
        }
        let long = unified("f", None, &numbered(0..600));
        assert_eq!(long.lines().count(), MAX_LINES + 1);
        assert!(long.ends_with("+496\n… 103 more lines\n"), "{long}");
    }

    #[test]
    fn lines_are_counted_as_the_diff_shows_them() {
        for (old, new, wanted) in [
            ("", "a\nb\n", (2, 0)),
            ("a\nb\n", "", (0, 2)),
            ("a\nb\nc\n", "a\nx\ny\nc\n", (2, 1)),
            ("a\nb\n", "b\na\n", (1, 1)),
            ("a", "a\n", (1, 1)),
        ] {
            assert_eq!(line_counts(old, new), wanted, "{old:?} {new:?}");
        }
    }
}
