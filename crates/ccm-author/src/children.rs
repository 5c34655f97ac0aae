//! Checks child manifests before the run.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use ccm_engine::{
    AnyResource, Diagnosis, Engine, FindingsByItem, Manifest, ManifestError, RunOptions,
    is_managed, templates_of,
};
use ccm_host::Host;
use ccm_model::{Finding, Severity, closest, has_placeholder};

use crate::diagnosis::diagnose;

/// What is known of the manifests below one.
#[derive(Debug, Default)]
pub(crate) struct Children {
    /// Those that could be read.
    pub count: usize,
    /// Errors and warnings of child manifests.
    pub diagnoses: Vec<Diagnosis>,
}

/// Checks the child manifests of a manifest. One that does not exist is an error,
/// unless an earlier resource can create it; one that `control` skips is not looked
/// at. Each file is checked once, with the data that it is passed first.
pub(crate) fn check_children(
    manifest: &Manifest,
    engine: &Engine,
    options: &RunOptions,
) -> Children {
    let path = clean(&manifest.path);
    let mut checking = Checking {
        engine,
        options,
        seen: HashSet::from([path.clone()]),
        applied: Vec::new(),
        has_unknown: false,
        open: vec![Opened { path, is_conditional: false }],
        children: Children::default(),
    };
    checking.below(manifest, 1, None);
    checking.children
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
    /// The manifests on the way to the one that is checked, that one last.
    open: Vec<Opened>,
    children: Children,
}

/// A manifest on the way.
struct Opened {
    path: PathBuf,
    /// Whether a condition decides if the run comes here.
    is_conditional: bool,
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
        let mut of_items = FindingsByItem::default();
        for (index, resource) in resources.iter().enumerate() {
            let earlier = Earlier { resources: &resources[..index], above };
            let Some(child) = resource.child() else {
                self.check_source(manifest, &**resource, &earlier, &mut of_items);
                continue;
            };
            let path = manifest.working_directory.join(child.path);
            let is_managed = is_managed(&**resource, &manifest.templates);
            let is_too_deep = depth > self.options.max_depth;
            self.has_unknown |= is_too_deep || is_managed.is_err();
            let is_wanted = is_managed.unwrap_or(false);
            let is_conditional =
                resource.common().control.is_some() || manifest.declarations.rendered.is_some();
            if is_wanted && !is_conditional {
                self.check_cycle(manifest, &**resource, &clean(&path));
            }
            if is_too_deep || !is_wanted || !self.seen.insert(clean(&path)) {
                continue;
            }
            let host = &self.options.host;
            match host.stat(&path) {
                Ok(Some(_)) => {}
                Ok(None) if !self.can_be_created(&earlier, &clean(&path)) => {
                    self.missing(manifest, &**resource, child.path, &path, &mut of_items);
                    continue;
                }
                _ => {
                    self.has_unknown = true;
                    continue;
                }
            }
            let opened = Opened { path: clean(&path), is_conditional };
            let inputs = &self.options.inputs;
            match self.engine.load_child(manifest, &child, inputs, self.options) {
                Ok(mut found) => {
                    self.children.count += 1;
                    self.open.push(opened);
                    self.below(&found, depth + 1, Some(&earlier));
                    self.open.pop();
                    let diagnosis = diagnose(&mut found);
                    self.applied.append(&mut found.declarations.resources);
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
                    let message = ccm_engine::chain(&error);
                    self.add(manifest, manifest.declarations.finding(&**resource, message));
                }
            }
        }
        let is_rendered = manifest.declarations.rendered.is_some();
        let source = (!is_rendered).then_some(&*manifest.warnings.source);
        for finding in of_items.into_findings(source, &manifest.templates) {
            self.add(manifest, finding);
        }
    }

    /// Reports a manifest that applies itself, directly or through others, if no
    /// condition can stop it.
    fn check_cycle(&mut self, manifest: &Manifest, resource: &dyn AnyResource, path: &Path) {
        let Some(first) = self.open.iter().position(|opened| opened.path == path) else { return };
        let cycle = &self.open[first..];
        if cycle.iter().skip(1).any(|opened| opened.is_conditional) {
            return;
        }
        let through: Vec<String> =
            cycle[1..].iter().map(|opened| manifest.display_name(&opened.path)).collect();
        let message = match &through[..] {
            [] => "the manifest applies itself without end".to_owned(),
            through => {
                format!("the manifest applies itself without end, through {}", through.join(", "))
            }
        };
        let hint = "stop the recursion with `control`".to_owned();
        let finding = manifest.declarations.finding(resource, message).hint(hint);
        self.add(manifest, Finding { span: resource.property_span("name"), ..finding });
    }

    /// Reports a file or directory that a resource reads and that is not there.
    /// One with an absolute path may be on the machine that the manifest is for.
    fn check_source(
        &mut self,
        manifest: &Manifest,
        resource: &dyn AnyResource,
        earlier: &Earlier<'_>,
        of_items: &mut FindingsByItem,
    ) {
        let Some(written) = resource.source().filter(|source| !has_placeholder(source)) else {
            return;
        };
        let path = clean(&manifest.working_directory.join(written));
        if self.can_be_created(earlier, &path)
            || !is_managed(resource, &manifest.templates).unwrap_or(false)
        {
            return;
        }
        let found = |message: String| {
            let finding = manifest.declarations.finding(resource, format!("source: {message}"));
            Finding { span: resource.property_span("source"), ..finding }
        };
        if !matches!(self.options.host.stat(&path), Ok(None)) {
            let templates = templates_of(resource, &manifest.templates);
            for error in resource.check_source(&templates, &path) {
                match resource.item() {
                    Some(item) => of_items.add(found(error), item),
                    None => self.add(manifest, found(error)),
                }
            }
            return;
        }
        let finding = found(format!("`{written}` does not exist"));
        let place = manifest.display_name(&path);
        let finding = if Path::new(written).is_absolute() {
            Finding { severity: Severity::Warning, ..finding }
        } else {
            finding.hint(format!("the path is relative to the directory of this manifest: {place}"))
        };
        self.add_once(manifest, resource, finding, of_items);
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
        of_items: &mut FindingsByItem,
    ) {
        let meant = similar(&self.options.host, path);
        let hint = match meant {
            Some(name) => {
                format!("did you mean `{}`?", Path::new(written).with_file_name(name).display())
            }
            None => {
                let place = manifest.display_name(path);
                format!("the path is relative to the directory of this manifest: {place}")
            }
        };
        let message = format!("the manifest `{written}` does not exist");
        let finding = manifest.declarations.finding(resource, message).hint(hint);
        let finding = Finding { span: resource.property_span("name"), ..finding };
        self.add_once(manifest, resource, finding, of_items);
    }

    /// Adds what is wrong in the same way for all items of a loop.
    fn add_once(
        &mut self,
        manifest: &Manifest,
        resource: &dyn AnyResource,
        finding: Finding,
        of_items: &mut FindingsByItem,
    ) {
        match resource.item() {
            Some(item) => of_items.add_similar(finding, item),
            None => self.add(manifest, finding),
        }
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
pub(crate) fn clean(path: &Path) -> PathBuf {
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
