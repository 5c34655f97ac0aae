//! JSON as Go writes and reads it.

mod decode;
mod encode;

pub use decode::{Numbers, ParseError, decode, escaped_char, surrogate_pair};
pub(crate) use encode::{MAX_DEPTH, finite_number, rfc3339};
pub use encode::{Options, Unsupported, encode};
