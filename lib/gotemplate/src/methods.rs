//! Methods of the few types that have some: times, durations, months,
//! weekdays, zones and versions.
#![expect(clippy::unnecessary_wraps, reason = "the tables want one signature")]

use std::rc::Rc;

use govalue::IntType;
use govalue::semver::Version as Semver;

use crate::functions::Type::{Any, Duration, Int, String, Time, Version};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::Val;

/// The method of this name, whose first parameter is the receiver.
pub(crate) fn find(receiver: &Val, name: &str) -> Option<&'static Native> {
    let methods = match receiver {
        Val::Time(_) => TIME,
        Val::Duration(_) => DURATION,
        Val::Sized(IntType::Month | IntType::Weekday, _) | Val::Zone(_) => TEXT,
        Val::Version(_) => VERSION,
        _ => return None,
    };
    methods.iter().find(|method| method.name == name)
}

fn int(value: i64) -> Outcome {
    Ok(Val::Int(value))
}

fn int64(value: i64) -> Outcome {
    Ok(Val::int64(value))
}

fn printed(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    Ok(arguments.get(0).print(context.budget)?.into())
}

const TEXT: &[Native] = &[Native::new("String", &[Any], printed)];

const TIME: &[Native] = &[
    Native::new("Add", &[Time, Duration], |_, a| Ok(a.time(0).add(a.duration(1)).into())),
    Native::new("AddDate", &[Time, Int, Int, Int], |_, a| {
        Ok(a.time(0).add_date(a.int(1), a.int(2), a.int(3)).into())
    }),
    Native::new("After", &[Time, Time], |_, a| {
        Ok((a.time(0).instant() > a.time(1).instant()).into())
    }),
    Native::new("Before", &[Time, Time], |_, a| {
        Ok((a.time(0).instant() < a.time(1).instant()).into())
    }),
    Native::new("Compare", &[Time, Time], |_, a| {
        int(a.time(0).instant().cmp(&a.time(1).instant()) as i64)
    }),
    Native::new("Day", &[Time], |_, a| int(a.time(0).day())),
    Native::new("Equal", &[Time, Time], |_, a| Ok(a.time(0).same_instant(&a.time(1)).into())),
    Native::new("Format", &[Time, String], |context, a| {
        let text = a.time(0).format(&a.text(1));
        context.budget.spend_bytes(text.len())?;
        Ok(text.into())
    }),
    Native::new("Hour", &[Time], |_, a| int(a.time(0).hour())),
    Native::new("IsDST", &[Time], |_, a| {
        let time = a.time(0);
        Ok(time.zone().is_dst_at(time.unix()).into())
    }),
    Native::new("IsZero", &[Time], |_, a| Ok(a.time(0).is_zero().into())),
    // Local time is UTC, as everywhere here.
    Native::new("Local", &[Time], |_, a| Ok(a.time(0).in_zone(govalue::Zone::UTC).into())),
    Native::new("Location", &[Time], |_, a| Ok(Val::Zone(a.time(0).zone().clone()))),
    Native::new("Minute", &[Time], |_, a| int(a.time(0).minute())),
    Native::new("Month", &[Time], |_, a| Ok(Val::Sized(IntType::Month, a.time(0).month().0))),
    Native::new("Nanosecond", &[Time], |_, a| int(a.time(0).nanosecond())),
    Native::new("Round", &[Time, Duration], |_, a| Ok(a.time(0).round(a.duration(1)).into())),
    Native::new("Second", &[Time], |_, a| int(a.time(0).second())),
    Native::new("String", &[Time], printed),
    Native::new("Sub", &[Time, Time], |_, a| Ok(Val::Duration(a.time(0).sub(&a.time(1))))),
    Native::new("Truncate", &[Time, Duration], |_, a| Ok(a.time(0).truncate(a.duration(1)).into())),
    Native::new("UTC", &[Time], |_, a| Ok(a.time(0).in_zone(govalue::Zone::UTC).into())),
    Native::new("Unix", &[Time], |_, a| int64(a.time(0).unix())),
    Native::new("UnixMicro", &[Time], |_, a| int64(a.time(0).unix_micro())),
    Native::new("UnixMilli", &[Time], |_, a| int64(a.time(0).unix_milli())),
    Native::new("UnixNano", &[Time], |_, a| int64(a.time(0).unix_nano())),
    Native::new("Weekday", &[Time], |_, a| Ok(Val::Sized(IntType::Weekday, a.time(0).weekday().0))),
    Native::new("Year", &[Time], |_, a| int(a.time(0).year())),
    Native::new("YearDay", &[Time], |_, a| int(a.time(0).year_day())),
];

const DURATION: &[Native] = &[
    Native::new("Abs", &[Duration], |_, a| Ok(Val::Duration(a.duration(0).abs()))),
    Native::new("Hours", &[Duration], |_, a| Ok(a.duration(0).hours().into())),
    Native::new("Microseconds", &[Duration], |_, a| int64(a.duration(0).0 / 1_000)),
    Native::new("Milliseconds", &[Duration], |_, a| int64(a.duration(0).0 / 1_000_000)),
    Native::new("Minutes", &[Duration], |_, a| Ok(a.duration(0).minutes().into())),
    Native::new("Nanoseconds", &[Duration], |_, a| int64(a.duration(0).0)),
    Native::new("Round", &[Duration, Duration], |_, a| {
        Ok(Val::Duration(a.duration(0).round(a.duration(1))))
    }),
    Native::new("Seconds", &[Duration], |_, a| Ok(a.duration(0).seconds().into())),
    Native::new("String", &[Duration], printed),
    Native::new("Truncate", &[Duration, Duration], |_, a| {
        Ok(Val::Duration(a.duration(0).truncate(a.duration(1))))
    }),
];

fn version(arguments: &Arguments<'_>, read: impl Fn(&Semver) -> Val) -> Outcome {
    arguments.version(0).map(read).ok_or_else(|| "not a version".into())
}

fn versions(arguments: &Arguments<'_>, read: impl Fn(std::cmp::Ordering) -> Val) -> Outcome {
    match (arguments.version(0), arguments.version(1)) {
        (Some(a), Some(b)) => Ok(read(a.cmp_precedence(b))),
        _ => Err("not a version".into()),
    }
}

fn uint64(value: u64) -> Val {
    Val::Sized(IntType::Uint64, value as i64)
}

fn changed(version: Semver) -> Val {
    Val::Version(Rc::new(version))
}

const VERSION: &[Native] = &[
    Native::new("Compare", &[Version, Version], |_, a| versions(a, |order| Val::Int(order as i64))),
    Native::new("Equal", &[Version, Version], |_, a| versions(a, |order| order.is_eq().into())),
    Native::new("GreaterThan", &[Version, Version], |_, a| {
        versions(a, |order| order.is_gt().into())
    }),
    Native::new("GreaterThanEqual", &[Version, Version], |_, a| {
        versions(a, |order| order.is_ge().into())
    }),
    Native::new("IncMajor", &[Version], |_, a| version(a, |version| changed(version.next_major()))),
    Native::new("IncMinor", &[Version], |_, a| version(a, |version| changed(version.next_minor()))),
    Native::new("IncPatch", &[Version], |_, a| version(a, |version| changed(version.next_patch()))),
    Native::new("LessThan", &[Version, Version], |_, a| versions(a, |order| order.is_lt().into())),
    Native::new("LessThanEqual", &[Version, Version], |_, a| {
        versions(a, |order| order.is_le().into())
    }),
    Native::new("Major", &[Version], |_, a| version(a, |version| uint64(version.major))),
    Native::new("Metadata", &[Version], |_, a| {
        version(a, |version| version.metadata.as_str().into())
    }),
    Native::new("Minor", &[Version], |_, a| version(a, |version| uint64(version.minor))),
    Native::new("Original", &[Version], |_, a| {
        version(a, |version| version.original.as_str().into())
    }),
    Native::new("Patch", &[Version], |_, a| version(a, |version| uint64(version.patch))),
    Native::new("Prerelease", &[Version], |_, a| {
        version(a, |version| version.prerelease.as_str().into())
    }),
    Native::new("SetMetadata", &[Version, String], |_, a| {
        let metadata = a.text(1);
        let version = a.version(0).ok_or("not a version")?;
        Ok(changed(version.with_metadata(&metadata)?))
    }),
    Native::new("SetPrerelease", &[Version, String], |_, a| {
        let prerelease = a.text(1);
        let version = a.version(0).ok_or("not a version")?;
        Ok(changed(version.with_prerelease(&prerelease)?))
    }),
    Native::new("String", &[Version], printed),
];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use govalue::Value;

    use super::*;

    #[test]
    fn methods_belong_to_their_types() {
        let time = Val::Time(Arc::new(govalue::Time::zero()));
        assert!(find(&time, "Year").is_some());
        assert!(find(&time, "Hours").is_none());
        assert!(find(&Val::from(&Value::Int(1)), "String").is_none());
    }
}
