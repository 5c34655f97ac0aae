//! Strings and lists of strings. Lengths and positions count bytes, as in Go.

use govalue::{MapShape, Str};
use memchr::memmem;

use crate::error::Fail;
use crate::functions::Type::{Any, Int, String};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::{Dict, Items, Val};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("cat", &[], cat).rest(Any),
    Native::new("contains", &[String, String], |_, a| {
        Ok(memmem::find(a.bytes(1), a.bytes(0)).is_some().into())
    }),
    Native::new("hasPrefix", &[String, String], |_, a| {
        Ok(a.bytes(1).starts_with(a.bytes(0)).into())
    }),
    Native::new("hasSuffix", &[String, String], |_, a| Ok(a.bytes(1).ends_with(a.bytes(0)).into())),
    Native::new("hello", &[], |_, _| Ok("Hello!".into())),
    Native::new("indent", &[Int, String], |context, a| Ok(indented(context, a)?.into())),
    Native::new("join", &[String, Any], join),
    Native::new("lower", &[String], |context, a| mapped(context, a, |c| Some(lower(c)))),
    Native::new("nindent", &[Int, String], |context, a| {
        let mut text = indented(context, a)?;
        text.insert(0, b'\n');
        Ok(text.into())
    }),
    Native::new("plural", &[String, String, Int], |_, a| {
        Ok(a.get(usize::from(a.int(2) != 1)).clone())
    }),
    Native::new("quote", &[], |context, a| {
        quoted(context, a, |context, value| {
            Ok(govalue::quote(value.to_text(context.budget)?.as_bytes()).into_bytes())
        })
    })
    .rest(Any),
    Native::new("repeat", &[Int, String], repeat),
    Native::new("replace", &[String, String, String], |context, a| {
        Ok(replace(context, a.bytes(2), a.bytes(0), a.bytes(1))?.into())
    }),
    Native::new("sortAlpha", &[Any], sort_alpha),
    Native::new("split", &[String, String], |context, a| {
        let pieces = split(context, a.bytes(1), a.bytes(0), -1)?;
        numbered(context, pieces)
    }),
    Native::new("splitList", &[String, String], |context, a| {
        Ok(Val::strings(split(context, a.bytes(1), a.bytes(0), -1)?))
    }),
    Native::new("splitn", &[String, Int, String], |context, a| {
        let pieces = split(context, a.bytes(2), a.bytes(0), a.int(1))?;
        numbered(context, pieces)
    }),
    Native::new("squote", &[], |context, a| {
        quoted(context, a, |context, value| {
            Ok([b"'", value.print(context.budget)?.as_bytes(), b"'"].concat())
        })
    })
    .rest(Any),
    Native::new("substr", &[Int, Int, String], substr),
    Native::new("title", &[String], title),
    Native::new("toString", &[Any], |context, a| Ok(a.get(0).to_text(context.budget)?.into())),
    Native::new("toStrings", &[Any], |context, a| Ok(Val::strings(texts(context, a.get(0))?))),
    Native::new("trim", &[String], |_, a| Ok(a.text(0).trim().into())),
    Native::new("trimAll", &[String, String], trim_all),
    Native::new("trimPrefix", &[String, String], |_, a| {
        let text = a.bytes(1);
        Ok(text.strip_prefix(a.bytes(0)).unwrap_or(text).to_vec().into())
    }),
    Native::new("trimSuffix", &[String, String], |_, a| {
        let text = a.bytes(1);
        Ok(text.strip_suffix(a.bytes(0)).unwrap_or(text).to_vec().into())
    }),
    Native::new("trimall", &[String, String], trim_all),
    Native::new("trunc", &[Int, String], trunc),
    Native::new("upper", &[String], |context, a| mapped(context, a, |c| Some(upper(c)))),
];

/// One character for one, as Go maps them: `ß` has no upper case.
pub(super) fn upper(c: char) -> char {
    let mut mapped = c.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(upper), None) => upper,
        _ => c,
    }
}

pub(super) fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// The text with each character replaced.
pub(super) fn mapped(
    context: &mut Context<'_>,
    arguments: &Arguments<'_>,
    map: impl FnMut(char) -> Option<char>,
) -> Outcome {
    let text: std::string::String = arguments.text(0).chars().filter_map(map).collect();
    context.budget.spend_bytes(text.len())?;
    Ok(text.into())
}

/// A list as texts, without its nulls; anything else as the only text.
pub(super) fn texts(context: &mut Context<'_>, value: &Val) -> Result<Vec<Str>, Fail> {
    let Some(items) = value.items() else {
        if value.is_nothing() {
            return Ok(Vec::new());
        }
        return Ok(vec![value.to_text(context.budget)?]);
    };
    context.budget.spend(items.len())?;
    items
        .iter()
        .filter(|item| !item.is_nothing())
        .map(|item| item.to_text(context.budget))
        .collect()
}

fn cat(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut shown = Vec::new();
    for value in arguments.0.iter().filter(|value| !value.is_nothing()) {
        shown.push(value.print(context.budget)?);
    }
    glued(context, &shown, b" ")
}

fn join(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let texts = texts(context, arguments.get(1))?;
    glued(context, &texts, arguments.bytes(0))
}

fn glued(context: &mut Context<'_>, texts: &[Str], between: &[u8]) -> Outcome {
    let length = texts.iter().map(|text| text.len() + between.len()).sum();
    context.budget.spend_bytes(length)?;
    let pieces: Vec<&[u8]> = texts.iter().map(Str::as_bytes).collect();
    Ok(pieces.join(between).into())
}

fn quoted(
    context: &mut Context<'_>,
    arguments: &Arguments<'_>,
    quote: fn(&mut Context<'_>, &Val) -> Result<Vec<u8>, Fail>,
) -> Outcome {
    let mut out = Vec::new();
    for value in arguments.0.iter().filter(|value| !value.is_nothing()) {
        out.push(quote(context, value)?);
    }
    let text = out.join(&b' ');
    context.budget.spend_bytes(text.len())?;
    Ok(text.into())
}

fn repeat(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let count = usize::try_from(arguments.int(0)).map_err(|_| "strings: negative Repeat count")?;
    let text = arguments.bytes(1);
    context.budget.spend_bytes(text.len().saturating_mul(count))?;
    Ok(text.repeat(count).into())
}

fn indented(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Result<Vec<u8>, Fail> {
    let spaces = usize::try_from(arguments.int(0)).map_err(|_| "strings: negative Repeat count")?;
    let text = arguments.bytes(1);
    let lines = memchr::memchr_iter(b'\n', text).count() + 1;
    context.budget.spend_bytes(text.len().saturating_add(spaces.saturating_mul(lines)))?;
    let margin = b" ".repeat(spaces);
    let mut out = margin.clone();
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            out.push(b'\n');
            out.extend_from_slice(&margin);
        }
        out.extend_from_slice(line);
    }
    Ok(out)
}

/// Where each character ends; a byte that is part of none counts as one.
fn boundaries(text: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            at += c.len_utf8();
            ends.push(at);
        }
        for _ in chunk.invalid() {
            at += 1;
            ends.push(at);
        }
    }
    ends
}

fn replace(
    context: &mut Context<'_>,
    text: &[u8],
    old: &[u8],
    new: &[u8],
) -> Result<Vec<u8>, Fail> {
    let count = if old.is_empty() { text.len() + 1 } else { memmem::find_iter(text, old).count() };
    context.budget.spend(count)?;
    let places: Vec<usize> = if old.is_empty() {
        std::iter::once(0).chain(boundaries(text)).collect()
    } else {
        memmem::find_iter(text, old).collect()
    };
    let grown = new.len().saturating_sub(old.len()).saturating_mul(places.len());
    context.budget.spend_bytes(text.len().saturating_add(grown))?;
    let mut out = Vec::new();
    let mut done = 0;
    for place in places {
        out.extend_from_slice(&text[done..place]);
        out.extend_from_slice(new);
        done = place + old.len();
    }
    out.extend_from_slice(&text[done..]);
    Ok(out)
}

/// At most `most` pieces, all of them if that is negative.
fn split(context: &mut Context<'_>, text: &[u8], by: &[u8], most: i64) -> Result<Vec<Str>, Fail> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(Vec::new());
    }
    context.budget.spend_bytes(text.len())?;
    let mut pieces = Vec::new();
    let mut done = 0;
    if by.is_empty() {
        context.budget.spend_items(text.len().min(most))?;
        for end in boundaries(text) {
            let end = if pieces.len() + 1 == most { text.len() } else { end };
            if done < end {
                pieces.push(Str::from_bytes(&text[done..end]));
            }
            done = end;
        }
    } else {
        for place in memmem::find_iter(text, by).take(most - 1) {
            context.budget.spend_items(1)?;
            pieces.push(Str::from_bytes(&text[done..place]));
            done = place + by.len();
        }
        pieces.push(Str::from_bytes(&text[done..]));
    }
    Ok(pieces)
}

/// `_0`, `_1` and so on, so that templates can say `._1`.
fn numbered(context: &mut Context<'_>, pieces: Vec<Str>) -> Outcome {
    // Each has a name that is made for it, too.
    context.budget.spend_items(pieces.len().saturating_mul(3))?;
    let members = pieces.into_iter().enumerate();
    let entries =
        members.map(|(index, piece)| (format!("_{index}").into(), Val::from(piece))).collect();
    Ok(Dict::with(MapShape::Strings, entries).into())
}

fn sort_alpha(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut texts = match arguments.get(0) {
        Val::Nil | Val::Missing => vec!["<nil>".into()],
        value => texts(context, value)?,
    };
    context
        .budget
        .spend(texts.len().saturating_mul(texts.len().checked_ilog2().unwrap_or(0) as usize + 1))?;
    texts.sort();
    Ok(Val::list_of(Items::Strings, texts.into_iter().map(Val::Str).collect()))
}

fn substr(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.bytes(2);
    let (start, end) = (arguments.int(0), arguments.int(1));
    let length = text.len() as i64;
    let (start, end) = match (start, end) {
        (i64::MIN..=-1, end) => (0, end),
        (start, end) if end < 0 || end > length => (start, length),
        both => both,
    };
    let out_of_range = || format!("slice bounds out of range [{start}:{end}]");
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let (start, end) = range.ok_or_else(out_of_range)?;
    Ok(text.get(start..end).ok_or_else(out_of_range)?.to_vec().into())
}

fn trunc(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.bytes(1);
    let count = arguments.int(0);
    let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    Ok(match size {
        _ if size >= text.len() => text,
        _ if count < 0 => &text[text.len() - size..],
        _ => &text[..size],
    }
    .to_vec()
    .into())
}

fn trim_all(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let set: Vec<char> = arguments.text(0).chars().collect();
    Ok(arguments.text(1).trim_matches(|c| set.contains(&c)).into())
}

/// Upper case for the first letter of each word, where a word ends as Go's old
/// rule says: after the apostrophe of `it's`, too.
fn title(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut start = true;
    mapped(context, arguments, |c| {
        let shown = if start { upper(c) } else { c };
        start = match c {
            '_' => false,
            _ if c.is_ascii() => !c.is_ascii_alphanumeric(),
            _ if c.is_alphanumeric() => false,
            _ => c.is_whitespace(),
        };
        Some(shown)
    })
}
