//! Placeholders in text, and what the expressions in them can see and call.
//!
//! A [`Resolver`] resolves `{{ … }}` and `${ … }` with Expr expressions over
//! facts, data and the environment:
//!
//! ```
//! use ccm_template::{Resolver, Facts, Scope};
//! use govalue::{Map, Value};
//!
//! let host = ccm_host::Host::new();
//! let resolver = Resolver::new(Scope {
//!     facts: Facts::known(Map::from_iter([("os", "linux")])),
//!     data: Map::from_iter([("port", 8080)]),
//!     ..Scope::new(&host)
//! });
//! assert_eq!(resolver.text("{{ Facts.os }}:${ Data.port + 1 }")?.text, "linux:8081");
//! assert_eq!(resolver.value(" {{ Data.port }} ")?, Value::Int(8080));
//! assert!(resolver.condition("lookup('data.port') > 1024")?);
//!
//! let error = resolver.text("{{ Data.port + nope }}").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "unknown name nope\n --> expression:1:13\n  |\n1 | Data.port + nope\n  |             ^^^^"
//! );
//! # Ok::<(), ccm_template::Error>(())
//! ```
//!
//! [`placeholder`] is the scanner alone.

mod budget;
mod error;
mod files;
mod functions;
mod gotemplates;
mod jets;
mod loops;
mod missing;
mod network;
pub mod placeholder;
mod references;
mod resolve;
mod resolver;
mod scope;
mod table;

pub use error::Error;
pub use loops::{Loop, LoopItem, is_free_name};
pub use references::{
    ExpressionReads, Read, ReadKind, reads_of_expression, reads_of_text, roots_of_text,
};
pub use resolve::Resolved;
pub use resolver::Resolver;
pub use scope::{Facts, Scope};
pub use table::{FUNCTIONS, Language, TemplateFunction};
