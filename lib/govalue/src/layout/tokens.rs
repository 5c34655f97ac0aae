//! A layout cut into its elements.

/// One element of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Literal(&'a str),
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    UnderDay,
    ZeroDay,
    UnderYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperHalf,
    LowerHalf,
    Zone,
    Offset(Offset),
    Fraction { digits: usize, nines: bool, comma: bool },
}

/// A numeric offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Offset {
    /// `Z` stands for zero.
    pub(super) zulu: bool,
    pub(super) colon: bool,
    /// Hours, minutes, seconds: how many of them are there.
    pub(super) parts: u8,
}

/// Elements that are plain words, the longer before the shorter.
const WORDS: [(&str, Token<'static>); 20] = [
    ("January", Token::LongMonth),
    ("Monday", Token::LongWeekday),
    ("MST", Token::Zone),
    ("01", Token::ZeroMonth),
    ("002", Token::ZeroYearDay),
    ("02", Token::ZeroDay),
    ("03", Token::ZeroHour12),
    ("04", Token::ZeroMinute),
    ("05", Token::ZeroSecond),
    ("06", Token::Year),
    ("15", Token::Hour),
    ("1", Token::NumMonth),
    ("2006", Token::LongYear),
    ("2", Token::Day),
    ("__2", Token::UnderYearDay),
    ("3", Token::Hour12),
    ("4", Token::Minute),
    ("5", Token::Second),
    ("PM", Token::UpperHalf),
    ("pm", Token::LowerHalf),
];

const OFFSETS: [(&str, bool, u8); 5] = [
    ("070000", false, 3),
    ("07:00:00", true, 3),
    ("0700", false, 2),
    ("07:00", true, 2),
    ("07", false, 1),
];

/// Cuts a layout into elements and the text between them.
pub(super) fn tokens(mut layout: &str) -> impl Iterator<Item = Token<'_>> {
    let mut pending: Option<Token<'_>> = None;
    std::iter::from_fn(move || {
        if let Some(token) = pending.take() {
            return Some(token);
        }
        if layout.is_empty() {
            return None;
        }
        let (start, found) = layout
            .char_indices()
            .find_map(|(at, _)| element(layout, at).map(|found| (at, Some(found))))
            .unwrap_or((layout.len(), None));
        let literal = &layout[..start];
        layout = &layout[start + found.map_or(0, |(_, len)| len)..];
        match found {
            Some((token, _)) if literal.is_empty() => Some(token),
            Some((token, _)) => {
                pending = Some(token);
                Some(Token::Literal(literal))
            }
            None => Some(Token::Literal(literal)),
        }
    })
}

/// The element that starts at `at`, with its length.
fn element(layout: &str, at: usize) -> Option<(Token<'_>, usize)> {
    let rest = &layout[at..];
    let first = rest.as_bytes()[0];
    if matches!(first, b'-' | b'Z') {
        return OFFSETS.iter().find(|(text, ..)| rest[1..].starts_with(text)).map(
            |&(text, colon, parts)| {
                (Token::Offset(Offset { zulu: first == b'Z', colon, parts }), text.len() + 1)
            },
        );
    }
    if matches!(first, b'.' | b',') {
        return fraction(rest, first == b',');
    }
    // A year after an underscore is a year, not a padded day.
    if rest.starts_with("_2") && !rest.starts_with("_2006") {
        return Some((Token::UnderDay, 2));
    }
    // `Jan` and `Mon` are elements only when no lower case letter follows.
    for (name, token) in [("Jan", Token::Month), ("Mon", Token::Weekday)] {
        if rest.starts_with(name)
            && !rest.starts_with("January")
            && !rest.starts_with("Monday")
            && !rest[3..].starts_with(|c: char| c.is_ascii_lowercase())
        {
            return Some((token, 3));
        }
    }
    WORDS.iter().find(|(text, _)| rest.starts_with(text)).map(|&(text, token)| (token, text.len()))
}

/// `.000` or `.999` with no digit behind it.
fn fraction(rest: &str, comma: bool) -> Option<(Token<'_>, usize)> {
    let bytes = rest.as_bytes();
    let digit = *bytes.get(1).filter(|digit| matches!(digit, b'0' | b'9'))?;
    let digits = bytes[1..].iter().take_while(|byte| **byte == digit).count();
    if bytes.get(1 + digits).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    Some((Token::Fraction { digits, nines: digit == b'9', comma }, 1 + digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_inside_words_are_text() {
        let all: Vec<_> = tokens("Janet 2006Mon.09").collect();
        let fraction = Token::Fraction { digits: 3, nines: false, comma: false };
        assert_eq!(
            all,
            [Token::Literal("Janet "), Token::LongYear, Token::Weekday, Token::Literal(".09")]
        );
        assert_eq!(tokens("05.000").collect::<Vec<_>>(), [Token::ZeroSecond, fraction]);
    }
}
