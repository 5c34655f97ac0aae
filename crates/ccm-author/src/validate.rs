//! Checks a manifest and its child manifests before anything runs.

use ccm_engine::{Diagnosis, Engine, ManifestError, RunOptions, SourceRef};
use ccm_model::Diagnostic;

use crate::children::{Children, check_children};
use crate::diagnosis::diagnose;

/// Checks a manifest and those below it, as far as they are there.
pub fn validate(engine: &Engine, source: &SourceRef, options: &RunOptions) -> Validation {
    let name = source.name();
    match engine.load(source, options) {
        Ok(mut manifest) => {
            let resources = manifest.declarations.resources.len();
            let Children { count, mut diagnoses } = check_children(&manifest, engine, options);
            diagnoses.insert(0, diagnose(&mut manifest));
            Validation { name, resources, children: count, diagnoses, error: None }
        }
        Err(error) => Validation { name, error: Some(error), ..Validation::default() },
    }
}

/// The result of a validation.
#[derive(Debug, Default)]
pub struct Validation {
    /// Display name of the manifest.
    pub name: String,
    /// How many resources it has.
    pub resources: usize,
    /// How many manifests below it were checked.
    pub children: usize,
    /// Errors and warnings of these manifests.
    pub diagnoses: Vec<Diagnosis>,
    /// Why the manifest itself cannot be applied.
    pub error: Option<ManifestError>,
}

impl Validation {
    /// Whether nothing keeps the manifest from being applied.
    pub fn is_valid(&self) -> bool {
        self.error.is_none() && self.diagnoses.iter().all(|diagnosis| !diagnosis.has_errors())
    }

    /// Everything that was found, as other programs read it.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let found = self.diagnoses.iter().flat_map(Diagnosis::diagnostics);
        let error = self.error.iter().flat_map(|error| error.diagnostics(&self.name));
        found.chain(error).collect()
    }
}
