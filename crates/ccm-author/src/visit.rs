//! Visits the resources that a run would apply, including those of child
//! manifests.

use std::path::Path;

use ccm_engine::{
    AnyResource, Child, Engine, Manifest, ManifestError, RunOptions, chain, is_managed,
};
use ccm_yaml::Source;

use crate::children::clean;

/// No more child manifests are looked into, as no run applies more.
pub(crate) const MAX_CHILDREN: usize = 1000;

/// A resource on the way through a manifest.
pub struct Visited<'a> {
    /// The resource.
    pub resource: &'a dyn AnyResource,
    /// Its place in its manifest, from 0.
    pub index: usize,
    /// How many manifests are above its own.
    pub depth: usize,
    /// The file that it is written in, a template where that made it.
    pub file: &'a Path,
    /// Whether a template made it.
    pub is_rendered: bool,
    /// Whether `control` skips the manifest that it applies.
    pub is_skipped: bool,
    /// Why the manifest that it applies cannot be looked into.
    pub unknown: Option<String>,
    source: &'a Source,
}

impl Visited<'_> {
    /// The line in the file, from 1; none where a template made it.
    pub fn line(&self) -> Option<usize> {
        let span = self.resource.span().filter(|_| !self.is_rendered)?;
        Some(self.source.line(span.start))
    }
}

/// Shows each resource of a manifest and of the child manifests that can be read
/// now, in the order of a run. Runs no command.
pub fn visit(
    engine: &Engine,
    manifest: &Manifest,
    options: &RunOptions,
    visitor: &mut dyn FnMut(&Visited<'_>),
) {
    Visiting { engine, options, visitor, children: 0 }.manifest(manifest, 0);
}

/// Reads the manifest that a resource applies, or says why that cannot be
/// done; `None` if `control` skips it. `depth` is that of the resource.
pub(crate) fn open_child(
    engine: &Engine,
    manifest: &Manifest,
    resource: &dyn AnyResource,
    child: &Child<'_>,
    options: &RunOptions,
    depth: usize,
) -> Result<Option<Manifest>, String> {
    if depth == options.max_depth {
        return Err(format!("manifests are nested deeper than {}", options.max_depth));
    }
    match is_managed(resource, &manifest.templates) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => return Err(chain(&error)),
    }
    let path = manifest.working_directory.join(child.path);
    let host = &options.host;
    let name = manifest.display_name(&path);
    match host.stat(&path) {
        Ok(Some(_)) => {}
        Ok(None) => return Err(format!("{name} does not exist yet")),
        Err(error) => return Err(chain(&error)),
    }
    let loaded = engine.load_child(manifest, child, &options.inputs, options);
    loaded.map(Some).map_err(|error| {
        let why = match error {
            ManifestError::Invalid(diagnosis) => {
                let text = diagnosis.to_string();
                text.lines().next().unwrap_or_default().to_owned()
            }
            error => chain(&error),
        };
        host.redactor().text(&format!("cannot be read: {why}")).into_owned()
    })
}

struct Visiting<'a> {
    engine: &'a Engine,
    options: &'a RunOptions,
    visitor: &'a mut dyn FnMut(&Visited<'_>),
    children: usize,
}

impl Visiting<'_> {
    fn manifest(&mut self, manifest: &Manifest, depth: usize) {
        let declarations = &manifest.declarations;
        for resource in &declarations.resources {
            self.options.host.add_secrets(resource.secrets());
        }
        let template = declarations.template.as_ref();
        let file = clean(template.unwrap_or(&manifest.path));
        for (index, resource) in declarations.resources.iter().enumerate() {
            let resource = &**resource;
            let child = resource.child().map(|child| self.child(manifest, resource, &child, depth));
            let is_skipped = matches!(child, Some(Ok(None)));
            let (below, unknown) = match child {
                Some(Ok(below)) => (below, None),
                Some(Err(why)) => (None, Some(why)),
                None => (None, None),
            };
            (self.visitor)(&Visited {
                resource,
                index,
                depth,
                file: &file,
                is_rendered: template.is_some(),
                is_skipped,
                unknown,
                source: manifest.source(),
            });
            if let Some(below) = below {
                self.manifest(&below, depth + 1);
            }
        }
    }

    fn child(
        &mut self,
        manifest: &Manifest,
        resource: &dyn AnyResource,
        child: &Child<'_>,
        depth: usize,
    ) -> Result<Option<Manifest>, String> {
        if self.children == MAX_CHILDREN {
            return Err(format!("there are more than {MAX_CHILDREN} child manifests"));
        }
        self.children += 1;
        open_child(self.engine, manifest, resource, child, self.options, depth)
    }
}
