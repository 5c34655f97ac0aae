//! Checking the manifests that a manifest would apply, before anything runs.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::{Diagnosis, Manifest, ManifestError};
use crate::engine::Engine;
use crate::lifecycle::is_managed;
use crate::manifest_run::{Above, MAX_DEPTH, load_child};
use crate::options::RunOptions;

/// What is known of the manifests below one.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// Those that could be read.
    pub count: usize,
    /// What is wrong with them, or worth knowing.
    pub diagnoses: Vec<Diagnosis>,
}

impl Manifest {
    /// Checks the manifests below this one as far as they are there: one that
    /// the run itself will bring, or that `control` keeps out, is not looked
    /// at. Each file is checked once, with the data that it is handed first.
    pub(crate) fn check_children(&self, engine: &Engine, options: &RunOptions) -> Children {
        let seen = HashSet::from([self.path.clone()]);
        let mut checking = Checking { engine, options, seen, children: Children::default() };
        checking.below(self, 1);
        checking.children
    }
}

struct Checking<'a> {
    engine: &'a Engine,
    options: &'a RunOptions,
    seen: HashSet<PathBuf>,
    children: Children,
}

impl Checking<'_> {
    fn below(&mut self, manifest: &Manifest, depth: usize) {
        for resource in &manifest.declarations.resources {
            let Some(child) = resource.child() else { continue };
            let path = manifest.working_directory.join(child.path);
            let host = &self.options.host;
            let is_there = host.stat(&path).is_ok_and(|found| found.is_some());
            let is_wanted = is_managed(&**resource, &manifest.templates).unwrap_or(false);
            if depth > MAX_DEPTH || !is_there || !is_wanted || !self.seen.insert(path.clone()) {
                continue;
            }
            let remote = manifest.remote.clone();
            let above = Above { templates: &manifest.templates, path, remote };
            let (types, inputs) = (self.engine.types(), &self.options.inputs);
            match load_child(host, types, inputs, &child, above) {
                Ok(found) => {
                    self.children.count += 1;
                    self.below(&found, depth + 1);
                    if !found.warnings.findings.is_empty() {
                        self.children.diagnoses.push(found.warnings);
                    }
                }
                Err(ManifestError::Invalid(diagnosis)) => self.children.diagnoses.push(diagnosis),
                Err(error) => {
                    let message = crate::chain(&error);
                    let finding = manifest.declarations.finding(&**resource, message);
                    let source = Arc::clone(&manifest.warnings.source);
                    self.children.diagnoses.push(Diagnosis { source, findings: vec![finding] });
                }
            }
        }
    }
}
