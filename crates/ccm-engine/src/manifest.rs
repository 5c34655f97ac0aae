//! Manifests: resources read from YAML, with everything that is wrong found in
//! one pass.

mod references;
mod structure;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use ccm_host::Host;
use ccm_model::{Finding, Severity, Stage, Templates};
use ccm_yaml::Source;
use serde_json::{Map, Value, json};

use crate::resource::{AnyResource, AnyType};

/// A manifest that can be applied.
pub struct Manifest {
    /// Where it was read from.
    pub path: PathBuf,
    /// Where its relative paths begin: its own directory.
    pub working_directory: PathBuf,
    /// What was declared.
    pub declarations: Declarations,
    /// What is worth knowing and stops nothing.
    pub warnings: Diagnosis,
}

/// What a manifest declares.
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
}

/// What is wrong with one source.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// The source.
    pub source: Rc<Source>,
    /// What is wrong with it, in the order of places.
    pub findings: Vec<Finding>,
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
    /// It is wrong.
    #[error("manifest {} is invalid", .0.source.name())]
    Invalid(Diagnosis),
}

impl Manifest {
    /// Anything larger was not written by a person, nor for one run.
    const MAX_SIZE: u64 = 1 << 30;

    /// Reads and checks a manifest. `elsewhere` says that references may also
    /// be met by what ran before, as in a shared session.
    pub fn load(
        host: &Host,
        path: &Path,
        types: &[&'static dyn AnyType],
        templates: &dyn Templates,
        elsewhere: bool,
    ) -> Result<Self, ManifestError> {
        let read = |source| ManifestError::Read { path: path.to_owned(), source };
        let (text, stat) = host.read_text(path, Self::MAX_SIZE).map_err(read)?;
        let working_directory = match path.parent() {
            Some(parent) if parent.is_absolute() => parent.to_owned(),
            parent => host.current_dir().map_err(read)?.join(parent.unwrap_or(Path::new(""))),
        };
        let source = Rc::new(Source::new(path.display().to_string(), text));
        let (declarations, mut findings) = Declarations::read(&source, types, templates, elsewhere);
        findings.extend(writable_by_others(host, stat));
        findings.sort_by_key(|finding| finding.span.map_or(0, |span| span.start));
        let diagnosis = Diagnosis { source, findings };
        if diagnosis.findings.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(ManifestError::Invalid(diagnosis));
        }
        Ok(Self { path: path.to_owned(), working_directory, declarations, warnings: diagnosis })
    }
}

impl Declarations {
    /// Reads a text; what is wrong comes beside what could be read.
    pub fn read(
        source: &Source,
        types: &[&'static dyn AnyType],
        templates: &dyn Templates,
        elsewhere: bool,
    ) -> (Self, Vec<Finding>) {
        let root = match ccm_yaml::parse(source) {
            Ok(root) => root,
            Err(error) => {
                let finding = Finding::error(error.span, error.message).hint(error.hint);
                return (Self::default(), vec![finding]);
            }
        };
        let mut this = Self::default();
        let mut findings = structure::read(root, types, &mut this);
        for resource in &mut this.resources {
            for failure in resource.resolve(Stage::Parse, templates) {
                let message = format!("{}: {}", failure.property, failure.error);
                let name = format!("{}#{}", resource.kind(), resource.common().name);
                findings.push(Finding::error(failure.span, message).of(name));
            }
            findings.extend(resource.findings());
        }
        references::check(source, &this.resources, types, elsewhere, &mut findings);
        (this, findings)
    }

    /// The declarations as they stand now, as a manifest.
    pub fn render(&self) -> Value {
        let resources = self.resources.iter().map(|resource| {
            let mut properties = resource.properties();
            let name = properties.as_object_mut().and_then(|map| map.shift_remove("name"));
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
        json!({ "ccm": ccm })
    }
}

/// As root, whoever can write the manifest can do everything.
fn writable_by_others(host: &Host, stat: ccm_host::Stat) -> Option<Finding> {
    let by_group = stat.mode & 0o020 != 0 && stat.gid != 0;
    if !host.is_root() || !(by_group || stat.mode & 0o002 != 0) {
        return None;
    }
    let message =
        format!("others can write this file (mode {:04o}), and it runs as root", stat.mode);
    let hint = "chmod go-w".to_owned();
    let strict = host.env("CCM_STRICT").is_some_and(|value| value == "1");
    let finding =
        if strict { Finding::error(None, message) } else { Finding::warning(None, message) };
    Some(finding.hint(hint))
}
