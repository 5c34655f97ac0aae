//! GJSON paths over JSON text and over dynamic values.
//!
//! [`get`] evaluates a path over a text that need not even be valid JSON:
//!
//! ```
//! let json = r#"{"users": [{"name": "Ann", "age": 30}, {"name": "Bob", "age": 25}]}"#;
//!
//! let found = gjson::get(json, "users.#(age<30).name")?;
//! assert_eq!(found.text(), "Bob");
//! assert_eq!(gjson::get(json, "users.#.age")?.raw(), "[30,25]");
//! # Ok::<(), gjson::Error>(())
//! ```
//!
//! A [`Path`] is made once and used often. Over a [`govalue::Value`] the common
//! path of plain names walks the value and writes no JSON:
//!
//! ```
//! use govalue::{Map, Value};
//!
//! let facts = Map::from_iter([("os", Value::from("linux")), ("cpus", Value::from(8))]);
//! let root = Value::from(Map::from_iter([("facts", Value::from(facts))]));
//!
//! assert_eq!(gjson::Path::compile("facts.cpus").lookup(&root)?, Some(Value::Int(8)));
//! assert_eq!(gjson::Path::compile("facts.nope").lookup(&root)?, None);
//! # Ok::<(), gjson::Error>(())
//! ```
//!
//! No path and no text makes this crate panic, recurse without end or use
//! memory without end; what goes too far is an [`Error`].
#![deny(missing_docs)]

mod decode;
mod document;
mod error;
mod found;
mod glob;
mod modifier;
mod multipath;
mod path;
mod pretty;
mod query;
mod run;
mod scan;
mod step;
mod text;
mod tree;
mod valid;

pub use document::Document;
pub use error::Error;
pub use found::{Found, Kind};
pub use path::Path;

/// The examples of the README are tested as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Evaluates a path over a JSON text.
pub fn get<'a>(json: &'a str, path: &str) -> Result<Found<'a>, Error> {
    run::Run::new(json).get(json, path)
}
