//! Hierarchical data: a document with `data`, a `hierarchy` that chooses
//! `overrides` by the facts of a machine, and rules in comments that the result
//! must satisfy.
//!
//! ```
//! use ccm_hiera::{Document, Error};
//! use ccm_template::Facts;
//!
//! let document = Document::parse("data.yaml", "
//! data:
//!   ## @require
//!   ## @validate isIPv4(value)
//!   address: ''
//! ")?;
//! let host = ccm_host::Host::new();
//! let error = document.resolve(&host, &Facts::default(), None).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "data.yaml:5:3: key `address` is required but has no value\n\
//!      key `address` fails its validation `isIPv4(value)`",
//! );
//! # Ok::<(), Error>(())
//! ```

mod document;
mod error;
pub mod mapmerge;
mod provenance;
mod resolve;
mod rules;
mod source;
mod unreachable;
pub mod validator;

pub use document::Document;
pub use error::{Error, entry_span};
pub use provenance::{EntryState, Explanation, HierarchyEntry, Origin, Provider};
pub use resolve::Resolution;
pub use rules::{Failure, Reason, Rule, Warning};
pub use source::DataSource;
pub use unreachable::Unreached;

/// The key that data stands under.
pub const DATA: &str = "data";
