//! `html`, `js` and `urlquery`.

use govalue::escape;

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
    paid(context, escape::html(&text, "\u{FFFD}", context.budget.output))
}

pub(super) fn js(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = text(context, arguments)?;
    paid(context, escape::javascript(&text, context.budget.output).into_bytes())
}

pub(super) fn urlquery(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = text(context, arguments)?;
    paid(context, escape::url_query(&text, context.budget.output).into_bytes())
}

fn paid(context: &mut Context<'_>, text: Vec<u8>) -> Outcome {
    context.budget.spend_bytes(text.len())?;
    Ok(text.into())
}
