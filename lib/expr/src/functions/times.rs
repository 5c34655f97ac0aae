//! Dates and durations.

use govalue::{Duration, Str, Value, Zone, layout};

use super::Args;
use crate::environment::Shared;

/// The layouts a date may have when none is given, in the order they are tried.
const LAYOUTS: [&str; 7] = [
    layout::DATE_ONLY,
    "15:04:05",
    layout::DATE_TIME,
    layout::RFC3339,
    layout::RFC822,
    layout::RFC850,
    layout::RFC1123,
];

pub(super) fn now(args: &Args<'_>, shared: &Shared) -> Result<Value, String> {
    let now = (shared.clock)();
    match args.optional(0) {
        None => Ok(now.into()),
        Some(Value::Location(zone)) => Ok(now.in_zone(zone.clone()).into()),
        Some(other) => Err(args.misfit(other)),
    }
}

pub(super) fn duration(text: &Str) -> Result<Value, String> {
    Duration::parse(&text.to_str_lossy()).map(Value::from)
}

pub(super) fn timezone(name: &Str) -> Result<Value, String> {
    zone(name).map(Value::Location)
}

fn zone(name: &Str) -> Result<Zone, String> {
    Zone::load(&name.to_str_lossy()).map_err(|error| error.to_string())
}

/// `date([zone,] text [, layout [, zone]])`
pub(super) fn date(args: &Args<'_>) -> Result<Value, String> {
    let (mut zone_used, values) = match args.values {
        [Value::Location(zone), rest @ ..] => (zone.clone(), rest),
        all => (Zone::UTC, all),
    };
    let args = Args { name: args.name, values };
    let text = args.string(0)?.to_str_lossy();
    if args.optional(1).is_none() {
        return LAYOUTS
            .iter()
            .find_map(|layout| layout::parse_in(layout, &text, &zone_used).ok())
            .map(Value::from)
            .ok_or_else(|| format!("invalid date {text}"));
    }
    let layout = args.string(1)?.to_str_lossy();
    if args.optional(2).is_some() {
        zone_used = zone(args.string(2)?)?;
    }
    layout::parse_in(&layout, &text, &zone_used).map(Value::from).map_err(|error| error.to_string())
}
