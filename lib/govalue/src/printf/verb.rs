//! One value under one verb.

use super::Spec;
use crate::print::scalar;
use crate::quote::{can_backquote, quote_rune};
use crate::string::raw_runes;
use crate::{FloatFormat, IntType, Str, Value, format_float, quote, quote_ascii};

/// Writes a value, or the note that the verb does not fit it.
pub(super) fn write(out: &mut Vec<u8>, value: &Value, name: &str, verb: char, spec: &Spec) {
    match verb {
        'T' => return pad(out, name.as_bytes(), spec),
        'p' => return misfit(out, value, verb),
        _ => {}
    }
    match value {
        Value::Nil if verb == 'v' => pad(out, b"<nil>", spec),
        Value::Nil => misfit(out, value, verb),
        Value::Array(_) if spec.syntax => {
            let start = out.len();
            operand(out, value, verb, spec, true);
            let plain = value.type_name().len();
            out.splice(start..start + plain, name.bytes());
        }
        _ => operand(out, value, verb, spec, true),
    }
}

fn operand(out: &mut Vec<u8>, value: &Value, verb: char, spec: &Spec, top: bool) {
    match value {
        Value::Nil if spec.syntax => out.extend_from_slice(b"interface {}(nil)"),
        Value::Nil if top || verb != 'v' => misfit(out, value, verb),
        Value::Nil => pad(out, b"<nil>", spec),
        Value::Bool(flag) => match verb {
            't' | 'v' => pad(out, flag.to_string().as_bytes(), spec),
            _ => misfit(out, value, verb),
        },
        Value::Int(number) => integer(out, value, *number, None, verb, spec),
        Value::Sized(kind, number) => {
            if kind.is_named() && !spec.syntax && named(out, value, verb, spec) {
                return;
            }
            integer(out, value, *number, Some(*kind), verb, spec);
        }
        Value::Duration(duration) => {
            if !spec.syntax && named(out, value, verb, spec) {
                return;
            }
            integer(out, value, duration.0, Some(IntType::Int64), verb, spec);
        }
        Value::Float(number) => float(out, value, *number, verb, spec),
        Value::String(text) => string(out, value, text, verb, spec),
        Value::Time(_) | Value::Location(_) => {
            if !named(out, value, verb, spec) {
                misfit(out, value, verb);
            }
        }
        Value::Bytes(bytes) => slice_of_bytes(out, value, bytes, verb, spec),
        Value::Array(items) => {
            let (open, close) = if spec.syntax { ("[]interface {}{", "}") } else { ("[", "]") };
            out.extend_from_slice(open.as_bytes());
            for (index, item) in items.iter().enumerate() {
                separate(out, index, spec);
                operand(out, item, verb, spec, false);
            }
            out.extend_from_slice(close.as_bytes());
        }
        Value::Map(map) => {
            let open =
                if spec.syntax { format!("{}{{", map.type_name()) } else { "map[".to_owned() };
            out.extend_from_slice(open.as_bytes());
            for (index, (key, item)) in map.sorted().into_iter().enumerate() {
                separate(out, index, spec);
                operand(out, key.value(), verb, spec, false);
                out.push(b':');
                operand(out, item, verb, spec, false);
            }
            out.push(if spec.syntax { b'}' } else { b']' });
        }
    }
}

fn separate(out: &mut Vec<u8>, index: usize, spec: &Spec) {
    if index > 0 {
        out.extend_from_slice(if spec.syntax { b", " } else { b" " });
    }
}

/// `%!d(string=x)`
fn misfit(out: &mut Vec<u8>, value: &Value, verb: char) {
    let mut note = format!("%!{verb}(").into_bytes();
    note.extend_from_slice(value.type_name().as_bytes());
    if !value.is_nil() {
        note.push(b'=');
        crate::print::print(&mut note, value);
    }
    note.push(b')');
    out.append(&mut note);
}

/// Types that print their own text do so under the verbs for strings.
fn named(out: &mut Vec<u8>, value: &Value, verb: char, spec: &Spec) -> bool {
    if !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
        return false;
    }
    let text = Value::from(scalar(value));
    if let Value::String(text) = &text {
        string(out, value, text, if verb == 'v' { 's' } else { verb }, spec);
    }
    true
}

fn string(out: &mut Vec<u8>, value: &Value, text: &Str, verb: char, spec: &Spec) {
    match verb {
        'v' if spec.syntax => quoted(out, text.as_bytes(), spec),
        'v' | 's' => pad(out, cut(text.as_bytes(), spec), spec),
        'x' | 'X' => hex(out, text.as_bytes(), verb, spec),
        'q' => quoted(out, cut(text.as_bytes(), spec), spec),
        _ => misfit(out, value, verb),
    }
}

fn slice_of_bytes(out: &mut Vec<u8>, value: &Value, bytes: &[u8], verb: char, spec: &Spec) {
    match verb {
        's' => pad(out, cut(bytes, spec), spec),
        'x' | 'X' => hex(out, bytes, verb, spec),
        'q' => quoted(out, cut(bytes, spec), spec),
        'v' | 'd' => {
            out.extend_from_slice(if spec.syntax { b"[]byte{" } else { b"[" });
            for (index, byte) in bytes.iter().enumerate() {
                separate(out, index, spec);
                if spec.syntax {
                    out.extend_from_slice(format!("{byte:#x}").as_bytes());
                } else {
                    integer(out, value, i64::from(*byte), None, 'd', spec);
                }
            }
            out.push(if spec.syntax { b'}' } else { b']' });
        }
        _ => misfit(out, value, verb),
    }
}

/// The first characters, as many as the precision says.
fn cut<'t>(bytes: &'t [u8], spec: &Spec) -> &'t [u8] {
    match spec.precision {
        Some(precision) => &bytes[..raw_runes(bytes).take(precision).map(|(len, _)| len).sum()],
        None => bytes,
    }
}

fn quoted(out: &mut Vec<u8>, bytes: &[u8], spec: &Spec) {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) if spec.sharp && can_backquote(bytes) => format!("`{text}`"),
        _ if spec.plus => quote_ascii(bytes),
        _ => quote(bytes),
    };
    pad(out, text.as_bytes(), spec);
}

fn hex(out: &mut Vec<u8>, bytes: &[u8], verb: char, spec: &Spec) {
    let bytes = &bytes[..spec.precision.unwrap_or(bytes.len()).min(bytes.len())];
    let mut text = String::new();
    for (index, byte) in bytes.iter().enumerate() {
        if spec.space && index > 0 {
            text.push(' ');
        }
        if spec.sharp && (index == 0 || spec.space) {
            text.push_str("0x");
        }
        push!(text, "{byte:02x}");
    }
    if verb == 'X' {
        text.make_ascii_uppercase();
    }
    pad(out, text.as_bytes(), spec);
}

fn integer(
    out: &mut Vec<u8>,
    value: &Value,
    number: i64,
    kind: Option<IntType>,
    verb: char,
    spec: &Spec,
) {
    let unsigned = kind.is_some_and(IntType::is_unsigned);
    let negative = number < 0 && !unsigned;
    let size = if unsigned { number as u64 } else { number.unsigned_abs() };
    let (digits, prefix) = match verb {
        'v' if spec.syntax && unsigned => (format!("{size:x}"), "0x"),
        'v' | 'd' => (size.to_string(), ""),
        'b' => (format!("{size:b}"), if spec.sharp { "0b" } else { "" }),
        'o' => (format!("{size:o}"), if spec.sharp { "0" } else { "" }),
        'O' => (format!("{size:o}"), "0o"),
        'x' => (format!("{size:x}"), if spec.sharp { "0x" } else { "" }),
        'X' => (format!("{size:X}"), if spec.sharp { "0X" } else { "" }),
        'c' | 'q' | 'U' => return rune(out, number, verb, spec),
        // Any other float verb does not fit either, but says so itself.
        _ => return misfit(out, value, verb),
    };
    if spec.precision == Some(0) && number == 0 {
        return pad(out, b"", &Spec { zero: false, ..*spec });
    }
    let sign = if negative {
        "-"
    } else if spec.plus {
        "+"
    } else if spec.space {
        " "
    } else {
        ""
    };
    let mut least = spec.precision.unwrap_or(0);
    if spec.precision.is_none() && spec.zero && !spec.minus {
        // The sign counts as part of the width, a prefix does not.
        least = spec.width.unwrap_or(0).saturating_sub(sign.len());
    }
    let prefix = if verb == 'o' && digits.starts_with('0') { "" } else { prefix };
    let zeros = "0".repeat(least.saturating_sub(digits.len()));
    pad(out, format!("{sign}{prefix}{zeros}{digits}").as_bytes(), &Spec { zero: false, ..*spec });
}

fn rune(out: &mut Vec<u8>, number: i64, verb: char, spec: &Spec) {
    let rune = u32::try_from(number).ok().and_then(char::from_u32);
    let text = match verb {
        'c' => rune.unwrap_or('\u{FFFD}').to_string(),
        'q' => quote_rune(rune.unwrap_or('\u{FFFD}'), spec.plus),
        _ => {
            let width = spec.precision.unwrap_or(4).max(4);
            let mut text = format!("U+{:0width$X}", number as u64);
            if let (true, Some(rune)) = (spec.sharp, rune.filter(|rune| crate::is_print(*rune))) {
                push!(text, " '{rune}'");
            }
            text
        }
    };
    pad(out, text.as_bytes(), &Spec { zero: false, ..*spec });
}

fn float(out: &mut Vec<u8>, value: &Value, number: f64, verb: char, spec: &Spec) {
    let (format, precision) = match verb {
        'v' | 'g' | 'G' => (FloatFormat::General, spec.precision),
        'e' | 'E' => (FloatFormat::Exponent, Some(spec.precision.unwrap_or(6))),
        'f' | 'F' => (FloatFormat::Decimal, Some(spec.precision.unwrap_or(6))),
        _ => return misfit(out, value, verb),
    };
    let mut text = format_float(number, format, precision);
    if matches!(verb, 'E' | 'G') {
        text = text.replace('e', "E");
    }
    let (sign, digits) = match text.as_bytes()[0] {
        b'-' => ("-", &text[1..]),
        // An infinity carries a plus of its own, shown only on request.
        b'+' => ("+", &text[1..]),
        _ => ("+", text.as_str()),
    };
    let infinite = number.is_infinite() || number.is_nan();
    let sign = match sign {
        "-" => "-",
        _ if spec.plus || number.is_infinite() && verb == 'v' => "+",
        _ if spec.space => " ",
        _ if number.is_infinite() => "+",
        _ => "",
    };
    let mut digits = digits.to_owned();
    if spec.sharp && !infinite {
        digits = keep_point(&digits, verb, spec);
    }
    let zero = spec.zero && !spec.minus && !infinite;
    let wanted = if zero { spec.width.unwrap_or(0) } else { 0 };
    let zeros = "0".repeat(wanted.saturating_sub(sign.len() + digits.len()));
    pad(out, format!("{sign}{zeros}{digits}").as_bytes(), &Spec { zero: false, ..*spec });
}

/// `#` keeps the decimal point and, for `%g`, the trailing zeros.
fn keep_point(digits: &str, verb: char, spec: &Spec) -> String {
    let split = digits.find(['e', 'E']).unwrap_or(digits.len());
    let (mantissa, exponent) = digits.split_at(split);
    let mut mantissa = mantissa.to_owned();
    if !mantissa.contains('.') {
        mantissa.push('.');
    }
    if matches!(verb, 'g' | 'G' | 'v') {
        let wanted = spec.precision.unwrap_or(6);
        let present =
            mantissa.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
        mantissa.push_str(&"0".repeat(wanted.saturating_sub(present)));
    }
    mantissa + exponent
}

/// Fills up to the width, which counts characters.
fn pad(out: &mut Vec<u8>, text: &[u8], spec: &Spec) {
    let missing = spec.width.unwrap_or(0).saturating_sub(raw_runes(text).count());
    let fill = if spec.zero && !spec.minus { b'0' } else { b' ' };
    if !spec.minus {
        out.extend(std::iter::repeat_n(fill, missing));
    }
    out.extend_from_slice(text);
    if spec.minus {
        out.extend(std::iter::repeat_n(b' ', missing));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Duration, IntType, Map, Value, sprintf};

    fn check(format: &str, value: impl Into<Value>, want: &str) {
        assert_eq!(sprintf(format, &[value.into()]), want, "{format}");
    }

    #[test]
    fn integers() {
        check("%d|", 42, "42|");
        check("%5d|%[1]v", 42, "   42|42");
        check("%-5d|", 42, "42   |");
        check("%05d", -42, "-0042");
        check("%+d", 42, "+42");
        check("% d", 42, " 42");
        check("%x", 255, "ff");
        check("%#X", 255, "0XFF");
        check("%o %[1]O %#[1]o", 8, "10 0o10 010");
        check("%b", 5, "101");
        check("%c %[1]q %[1]U %#[1]U", 65, "A 'A' U+0041 U+0041 'A'");
        check("%.4d", 7, "0007");
        check("%s", 1, "%!s(int=1)");
        check("%f", 1, "%!f(int=1)");
        check("%v", Value::Sized(IntType::Weekday, 1), "Monday");
        check("%d", Value::Sized(IntType::Weekday, 1), "1");
        check("%v %[1]s %[1]d", Duration::SECOND, "1s 1s 1000000000");
    }

    #[test]
    fn floats() {
        check("%f", 3.5, "3.500000");
        check("%.2f", 3.456, "3.46");
        check("%8.2f|", 3.456, "    3.46|");
        check("%-8.2f|", 3.456, "3.46    |");
        check("%08.2f", -3.456, "-0003.46");
        check("%e", 123_456.789, "1.234568e+05");
        check("%g %[1]G", 1e21, "1e+21 1E+21");
        check("%v", 1e6, "1e+06");
        check("%+v %+.1[1]f", 1.5, "1.5 +1.5");
        check("%#g", 1.5, "1.50000");
        check("%d", 1.5, "%!d(float64=1.5)");
        check("%v %5[1]v", f64::INFINITY, "+Inf  +Inf");
    }

    #[test]
    fn strings() {
        check("%s|%5[1]s|%-5[1]s|%.1[1]s", "hé", "hé|   hé|hé   |h");
        check("%q %+[1]q %#[1]q", "é\"", "\"é\\\"\" \"\\u00e9\\\"\" `é\"`");
        check("%x %X", "hi", "6869 %!X(MISSING)");
        check("% x|%#[1]x|%# [1]x", "hi", "68 69|0x6869|0x68 0x69");
        check("%d", "x", "%!d(string=x)");
        check("%05s", "ab", "000ab");
        check("%t", "x", "%!t(string=x)");
        check("%t", true, "true");
    }

    #[test]
    fn compounds() {
        let list = || Value::array([1.into(), "a".into(), Value::Nil]);
        check("%v", list(), "[1 a <nil>]");
        check("%d", list(), "[1 %!d(string=a) %!d(<nil>)]");
        check("%#v", list(), "[]interface {}{1, \"a\", interface {}(nil)}");
        check("%T", list(), "[]interface {}");
        let map = || Map::from_iter([("b", 2), ("a", 1)]);
        check("%v", map(), "map[a:1 b:2]");
        check("%+v", map(), "map[a:1 b:2]");
        check("%#v", map(), "map[string]interface {}{\"a\":1, \"b\":2}");
        check("%s %[1]x", Value::bytes(*b"hi"), "hi 6869");
        check("%#v", Value::bytes(*b"hi"), "[]byte{0x68, 0x69}");
    }

    #[test]
    fn misuse() {
        check("%", 1, "%!(NOVERB)%!(EXTRA int=1)");
        check("%d %d", 1, "1 %!d(MISSING)");
        check("%!", 1, "%!!(int=1)");
        check("%[2]d", 1, "%!d(BADINDEX)");
        check("%[x]d", 1, "%!d(BADINDEX)");
        check("100%%", 1, "100%%!(EXTRA int=1)");
        check("%v %[1]T", Value::Nil, "<nil> <nil>");
        check("%d", Value::Nil, "%!d(<nil>)");
        assert_eq!(
            sprintf(
                "%*d|%-*d|%.*f",
                &[5.into(), 1.into(), 4.into(), 2.into(), 1.into(), 2.55.into()]
            ),
            "    1|2   |2.5"
        );
        assert_eq!(sprintf("%[2]d %[1]d", &[1.into(), 2.into()]), "2 1");
        assert_eq!(sprintf("%*d", &["x".into(), 1.into()]), "%!(BADWIDTH)1");
    }
}
