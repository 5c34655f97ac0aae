//! Functions on text, as Go's `strings` has them.

use govalue::{Str, Value};

use super::Refusal;

/// Roughly what one item of a list costs.
const ITEM: usize = size_of::<Value>() * 2;

pub(super) fn lower(text: &Str) -> Str {
    text.runes().map(simple_lower).collect::<String>().into()
}

pub(super) fn upper(text: &Str) -> Str {
    text.runes().map(simple_upper).collect::<String>().into()
}

/// One character for one character: `ß` has no upper case of its own.
fn simple_upper(c: char) -> char {
    let code = u32::from(c);
    match code {
        // Greek letters with an iota below, which full case mapping spells out.
        0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => {
            char::from_u32(code + 8).unwrap_or(c)
        }
        0x1FB3 | 0x1FC3 | 0x1FF3 => char::from_u32(code + 9).unwrap_or(c),
        _ => single(c, c.to_uppercase()),
    }
}

fn simple_lower(c: char) -> char {
    // The one letter whose full lower case is two characters.
    if c == '\u{130}' { 'i' } else { single(c, c.to_lowercase()) }
}

fn single(c: char, mut mapped: impl ExactSizeIterator<Item = char>) -> char {
    match mapped.len() {
        1 => mapped.next().unwrap_or(c),
        _ => c,
    }
}

pub(super) fn trim(text: &Str) -> Str {
    match text.as_str() {
        Some(text) => text.trim().into(),
        None => Str::from_bytes(text.as_bytes().trim_ascii()),
    }
}

pub(super) fn repeat(text: &Str, count: i64, largest: usize) -> Result<Value, Refusal> {
    let count = usize::try_from(count)
        .map_err(|_| Refusal::Arguments("a negative number of repetitions".into()))?;
    match text.len().checked_mul(count) {
        Some(size) if size <= largest => Ok(Str::from(text.as_bytes().repeat(count)).into()),
        _ => Err(Refusal::TooLarge),
    }
}

/// A negative count replaces all.
pub(super) fn replace(
    text: &Str,
    old: &Str,
    new: &Str,
    count: i64,
    largest: usize,
) -> Result<Value, Refusal> {
    let (text, old, new) = (text.to_str_lossy(), old.to_str_lossy(), new.to_str_lossy());
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if new.len() > old.len() {
        let found = text.matches(&*old).count().min(count);
        let growth = found.checked_mul(new.len() - old.len());
        if growth
            .and_then(|growth| growth.checked_add(text.len()))
            .is_none_or(|size| size > largest)
        {
            return Err(Refusal::TooLarge);
        }
    }
    Ok(text.replacen(&*old, &new, count).into())
}

/// Without a separator, every character is a piece.
pub(super) fn split(text: &Str, separator: &Str, largest: usize) -> Result<Value, Refusal> {
    let (text, separator) = (text.to_str_lossy(), separator.to_str_lossy());
    let pieces = if separator.is_empty() {
        text.chars().count()
    } else {
        text.matches(&*separator).count() + 1
    };
    if pieces.saturating_mul(ITEM) > largest {
        return Err(Refusal::TooLarge);
    }
    Ok(if separator.is_empty() {
        Value::array(text.chars().map(|c| Value::from(c.to_string())))
    } else {
        Value::array(text.split(&*separator).map(Value::from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 1 << 20;

    #[test]
    fn case_mapping_is_one_to_one() {
        assert_eq!(upper(&"straße ŉ é".into()), "STRAßE ŉ É");
        assert_eq!(upper(&"\u{1F90}".into()), "\u{1F98}");
        assert_eq!(lower(&"ÀİΣ".into()), "àiσ");
        assert_eq!(upper(&Str::from_bytes(b"a\xff")), "A\u{FFFD}");
    }

    #[test]
    fn sizes_are_checked_before_anything_is_built() {
        assert_eq!(repeat(&"ab".into(), i64::MAX, LARGE), Err(Refusal::TooLarge));
        assert!(matches!(repeat(&"ab".into(), -1, LARGE), Err(Refusal::Arguments(_))));
        let wide = Str::from("x".repeat(2000));
        assert_eq!(replace(&wide, &"x".into(), &wide, -1, LARGE), Err(Refusal::TooLarge));
        assert_eq!(split(&"x".repeat(LARGE).into(), &"".into(), LARGE), Err(Refusal::TooLarge));
    }

    #[test]
    fn edges() {
        let found = |value: Result<Value, Refusal>| value.unwrap().to_string();
        assert_eq!(found(replace(&"abc".into(), &"".into(), &"-".into(), -1, LARGE)), "-a-b-c-");
        assert_eq!(found(replace(&"aaa".into(), &"a".into(), &"b".into(), 2, LARGE)), "bba");
        assert_eq!(split(&"".into(), &",".into(), LARGE).unwrap(), Value::array(["".into()]));
        assert_eq!(split(&"".into(), &"".into(), LARGE).unwrap(), Value::array([]));
        assert_eq!(found(split(&"aé".into(), &"".into(), LARGE)), "[a é]");
        assert_eq!(trim(&"\u{a0} x\n".into()), "x");
    }
}
