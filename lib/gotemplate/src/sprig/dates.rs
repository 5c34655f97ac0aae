//! Dates and durations. Local time is UTC unless the clock says otherwise.

use govalue::{Duration, IntType, Time, Zone, layout};

use crate::functions::Type::{Any, String, Time as T};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::Val;

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("ago", &[Any], |context, a| {
        let since = context.now().sub(&moment(context, a.get(0)));
        Ok(since.round(Duration::SECOND).to_string().into())
    }),
    Native::new("date", &[String, Any], |context, a| {
        let zone = local(context);
        formatted(context, &a.text(0), a.get(1), zone)
    }),
    Native::new("dateInZone", &[String, Any, String], in_zone),
    Native::new("dateModify", &[String, T], modify),
    Native::new("date_in_zone", &[String, Any, String], in_zone),
    Native::new("date_modify", &[String, T], modify),
    Native::new("duration", &[Any], |_, a| {
        let seconds = match a.get(0) {
            Val::Str(text) => {
                text.as_str().and_then(|text| govalue::parse_int(text, 10).ok()).unwrap_or(0)
            }
            Val::Sized(IntType::Int64, value) => *value,
            _ => 0,
        };
        Ok(Duration(seconds.wrapping_mul(Duration::SECOND.0)).to_string().into())
    }),
    Native::new("durationRound", &[Any], |context, a| {
        let duration = match a.get(0) {
            Val::Str(text) => text.as_str().and_then(|text| Duration::parse(text).ok()),
            Val::Sized(IntType::Int64, value) => Some(Duration(*value)),
            Val::Time(time) => Some(context.now().sub(time)),
            _ => None,
        };
        Ok(rounded(duration.unwrap_or(Duration(0))).into())
    }),
    Native::new("htmlDate", &[Any], |context, a| {
        let zone = local(context);
        formatted(context, layout::DATE_ONLY, a.get(0), zone)
    }),
    Native::new("htmlDateInZone", &[Any, String], |context, a| {
        formatted(context, layout::DATE_ONLY, a.get(0), zone(&a.text(1)))
    }),
    Native::new("mustDateModify", &[String, T], must_modify),
    Native::new("mustToDate", &[String, String], parse),
    Native::new("must_date_modify", &[String, T], must_modify),
    Native::new("now", &[], |context, _| Ok(context.now().into())),
    Native::new("toDate", &[String, String], |context, a| {
        Ok(parse(context, a).unwrap_or_else(|_| Time::zero().into()))
    }),
    Native::new("unixEpoch", &[T], |_, a| Ok(a.time(0).unix().to_string().into())),
];

fn local(context: &Context<'_>) -> Zone {
    context.now().zone().clone()
}

/// An unknown zone is UTC.
fn zone(name: &str) -> Zone {
    Zone::load(name).unwrap_or(Zone::UTC)
}

/// A time, or seconds since 1970; anything else is now.
fn moment(context: &Context<'_>, value: &Val) -> Time {
    match value {
        Val::Time(time) => (**time).clone(),
        Val::Int(seconds) | Val::Sized(IntType::Int64 | IntType::Int32, seconds) => {
            Time::from_unix(*seconds, 0, local(context))
        }
        _ => context.now(),
    }
}

fn formatted(context: &mut Context<'_>, layout: &str, value: &Val, zone: Zone) -> Outcome {
    let text = moment(context, value).in_zone(zone).format(layout);
    context.budget.spend_bytes(text.len())?;
    Ok(text.into())
}

fn in_zone(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let name = arguments.text(2);
    let zone = if name == "Local" { local(context) } else { zone(&name) };
    formatted(context, &arguments.text(0), arguments.get(1), zone)
}

fn must_modify(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let duration = Duration::parse(&arguments.text(0))?;
    Ok(arguments.time(1).add(duration).into())
}

/// What is no duration changes nothing.
fn modify(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    Ok(must_modify(context, arguments).unwrap_or_else(|_| arguments.get(1).clone()))
}

fn parse(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let zone = local(context);
    match layout::parse_in(&arguments.text(0), &arguments.text(1), &zone) {
        Ok(time) => Ok(time.into()),
        Err(error) => Err(error.to_string().into()),
    }
}

/// The largest unit that fits more than once, and how often.
fn rounded(duration: Duration) -> std::string::String {
    let hour = Duration::HOUR.0.unsigned_abs();
    let units = [
        (hour * 24 * 365, "y"),
        (hour * 24 * 30, "mo"),
        (hour * 24, "d"),
        (hour, "h"),
        (hour / 60, "m"),
        (hour / 3600, "s"),
    ];
    let size = duration.0.unsigned_abs();
    match units.iter().find(|(unit, _)| size > *unit) {
        Some((unit, name)) => format!("{}{name}", size / unit),
        None => "0s".to_owned(),
    }
}
