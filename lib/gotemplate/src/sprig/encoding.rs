//! Base64, base32 and JSON.

use govalue::{base64, json};

use crate::error::Fail;
use crate::functions::Type::{Any, String};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::{Purpose, Val};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("b32dec", &[String], |_, a| Ok(decoded(decode32(a.bytes(0)), "base32"))),
    Native::new("b32enc", &[String], |context, a| {
        context.budget.spend_bytes(a.bytes(0).len().saturating_mul(2))?;
        Ok(encode32(a.bytes(0)).into())
    }),
    Native::new("b64dec", &[String], |_, a| Ok(decoded(decode64(a.bytes(0)), "base64"))),
    Native::new("b64enc", &[String], |context, a| {
        context.budget.spend_bytes(a.bytes(0).len().saturating_mul(2))?;
        Ok(base64::encode(a.bytes(0)).into())
    }),
    Native::new("fromJson", &[String], |context, a| forgiven(parsed(context, a), Val::Nil)),
    Native::new("mustFromJson", &[String], parsed),
    Native::new("mustToJson", &[Any], |context, a| written(context, a, PLAIN)),
    Native::new("mustToPrettyJson", &[Any], |context, a| written(context, a, PRETTY)),
    Native::new("mustToRawJson", &[Any], |context, a| written(context, a, RAW)),
    Native::new("toJson", &[Any], |context, a| forgiven(written(context, a, PLAIN), "".into())),
    Native::new("toPrettyJson", &[Any], |context, a| {
        forgiven(written(context, a, PRETTY), "".into())
    }),
    Native::new("toRawJson", &[Any], |context, a| written(context, a, RAW)),
];

const PLAIN: json::Options<'static> = json::Options { escape_html: true, indent: None };
const PRETTY: json::Options<'static> = json::Options { escape_html: true, indent: Some("  ") };
const RAW: json::Options<'static> = json::Options { escape_html: false, indent: None };

fn parsed(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let text = arguments.text(0);
    context.budget.spend(text.len() / 4)?;
    let separates = |byte: &u8| matches!(byte, b',' | b'[' | b'{');
    let items = text.bytes().filter(separates).count();
    context.budget.spend_items(items.saturating_mul(2))?;
    match json::decode(&text, json::Numbers::Floats) {
        Ok(value) => Ok(Val::from(&value)),
        Err(error) => Err(error.to_string().into()),
    }
}

fn written(
    context: &mut Context<'_>,
    arguments: &Arguments<'_>,
    options: json::Options<'_>,
) -> Outcome {
    let value = arguments.get(0).to_value(context.budget, Purpose::Json)?;
    let text = json::encode(&value, options).map_err(|error| Fail::from(error.to_string()))?;
    context.budget.spend_bytes(text.len())?;
    Ok(text.into())
}

/// What JSON cannot say, or what is no JSON, gives something else; limits remain
/// limits.
fn forgiven(outcome: Outcome, otherwise: Val) -> Outcome {
    outcome.or_else(|fail| match fail.kind {
        crate::ErrorKind::Limit => Err(fail),
        _ => Ok(otherwise),
    })
}

const ALPHABET32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Digits of five bits each, padded to groups of eight.
fn encode32(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let number =
            (0..5).fold(0u64, |number, at| number << 8 | u64::from(*chunk.get(at).unwrap_or(&0)));
        let used = (chunk.len() * 8).div_ceil(5);
        for digit in 0..8 {
            let value = number >> (5 * (7 - digit)) & 31;
            out.push(if digit < used { ALPHABET32[value as usize] } else { b'=' });
        }
    }
    out
}

/// The text, or what Go says about the place where it goes wrong.
fn decoded(result: Result<Vec<u8>, usize>, name: &str) -> Val {
    match result {
        Ok(bytes) => bytes.into(),
        Err(at) => format!("illegal {name} data at input byte {at}").into(),
    }
}

/// The bytes, or the offset of what does not belong.
pub(super) fn decode64(text: &[u8]) -> Result<Vec<u8>, usize> {
    base64::decode(text).ok_or_else(|| illegal64(text))
}

/// Where Go finds a text to be no base64: templates can show it.
fn illegal64(text: &[u8]) -> usize {
    let is_line_end = |byte: u8| matches!(byte, b'\r' | b'\n');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut symbols = text.iter().copied().enumerate().filter(|(_, byte)| !is_line_end(*byte));
    let mut count = 0;
    while let Some((at, byte)) = symbols.next() {
        if is_digit(byte) {
            count = (count + 1) % 4;
        } else if byte != b'=' || count < 2 {
            return at;
        } else {
            return match (count, symbols.next()) {
                (2, None) => text.len(),
                // The second padding is missing: Go blames what stands before.
                (2, Some((next, byte))) if byte != b'=' => next - 1,
                (2, Some(_)) => symbols.next().map_or(text.len(), |(next, _)| next),
                (_, next) => next.map_or(text.len(), |(next, _)| next),
            };
        }
    }
    text.len() - count
}

fn digit32(byte: u8) -> Option<u64> {
    ALPHABET32.iter().position(|letter| *letter == byte).map(|value| value as u64)
}

fn decode32(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> =
        text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    for (index, chunk) in text.chunks(8).enumerate() {
        let start = index * 8;
        let (mut number, mut count) = (0u64, 0);
        for (at, &byte) in chunk.iter().enumerate() {
            let last = start + 8 >= text.len();
            if byte == b'=' && at >= 2 && last {
                if chunk.len() < 8 {
                    return Err(text.len());
                }
                if let Some(wrong) = chunk[at..].iter().position(|byte| *byte != b'=') {
                    return Err(start + at + wrong);
                }
                if matches!(at, 1 | 3 | 6) {
                    return Err(start + at);
                }
                break;
            }
            number = number << 5 | digit32(byte).ok_or(start + at)?;
            count += 1;
        }
        if count < 8 && chunk.len() < 8 {
            return Err(text.len() - count);
        }
        let bytes = (number << (5 * (8 - count))).to_be_bytes();
        out.extend_from_slice(&bytes[3..3 + count * 5 / 8]);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_both_ways() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(decode64(coded.as_bytes()).unwrap(), plain.as_bytes());
        }
        assert_eq!(decode64(b"Zm\n9v\r\nYg=\n=").unwrap(), b"foob");
        for (bad, at) in [
            ("!!", 0),
            ("Zg", 0),
            ("Zm9vY", 4),
            ("Zg=", 3),
            ("Zg==x", 4),
            ("Zg=x", 2),
            ("=", 0),
            ("Z===", 1),
        ] {
            assert_eq!(decode64(bad.as_bytes()), Err(at), "{bad}");
        }
    }

    #[test]
    fn base32_both_ways() {
        for (plain, coded) in
            [("", ""), ("f", "MY======"), ("fooba", "MZXW6YTB"), ("foobar", "MZXW6YTBOI======")]
        {
            assert_eq!(encode32(plain.as_bytes()), coded.as_bytes());
            assert_eq!(decode32(coded.as_bytes()).unwrap(), plain.as_bytes());
        }
        for (bad, at) in [("!!", 0), ("MY", 0), ("MZXW6YT1", 7), ("M=======", 1)] {
            assert_eq!(decode32(bad.as_bytes()), Err(at), "{bad}");
        }
    }
}
