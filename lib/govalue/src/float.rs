//! Floating point numbers in Go's notation.

/// Which notation [`format_float`] uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatFormat {
    /// `-1.234e+05`
    Exponent,
    /// `-123400.5`
    Decimal,
    /// Decimal, or exponent for very large and very small numbers.
    General,
}

/// Writes a float as Go's `strconv.FormatFloat`. Without a precision it takes
/// the fewest digits that read back as the same number.
pub fn format_float(value: f64, format: FloatFormat, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match format {
        FloatFormat::Exponent => exponent(value, precision),
        FloatFormat::Decimal => decimal(value, precision),
        FloatFormat::General => general(value, precision),
    }
}

fn exponent(value: f64, precision: Option<usize>) -> String {
    let (digits, exponent) = scientific(value, precision);
    write_exponent(&digits, exponent)
}

/// Go wants a sign and at least two digits in the exponent.
fn write_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// The digits, with a point after the first one, and the exponent.
fn scientific(value: f64, precision: Option<usize>) -> (String, i32) {
    let mut text = match precision {
        Some(precision) => format!("{value:.precision$e}"),
        None => format!("{value:e}"),
    };
    // Of two equally short and equally close forms Go takes the even one. Only
    // the longest forms can be that close.
    let significant = text.split('e').next().map_or(0, digit_count);
    if precision.is_none() && significant >= 16 {
        let even = format!("{value:.*e}", significant - 1);
        if even.parse() == Ok(value) {
            text = even;
        }
    }
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (digits.to_owned(), exponent.parse().unwrap_or(0))
}

fn digit_count(text: &str) -> usize {
    text.bytes().filter(u8::is_ascii_digit).count()
}

fn decimal(value: f64, precision: Option<usize>) -> String {
    if let Some(precision) = precision {
        return format!("{value:.precision$}");
    }
    let (digits, exponent) = scientific(value, None);
    place_point(&digits, exponent)
}

/// Moves the point of `d.ddd` by the exponent, filling up with zeros.
fn place_point(digits: &str, exponent: i32) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    match usize::try_from(exponent) {
        Ok(exponent) if digits.len() > exponent + 1 => {
            let (whole, fraction) = digits.split_at(exponent + 1);
            format!("{sign}{whole}.{fraction}")
        }
        Ok(exponent) => format!("{sign}{digits}{}", "0".repeat(exponent + 1 - digits.len())),
        Err(_) => {
            let zeros = "0".repeat(exponent.unsigned_abs() as usize - 1);
            format!("{sign}0.{zeros}{digits}")
        }
    }
}

fn general(value: f64, precision: Option<usize>) -> String {
    let (digits, exponent) = scientific(value, precision.map(|precision| precision.max(1) - 1));
    let limit = precision.map_or(SHORTEST_LIMIT, |precision| precision.max(1) as i32);
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    if exponent < -4 || exponent >= limit {
        return write_exponent(digits, exponent);
    }
    place_point(digits, exponent)
}

/// The exponent from which the shortest form is written with one. JSON has a
/// limit of its own, 21.
const SHORTEST_LIMIT: i32 = 6;

/// How `%v` and `fmt.Sprint` write a float.
pub(crate) fn shortest(value: f64) -> String {
    format_float(value, FloatFormat::General, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_form_switches_to_exponents() {
        for (value, want) in [
            (8.0, "8"),
            (100_000.0, "100000"),
            (123_456.789, "123456.789"),
            (1_000_000.0, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (9_007_199_254_740_992.0, "9.007199254740992e+15"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e100, "1e+100"),
            (5e-324, "5e-324"),
            (1e15 + 0.3, "1.0000000000000002e+15"),
            (-0.001_5, "-0.0015"),
            (-0.0, "-0"),
            (0.0, "0"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(shortest(value), want);
        }
    }

    #[test]
    fn precision_rounds_to_even_digits() {
        use FloatFormat::{Decimal, Exponent, General};
        assert_eq!(
            format_float(1.234_567_890_123_456_7e20, Decimal, None),
            "123456789012345670000"
        );
        assert_eq!(format_float(1.25e-7, Decimal, None), "0.000000125");
        for (value, format, precision, want) in [
            (2.5, Decimal, 0, "2"),
            (3.456, Decimal, 2, "3.46"),
            (123_456.0, Exponent, 2, "1.23e+05"),
            (0.000_012_3, Exponent, 1, "1.2e-05"),
            (100_000.0, General, 3, "1e+05"),
            (100_000.0, General, 10, "100000"),
            (1.5, General, 10, "1.5"),
            (0.0, General, 3, "0"),
        ] {
            assert_eq!(format_float(value, format, Some(precision)), want);
        }
    }
}
