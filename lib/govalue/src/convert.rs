//! Numbers out of text, by Go's rules.

/// Reads a whole number as Go's `strconv.ParseInt(text, base, 64)`; base 0 takes
/// the prefixes `0x`, `0o`, `0b`, a leading `0` for octal, and underscores
/// between digits.
pub fn parse_int(text: &str, base: u32) -> Result<i64, String> {
    int(text, base).ok_or_else(|| {
        format!(
            "strconv.ParseInt: parsing {}: invalid syntax or out of range",
            crate::quote(text.as_bytes())
        )
    })
}

fn int(text: &str, base: u32) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits, underscores) = match (base, lower.as_deref()) {
        (0, Some("0x")) => (16, &digits[2..], true),
        (0, Some("0o")) => (8, &digits[2..], true),
        (0, Some("0b")) => (2, &digits[2..], true),
        (0, Some(_)) if digits.starts_with('0') => (8, &digits[1..], true),
        (0, _) => (10, digits, true),
        (base, _) => (base, digits, false),
    };
    let mut cleaned = String::new();
    let digits = if underscores && digits.contains('_') {
        if digits.ends_with('_')
            || digits.contains("__")
            || (radix == 10 && digits.starts_with('_'))
        {
            return None;
        }
        cleaned.extend(digits.chars().filter(|c| *c != '_'));
        &cleaned
    } else {
        digits
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        (magnitude <= 1 << 63).then(|| (magnitude as i64).wrapping_neg())
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// Reads a float as Go's `strconv.ParseFloat(text, 64)`: decimal and
/// hexadecimal notation, `Inf`, `Infinity` and `NaN` in any case. A number too
/// large for a float is an error.
pub fn parse_float(text: &str) -> Result<f64, String> {
    float(text).ok_or_else(|| {
        format!(
            "strconv.ParseFloat: parsing {}: invalid syntax or out of range",
            crate::quote(text.as_bytes())
        )
    })
}

fn float(text: &str) -> Option<f64> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    match body.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Some(sign * f64::INFINITY),
        // A signed NaN is not a number in either sense.
        "nan" => return (body.len() == text.len()).then_some(f64::NAN),
        _ => {}
    }
    if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if body.len() > 1 && body.as_bytes()[0] == b'0' && matches!(body.as_bytes()[1], b'x' | b'X') {
        return hex_float(&body[2..]).map(|value| sign * value);
    }
    let value: f64 = body.parse().ok()?;
    value.is_finite().then_some(sign * value)
}

/// `1.8p-2`: hexadecimal digits and a binary exponent, which is required.
fn hex_float(body: &str) -> Option<f64> {
    let (digits, exponent) = body.split_once(['p', 'P'])?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent: i64 = exponent.parse::<i32>().ok()?.into();
    let (mut mantissa, mut lost) = (0u64, false);
    for (index, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let fractional = index >= whole.len();
        if mantissa >> 58 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if fractional { 4 } else { 0 };
        } else {
            lost |= digit != 0;
            exponent += if fractional { 0 } else { 4 };
        }
    }
    // A sticky bit makes the rounding of the cut digits come out right.
    mantissa |= u64::from(lost);
    let steps = exponent.clamp(-1200, 1200) as i32;
    let value = mantissa as f64 * 2f64.powi(steps / 2) * 2f64.powi(steps - steps / 2);
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ints() {
        for (text, base, want) in [
            ("42", 10, 42),
            ("+7", 10, 7),
            ("-9223372036854775808", 10, i64::MIN),
            ("0x2a", 0, 42),
            ("0b11", 0, 3),
            ("017", 0, 15),
            ("0", 0, 0),
            ("1_000", 0, 1000),
        ] {
            assert_eq!(int(text, base), Some(want), "{text}");
        }
        for (text, base) in [
            ("", 10),
            ("1.5", 10),
            ("0x2a", 10),
            ("9223372036854775808", 10),
            ("1_", 0),
            ("--1", 10),
            ("08", 0),
        ] {
            assert_eq!(int(text, base), None, "{text}");
        }
    }

    #[test]
    fn floats() {
        for (text, want) in [
            ("1e3", 1000.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("0x1p-2", 0.25),
            ("0x1.8p1", 3.0),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(float(text), Some(want), "{text}");
        }
        assert!(float("NaN").unwrap().is_nan());
        for text in ["", "1e309", "1.5x", "0x1", "e5", "+-1", " 1"] {
            assert_eq!(float(text), None, "{text}");
        }
    }
}
