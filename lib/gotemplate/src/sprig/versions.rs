//! Semantic versions.

use std::rc::Rc;

use govalue::semver::Version;

use super::constraint::Constraints;
use crate::functions::Native;
use crate::functions::Type::String;
use crate::val::Val;

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("semver", &[String], |_, a| Ok(Val::Version(Rc::new(Version::parse(&a.text(0))?)))),
    Native::new("semverCompare", &[String, String], |_, a| {
        let constraints = Constraints::parse(&a.text(0))?;
        Ok(constraints.allow(&Version::parse(&a.text(1))?).into())
    }),
];
