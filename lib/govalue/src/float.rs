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
    let rust = match precision {
        Some(precision) => format!("{value:.precision$e}"),
        None => format!("{value:e}"),
    };
    // Rust writes `1.5e7`; Go wants a sign and two digits in the exponent.
    let (digits, exponent) = rust.split_once('e').unwrap_or((&rust, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

fn decimal(value: f64, precision: Option<usize>) -> String {
    match precision {
        Some(precision) => format!("{value:.precision$}"),
        None => format!("{value}"),
    }
}

fn general(value: f64, precision: Option<usize>) -> String {
    let (rust, limit) = match precision {
        Some(precision) => (format!("{value:.*e}", precision.max(1) - 1), precision.max(1) as i32),
        None => (format!("{value:e}"), SHORTEST_LIMIT),
    };
    let (digits, exponent) = rust.split_once('e').unwrap_or((&rust, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    };
    if exponent < -4 || exponent >= limit {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let significant = digits.bytes().filter(u8::is_ascii_digit).count() as i32;
    let places = (significant - 1 - exponent).max(0) as usize;
    format!("{value:.places$}")
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
