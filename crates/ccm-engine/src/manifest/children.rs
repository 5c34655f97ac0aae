//! Checks child manifests before the run.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use ccm_host::Host;
use ccm_model::{Finding, closest};

use super::{Diagnosis, Manifest, ManifestError, shown};
use crate::engine::Engine;
use crate::lifecycle::is_managed;
use crate::manifest_run::{Above, MAX_DEPTH, load_child};
use crate::options::RunOptions;
use crate::resource::AnyResource;

/// What is known of the manifests below one.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// Those that could be read.
    pub count: usize,
    /// Errors and warnings of child manifests.
    pub diagnoses: Vec<Diagnosis>,
}

impl Manifest {
    /// Checks the child manifests of this one. One that does not exist is an
    /// error, unless an earlier resource can create it; one that `control` skips
    /// is not looked at. Each file is checked once, with the data that it is
    /// passed first.
    pub(crate) fn check_children(&self, engine: &Engine, options: &RunOptions) -> Children {
        let seen = HashSet::from([self.path.clone()]);
        let mut checking = Checking {
            engine,
            options,
            seen,
            applied: Vec::new(),
            has_unknown: false,
            children: Children::default(),
        };
        checking.below(self, 1, None);
        checking.children
    }
}

struct Checking<'a> {
    engine: &'a Engine,
    options: &'a RunOptions,
    seen: HashSet<PathBuf>,
    /// The resources of the child manifests that were checked so far. The checks
    /// follow the order of the run, so all of them are earlier ones.
    applied: Vec<Box<dyn AnyResource>>,
    /// Whether a child manifest so far could not be looked into.
    has_unknown: bool,
    children: Children,
}

/// The resources that run before one, those of its parent manifests included.
#[derive(Clone, Copy)]
struct Earlier<'a> {
    resources: &'a [Box<dyn AnyResource>],
    above: Option<&'a Earlier<'a>>,
}

impl Earlier<'_> {
    fn can_create(&self, path: &Path) -> bool {
        self.resources.iter().any(|resource| resource.can_create(path))
            || self.above.is_some_and(|above| above.can_create(path))
    }
}

impl Checking<'_> {
    fn below(&mut self, manifest: &Manifest, depth: usize, above: Option<&Earlier<'_>>) {
        let resources = &manifest.declarations.resources;
        for (index, resource) in resources.iter().enumerate() {
            let Some(child) = resource.child() else { continue };
            let path = manifest.working_directory.join(child.path);
            let is_managed = is_managed(&**resource, &manifest.templates);
            self.has_unknown |= depth > MAX_DEPTH || is_managed.is_err();
            let is_wanted = is_managed.unwrap_or(false);
            if depth > MAX_DEPTH || !is_wanted || !self.seen.insert(path.clone()) {
                continue;
            }
            let earlier = Earlier { resources: &resources[..index], above };
            let host = &self.options.host;
            match host.stat(&path) {
                Ok(Some(_)) => {}
                Ok(None) if !self.can_be_created(&earlier, &clean(&path)) => {
                    self.missing(manifest, &**resource, child.path, &path);
                    continue;
                }
                _ => {
                    self.has_unknown = true;
                    continue;
                }
            }
            let remote = manifest.remote.clone();
            let above = Above { templates: &manifest.templates, path, remote };
            let (types, inputs) = (self.engine.types(), &self.options.inputs);
            match load_child(host, types, inputs, &child, above) {
                Ok(mut found) => {
                    self.children.count += 1;
                    self.below(&found, depth + 1, Some(&earlier));
                    found.check_deferred();
                    self.applied.append(&mut found.declarations.resources);
                    let diagnosis = found.into_diagnosis();
                    if !diagnosis.findings.is_empty() {
                        self.children.diagnoses.push(diagnosis);
                    }
                }
                Err(ManifestError::Invalid(diagnosis)) => {
                    self.has_unknown = true;
                    self.children.diagnoses.push(diagnosis);
                }
                Err(error) => {
                    self.has_unknown = true;
                    let message = crate::chain(&error);
                    self.add(manifest, manifest.declarations.finding(&**resource, message));
                }
            }
        }
    }

    /// Whether anything that runs before can create the file.
    fn can_be_created(&self, earlier: &Earlier<'_>, path: &Path) -> bool {
        self.has_unknown
            || earlier.can_create(path)
            || self.applied.iter().any(|resource| resource.can_create(path))
    }

    /// Reports a child manifest that does not exist.
    fn missing(
        &mut self,
        manifest: &Manifest,
        resource: &dyn AnyResource,
        written: &str,
        path: &Path,
    ) {
        let meant = similar(&self.options.host, path);
        let hint = match meant {
            Some(name) => {
                format!("did you mean `{}`?", Path::new(written).with_file_name(name).display())
            }
            None => {
                let place = shown(path, manifest.remote.as_deref());
                format!("the path is relative to the directory of this manifest: {place}")
            }
        };
        let message = format!("the manifest `{written}` does not exist");
        let finding = manifest.declarations.finding(resource, message).hint(hint);
        self.add(manifest, Finding { span: resource.property_span("name"), ..finding });
    }

    fn add(&mut self, manifest: &Manifest, finding: Finding) {
        let source = Arc::clone(&manifest.warnings.source);
        self.children.diagnoses.push(Diagnosis { source, findings: vec![finding] });
    }
}

/// The name of a file beside a missing one that was probably meant: the same
/// with another extension, or one with a similar name.
fn similar(host: &Host, path: &Path) -> Option<String> {
    let (directory, wanted) = (path.parent()?, path.file_name()?.to_str()?);
    let names = host.list(directory).ok()?.into_iter().filter_map(|name| name.into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    let stem = Path::new(wanted).file_stem();
    let is_manifest = |name: &str| {
        let extension = Path::new(name).extension();
        extension.is_some_and(|extension| extension == "yaml" || extension == "yml")
    };
    let same = names.iter().find(|name| is_manifest(name) && Path::new(name).file_stem() == stem);
    same.cloned().or_else(|| closest(wanted, names.iter().map(String::as_str)).map(str::to_owned))
}

/// The path without `.` and `..`, as resources write theirs.
pub(super) fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(cleaned.pop()),
            part => cleaned.push(part),
        }
    }
    cleaned
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use super::*;

    #[test]
    fn similar_files_are_found_by_stem_and_by_name() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["web.txt", "web.yaml", "database.yml"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let host = Host::new();
        for (wanted, meant) in [
            ("web", Some("web.yaml")),
            ("web.yml", Some("web.yaml")),
            ("databse.yaml", Some("database.yml")),
            ("entirely-different", None),
            ("no/web.yaml", None),
        ] {
            let found = similar(&host, &directory.path().join(wanted));
            assert_eq!(found.as_deref(), meant, "{wanted}");
        }
    }

    #[test]
    fn paths_are_compared_without_detours() {
        for (path, wanted) in
            [("/a/./b/../c", "/a/c"), ("/../a", "/a"), ("/a//b/", "/a/b"), ("/", "/")]
        {
            assert_eq!(clean(Path::new(path)), Path::new(wanted), "{path}");
        }
    }
}
