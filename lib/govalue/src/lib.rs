//! Dynamic values that print, compare and convert as Go's do.
//!
//! [`Value`] is what an interpreter of a Go-flavoured language passes around:
//! cheap to clone, shareable between threads, printed by [`sprint`] exactly as
//! Go's `fmt.Sprint` would print it.
//!
//! ```
//! use govalue::{Map, Value, sprint};
//!
//! let mut map = Map::new();
//! map.insert("b", Value::from(vec![Value::from(1), Value::from("two"), Value::Nil]));
//! map.insert("a", Value::from(1e6));
//! assert_eq!(sprint(&[map.into()]), "map[a:1e+06 b:[1 two <nil>]]");
//! ```
#![deny(missing_docs)]

/// Appends formatted text to a string, which cannot fail.
macro_rules! push {
    ($out:expr, $($shown:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($shown)*);
    }};
}

pub mod base64;
mod compare;
mod convert;
mod duration;
pub mod escape;
mod float;
pub mod frame;
pub mod json;
mod kind;
pub mod layout;
mod map;
mod missing;
mod print;
mod printf;
mod quote;
#[cfg(feature = "regexp")]
pub mod regexp;
pub mod semver;
mod serialize;
mod string;
mod time;
mod value;
mod zone;

pub use compare::{compare, deep_equal, equal};
pub use convert::{parse_float, parse_int};
pub use duration::Duration;
pub use float::{FloatFormat, format_float};
pub use frame::{Excerpt, Frame, Span};
pub use kind::{IntType, Kind};
pub use map::{Key, Map, MapShape, Unhashable};
pub use missing::MissingMember;
pub use print::sprint;
pub use printf::{sprintf, sprintf_within};
pub use quote::{Unquoted, is_print, quote, quote_ascii, unquote, unquote_char};
pub use serialize::Exact;
pub use string::Str;
pub use time::{Month, Time, Weekday};
pub use value::Value;
pub use zone::{UnknownZone, Zone};

/// The examples of the README must work as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
