//! `html`, `js` and `urlquery`.

use govalue::is_print;

use super::sprint;
use crate::error::Fail;
use crate::functions::{Arguments, Context, Outcome};
use crate::val::Val;

/// What the arguments print as, where nothing prints as `<no value>`.
fn text(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Result<Vec<u8>, Fail> {
    let shown: Vec<Val> = arguments
        .0
        .iter()
        .map(|value| if value.is_nothing() { Val::from("<no value>") } else { value.clone() })
        .collect();
    sprint(context, &shown)
}

pub(super) fn html(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = text(context, arguments)?;
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if out.len() > context.budget.output {
            break;
        }
        match byte {
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            0 => out.extend_from_slice("\u{FFFD}".as_bytes()),
            _ => out.push(byte),
        }
    }
    context.budget.spend_bytes(out.len())?;
    Ok(out.into())
}

pub(super) fn js(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    use std::fmt::Write as _;
    let bytes = text(context, arguments)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if out.len() > context.budget.output {
            break;
        }
        match c {
            '\\' => out.push_str(r"\\"),
            '\'' => out.push_str(r"\'"),
            '"' => out.push_str("\\\""),
            '<' | '>' | '&' | '=' | '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            _ if c.is_ascii() || is_print(c) => out.push(c),
            _ => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
        }
    }
    context.budget.spend_bytes(out.len())?;
    Ok(out.into())
}

pub(super) fn urlquery(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    use std::fmt::Write as _;
    let text = text(context, arguments)?;
    let mut out = String::with_capacity(text.len());
    for byte in text {
        if out.len() > context.budget.output {
            break;
        }
        match byte {
            b' ' => out.push('+'),
            b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                out.push(byte.into());
            }
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    context.budget.spend_bytes(out.len())?;
    Ok(out.into())
}
