//! Formats text for one line: escapes, truncates and wraps it; formats
//! durations.

use std::borrow::Cow;
use std::time::Duration;

/// Escapes control characters, so that untrusted strings cannot inject newlines
/// or terminal sequences.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    let is_obeyed = |c: char| c.is_control() && c != '\t';
    // Without an early end, which would cost more than it saves.
    let is_plain =
        text.bytes().fold(true, |so_far, byte| so_far & matches!(byte, b' '..=b'~' | b'\t'));
    if is_plain || !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_obeyed(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// The same for each line of a text that may have several.
pub(super) fn printable_lines(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') {
        return printable(text);
    }
    Cow::Owned(text.split('\n').map(printable).collect::<Vec<_>>().join("\n"))
}

/// How many columns a text takes, as far as each character takes one.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// A text of at most `room` columns: its end is cut off.
pub(super) fn cut_end<'a>(text: &'a str, room: usize, ellipsis: &str) -> Cow<'a, str> {
    // Bytes are at least as many as columns.
    if text.len() <= room || columns(text) <= room {
        return Cow::Borrowed(text);
    }
    let kept: String = text.chars().take(room.saturating_sub(columns(ellipsis))).collect();
    Cow::Owned(kept + ellipsis)
}

/// A text of at most `room` columns: its middle is cut out, as the ends of a
/// path tell more.
pub(super) fn cut_middle<'a>(text: &'a str, room: usize, ellipsis: &str) -> Cow<'a, str> {
    if text.len() <= room {
        return Cow::Borrowed(text);
    }
    let all: Vec<char> = text.chars().collect();
    if all.len() <= room {
        return Cow::Borrowed(text);
    }
    let kept = room.saturating_sub(columns(ellipsis));
    let (start, end) = (kept / 2, kept - kept / 2);
    let head = all[..start].iter().copied();
    Cow::Owned(head.chain(ellipsis.chars()).chain(all[all.len() - end..].iter().copied()).collect())
}

/// A text broken between words into lines of at most `room` columns. A word
/// that is longer has a line of its own.
pub(super) fn wrap(text: &str, room: Option<usize>) -> Vec<Cow<'_, str>> {
    break_at(text, room, |_| true)
}

/// The same, broken only behind commas and semicolons: a count stays with what
/// it counts.
pub(super) fn wrap_list(text: &str, room: Option<usize>) -> Vec<Cow<'_, str>> {
    break_at(text, room, |before| before.ends_with([',', ';']))
}

/// Breaks a text at blanks, where `is_end` allows it for what stands before.
fn break_at(text: &str, room: Option<usize>, is_end: impl Fn(&str) -> bool) -> Vec<Cow<'_, str>> {
    let Some(room) = room.filter(|&room| columns(text) > room) else {
        return vec![Cow::Borrowed(text)];
    };
    let mut lines: Vec<String> = Vec::new();
    let mut part = String::new();
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        part.push_str(word);
        if words.peek().is_some() && !is_end(&part) {
            part.push(' ');
            continue;
        }
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(&part) <= room => {
                line.push(' ');
                line.push_str(&part);
            }
            _ => lines.push(std::mem::take(&mut part)),
        }
        part.clear();
    }
    lines.into_iter().map(Cow::Owned).collect()
}

/// A duration to the millisecond.
pub(super) fn brief(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds < 1000 {
        return format!("{milliseconds}ms");
    }
    let seconds = milliseconds / 1000;
    let rest = milliseconds % 1000;
    match seconds {
        0..60 => format!("{seconds}.{rest:03}s"),
        _ => format!("{}m{}.{rest:03}s", seconds / 60, seconds % 60),
    }
}

/// A duration with as many digits as tell it from others.
pub(super) fn precise(duration: Duration) -> String {
    if duration < Duration::from_millis(10) {
        return format!("{:.3}ms", duration.as_secs_f64() * 1000.0);
    }
    brief(duration)
}

/// A duration as people say it: two digits that matter.
pub(super) fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => {
            let tenths = duration.as_millis() / 100;
            format!("{}.{}s", tenths / 10, tenths % 10)
        }
        _ => format!("{}m{}s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(printable("/etc/motd ü"), "/etc/motd ü");
        assert_eq!(printable("a\nb\x1b[31m"), "a\\nb\\u{1b}[31m");
    }

    #[test]
    fn durations_are_given_to_the_millisecond() {
        for (milliseconds, exact, about) in [
            (0, "0ms", "0ms"),
            (12, "12ms", "12ms"),
            (999, "999ms", "999ms"),
            (1234, "1.234s", "1.2s"),
            (59_999, "59.999s", "59.9s"),
            (61_005, "1m1.005s", "1m1s"),
        ] {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!((brief(duration).as_str(), rough(duration).as_str()), (exact, about));
        }
    }

    #[test]
    fn long_texts_are_cut_where_it_hurts_least() {
        assert_eq!(cut_end("äbcdef", 6, "…"), "äbcdef");
        assert_eq!(cut_end("äbcdef", 4, "…"), "äbc…");
        assert_eq!(cut_end("abcdef", 5, "..."), "ab...");
        assert_eq!(cut_middle("file#/a/very/long/path", 11, "…"), "file#…/path");
        assert_eq!(cut_middle("short", 5, "…"), "short");
        assert_eq!(cut_middle("anything", 0, "…"), "…");
        assert_eq!(cut_end("anything", 0, "…"), "…");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        assert_eq!(wrap("one two three", Some(8)), ["one two", "three"]);
        assert_eq!(wrap("one two three", None), ["one two three"]);
        assert_eq!(wrap("incomprehensibilities a b", Some(4)), ["incomprehensibilities", "a b"]);
        assert_eq!(wrap("", Some(4)), [""]);
        assert_eq!(wrap_list("1 to do, 2 done; 3 left", Some(14)), ["1 to do,", "2 done; 3 left"]);
    }
}
