//! Defaults and flow: what to take when there is nothing, and when to stop.

use crate::functions::Type::{Any, Bool, String};
use crate::functions::{Native, Outcome};
use crate::val::Val;

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("all", &[], |_, a| Ok((!a.0.iter().any(Val::is_empty)).into())).rest(Any),
    Native::new("any", &[], |_, a| Ok((!a.0.iter().all(Val::is_empty)).into())).rest(Any),
    Native::new("coalesce", &[], |_, a| first(a.0)).rest(Any),
    Native::new("default", &[Any], |_, a| Ok(a.get(usize::from(!a.get(1).is_empty())).clone()))
        .rest(Any),
    Native::new("empty", &[Any], |_, a| Ok(a.get(0).is_empty().into())),
    Native::new("fail", &[String], |_, a| Err(a.text(0).into_owned().into())),
    Native::new("ternary", &[Any, Any, Bool], |_, a| Ok(a.get(usize::from(!a.bool(2))).clone())),
];

fn first(values: &[Val]) -> Outcome {
    Ok(values.iter().find(|value| !value.is_empty()).cloned().unwrap_or(Val::Nil))
}
