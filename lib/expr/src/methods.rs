//! The methods of times, durations and their kin.

use govalue::{Duration, IntType, Time, Value, Zone};

use crate::types::Type;

/// What a method takes and gives.
pub(crate) struct Signature {
    pub(crate) params: &'static [Type],
    pub(crate) result: &'static Type,
}

const fn signature_of(params: &'static [Type], result: &'static Type) -> Signature {
    Signature { params, result }
}

/// The method of a type, if it has one of that name.
pub(crate) fn signature(base: &Type, name: &str) -> Option<Signature> {
    use Type::{Bool, Duration, Float, Int, Location, Month, String, Time, Weekday};
    Some(match (base, name) {
        (Time | Duration | Location | Month | Weekday, "String") => signature_of(&[], &String),
        (Time, "Year" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "YearDay") => {
            signature_of(&[], &Int)
        }
        (Time, "Unix" | "UnixMilli" | "UnixMicro" | "UnixNano") => signature_of(&[], &Int),
        (Time, "Month") => signature_of(&[], &Month),
        (Time, "Weekday") => signature_of(&[], &Weekday),
        (Time, "Location") => signature_of(&[], &Location),
        (Time, "UTC" | "Local") => signature_of(&[], &Time),
        (Time, "IsZero" | "IsDST") => signature_of(&[], &Bool),
        (Time, "GoString") => signature_of(&[], &String),
        (Time, "Format") => signature_of(&[String], &String),
        (Time, "Add" | "Round" | "Truncate") => signature_of(&[Duration], &Time),
        (Time, "AddDate") => signature_of(&[Int, Int, Int], &Time),
        (Time, "In") => signature_of(&[Location], &Time),
        (Time, "Sub") => signature_of(&[Time], &Duration),
        (Time, "After" | "Before" | "Equal") => signature_of(&[Time], &Bool),
        (Time, "Compare") => signature_of(&[Time], &Int),
        (Duration, "Hours" | "Minutes" | "Seconds") => signature_of(&[], &Float),
        (Duration, "Milliseconds" | "Microseconds" | "Nanoseconds") => signature_of(&[], &Int),
        (Duration, "Abs") => signature_of(&[], &Duration),
        (Duration, "Round" | "Truncate") => signature_of(&[Duration], &Duration),
        _ => return None,
    })
}

/// Calls a method on a value.
pub(crate) fn call(base: &Value, name: &str, args: &[Value]) -> Result<Value, String> {
    let found = match base {
        Value::Time(time) => time_method(time, name, args),
        Value::Duration(duration) => duration_method(*duration, name, args),
        Value::Location(zone) if name == "String" && args.is_empty() => Some(zone.name().into()),
        Value::Sized(kind, _) if kind.is_named() && name == "String" && args.is_empty() => {
            Some(base.to_string().into())
        }
        Value::Nil => return Err(format!("cannot call {name} of nil")),
        _ => None,
    };
    found.ok_or_else(|| {
        let kinds: Vec<_> = args.iter().map(Value::type_name).collect();
        format!(
            "cannot call {name}({}) of {}",
            kinds.join(", "),
            base.type_name()
        )
    })
}

fn time_method(time: &Time, name: &str, args: &[Value]) -> Option<Value> {
    Some(match (name, args) {
        ("Year", []) => time.year().into(),
        ("Month", []) => Value::Sized(IntType::Month, time.month().0),
        ("Day", []) => time.day().into(),
        ("Hour", []) => time.hour().into(),
        ("Minute", []) => time.minute().into(),
        ("Second", []) => time.second().into(),
        ("Nanosecond", []) => time.nanosecond().into(),
        ("YearDay", []) => time.year_day().into(),
        ("Weekday", []) => Value::Sized(IntType::Weekday, time.weekday().0),
        ("Unix", []) => Value::Sized(IntType::Int64, time.unix()),
        ("UnixMilli", []) => Value::Sized(IntType::Int64, time.unix_milli()),
        ("UnixMicro", []) => Value::Sized(IntType::Int64, time.unix_micro()),
        ("UnixNano", []) => Value::Sized(IntType::Int64, time.unix_nano()),
        ("UTC" | "Local", []) => time.in_zone(Zone::UTC).into(),
        ("Location", []) => Value::Location(time.zone().clone()),
        ("IsZero", []) => time.is_zero().into(),
        ("IsDST", []) => time.zone().is_dst_at(time.unix()).into(),
        ("String" | "GoString", []) => time.to_string().into(),
        ("Format", [Value::String(layout)]) => time.format(&layout.to_str_lossy()).into(),
        ("Add", [Value::Duration(span)]) => time.add(*span).into(),
        ("Round", [Value::Duration(unit)]) => time.round(*unit).into(),
        ("Truncate", [Value::Duration(unit)]) => time.truncate(*unit).into(),
        ("In", [Value::Location(zone)]) => time.in_zone(zone.clone()).into(),
        ("AddDate", [years, months, days]) => time
            .add_date(years.as_int()?, months.as_int()?, days.as_int()?)
            .into(),
        (_, [Value::Time(other)]) => {
            let order = time.instant().cmp(&other.instant());
            match name {
                "Sub" => time.sub(other).into(),
                "After" => order.is_gt().into(),
                "Before" => order.is_lt().into(),
                "Equal" => order.is_eq().into(),
                "Compare" => Value::Int(order as i64),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn duration_method(span: Duration, name: &str, args: &[Value]) -> Option<Value> {
    Some(match (name, args) {
        ("Hours", []) => span.hours().into(),
        ("Minutes", []) => span.minutes().into(),
        ("Seconds", []) => span.seconds().into(),
        ("Milliseconds", []) => Value::Sized(IntType::Int64, span.0 / 1_000_000),
        ("Microseconds", []) => Value::Sized(IntType::Int64, span.0 / 1_000),
        ("Nanoseconds", []) => Value::Sized(IntType::Int64, span.0),
        ("Abs", []) => span.abs().into(),
        ("String", []) => span.to_string().into(),
        ("Round", [Value::Duration(unit)]) => span.round(*unit).into(),
        ("Truncate", [Value::Duration(unit)]) => span.truncate(*unit).into(),
        _ => return None,
    })
}
