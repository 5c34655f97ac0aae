//! Go's `time.Duration`.

use std::fmt;

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub i64);

impl Duration {
    /// One microsecond.
    pub const MICROSECOND: Self = Self(1_000);
    /// One millisecond.
    pub const MILLISECOND: Self = Self(1_000_000);
    /// One second.
    pub const SECOND: Self = Self(1_000_000_000);
    /// One minute.
    pub const MINUTE: Self = Self(60 * Self::SECOND.0);
    /// One hour.
    pub const HOUR: Self = Self(60 * Self::MINUTE.0);

    /// Reads what Go's `time.ParseDuration` reads: `1h30m`, `-1.5s`, `100ms`, `0`.
    ///
    /// ```
    /// use govalue::Duration;
    /// assert_eq!(Duration::parse("1h15m30.5s").unwrap().to_string(), "1h15m30.5s");
    /// assert!(Duration::parse("5").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        parse(text)
            .ok_or_else(|| format!("time: invalid duration {}", crate::quote(text.as_bytes())))
    }

    /// The span in hours.
    pub fn hours(self) -> f64 {
        self.in_units(Self::HOUR)
    }

    /// The span in minutes.
    pub fn minutes(self) -> f64 {
        self.in_units(Self::MINUTE)
    }

    /// The span in seconds.
    pub fn seconds(self) -> f64 {
        self.in_units(Self::SECOND)
    }

    /// Go adds the whole part and the fraction, which rounds unlike a division.
    fn in_units(self, unit: Self) -> f64 {
        (self.0 / unit.0) as f64 + (self.0 % unit.0) as f64 / unit.0 as f64
    }

    /// Rounded towards zero to a multiple of `unit`.
    #[must_use]
    pub fn truncate(self, unit: Self) -> Self {
        if unit.0 <= 0 { self } else { Self(self.0 - self.0 % unit.0) }
    }

    /// Rounded to the nearest multiple of `unit`, halves away from zero; the
    /// longest or shortest span when the result does not fit.
    #[must_use]
    pub fn round(self, unit: Self) -> Self {
        if unit.0 <= 0 {
            return self;
        }
        let rest = self.0 % unit.0;
        let down = self.0 - rest;
        let up = i128::from(rest.abs()) * 2 >= i128::from(unit.0);
        let rounded = if up {
            i128::from(down) + i128::from(unit.0) * i128::from(self.0.signum())
        } else {
            i128::from(down)
        };
        Self(rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// Without its sign; the shortest span becomes the longest.
    #[must_use]
    pub fn abs(self) -> Self {
        Self(self.0.checked_abs().unwrap_or(i64::MAX))
    }
}

/// The largest magnitude a duration can have, that of its minimum.
const LIMIT: u64 = 1 << 63;

fn parse(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(Duration(0));
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole_len = digits(rest);
        let whole: u64 = if whole_len == 0 { 0 } else { rest[..whole_len].parse().ok()? };
        rest = &rest[whole_len..];
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            let len = digits(after);
            fraction = &after[..len];
            rest = &after[len..];
        }
        if whole_len == 0 && fraction.is_empty() {
            return None;
        }
        let unit_len = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = unit(&rest[..unit_len])?;
        rest = &rest[unit_len..];
        let mut value = whole.checked_mul(unit).filter(|value| *value <= LIMIT)?;
        if !fraction.is_empty() {
            value = value.checked_add(part_of(fraction, unit)).filter(|value| *value <= LIMIT)?;
        }
        total = total.checked_add(value).filter(|total| *total <= LIMIT)?;
    }
    if negative {
        // The minimum has no positive counterpart.
        return Some(Duration((total as i64).wrapping_neg()));
    }
    i64::try_from(total).ok().map(Duration)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The fraction `0.<digits>` of a unit, as far as its digits fit a number.
fn part_of(digits: &str, unit: u64) -> u64 {
    let (mut value, mut scale) = (0u64, 1.0f64);
    for digit in digits.bytes() {
        let Some(next) = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(digit - b'0')))
            .filter(|value| *value < LIMIT)
        else {
            break;
        };
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit as f64 / scale)) as u64
}

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        // Micro sign and Greek letter mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `1h15m30.918s`, `1.5ms`, `0s`: hours, minutes and seconds, or one smaller unit.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        if self.0 < 0 {
            out.push('-');
        }
        let nanos = self.0.unsigned_abs();
        match nanos {
            0 => out.push_str("0s"),
            1..1_000 => push!(out, "{nanos}ns"),
            1_000..1_000_000 => fraction(&mut out, nanos, 1_000, "\u{b5}s"),
            1_000_000..1_000_000_000 => fraction(&mut out, nanos, 1_000_000, "ms"),
            _ => {
                let seconds = nanos / 1_000_000_000;
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                if hours > 0 {
                    push!(out, "{hours}h");
                }
                if seconds >= 60 {
                    push!(out, "{minutes}m");
                }
                fraction(&mut out, nanos % 60_000_000_000, 1_000_000_000, "s");
            }
        }
        f.pad(&out)
    }
}

fn fraction(out: &mut String, value: u64, unit: u64, name: &str) {
    out.push_str(&(value / unit).to_string());
    let width = unit.ilog10() as usize;
    let rest = format!("{:0width$}", value % unit);
    let rest = rest.trim_end_matches('0');
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out.push_str(name);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_and_parsing_agree() {
        for text in [
            "0s",
            "1ns",
            "1.1\u{b5}s",
            "2.2ms",
            "3.3s",
            "4m5s",
            "4m5.001s",
            "5h6m7.001s",
            "8m0.000000001s",
            "2562047h47m16.854775807s",
            "-2562047h47m16.854775808s",
            "-1.5s",
            "24h0m0s",
        ] {
            assert_eq!(Duration::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn odd_forms() {
        for (text, nanos) in [
            ("0", 0),
            ("+5s", 5_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("1h1h", 7_200_000_000_000),
            ("1us", 1_000),
        ] {
            assert_eq!(Duration::parse(text), Ok(Duration(nanos)), "{text}");
        }
        for text in ["", "-", "5", ".s", "1x", "3000000h", "1 h", "1d", "s"] {
            assert!(Duration::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rounding() {
        let span = Duration::parse("1h15m30.918273645s").unwrap();
        assert_eq!(span.round(Duration::MILLISECOND).to_string(), "1h15m30.918s");
        assert_eq!(span.round(Duration::HOUR).to_string(), "1h0m0s");
        assert_eq!(span.truncate(Duration::MINUTE).to_string(), "1h15m0s");
        assert_eq!(Duration(-15).round(Duration(10)), Duration(-20));
        assert_eq!(Duration(i64::MIN).abs(), Duration(i64::MAX));
    }
}
