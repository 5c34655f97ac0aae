//! Functions of strings.

use govalue::{Str, Value};
use memchr::memmem;

use super::Args;
use crate::vm::{Budget, Failure, to_int};

/// Where `needle` first is; an empty one is at the start.
pub(crate) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    memmem::find(text, needle)
}

pub(super) fn find_last(text: &[u8], needle: &[u8]) -> Option<usize> {
    memmem::rfind(text, needle)
}

pub(super) fn trim(args: &Args<'_>) -> Result<Value, String> {
    let text = args.string(0)?;
    if args.optional(1).is_none() {
        return Ok(trim_runes(text, char::is_whitespace).into());
    }
    let cut = args.string(1)?.to_str_lossy();
    Ok(trim_runes(text, |c| cut.contains(c)).into())
}

/// Removes characters from both ends; bytes that are none stay.
fn trim_runes(text: &Str, cut: impl Fn(char) -> bool) -> Str {
    if let Some(text) = text.as_str() {
        return text.trim_matches(&cut).into();
    }
    let cut = |rune: &&[u8]| std::str::from_utf8(rune).is_ok_and(|rune| rune.chars().all(&cut));
    let runes: Vec<&[u8]> = text.rune_bytes().collect();
    let start = runes.iter().take_while(|rune| cut(rune)).count();
    let end = runes[start..].iter().rev().take_while(|rune| cut(rune)).count();
    Str::from(runes[start..runes.len() - end].concat())
}

pub(super) fn trim_prefix(args: &Args<'_>) -> Result<Value, String> {
    let text = args.string(0)?;
    let prefix = if args.optional(1).is_some() { args.bytes(1)? } else { b" " };
    Ok(match text.as_bytes().strip_prefix(prefix) {
        Some(rest) => Str::from_bytes(rest).into(),
        None => text.clone().into(),
    })
}

pub(super) fn trim_suffix(args: &Args<'_>) -> Result<Value, String> {
    let text = args.string(0)?;
    let suffix = if args.optional(1).is_some() { args.bytes(1)? } else { b" " };
    Ok(match text.as_bytes().strip_suffix(suffix) {
        Some(rest) => Str::from_bytes(rest).into(),
        None => text.clone().into(),
    })
}

pub(super) fn upper(text: &Str) -> String {
    text.runes().map(simple_upper).collect()
}

pub(super) fn lower(text: &Str) -> String {
    text.runes().map(simple_lower).collect()
}

/// One character to one character; where Unicode has several, Go has the
/// simple mapping or none.
fn simple_upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    if let (Some(single), None) = (upper.next(), upper.next()) {
        return single;
    }
    // Greek letters with iota subscript have capitals of their own.
    let code = c as u32;
    let capital = match code {
        0x1f80..=0x1faf if code & 8 == 0 => code + 8,
        0x1fb3 | 0x1fc3 | 0x1ff3 => code + 9,
        _ => code,
    };
    char::from_u32(capital).unwrap_or(c)
}

fn simple_lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(single), None) => single,
        (Some(first), _) => first,
        _ => c,
    }
}

/// What a part of a string takes beside its bytes.
const PART_COST: usize = 32;

/// Cuts at the separator, at most into `limit` parts; `keep` leaves it at the
/// end of each part.
pub(super) fn split(args: &Args<'_>, keep: bool, budget: &mut Budget) -> Result<Value, Failure> {
    let (text, separator) = (args.string(0)?, args.string(1)?);
    let limit = if args.optional(2).is_some() { to_int(args.value(2))? } else { -1 };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts: Vec<Value> = Vec::new();
    let mut rest = text.as_bytes();
    if limit == 0 {
        return Ok(parts.into());
    }
    if separator.is_empty() {
        for rune in text.rune_bytes() {
            budget.make(1)?;
            budget.string(parts.len() * PART_COST)?;
            if parts.len() + 1 == limit {
                break;
            }
            parts.push(Str::from_bytes(rune).into());
            rest = &rest[rune.len()..];
        }
        if !rest.is_empty() {
            parts.push(Str::from_bytes(rest).into());
        }
        return Ok(parts.into());
    }
    while parts.len() + 1 < limit {
        let Some(at) = find(rest, separator.as_bytes()) else {
            break;
        };
        budget.make(1)?;
        budget.string(parts.len() * PART_COST)?;
        let end = if keep { at + separator.len() } else { at };
        parts.push(Str::from_bytes(&rest[..end]).into());
        rest = &rest[at + separator.len()..];
    }
    budget.make(1)?;
    parts.push(Str::from_bytes(rest).into());
    Ok(parts.into())
}

pub(super) fn replace(args: &Args<'_>, budget: &mut Budget) -> Result<Value, Failure> {
    let (text, old, new) = (args.string(0)?, args.string(1)?, args.bytes(2)?);
    let limit = if args.optional(3).is_some() { to_int(args.value(3))? } else { -1 };
    let mut left = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut out = Vec::new();
    if old.is_empty() {
        // An empty text is found before every character and at the end.
        for rune in text.rune_bytes() {
            if left > 0 {
                out.extend_from_slice(new);
                left -= 1;
            }
            out.extend_from_slice(rune);
            budget.string(out.len())?;
        }
        if left > 0 {
            out.extend_from_slice(new);
        }
        return Ok(Str::from(out).into());
    }
    let mut rest = text.as_bytes();
    while left > 0 {
        let Some(at) = find(rest, old.as_bytes()) else {
            break;
        };
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(new);
        budget.string(out.len())?;
        budget.spend(1 + new.len() as u64 / 32)?;
        rest = &rest[at + old.len()..];
        left -= 1;
    }
    out.extend_from_slice(rest);
    Ok(Str::from(out).into())
}

/// How often a string may be repeated, as in the reference implementation.
const MAX_REPEAT: i64 = 1_000_000;

pub(super) fn repeat(args: &Args<'_>, budget: &mut Budget) -> Result<Value, Failure> {
    let (text, count) = (args.string(0)?, to_int(args.value(1))?);
    let Ok(times) = usize::try_from(count) else {
        return Err(Failure::value(format!("repeat takes a positive number, not {count}")));
    };
    if count > MAX_REPEAT {
        return Err(Failure::budget("memory"));
    }
    budget.string(text.len().saturating_mul(times))?;
    budget.spend((text.len() * times / 32) as u64)?;
    Ok(Str::from(text.as_bytes().repeat(times)).into())
}

pub(super) fn join(args: &Args<'_>, budget: &mut Budget) -> Result<Value, Failure> {
    let glue = if args.optional(1).is_some() { args.bytes(1)? } else { b"" };
    let mut out = Vec::new();
    for (index, item) in args.array(0)?.iter().enumerate() {
        let Value::String(text) = item else {
            return Err(Failure::value(format!("join takes strings, not {}", item.type_name())));
        };
        if index > 0 {
            out.extend_from_slice(glue);
        }
        out.extend_from_slice(text.as_bytes());
        budget.string(out.len())?;
        budget.spend((text.len() + glue.len()) as u64 / 32)?;
    }
    Ok(Str::from(out).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_maps_one_to_one() {
        assert_eq!(upper(&"straße ﬁ ǆ ᾳ é".into()), "STRAßE ﬁ Ǆ ᾼ É");
        assert_eq!(lower(&"ΑΣ İ É".into()), "ασ i é");
    }

    #[test]
    fn bytes_that_are_no_text_can_be_searched() {
        assert_eq!(find(b"\xffab", b"ab"), Some(1));
        assert_eq!(find_last(b"ab\xffab", b"ab"), Some(3));
        assert_eq!((find(b"\xff", b""), find_last(b"\xff", b"")), (Some(0), Some(1)));
    }
}
