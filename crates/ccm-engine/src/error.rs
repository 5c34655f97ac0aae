//! Errors of resources.

use std::path::PathBuf;

use ccm_model::{ResourceRef, TemplateError};

use crate::manifest::ManifestError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a resource failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No provider says that it can.
    #[error("no suitable provider can manage {resource} on this machine")]
    NoProvider {
        /// Which resource.
        resource: ResourceRef,
        /// The providers that were asked.
        tried: Vec<&'static str>,
    },
    /// The provider asked for is not one of this type.
    #[error("provider not found: type `{kind}` has no provider `{name}`")]
    UnknownProvider {
        /// The name given.
        name: String,
        /// The type.
        kind: &'static str,
        /// The providers that there are.
        known: Vec<&'static str>,
    },
    /// The provider asked for cannot work here.
    #[error("provider `{name}` cannot manage {resource} on this machine")]
    UnsuitableProvider {
        /// The provider.
        name: String,
        /// Which resource.
        resource: ResourceRef,
    },
    /// A control expression is wrong.
    #[error("cannot evaluate control `{which}`{}", at(place.as_deref()))]
    Control {
        /// `if` or `unless`.
        which: &'static str,
        /// Where it stands: file, line and column.
        place: Option<Box<str>>,
        /// Why.
        source: TemplateError,
    },
    /// A template that is resolved when the resource is applied is wrong.
    #[error("cannot resolve property `{property}`{}", at(place.as_deref()))]
    Template {
        /// Which property.
        property: &'static str,
        /// Where it stands: file, line and column.
        place: Option<Box<str>>,
        /// Why.
        source: TemplateError,
    },
    /// A property turned out invalid once its templates were resolved.
    #[error("invalid property `{property}`: {message}")]
    Invalid {
        /// Which property.
        property: String,
        /// Why.
        message: String,
    },
    /// A reference that nothing has run for.
    #[error(
        "cannot check {reference}: no resource with this name or alias ran earlier in this run or session"
    )]
    NotApplied {
        /// The reference.
        reference: ResourceRef,
    },
    /// Another resource of the same name was managed before.
    #[error("{resource} is already managed by the resource in line {line}")]
    AlreadyManaged {
        /// Which resource.
        resource: String,
        /// Where the first one is.
        line: usize,
    },
    /// The current state does not allow the desired state.
    #[error("{reason}")]
    Refused {
        /// Why.
        reason: String,
        /// Advice on how to fix the problem, for the `hint:` line.
        hint: Option<String>,
    },
    /// Something is not there that another resource can bring, such as a unit or
    /// a package in a repository.
    #[error("{reason}")]
    Missing {
        /// The missing path or name.
        reason: String,
        /// Advice on how to fix the problem, for the `hint:` line.
        hint: Option<String>,
        /// In a preview: the resource that decides about it, if that is known.
        by: Option<std::sync::Arc<str>>,
    },
    /// In a preview: what it would do is known, and whether it does it is not.
    #[error("only the run can decide this, after {by}")]
    Awaited {
        /// The resource that decides about it.
        by: std::sync::Arc<str>,
    },
    /// In a preview: commands that it does not run decide about these paths.
    #[error("only the run knows the content of {} files", paths.len())]
    AtApply {
        /// The paths.
        paths: Vec<PathBuf>,
    },
    /// Everything was done and the state is still another.
    #[error("desired state not achieved: {reason}")]
    NotConverged {
        /// Which attribute, what it is, what it should be.
        reason: String,
    },
    /// A manifest that the resource brings cannot be read.
    #[error("cannot read manifest {}", path.display())]
    ManifestUnreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: ccm_host::Error,
    },
    /// A manifest that the resource brings is wrong.
    #[error("manifest {name} is invalid\n{findings}")]
    ManifestInvalid {
        /// Which.
        name: String,
        /// All errors with their locations, one per line.
        findings: String,
    },
    /// Manifests bring manifests that bring manifests.
    #[error("manifests are nested too deeply; the limit is {limit} levels{}", listed(files))]
    TooDeep {
        /// The deepest level that runs.
        limit: usize,
        /// The files from the first to the one too many.
        files: Vec<String>,
    },
    /// Manifests bring more and more manifests.
    #[error("a run applies at most {limit} child manifests")]
    TooMany {
        /// How many run.
        limit: usize,
    },
    /// Owed reactions cannot be recorded, so nothing was changed.
    #[error("cannot record owed reactions, so nothing was changed")]
    Owed {
        /// Why.
        source: ccm_host::Error,
    },
    /// The former state cannot be recorded, so nothing was changed.
    #[error("cannot record the history of this run, so nothing was changed")]
    History {
        /// Why.
        source: ccm_host::Error,
    },
    /// An error from `ccm_host`, such as a failed system call.
    #[error(transparent)]
    Host(#[from] ccm_host::Error),
}

fn at(place: Option<&str>) -> String {
    place.map(|place| format!(" at {place}")).unwrap_or_default()
}

impl Error {
    /// A refusal without advice.
    pub fn refused(reason: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), hint: None }
    }

    /// Whether an earlier resource could have brought what is missing.
    pub(crate) fn is_about_something_missing(&self) -> bool {
        match self {
            Self::NoProvider { .. } | Self::UnsuitableProvider { .. } | Self::Missing { .. } => {
                true
            }
            Self::Host(error) | Self::ManifestUnreadable { source: error, .. } => {
                error.is_about_something_missing()
            }
            _ => false,
        }
    }

    /// In a preview: the resource that decides about what is missing.
    pub(crate) fn awaited(&self) -> Option<&std::sync::Arc<str>> {
        match self {
            Self::Missing { by, .. } => by.as_ref(),
            Self::Awaited { by } | Self::Host(ccm_host::Error::Unpredictable { by, .. }) => {
                Some(by)
            }
            _ => None,
        }
    }

    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoProvider { tried, .. } => Some(format!("considered {}", tried.join(", "))),
            Self::UnknownProvider { name, known, .. } => Some(
                ccm_model::did_you_mean(name, known.iter().copied())
                    .unwrap_or_else(|| format!("available providers: {}", known.join(", "))),
            ),
            Self::Refused { hint, .. } | Self::Missing { hint, .. } => hint.clone(),
            Self::Template { source, .. } => source.hint.clone(),
            Self::Host(error)
            | Self::ManifestUnreadable { source: error, .. }
            | Self::Owed { source: error } => error.hint(),
            Self::History { source } => {
                let hint = source.hint().map(|hint| format!("{hint}, or run with --no-history"));
                hint.or_else(|| Some("run with --no-history to keep no history".to_owned()))
            }
            Self::TooDeep { .. } | Self::TooMany { .. } => {
                Some("if a manifest applies itself, stop the recursion with `control`".to_owned())
            }
            _ => None,
        }
    }
}

impl From<ManifestError> for Error {
    fn from(error: ManifestError) -> Self {
        match error {
            ManifestError::Read { path, source } => Self::ManifestUnreadable { path, source },
            ManifestError::Invalid(diagnosis) => Self::ManifestInvalid {
                name: diagnosis.source.name().to_owned(),
                findings: diagnosis.to_string(),
            },
            error => Self::Refused { reason: chain(&error), hint: error.hint() },
        }
    }
}

/// One file per line, with its depth.
fn listed(files: &[String]) -> String {
    let line = |(depth, file): (usize, &String)| format!("\n  {depth:>2} {file}");
    files.iter().enumerate().map(line).collect()
}

/// An error and everything below it in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = error.source();
    }
    text
}
