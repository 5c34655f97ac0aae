//! What can be wrong with hierarchical data.

use ccm_yaml::Position;

use crate::Failure;

/// Why hierarchical data could not be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The document is not YAML.
    #[error("{name}:{}:{}: {source}", position.line, position.column)]
    Yaml {
        /// What people call the document.
        name: String,
        /// Where.
        position: Position,
        /// What is wrong.
        source: ccm_yaml::SyntaxError,
    },
    /// The document is not JSON.
    #[error("{name}:{}:{}: {source}", position.line, position.column)]
    Json {
        /// What people call the document.
        name: String,
        /// Where.
        position: Position,
        /// What is wrong.
        source: govalue::json::ParseError,
    },
    /// The document is something other than a map.
    #[error("hierarchical data must be a map, not {found}")]
    NotAMap {
        /// What it is.
        found: &'static str,
    },
    /// A section has the wrong shape.
    #[error("`{section}` must be {wanted}")]
    Shape {
        /// Which.
        section: &'static str,
        /// What it must be.
        wanted: &'static str,
    },
    /// A way to merge that does not exist.
    #[error("`hierarchy.merge` must be `first` or `deep`, not `{found}`")]
    Merge {
        /// The word.
        found: String,
    },
    /// A placeholder that cannot be resolved.
    #[error("in `{place}`: {source}")]
    Template {
        /// Where: a section, and the entry in it.
        place: String,
        /// What is wrong.
        source: ccm_template::Error,
    },
    /// Data that breaks its rules.
    #[error("{}", lines(failures))]
    Rules {
        /// All that is wrong.
        failures: Vec<Failure>,
    },
    /// A source that cannot be read.
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
    /// A source that this build cannot reach.
    #[error("{source_name}: {kind} sources are not available in this build")]
    NotAvailable {
        /// The source.
        source_name: String,
        /// Its kind.
        kind: &'static str,
    },
}

fn lines(failures: &[Failure]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
