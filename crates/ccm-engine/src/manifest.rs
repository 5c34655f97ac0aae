//! Manifests: resources read from YAML. One pass reports all errors.

mod block;
mod control;
mod item_findings;
mod jet_file;
mod loader;
mod references;
mod structure;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_archive::TempTree;
use ccm_host::Host;
use ccm_model::{Diagnostic, Finding, Severity};
use ccm_template::Resolver;
use ccm_yaml::{Source, Span};
use serde_json::{Map, Value, json};

pub use block::Block;
pub use item_findings::FindingsByItem;
pub(crate) use loader::{ManifestLoader, shown};
pub use loader::{SourceRef, find_manifest};
pub use structure::{WrittenPart, WrittenProperty};

use crate::resource::{AnyResource, AnyType};

/// A manifest that can be applied.
pub struct Manifest {
    /// Display name: its path, or its URL without credentials.
    pub name: String,
    /// Where it was read from.
    pub path: PathBuf,
    /// Where its files came from, if they were fetched. They last as long as
    /// this value.
    pub(crate) remote: Option<Arc<RemoteSource>>,
    /// Where its relative paths begin: its own directory.
    pub working_directory: PathBuf,
    /// Declared resources.
    pub declarations: Declarations,
    /// Resolver for deferred templates.
    pub templates: Resolver,
    /// Warnings.
    pub warnings: Diagnosis,
}

/// The declarations of a manifest.
#[derive(Default)]
pub struct Declarations {
    /// The resources, in the order in which they run.
    pub resources: Vec<Box<dyn AnyResource>>,
    /// Printed before the run.
    pub pre_message: Option<String>,
    /// Printed after a run without errors.
    pub post_message: Option<String>,
    /// Stop at the first resource that fails.
    pub fail_on_error: bool,
    /// Where `pre_message` and `post_message` stand.
    pub(crate) message_spans: [Span; 2],
    /// The text that the resources stand in, if a template made it.
    pub rendered: Option<Arc<Source>>,
    /// The template that made this text.
    pub template: Option<PathBuf>,
    /// Errors in `control` that are known before anything is evaluated. Each
    /// fails its resource when the manifest is applied, not the manifest.
    pub control_errors: Vec<Finding>,
    /// The line of each resource, by index, whose name another one has too. At
    /// most one of a name may be managed.
    pub(crate) repeated: HashMap<usize, usize>,
    /// The tags of blocks, each with the number of resources before it. An empty
    /// loop has tags although no resource has them.
    pub(crate) block_tags: Vec<(usize, Vec<String>)>,
    /// Whether loops made, or could have made, resources.
    pub(crate) has_loops: bool,
}

/// A directory of downloaded files, and its display name.
#[derive(Debug)]
pub(crate) struct RemoteSource {
    /// The directory.
    pub(crate) top: PathBuf,
    /// Removes the directory at the end, unless it was already removed.
    pub(crate) _tree: Option<TempTree>,
    /// Where the files came from, without credentials.
    pub(crate) name: String,
}

/// Errors and warnings in one source.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The source.
    pub source: Arc<Source>,
    /// Errors and warnings, sorted by location.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Whether anything in it is more than worth knowing.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|found| found.severity == Severity::Error)
    }

    /// Sorts the findings by location.
    pub fn sort(&mut self) {
        self.findings.sort_by_key(|finding| {
            (finding.source.is_some(), finding.span.map_or(0, |span| span.start))
        });
    }

    /// The findings as other programs read them.
    pub fn diagnostics(&self) -> impl Iterator<Item = Diagnostic> {
        self.findings.iter().map(|finding| Diagnostic::new(finding, &self.source))
    }
}

/// Everything that is wrong in plain text: `file:line:column: what (hint)`.
impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// An event is no place for more; the screen shows all of them.
        const MAX_SHOWN: usize = 20;
        let is_wrong = |finding: &&Finding| finding.severity == Severity::Error;
        let errors: Vec<&Finding> = self.findings.iter().filter(is_wrong).collect();
        for (index, finding) in errors.iter().take(MAX_SHOWN).enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let source = finding.source.as_ref().unwrap_or(&self.source);
            f.write_str(source.name())?;
            if let Some(span) = finding.span {
                let place = source.position(span.start);
                write!(f, ":{}:{}", place.line, place.column)?;
            }
            let resource = finding.resource.as_deref().map(|name| format!("{name}: "));
            write!(f, ": {}{}", resource.unwrap_or_default(), finding.message)?;
            if let Some(hint) = &finding.hint {
                write!(f, " ({hint})")?;
            }
        }
        match errors.len().checked_sub(MAX_SHOWN) {
            Some(more @ 1..) => write!(f, "\n… and {more} more"),
            _ => Ok(()),
        }
    }
}

/// Why there is no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It could not be read.
    #[error("cannot read manifest {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: ccm_host::Error,
    },
    /// It is a saved plan.
    #[error("{} is a saved plan, not a manifest", path.display())]
    SavedPlan {
        /// The file.
        path: PathBuf,
    },
    /// It is wrong.
    #[error("manifest {} is invalid", .0.source.name())]
    Invalid(Diagnosis),
    /// It could not be fetched.
    #[error(transparent)]
    Fetch(#[from] ccm_archive::Error),
    /// It was being fetched when the run was cancelled.
    #[error("interrupted while downloading {name}")]
    Interrupted {
        /// Its display name.
        name: String,
        /// Why the run was cancelled.
        reason: ccm_host::CancelReason,
    },
    /// The download contains no manifest, or several.
    #[error("cannot find the manifest in {name}: {reason}")]
    NotFound {
        /// Its display name.
        name: String,
        /// What the download contains instead.
        reason: String,
    },
}

impl ManifestError {
    /// Advice on how to fix the problem, unless the findings contain it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read { source: ccm_host::Error::TooLarge { .. }, .. } => {
                Some("split it, and apply the parts with `apply` resources".to_owned())
            }
            Self::Read { source, .. } => source.hint(),
            Self::SavedPlan { .. } => {
                Some("apply it with `ccm apply`, or print it with `ccm plan show`".to_owned())
            }
            Self::NotFound { .. } => {
                let name = loader::NAME;
                Some(format!("put one {name} at its top or one directory down"))
            }
            Self::Fetch(error) => error.hint(),
            Self::Invalid(_) | Self::Interrupted { .. } => None,
        }
    }

    /// All errors, for other programs. What cannot be read is a finding about
    /// its file, or about `name` where there is none.
    pub fn diagnostics(&self, name: &str) -> Vec<Diagnostic> {
        let (file, message) = match self {
            Self::Invalid(diagnosis) => return diagnosis.diagnostics().collect(),
            Self::Read { path, source } => (path.display().to_string(), crate::chain(source)),
            Self::SavedPlan { path } => (path.display().to_string(), crate::chain(self)),
            Self::NotFound { name, .. } | Self::Interrupted { name, .. } => {
                (name.clone(), crate::chain(self))
            }
            Self::Fetch(error) => (name.to_owned(), crate::chain(error)),
        };
        vec![Diagnostic::unreadable(file, message, self.hint())]
    }
}

impl Manifest {
    /// The display name of a file beside it: its path, or the URL that both come
    /// from.
    pub fn display_name(&self, path: &Path) -> String {
        shown(path, self.remote.as_deref())
    }

    /// The manifest as it stands now: data and resources, without secrets.
    pub fn render(&self) -> Value {
        let mut rendered = Map::new();
        let data = serde_json::to_value(self.templates.data());
        if let Some(Value::Object(data)) = data.ok().filter(|data| data != &json!({})) {
            rendered.insert("data".into(), Value::Object(data));
        }
        let host = self.templates.host();
        for resource in &self.declarations.resources {
            host.add_secrets(resource.secrets());
        }
        rendered.insert("ccm".into(), self.declarations.render(host));
        let mut rendered = Value::Object(rendered);
        host.redactor().value(&mut rendered);
        rendered
    }
}

impl Manifest {
    /// What it is known as in records: its path without symlinks, or its URL
    /// without credentials.
    pub(crate) fn identity(&self, host: &ccm_host::Host) -> String {
        match &self.remote {
            Some(remote) => remote.name.clone(),
            None => {
                let path = host.canonicalize(&self.path);
                path.unwrap_or_else(|_| self.path.clone()).display().to_string()
            }
        }
    }

    /// The text that the resources stand in: the manifest's own, or what a
    /// template made.
    pub fn source(&self) -> &Arc<Source> {
        self.declarations.rendered.as_ref().unwrap_or(&self.warnings.source)
    }

    /// The properties of one resource as they are written in [`Self::source`].
    pub fn written(&self, types: &[&'static dyn AnyType], index: usize) -> Vec<WrittenProperty> {
        let is_list = self.declarations.rendered.is_some();
        let parsed = ccm_yaml::parse_lenient(self.source());
        let (templates, source) = (Some(&self.templates), &**self.source());
        let with = structure::ReadContext { types, templates, source };
        let written = parsed.map(|(root, _)| structure::read_written(root, with, is_list, index));
        written.unwrap_or_default()
    }
}

impl Declarations {
    /// Something about a resource, at its place.
    pub fn finding(&self, resource: &dyn AnyResource, message: impl Into<String>) -> Finding {
        let finding = Finding::error(resource.span(), message).of(resource.display());
        match &self.rendered {
            Some(rendered) => finding.within(rendered),
            None => finding,
        }
    }

    /// Whether any resource may ask what became of another.
    pub(crate) fn has_references(&self) -> bool {
        self.resources.iter().any(|resource| {
            let has_own = !resource.common().require.is_empty() || !resource.subscribe().is_empty();
            has_own || resource.child().is_some()
        })
    }

    /// The declarations as they stand now, as the `ccm` section of a manifest.
    fn render(&self, host: &Host) -> Value {
        let resources = self.resources.iter().map(|resource| {
            let mut properties = resource.properties();
            let name = properties.as_object_mut().and_then(|map| map.shift_remove("name"));
            let _secrets = host.begin_resource(resource.secret_values().resource);
            if let Some(block) = resource.block() {
                block.write_into(&mut properties);
            }
            host.redactor().value(&mut properties);
            let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
            json!({ resource.kind(): [{ name: properties }] })
        });
        let mut ccm = Map::new();
        let messages = [("pre_message", &self.pre_message), ("post_message", &self.post_message)];
        for (name, message) in messages {
            if let Some(message) = message {
                ccm.insert(name.into(), message.as_str().into());
            }
        }
        if self.fail_on_error {
            ccm.insert("fail_on_error".into(), true.into());
        }
        ccm.insert("resources".into(), resources.collect());
        Value::Object(ccm)
    }
}

/// As root, a user who can change the manifest has full control of the machine.
fn doubted(host: &Host, doubt: Option<ccm_host::Doubt>) -> Option<Finding> {
    let doubt = doubt?;
    let message = format!("{doubt}, and ccm applies this file as root");
    let finding = if host.is_strict() {
        Finding::error(None, message)
    } else {
        Finding::warning(None, message)
    };
    Some(finding.hint(doubt.hint()))
}
