//! The paths that the manifests of a run declare, so that a purge keeps what
//! another resource manages.
//!
//! Every resource counts, whatever `--only`, `--skip` and `control` choose: a
//! resource that is left out of one run is still declared. So child manifests
//! that are still to come are read ahead, once, when the first purge asks.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use ccm_template::Resolver;
use govalue::Map;

use crate::manifest::{Manifest, RemoteSource};
use crate::manifest_run::{Above, Child, MAX_MANIFESTS, load_child};
use crate::options::RunOptions;
use crate::owed::Route;
use crate::resource::{AnyType, templates_of};
use crate::{Error, Result, chain};

/// A path that a resource manages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedPath {
    /// The path.
    pub path: PathBuf,
    /// How much there belongs to the resource.
    pub extent: Extent,
}

/// How much of what is at a path belongs to a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The path itself, and nothing in it.
    Itself,
    /// Everything in it.
    Tree,
    /// What this directory has too; relative to the manifest of the resource.
    CopyOf(PathBuf),
}

/// A path that a resource of the run manages.
#[derive(Clone, Debug)]
pub struct DeclaredPath {
    /// The resource, as `type#name`.
    pub by: String,
    /// What it manages; the source of a copy is absolute.
    pub managed: ManagedPath,
}

/// Everything that a run declares.
#[derive(Clone, Debug, Default)]
pub struct DeclaredPaths {
    /// The paths.
    pub paths: Vec<DeclaredPath>,
    /// The first child manifest that could not be read.
    unread: Option<UnreadManifest>,
}

#[derive(Clone, Debug)]
struct UnreadManifest {
    reason: String,
    hint: Option<String>,
    is_missing: bool,
    by: Option<Arc<str>>,
}

impl DeclaredPaths {
    /// These paths, and all of them.
    pub fn of(paths: Vec<DeclaredPath>) -> Self {
        Self { paths, unread: None }
    }

    /// Fails if a child manifest could not be read: what it declares is unknown.
    ///
    /// # Errors
    ///
    /// Returns why it could not be read.
    pub fn check(&self) -> Result<()> {
        let Some(UnreadManifest { reason, hint, is_missing, by }) = &self.unread else {
            return Ok(());
        };
        let reason =
            format!("cannot purge: a child manifest may declare files to keep, and {reason}");
        let (hint, by) = (hint.clone(), by.clone());
        Err(if *is_missing {
            Error::Missing { reason, hint, by }
        } else {
            Error::Refused { reason, hint }
        })
    }
}

/// What is declared by the manifests that have started, and the ones ahead.
#[derive(Default)]
pub(crate) struct RunDeclarations {
    known: Arc<DeclaredPaths>,
    ahead: Vec<ChildAhead>,
    looked_into: HashSet<Route>,
}

/// A manifest that a resource may apply later.
struct ChildAhead {
    route: Route,
    path: PathBuf,
    data: Option<Map>,
    allow_apply: bool,
    templates: Resolver,
    remote: Option<Arc<RemoteSource>>,
}

impl RunDeclarations {
    /// Learns what a manifest declares that is about to run. A run of a single
    /// manifest in which nothing purges has no use for it.
    pub(crate) fn enter(&mut self, manifest: &Manifest, route: &Route) {
        let mut resources = manifest.declarations.resources.iter();
        let is_of_use = !route.is_empty()
            || resources.any(|resource| resource.purges() || resource.child().is_some());
        if is_of_use && self.looked_into.insert(route.clone()) {
            self.ahead.retain(|child| child.route != *route);
            self.learn(manifest, route);
        }
    }

    fn learn(&mut self, manifest: &Manifest, route: &Route) {
        let known = Arc::make_mut(&mut self.known);
        for resource in &manifest.declarations.resources {
            for mut managed in resource.managed_paths() {
                if let Extent::CopyOf(source) = &mut managed.extent {
                    *source = manifest.working_directory.join(&source);
                }
                known.paths.push(DeclaredPath { by: resource.display(), managed });
            }
            if let Some(child) = resource.child() {
                let mut below = route.clone();
                below.push(child.name.to_owned());
                self.ahead.push(ChildAhead {
                    route: below,
                    path: manifest.working_directory.join(child.path),
                    data: child.data.cloned(),
                    allow_apply: child.allow_apply,
                    templates: templates_of(&**resource, &manifest.templates).into_owned(),
                    remote: manifest.remote.clone(),
                });
            }
        }
    }

    /// Everything that the manifests of the run declare.
    pub(crate) fn paths(
        &mut self,
        types: &'static [&'static dyn AnyType],
        options: &RunOptions,
    ) -> Arc<DeclaredPaths> {
        Arc::make_mut(&mut self.known).unread = None;
        let mut unread = Vec::new();
        while let Some(ahead) = self.ahead.pop() {
            // One that is too deep fails before it declares anything.
            let is_too_deep = ahead.route.len() > options.max_depth;
            if is_too_deep || !self.looked_into.insert(ahead.route.clone()) {
                continue;
            }
            let loaded = if self.looked_into.len() > MAX_MANIFESTS {
                Err(Error::TooMany { limit: MAX_MANIFESTS })
            } else {
                load(&ahead, types, options)
            };
            match loaded {
                Ok(manifest) => self.learn(&manifest, &ahead.route),
                Err(error) => {
                    let by = error.awaited().cloned();
                    let is_missing = by.is_some() || error.is_about_something_missing();
                    let (reason, hint) = (chain(&error), error.hint());
                    let found = UnreadManifest { reason, hint, is_missing, by };
                    Arc::make_mut(&mut self.known).unread.get_or_insert(found);
                    self.looked_into.remove(&ahead.route);
                    unread.push(ahead);
                }
            }
        }
        // They may be there by the time of the next purge.
        self.ahead = unread;
        Arc::clone(&self.known)
    }
}

fn load(
    ahead: &ChildAhead,
    types: &'static [&'static dyn AnyType],
    options: &RunOptions,
) -> Result<Manifest> {
    let path = ahead.path.to_string_lossy().into_owned();
    let child = Child {
        name: &path,
        path: &path,
        data: ahead.data.as_ref(),
        noop: None,
        health_check_only: None,
        allow_apply: ahead.allow_apply,
    };
    let above = Above {
        templates: &ahead.templates,
        path: ahead.path.clone(),
        remote: ahead.remote.clone(),
    };
    let host = ahead.templates.host();
    Ok(load_child(host, types, &options.inputs, &child, above)?)
}
