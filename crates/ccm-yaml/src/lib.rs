//! YAML text to a tree that keeps its positions, and values back to YAML.
//!
//! One pass over the parser's events builds the tree. Every node knows which
//! bytes of the source it came from, so that errors found later can point at
//! their location. Merge keys, duplicate keys, aliases and their limits are
//! handled here; the reader of a scalar decides what it means. [`to_value`] is
//! the reader for free data, such as facts and hierarchical data.
//!
//! ```
//! let source = ccm_yaml::Source::new("m.yaml", "mode: 0644\n");
//! let root = ccm_yaml::parse(&source)?;
//! let ccm_yaml::Kind::Mapping(entries) = root.kind else { unreachable!() };
//! assert_eq!(entries[0].key.text, "mode");
//! assert_eq!(entries[0].value.scalar().unwrap().text, "0644");
//! assert_eq!(source.position(entries[0].value.span.start).column, 7);
//! # Ok::<(), ccm_yaml::SyntaxError>(())
//! ```

mod build;
mod comments;
pub mod edit;
mod emit;
mod json;
mod mistakes;
mod node;
mod source;
mod value;

pub use build::{SyntaxError, parse, parse_lenient};
pub use comments::{Comments, parse_annotated, parse_annotated_lenient};
pub use emit::to_yaml;
pub use govalue::Span;
pub use json::parse_json;
pub use node::{Entry, Key, Kind, Node, Scalar};
pub use source::{Position, Source};
pub use value::to_value;
