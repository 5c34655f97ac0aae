//! Sprig's functions, a file for each group of its documentation.
#![expect(clippy::unnecessary_wraps, reason = "the tables want one signature")]

mod cast;
#[cfg(feature = "certificates")]
mod certificates;
mod constraint;
#[cfg(feature = "crypto")]
mod crypto;
mod dates;
mod decimal;
mod defaults;
mod dicts;
mod encoding;
mod inert;
mod lists;
mod math;
mod paths;
mod random;
mod reflection;
mod regular;
mod strings;
mod texts;
mod url;
mod versions;
mod words;

pub(crate) use regular::Cache as RegexCache;

use crate::functions::Native;

pub(crate) const GROUPS: &[&[Native]] = &[
    #[cfg(feature = "certificates")]
    certificates::FUNCTIONS,
    #[cfg(not(feature = "certificates"))]
    inert::NO_CERTIFICATES,
    #[cfg(feature = "crypto")]
    crypto::FUNCTIONS,
    #[cfg(not(feature = "crypto"))]
    inert::NO_CRYPTO,
    dates::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    encoding::FUNCTIONS,
    inert::FUNCTIONS,
    lists::FUNCTIONS,
    math::FUNCTIONS,
    paths::FUNCTIONS,
    random::FUNCTIONS,
    reflection::FUNCTIONS,
    regular::FUNCTIONS,
    strings::FUNCTIONS,
    texts::FUNCTIONS,
    url::FUNCTIONS,
    versions::FUNCTIONS,
    words::FUNCTIONS,
];
