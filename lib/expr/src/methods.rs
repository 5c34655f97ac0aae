//! The methods of times, durations and their kin.

use govalue::{Duration, IntType, Time, Value, Zone};

use crate::types::Type;

/// What a method takes and gives.
pub(crate) struct Signature {
    pub(crate) params: &'static [Type],
    pub(crate) result: &'static Type,
}

/// The method of a type, if it has one of that name.
pub(crate) fn signature(base: &Type, name: &str) -> Option<Signature> {
    use Type::{Bool, Duration, Float, Int, Location, Month, String, Time, Weekday};
    let nothing: &[Type] = &[];
    let (params, result) = match (base, name) {
        (Time | Duration | Location | Month | Weekday, "String") | (Time, "GoString") => {
            (nothing, &String)
        }
        (
            Time,
            "Year" | "Day" | "Hour" | "Minute" | "Second" | "Nanosecond" | "YearDay" | "Unix"
            | "UnixMilli" | "UnixMicro" | "UnixNano",
        )
        | (Duration, "Milliseconds" | "Microseconds" | "Nanoseconds") => (nothing, &Int),
        (Time, "Month") => (nothing, &Month),
        (Time, "Weekday") => (nothing, &Weekday),
        (Time, "Location") => (nothing, &Location),
        (Time, "UTC" | "Local") => (nothing, &Time),
        (Time, "IsZero" | "IsDST") => (nothing, &Bool),
        (Time, "Format") => (&[String][..], &String),
        (Time, "Add" | "Round" | "Truncate") => (&[Duration][..], &Time),
        (Time, "AddDate") => (&[Int, Int, Int][..], &Time),
        (Time, "In") => (&[Location][..], &Time),
        (Time, "Sub") => (&[Time][..], &Duration),
        (Time, "After" | "Before" | "Equal") => (&[Time][..], &Bool),
        (Time, "Compare") => (&[Time][..], &Int),
        (Duration, "Hours" | "Minutes" | "Seconds") => (nothing, &Float),
        (Duration, "Abs") => (nothing, &Duration),
        (Duration, "Round" | "Truncate") => (&[Duration][..], &Duration),
        _ => return None,
    };
    Some(Signature { params, result })
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
        format!("cannot call {name}({}) of {}", kinds.join(", "), base.type_name())
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
        ("AddDate", [years, months, days]) => {
            time.add_date(years.as_int()?, months.as_int()?, days.as_int()?).into()
        }
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
