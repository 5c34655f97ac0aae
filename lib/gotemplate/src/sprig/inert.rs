//! Functions that would reach outside: they exist, and find nothing.
//!
//! A template renders the same everywhere; what it may know of the machine is
//! for the caller to hand over as data or functions.

use crate::functions::Type::String;
use crate::functions::{Arguments, Context, Native, Outcome};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("env", &[String], |_, _| Ok("".into())),
    Native::new("expandenv", &[String], expand),
    Native::new("getHostByName", &[String], |_, _| Ok("".into())),
];

/// Every variable is unset: `$NAME` and `${NAME}` disappear.
fn expand(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0);
    let mut out = std::string::String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        rest = match after.chars().next() {
            Some('{') => match after.find('}') {
                Some(end) => &after[end + 1..],
                // Bad syntax: the opening is eaten.
                None => &after[1..],
            },
            // Special parameters of the shell are names of one character.
            Some('*' | '#' | '$' | '@' | '!' | '?' | '-' | '0'..='9') => &after[1..],
            Some(c) if name(c) => after.trim_start_matches(name),
            _ => {
                out.push('$');
                after
            }
        };
    }
    out.push_str(rest);
    Ok(out.into())
}
