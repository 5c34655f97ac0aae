//! What type a value has.

use crate::functions::Native;
use crate::functions::Type::{Any, String};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("deepEqual", &[Any, Any], |context, a| {
        Ok(a.get(0).deep_equal(a.get(1), context.budget)?.into())
    }),
    Native::new("kindIs", &[String, Any], |_, a| Ok((a.text(0) == a.get(1).kind_name()).into())),
    Native::new("kindOf", &[Any], |_, a| Ok(a.get(0).kind_name().into())),
    Native::new("typeIs", &[String, Any], |_, a| Ok((a.text(0) == a.get(1).type_name()).into())),
    Native::new("typeIsLike", &[String, Any], |_, a| {
        let name = a.get(1).type_name();
        Ok((a.text(0) == name || name.strip_prefix('*') == Some(&a.text(0))).into())
    }),
    Native::new("typeOf", &[Any], |_, a| Ok(a.get(0).type_name().into())),
];
