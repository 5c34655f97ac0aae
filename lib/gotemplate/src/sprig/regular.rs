//! Regular expressions, in RE2's syntax.

use std::collections::HashMap;

use govalue::Str;
use govalue::regexp::{self, Regex};

use crate::error::Fail;
use crate::functions::Type::{Int, String};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::{Items, Val};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("mustRegexFind", &[String, String], find),
    Native::new("mustRegexFindAll", &[String, String, Int], find_all),
    Native::new("mustRegexMatch", &[String, String], is_match),
    Native::new("mustRegexReplaceAll", &[String, String, String], |context, a| {
        replace(context, a, false)
    }),
    Native::new("mustRegexReplaceAllLiteral", &[String, String, String], |context, a| {
        replace(context, a, true)
    }),
    Native::new("mustRegexSplit", &[String, String, Int], split),
    Native::new("regexFind", &[String, String], find),
    Native::new("regexFindAll", &[String, String, Int], find_all),
    Native::new("regexMatch", &[String, String], |context, a| {
        match is_match(context, a) {
            // A pattern that is wrong matches nothing.
            Err(fail) if fail.kind != crate::ErrorKind::Limit => Ok(false.into()),
            outcome => outcome,
        }
    }),
    Native::new("regexQuoteMeta", &[String], quote_meta),
    Native::new("regexReplaceAll", &[String, String, String], |context, a| {
        replace(context, a, false)
    }),
    Native::new("regexReplaceAllLiteral", &[String, String, String], |context, a| {
        replace(context, a, true)
    }),
    Native::new("regexSplit", &[String, String, Int], split),
];

/// Patterns compiled in this rendering: loops use the same one again and again.
pub(crate) type Cache = HashMap<Str, Regex>;

const CACHED: usize = 100;

fn compiled(context: &mut Context<'_>, pattern: &[u8]) -> Result<Regex, Fail> {
    let pattern = Str::from(pattern.to_vec());
    if let Some(regex) = context.regexes.get(&pattern) {
        return Ok(regex.clone());
    }
    // Compiling is slow, and slower for long patterns.
    let states = usize::try_from(regexp::cost(&pattern)).unwrap_or(usize::MAX);
    context.budget.spend((1000 + pattern.len() * 20).saturating_add(states))?;
    let regex = regexp::compile(&pattern).map_err(|reason| format!("{reason}: {pattern:?}"))?;
    if context.regexes.len() >= CACHED {
        context.regexes.clear();
    }
    context.regexes.insert(pattern, regex.clone());
    Ok(regex)
}

/// The first two arguments of every function here.
fn prepared<'a>(
    context: &mut Context<'_>,
    arguments: &'a Arguments<'_>,
) -> Result<(Regex, &'a [u8]), Fail> {
    let regex = compiled(context, arguments.bytes(0))?;
    let text = arguments.bytes(1);
    context.budget.spend(text.len() / 16 + 1)?;
    Ok((regex, text))
}

fn is_match(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let (regex, text) = prepared(context, arguments)?;
    Ok(regex.is_match(text).into())
}

fn find(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let (regex, text) = prepared(context, arguments)?;
    Ok(regex.find(text).map_or(&[][..], |found| found.as_bytes()).to_vec().into())
}

/// How many are wanted; all, if the number is negative.
fn wanted(arguments: &Arguments<'_>) -> usize {
    usize::try_from(arguments.int(2)).unwrap_or(usize::MAX)
}

fn find_all(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let (regex, text) = prepared(context, arguments)?;
    let mut found = Vec::new();
    for one in regex.find_iter(text).take(wanted(arguments)) {
        context.budget.spend_items(1)?;
        found.push(Val::from(one.as_bytes().to_vec()));
    }
    Ok(if found.is_empty() {
        Val::nil_list(Items::Strings)
    } else {
        Val::list_of(Items::Strings, found)
    })
}

fn replace(context: &mut Context<'_>, arguments: &Arguments<'_>, literal: bool) -> Outcome {
    let (regex, text) = prepared(context, arguments)?;
    let replacement = arguments.bytes(2);
    let mut out = Vec::new();
    let mut done = 0;
    for captures in regex.captures_iter(text) {
        let Some(whole) = captures.get(0) else { continue };
        out.extend_from_slice(&text[done..whole.start()]);
        if literal {
            out.extend_from_slice(replacement);
        } else {
            captures.expand(replacement, &mut out);
        }
        done = whole.end();
        context.budget.spend(1)?;
        if out.len() > context.budget.output {
            break;
        }
    }
    out.extend_from_slice(&text[done..]);
    context.budget.spend_bytes(out.len())?;
    Ok(out.into())
}

fn split(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let (regex, text) = prepared(context, arguments)?;
    let most = wanted(arguments);
    if most == 0 {
        return Ok(Val::nil_list(Items::Strings));
    }
    if text.is_empty() && !arguments.bytes(0).is_empty() {
        return Ok(Val::strings([""]));
    }
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let (mut start, mut end) = (0, 0);
    for found in regex.find_iter(text) {
        context.budget.spend_items(1)?;
        if pieces.len() + 1 == most {
            break;
        }
        end = found.start();
        // An empty match before the text splits off nothing.
        if found.end() > 0 {
            pieces.push(text[start..end].to_vec());
        }
        start = found.end();
    }
    if end != text.len() {
        pieces.push(text[start..].to_vec());
    }
    context.budget.spend_bytes(text.len())?;
    Ok(Val::strings(pieces))
}

fn quote_meta(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut out = Vec::new();
    for byte in arguments.bytes(0) {
        if br"\.+*?()|[]{}^$".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    context.budget.spend_bytes(out.len())?;
    Ok(out.into())
}
