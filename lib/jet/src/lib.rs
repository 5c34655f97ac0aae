//! The Jet template language, as version 6 of `CloudyKit`'s engine defines it.
//!
//! ```
//! use govalue::{Map, Value};
//! use jet::{Set, Variables};
//!
//! let set = Set::new();
//! let template = set
//!     .parse("motd", "{{ range i, name := users }}{{ i + 1 }}. {{ name | upper }}\n{{ end }}")
//!     .unwrap();
//! let mut variables = Variables::new();
//! variables.set("users", Value::array(["Ann".into(), "Bob".into()]));
//! let text = set.render(&template, &variables, &Value::Nil).unwrap();
//! assert_eq!(text, "1. ANN\n2. BOB\n");
//! ```
//!
//! Output is raw: nothing is escaped unless a template asks for it. Every
//! rendering is bounded by [`Limits`]; no template, however wrong, makes the
//! caller panic, hang or run out of memory.
#![deny(missing_docs)]
#![expect(clippy::similar_names, reason = "context and content are the language's own words")]

mod ast;
mod builtins;
mod error;
mod function;
mod item;
mod lexer;
mod limits;
mod loader;
mod parser;
mod render;
mod set;
mod source;
mod variables;

pub use builtins::names as function_names;
pub use error::{Error, ErrorKind};
pub use function::{Function, Param};
pub use limits::Limits;
pub use loader::{Loader, MemoryLoader};
pub use set::{Set, Template};
pub use variables::Variables;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
