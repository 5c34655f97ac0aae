//! Checking the manifests that a manifest would apply, before anything runs.

use std::collections::HashSet;
use std::path::PathBuf;

use ccm_host::Host;

use super::{Diagnosis, Manifest, ManifestError};
use crate::inputs::Inputs;
use crate::lifecycle::is_managed;
use crate::nested::{self, Library, MAX_DEPTH};
use crate::resource::AnyType;

/// What is known of the manifests below one.
#[derive(Debug, Default)]
pub struct Children {
    /// Those that could be read.
    pub count: usize,
    /// What is wrong with them, or worth knowing.
    pub diagnoses: Vec<Diagnosis>,
}

impl Manifest {
    /// Checks the manifests below this one as far as they are there: one that
    /// the run itself will bring, or that `control` keeps out, is not looked
    /// at. Each file is checked once, with the data that it is handed first.
    pub fn check_children(
        &self,
        host: &Host,
        types: &[&'static dyn AnyType],
        inputs: &Inputs,
    ) -> Children {
        let mut checking = Checking {
            host,
            library: Library { types, inputs },
            seen: HashSet::from([self
                .working_directory
                .join(self.path.file_name().unwrap_or_default())]),
            children: Children::default(),
        };
        checking.below(self, 1);
        checking.children
    }
}

struct Checking<'a> {
    host: &'a Host,
    library: Library<'a>,
    seen: HashSet<PathBuf>,
    children: Children,
}

impl Checking<'_> {
    fn below(&mut self, manifest: &Manifest, depth: usize) {
        for resource in &manifest.declarations.resources {
            let Some(child) = resource.child() else { continue };
            let path = manifest.working_directory.join(child.path);
            let is_there = self.host.stat(&path).is_ok_and(|found| found.is_some());
            let is_wanted = is_managed(&**resource, &manifest.templates).unwrap_or(false);
            if depth > MAX_DEPTH || !is_there || !is_wanted || !self.seen.insert(path) {
                continue;
            }
            let data = manifest.templates.data().as_map();
            match nested::load(self.host, &manifest.working_directory, self.library, &child, data) {
                Ok(found) => {
                    self.children.count += 1;
                    self.below(&found, depth + 1);
                    if !found.warnings.findings.is_empty() {
                        self.children.diagnoses.push(found.warnings);
                    }
                }
                Err(ManifestError::Invalid(diagnosis)) => self.children.diagnoses.push(diagnosis),
                Err(error @ ManifestError::Read { .. }) => {
                    let message = crate::chain(&error);
                    let finding = manifest.declarations.finding(&**resource, message);
                    let source = std::sync::Arc::clone(&manifest.warnings.source);
                    self.children.diagnoses.push(Diagnosis { source, findings: vec![finding] });
                }
            }
        }
    }
}
