//! Go's `text/template` with the Sprig v3 functions.
//!
//! A template is parsed once and rendered many times, from any thread:
//!
//! ```
//! use gotemplate::Engine;
//! use govalue::{Map, Value};
//!
//! let engine = Engine::new();
//! let template = engine.parse("greeting", "Hello {{ .name | default \"you\" | title }}!")?;
//! let data = Value::from(Map::from_iter([("name", "ann lee")]));
//! assert_eq!(template.render(&data)?, "Hello Ann Lee!");
//! # Ok::<(), gotemplate::Error>(())
//! ```
//!
//! The caller adds functions of its own, chooses delimiters, and may bound what
//! a template does:
//!
//! ```
//! use gotemplate::{Engine, ErrorKind, Limits};
//! use govalue::Value;
//!
//! let engine = Engine::new()
//!     .delimiters("[[", "]]")
//!     .limits(Limits { output: 1000, ..Limits::default() })
//!     .function("shout", |arguments| match arguments {
//!         [Value::String(text)] => Ok(format!("{text}!").into()),
//!         _ => Err("shout takes one text".into()),
//!     });
//! assert_eq!(engine.render("t", "[[ shout \"hey\" ]]", &Value::Nil)?, "hey!");
//! let error = engine.render("t", "[[ repeat 5000 \"x\" ]]", &Value::Nil).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Limit);
//! # Ok::<(), gotemplate::Error>(())
//! ```
//!
//! Errors know where they happened, and show it:
//!
//! ```
//! # use gotemplate::Engine;
//! let error = Engine::new().parse("motd", "Hi {{ nmae }}").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "function \"nmae\" not defined\n --> motd:1:7\n  |\n1 | Hi {{ nmae }}\n  |       ^^^^"
//! );
//! ```
#![deny(missing_docs)]

mod ast;
mod builtins;
mod engine;
mod error;
mod execute;
mod functions;
mod lex;
mod limits;
mod methods;
mod number;
mod parse;
mod sprig;
mod val;

pub use engine::{Clock, Engine, Failure, Random, Template};
pub use error::{Error, ErrorKind};
pub use functions::names as function_names;
pub use limits::{Caller, Limits};

/// The examples of the README must work as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
