//! Durations as people write them: `30s`, `1h30m`, `2d`, `1w`, `1M`, `1y`.
//!
//! Groups of a number and a unit, added up; one sign in front. Units up to
//! hours are exact; days (24 h), weeks, months (30 days) and years (365 days)
//! count whole hours, so `1.5d` is 36 hours and `0.01d` none.

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write numbers with units, such as `30s`, `5m` or `1h30m`")]
pub struct InvalidDuration(String);

/// Reads a duration as nanoseconds.
///
/// ```
/// assert_eq!(ccm_model::duration::parse("1m30s"), Ok(90_000_000_000));
/// assert!(ccm_model::duration::parse("soon").is_err());
/// ```
pub fn parse(text: &str) -> Result<i64, InvalidDuration> {
    nanoseconds(text).ok_or_else(|| InvalidDuration(text.to_owned()))
}

/// Reads a duration that must not be negative.
pub fn parse_positive(text: &str) -> Result<std::time::Duration, InvalidDuration> {
    let nanoseconds = parse(text)?;
    u64::try_from(nanoseconds)
        .map(std::time::Duration::from_nanos)
        .map_err(|_| InvalidDuration(text.to_owned()))
}

fn nanoseconds(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        total = total.checked_add(group(number, unit)?)?;
        rest = after;
    }
    Some(if negative { -total } else { total })
}

fn group(number: &str, unit: &str) -> Option<i64> {
    const HOUR: i64 = 3_600_000_000_000;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.contains('.') || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let exact = |unit: i64| -> Option<i64> {
        let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        // More digits than this are below a nanosecond of any unit.
        let digits = &fraction[..fraction.len().min(18)];
        let part: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let part = part * i128::from(unit) / 10_i128.pow(digits.len() as u32);
        whole.checked_mul(unit)?.checked_add(i64::try_from(part).ok()?)
    };
    let calendar = |hours: f32| -> Option<i64> {
        let hours = number.parse::<f32>().ok()? * hours;
        // Beyond this the product below could not be told from an overflow.
        (hours < 4e6).then_some(hours as i64)?.checked_mul(HOUR)
    };
    match unit {
        "ns" => exact(1),
        "us" => exact(1_000),
        "ms" => exact(1_000_000),
        "s" => exact(1_000_000_000),
        "m" => exact(60_000_000_000),
        "h" => exact(HOUR),
        "d" | "D" => calendar(24.0),
        "w" | "W" => calendar(24.0 * 7.0),
        "M" => calendar(24.0 * 30.0),
        "y" | "Y" => calendar(24.0 * 365.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn groups_add_up() {
        assert_eq!(parse("1h30m"), Ok(5_400_000_000_000));
        assert_eq!(parse("1h1h"), Ok(7_200_000_000_000));
        assert_eq!(parse(".5s"), Ok(500_000_000));
        assert_eq!(parse("-3ms"), Ok(-3_000_000));
        assert_eq!(parse("1.5d"), Ok(36 * 3_600_000_000_000));
    }

    #[test]
    fn what_is_no_duration_is_an_error() {
        for text in
            ["", "-", "5", "1 h", "1h 30m", "h", "1x", "1..5h", ".h", "never", "1µs", "300y"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn negative_timeouts_are_refused() {
        assert!(parse_positive("-1s").is_err());
        assert_eq!(parse_positive("2s").unwrap().as_secs(), 2);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse(&text);
        }

        #[test]
        fn no_likely_text_panics(text in "[-+]?([0-9]{0,25}[.]?[0-9]{0,30}(ns|us|ms|s|m|h|d|w|M|y)){0,4}") {
            let _ = parse(&text);
        }
    }
}
