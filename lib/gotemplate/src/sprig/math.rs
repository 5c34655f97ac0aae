//! Integer and float math, and numbers out of other things.

use super::cast::{float, int};
use super::decimal::Decimal;
use crate::error::Fail;
use crate::functions::Type::{Any, Float, Int, String};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::{Items, Val};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("add", &[], |_, a| Ok(Val::int64(a.0.iter().map(int).fold(0, i64::wrapping_add))))
        .rest(Any),
    Native::new("add1", &[Any], |_, a| Ok(Val::int64(int(a.get(0)).wrapping_add(1)))),
    Native::new("add1f", &[Any], |_, a| exact(a.get(0), &[Val::Int(1)], add)),
    Native::new("addf", &[], |_, a| exact(&Val::Int(0), a.0, add)).rest(Any),
    Native::new("atoi", &[String], |_, a| {
        Ok(Val::Int(govalue::parse_int(&a.text(0), 10).unwrap_or(0)))
    }),
    Native::new("biggest", &[Any], max).rest(Any),
    Native::new("ceil", &[Any], |_, a| Ok(float(a.get(0)).ceil().into())),
    Native::new("div", &[Any, Any], |_, a| divided(a, i64::wrapping_div)),
    Native::new("divf", &[Any], |_, a| exact(a.get(0), a.from(1), Decimal::divide)).rest(Any),
    Native::new("float64", &[Any], |_, a| Ok(float(a.get(0)).into())),
    Native::new("floor", &[Any], |_, a| Ok(float(a.get(0)).floor().into())),
    Native::new("int", &[Any], |_, a| Ok(Val::Int(int(a.get(0))))),
    Native::new("int64", &[Any], |_, a| Ok(Val::int64(int(a.get(0))))),
    Native::new("max", &[Any], max).rest(Any),
    Native::new("maxf", &[Any], |_, a| Ok(extreme(a, |a, b| a > b).into())).rest(Any),
    Native::new("min", &[Any], |_, a| Ok(Val::int64(a.0.iter().map(int).min().unwrap_or(0))))
        .rest(Any),
    Native::new("minf", &[Any], |_, a| Ok(extreme(a, |a, b| a < b).into())).rest(Any),
    Native::new("mod", &[Any, Any], |_, a| divided(a, i64::wrapping_rem)),
    Native::new("mul", &[Any], |_, a| {
        Ok(Val::int64(a.0.iter().map(int).fold(1, i64::wrapping_mul)))
    })
    .rest(Any),
    Native::new("mulf", &[Any], |_, a| exact(a.get(0), a.from(1), |a, b| Ok(a.multiply(b))))
        .rest(Any),
    Native::new("round", &[Any, Int], round).rest(Float),
    Native::new("seq", &[], seq).rest(Int),
    Native::new("sub", &[Any, Any], |_, a| {
        Ok(Val::int64(int(a.get(0)).wrapping_sub(int(a.get(1)))))
    }),
    Native::new("subf", &[Any], |_, a| exact(a.get(0), a.from(1), |a, b| Ok(a.subtract(b))))
        .rest(Any),
    Native::new("toDecimal", &[Any], |context, a| {
        let text = a.get(0).print(context.budget)?;
        let number = text.as_str().and_then(|text| govalue::parse_int(text, 8).ok());
        Ok(Val::int64(number.unwrap_or(0)))
    }),
    Native::new("until", &[Int], |context, a| {
        let step = if a.int(0) < 0 { -1 } else { 1 };
        numbers(context, 0, a.int(0), step)
    }),
    Native::new("untilStep", &[Int, Int, Int], |context, a| {
        numbers(context, a.int(0), a.int(1), a.int(2))
    }),
];

fn max(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    Ok(Val::int64(arguments.0.iter().map(int).max().unwrap_or(0)))
}

fn add(a: &Decimal, b: &Decimal) -> Result<Decimal, Fail> {
    Ok(a.add(b))
}

fn divided(arguments: &Arguments<'_>, divide: fn(i64, i64) -> i64) -> Outcome {
    match int(arguments.get(1)) {
        0 => Err("integer divide by zero".into()),
        divisor => Ok(Val::int64(divide(int(arguments.get(0)), divisor))),
    }
}

/// Floats combined as the decimals they look like.
fn exact(
    first: &Val,
    others: &[Val],
    combine: fn(&Decimal, &Decimal) -> Result<Decimal, Fail>,
) -> Outcome {
    let mut result = Decimal::from_float(float(first))?;
    for other in others {
        result = combine(&result, &Decimal::from_float(float(other))?)?;
    }
    Ok(result.to_float().into())
}

/// The float that beats all others; one that is no number beats everything.
fn extreme(arguments: &Arguments<'_>, beats: fn(f64, f64) -> bool) -> f64 {
    let mut values = arguments.0.iter().map(float);
    let first = values.next().unwrap_or(0.0);
    values.fold(first, |best, value| {
        if best.is_nan() || !value.is_nan() && !beats(value, best) { best } else { value }
    })
}

/// Scales, then goes up from the given fraction (a half) and down otherwise;
/// below zero the fraction is negative and never reaches it.
fn round(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let turn = arguments.float(2).unwrap_or(0.5);
    let power = 10f64.powf(arguments.int(1) as f64);
    let scaled = power * float(arguments.get(0));
    let rounded = if scaled.fract() >= turn { scaled.ceil() } else { scaled.floor() };
    Ok((rounded / power).into())
}

/// How many numbers there are from `start` up or down to, not including, `end`.
fn count(start: i64, end: i64, step: i64) -> usize {
    let (start, end, step) = (i128::from(start), i128::from(end), i128::from(step));
    if (end - start).signum() * step.signum() <= 0 {
        return 0;
    }
    let distance = (end - start).unsigned_abs();
    usize::try_from(distance.div_ceil(step.unsigned_abs())).unwrap_or(usize::MAX)
}

fn series(
    context: &mut Context<'_>,
    start: i64,
    end: i64,
    step: i64,
) -> Result<impl Iterator<Item = i64>, Fail> {
    let count = count(start, end, step);
    context.budget.spend_items(count)?;
    Ok((0..count as i64).map(move |index| start.wrapping_add(index.wrapping_mul(step))))
}

fn numbers(context: &mut Context<'_>, start: i64, end: i64, step: i64) -> Outcome {
    let items = series(context, start, end, step)?.map(Val::Int).collect();
    Ok(Val::list_of(Items::Ints, items))
}

/// As the command of that name: last, first and last, or first, step and last.
fn seq(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let (start, step, end) = match arguments.0.len() {
        1 => (1, None, arguments.int(0)),
        2 => (arguments.int(0), None, arguments.int(1)),
        3 => (arguments.int(0), Some(arguments.int(1)), arguments.int(2)),
        _ => return Ok("".into()),
    };
    let towards = if end < start { -1 } else { 1 };
    let step = step.unwrap_or(towards);
    if towards < 0 && step > 0 {
        return Ok("".into());
    }
    let texts: Vec<std::string::String> =
        series(context, start, end.saturating_add(towards), step)?.map(|n| n.to_string()).collect();
    context.budget.spend_bytes(texts.iter().map(|text| text.len() + 1).sum())?;
    Ok(texts.join(" ").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (start, end, step, want) in [
            (0, 5, 1, 5),
            (0, 10, 3, 4),
            (0, 9, 3, 3),
            (10, 0, -3, 4),
            (5, 0, 1, 0),
            (0, 5, 0, 0),
            (0, 5, -1, 0),
        ] {
            assert_eq!(count(start, end, step), want, "{start} {end} {step}");
        }
        assert_eq!(count(i64::MIN, i64::MAX, 1), usize::MAX);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "small whole numbers")]
    fn a_nan_beats_everything() {
        let best = |values: &[f64]| {
            let values: Vec<Val> = values.iter().copied().map(Val::Float).collect();
            extreme(&Arguments(&values), |a, b| a > b)
        };
        assert_eq!(best(&[1.0, 3.0, 2.0]), 3.0);
        assert!(best(&[1.0, f64::NAN, 2.0]).is_nan());
    }
}
