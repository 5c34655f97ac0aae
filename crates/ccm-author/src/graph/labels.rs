//! Labels for graphs: one line, of limited length, with characters escaped that
//! a viewer would interpret.

use std::borrow::Cow;

/// The text on one line, with control characters, directional marks and what
/// XML cannot hold written as escapes.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => shown.extend(c.escape_default()),
            c if is_hidden(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{fdd0}'..='\u{fdef}')
        || c as u32 & 0xfffe == 0xfffe
}

/// How many columns of a monospaced font a text takes, rather too many than too
/// few.
pub(super) fn cells(text: &str) -> usize {
    text.chars().map(width).sum()
}

fn width(c: char) -> usize {
    if c as u32 >= 0x1100 && !matches!(c, '\u{2000}'..='\u{2dff}') { 2 } else { 1 }
}

/// The text in at most so many columns: a long one loses its middle, as the end
/// of a path says more than what comes before.
pub(super) fn shorten(text: &str, limit: usize) -> Cow<'_, str> {
    if cells(text) <= limit {
        return Cow::Borrowed(text);
    }
    let rest = limit.saturating_sub(1);
    let head = take(text.chars(), rest / 3);
    let tail: Vec<char> = take(text.chars().rev(), rest - rest / 3).collect();
    Cow::Owned(head.chain(['…']).chain(tail.into_iter().rev()).collect())
}

/// The first characters that fit.
fn take(characters: impl Iterator<Item = char>, limit: usize) -> impl Iterator<Item = char> {
    let mut used = 0;
    characters.take_while(move |&c| {
        used += width(c);
        used <= limit
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_becomes_visible() {
        assert_eq!(visible("/etc/motd ü 漢"), "/etc/motd ü 漢");
        assert_eq!(visible("a\nb\t\x1b[0m\0"), "a\\nb\\t\\u{1b}[0m\\u{0}");
        assert_eq!(visible("x\u{202e}y\u{ffff}\u{1fffe}"), "x\\u{202e}y\\u{ffff}\\u{1fffe}");
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shorten("short", 10), "short");
        assert_eq!(shorten("0123456789abcdef", 10), "012…abcdef");
        let wide = "漢".repeat(30);
        assert!(cells(&shorten(&wide, 11)) <= 11);
        assert_eq!(shorten("abc", 1), "…");
        assert_eq!(shorten("abc", 0), "…");
    }
}
