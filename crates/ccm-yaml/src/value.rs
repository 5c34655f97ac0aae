//! Converts the tree to dynamic values.

use govalue::{IntType, Map, Value, parse_float};

use crate::{Kind, Node, Scalar};

/// What a tree means as free data.
///
/// Scalars are read as goccy/go-yaml reads them, which is neither YAML 1.1 nor
/// 1.2 to the letter: `yes`, `on`, `1e3` and dates are text; `017`, `0o17`,
/// `0x1f`, `0b11` and `1_000` are whole numbers; `1.0e3`, `.inf` and `.nan` are
/// floats; a number that does not fit is text. Quoted scalars are always text.
///
/// ```
/// let source = ccm_yaml::Source::new("data.yaml", "port: 8080\nmode: '0644'\ntags: [a, ~]\n");
/// let value = ccm_yaml::to_value(&ccm_yaml::parse(&source)?);
/// assert_eq!(value.to_string(), "map[mode:0644 port:8080 tags:[a <nil>]]");
/// assert_eq!(value.get("port"), Some(&govalue::Value::Int(8080)));
/// # Ok::<(), ccm_yaml::SyntaxError>(())
/// ```
pub fn to_value(node: &Node<'_>) -> Value {
    match &node.kind {
        Kind::Scalar(scalar) => scalar_value(scalar),
        Kind::Sequence(items) => Value::array(items.iter().map(to_value)),
        Kind::Mapping(entries) => {
            let members = entries.iter().map(|entry| (&*entry.key.text, to_value(&entry.value)));
            members.collect::<Map>().into()
        }
    }
}

pub(crate) fn scalar_value(scalar: &Scalar<'_>) -> Value {
    let text = &*scalar.text;
    if !scalar.plain {
        return text.into();
    }
    if scalar.is_null() {
        return Value::Nil;
    }
    if let Some(flag) = scalar.boolean() {
        return flag.into();
    }
    match text {
        ".inf" | ".Inf" | ".INF" => f64::INFINITY.into(),
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY.into(),
        ".nan" | ".NaN" | ".NAN" => f64::NAN.into(),
        _ => number(text).unwrap_or_else(|| text.into()),
    }
}

/// The number that a plain scalar is. A dot makes it a float; without one there
/// is no exponent either, which is why `1e3` stays text.
fn number(text: &str) -> Option<Value> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let digits = unsigned.strip_prefix('-').unwrap_or(unsigned).replace('_', "");
    let dots = text.bytes().filter(|&byte| byte == b'.').count();
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)];
    let prefixed = prefixed
        .into_iter()
        .find_map(|(prefix, radix)| digits.strip_prefix(prefix).map(|rest| (rest, radix)));
    match (prefixed, dots) {
        (Some((digits, radix)), _) => integer(digits, radix, negative),
        (None, 0) if digits.len() > 1 && digits.starts_with('0') => integer(&digits, 8, negative),
        (None, 0) => integer(&digits, 10, negative),
        (None, 1) => float(&digits, negative),
        _ => None,
    }
}

fn integer(digits: &str, radix: u32, negative: bool) -> Option<Value> {
    // Rust would take another sign here.
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(Value::Int);
    }
    Some(match i64::try_from(magnitude) {
        Ok(value) => Value::Int(value),
        Err(_) => Value::Sized(IntType::Uint64, magnitude.cast_signed()),
    })
}

fn float(digits: &str, negative: bool) -> Option<Value> {
    let signed = if negative { format!("-{digits}") } else { digits.to_owned() };
    parse_float(&signed).ok().map(Value::Float)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Source, parse};

    fn read(text: &str) -> Value {
        to_value(&parse(&Source::new("t", text)).unwrap())
    }

    fn scalar(text: &str) -> Value {
        read(&format!("a: {text}\n")).get("a").unwrap().clone()
    }

    #[test]
    fn whole_numbers() {
        for (text, wanted) in [
            ("0", 0),
            ("-0", 0),
            ("+5", 5),
            ("-17", -17),
            ("017", 15),
            ("-017", -15),
            ("0o17", 15),
            ("0x1f", 31),
            ("0x1F", 31),
            ("-0x1f", -31),
            ("0b11", 3),
            ("1_000", 1000),
            ("0x_ff", 255),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(scalar(text), Value::Int(wanted), "{text}");
        }
        assert_eq!(
            scalar("18446744073709551615"),
            Value::Sized(IntType::Uint64, u64::MAX.cast_signed())
        );
    }

    #[test]
    fn floats() {
        for (text, wanted) in [
            ("1.5", 1.5),
            ("1.0", 1.0),
            ("-1.5", -1.5),
            ("+1.5", 1.5),
            (".5", 0.5),
            ("-.5", -0.5),
            ("5.", 5.0),
            ("1.0e3", 1000.0),
            ("1.5E-3", 0.0015),
            ("1_0.2_5", 10.25),
            ("010.5", 10.5),
            (".inf", f64::INFINITY),
            ("-.Inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(scalar(text), Value::Float(wanted), "{text}");
        }
        for text in [".nan", ".NaN", ".NAN"] {
            assert!(matches!(scalar(text), Value::Float(value) if value.is_nan()), "{text}");
        }
    }

    #[test]
    fn text_that_only_looks_like_something() {
        for text in [
            "1e3",
            "1E3",
            "-1e3",
            "yes",
            "no",
            "on",
            "off",
            "y",
            "n",
            "Yes",
            "08",
            "0o8",
            "0b2",
            "0xg",
            "0x",
            "0X1F",
            "0x1.8",
            "1.2.3",
            "10.0.0.1",
            "2024-01-02",
            "2024-01-02T03:04:05Z",
            "18446744073709551616",
            "-9223372036854775809",
            "1.0e999",
            "+.inf",
            ".iNF",
            ".nAn",
            "inf",
            "nan",
            "_1",
            "1,000",
            "12:30",
            "+",
            ".",
            "tRUE",
            "nULL",
            "--5",
            "-+5",
            "5 apples",
        ] {
            assert_eq!(scalar(text), Value::from(text), "{text}");
        }
    }

    #[test]
    fn null_and_booleans() {
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(scalar(text), Value::Nil, "{text:?}");
        }
        for (text, wanted) in [("true", true), ("True", true), ("FALSE", false)] {
            assert_eq!(scalar(text), Value::Bool(wanted), "{text}");
        }
    }

    #[test]
    fn quotes_blocks_and_tags_make_text() {
        for (text, wanted) in [
            ("'5'", "5"),
            ("\"true\"", "true"),
            ("''", ""),
            ("'~'", "~"),
            ("!!str 5", "5"),
            ("|-\n  5", "5"),
            (">-\n  a\n  b", "a b"),
        ] {
            assert_eq!(scalar(text), Value::from(wanted), "{text}");
        }
    }

    #[test]
    fn collections_keep_their_order() {
        let value = read("b: [1, {x: 1.0}]\na: {z: null, y: 2}\n8: eight\n");
        let keys: Vec<_> = value.as_map().unwrap().keys().filter_map(|key| key.as_str()).collect();
        assert_eq!(keys, ["b", "a", "8"]);
        assert_eq!(value.to_string(), "map[8:eight a:map[y:2 z:<nil>] b:[1 map[x:1]]]");
        assert_eq!(read(""), Value::Nil);
        assert_eq!(read("- 1\n- a\n"), Value::array([1.into(), "a".into()]));
    }

    proptest! {
        #[test]
        fn every_scalar_means_something(text in "[-+._0-9a-fxobEeINFnul~]{0,12}") {
            let _ = scalar_value(&Scalar { text: text.as_str().into(), plain: true });
        }

        #[test]
        fn numbers_are_read_back(number in any::<i64>(), eighths in any::<i32>()) {
            prop_assert_eq!(scalar(&number.to_string()), Value::Int(number));
            let float = f64::from(eighths) / 8.0;
            prop_assert_eq!(scalar(&format!("{float:?}")), Value::Float(float));
        }
    }
}
