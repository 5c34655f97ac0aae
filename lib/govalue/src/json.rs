//! JSON as Go writes and reads it.

mod decode;
mod encode;

pub use decode::{Numbers, ParseError, decode};
pub use encode::{Options, Unsupported, encode};
