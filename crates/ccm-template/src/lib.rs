//! Placeholders in text, and what the expressions in them can see and call.
//!
//! An [`Engine`] resolves `{{ … }}` and `${ … }` with Expr expressions over
//! facts, data and the environment:
//!
//! ```
//! use ccm_template::{Engine, Facts, Scope};
//! use govalue::{Map, Value};
//!
//! let engine = Engine::new(Scope {
//!     facts: Facts::known(Map::from_iter([("os", "linux")])),
//!     data: Map::from_iter([("port", 8080)]),
//!     ..Scope::default()
//! });
//! assert_eq!(engine.text("{{ Facts.os }}:${ Data.port + 1 }")?.text, "linux:8081");
//! assert_eq!(engine.value(" {{ Data.port }} ")?, Value::Int(8080));
//! assert!(engine.condition("lookup('data.port') > 1024")?);
//!
//! let error = engine.text("{{ Data.port + nope }}").unwrap_err();
//! assert_eq!(error.to_string(), "unknown name nope (1:13)\n | Data.port + nope\n |             ^^^^");
//! # Ok::<(), ccm_template::Error>(())
//! ```
//!
//! [`placeholder`] is the scanner alone.

mod budget;
mod engine;
mod error;
mod functions;
mod gotemplates;
mod jets;
mod missing;
pub mod placeholder;
mod resolve;
mod scope;

pub use engine::Engine;
pub use error::Error;
pub use resolve::Resolved;
pub use scope::{Facts, Scope};
