//! Randomness, all of it from the configured source.

use crate::error::Fail;
use crate::functions::Type::{Int, String};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::Val;

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("randAlpha", &[Int], |context, a| letters(context, a, u8::is_ascii_alphabetic)),
    Native::new("randAlphaNum", &[Int], |context, a| {
        letters(context, a, u8::is_ascii_alphanumeric)
    }),
    Native::new("randAscii", &[Int], |context, a| {
        letters(context, a, |c| (b' '..0x7f).contains(c))
    }),
    Native::new("randBytes", &[Int], |context, a| {
        let count = count(context, a)?;
        let mut bytes = vec![0; count];
        context.random(&mut bytes)?;
        Ok(govalue::base64::encode(&bytes).into())
    }),
    Native::new("randInt", &[Int, Int], |context, a| {
        let (least, most) = (a.int(0), a.int(1));
        if most <= least {
            return Err("the maximum must be greater than the minimum".into());
        }
        let drawn = below(context, most.wrapping_sub(least) as u64)?;
        Ok(Val::Int(least.wrapping_add(drawn as i64)))
    }),
    Native::new("randNumeric", &[Int], |context, a| letters(context, a, u8::is_ascii_digit)),
    Native::new("shuffle", &[String], |context, a| {
        let mut chars: Vec<char> = a.text(0).chars().collect();
        context.budget.spend(chars.len())?;
        for last in (1..chars.len()).rev() {
            let other = below(context, last as u64 + 1)?;
            chars.swap(last, other as usize);
        }
        Ok(chars.into_iter().collect::<std::string::String>().into())
    }),
    Native::new("uuidv4", &[], |context, _| {
        let mut bytes = [0; 16];
        context.random(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let number = u128::from_be_bytes(bytes);
        let hex = format!("{number:032x}");
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        Ok(parts.join("-").into())
    }),
];

fn count(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Result<usize, Fail> {
    let count = arguments.int(0);
    let wanted = usize::try_from(count)
        .map_err(|_| format!("randomly generated texts cannot have length {count}"))?;
    // Dearer than other texts: the system has to be asked for them.
    context.budget.spend(wanted)?;
    context.budget.spend_bytes(wanted)?;
    Ok(wanted)
}

fn letters(
    context: &mut Context<'_>,
    arguments: &Arguments<'_>,
    allowed: fn(&u8) -> bool,
) -> Outcome {
    let count = count(context, arguments)?;
    let set: Vec<u8> = (0..0x7f).filter(allowed).collect();
    let mut out = Vec::with_capacity(count);
    // Bytes beyond the last whole multiple would favour the first letters.
    let fair = 256 - 256 % set.len();
    let mut bytes = [0; 256];
    // A source that never yields a fair byte is broken; it must not hang us.
    for _ in 0..count / 8 + 16 {
        context.random(&mut bytes)?;
        let drawn = bytes.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < fair);
        out.extend(drawn.take(count - out.len()).map(|byte| set[byte % set.len()]));
        if out.len() == count {
            return Ok(out.into());
        }
    }
    Err("the source of randomness does not yield enough".into())
}

/// A number from zero to, not including, this one. The bias of the remainder
/// is far below anything noticeable.
fn below(context: &Context<'_>, bound: u64) -> Result<u64, Fail> {
    let mut bytes = [0; 16];
    context.random(&mut bytes)?;
    Ok((u128::from_be_bytes(bytes) % u128::from(bound.max(1))) as u64)
}

#[cfg(test)]
mod tests {
    use crate::Engine;
    use govalue::Value;

    #[test]
    fn texts_have_the_right_letters() {
        for (text, length, allowed) in [
            ("{{ randAlpha 40 }}", 40, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
            ("{{ randNumeric 300 }}", 300, "0123456789"),
            (
                "{{ randBytes 3 }}",
                4,
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
            ),
            ("{{ shuffle \"abc\" }}", 3, "abc"),
        ] {
            let got = Engine::new().render("t", text, &Value::Nil).unwrap();
            assert_eq!(got.len(), length, "{text}");
            assert!(got.chars().all(|c| allowed.contains(c)), "{text}: {got}");
        }
    }

    #[test]
    fn the_source_is_the_callers() {
        let engine = Engine::new().random(|bytes| {
            bytes.fill(1);
            Ok(())
        });
        let render = |text| engine.render("t", text, &Value::Nil).unwrap();
        assert_eq!(render("{{ uuidv4 }}"), "01010101-0101-4101-8101-010101010101");
        assert_eq!(render("{{ randAlpha 3 }}"), "BBB");
        let dry = Engine::new().random(|bytes| {
            bytes.fill(255);
            Ok(())
        });
        assert!(dry.render("t", "{{ randNumeric 9 }}", &Value::Nil).is_err());
        assert!(dry.render("t", "{{ randInt 5 5 }}", &Value::Nil).is_err());
    }
}
