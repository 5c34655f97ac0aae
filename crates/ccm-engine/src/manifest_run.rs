//! A manifest within a run: the first, or one that a resource applies. The same
//! code runs both.
//!
//! Every manifest of a run has a [`ManifestFrame`] of its own, so what holds for
//! a child (working directory, data, noop) ends with it, however it ends.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use ccm_host::Host;
use ccm_model::{Event, Finding};
use ccm_template::{LoopItem, Resolver};
use ccm_yaml::{Source, Span};
use govalue::Map;

use crate::inputs::Inputs;
use crate::lifecycle::LifecycleContext;
use crate::manifest::{Diagnosis, Manifest, ManifestError, ManifestLoader, RemoteSource, shown};
use crate::options::RunOptions;
use crate::resource::AnyType;
use crate::run::{Record, Stop};
use crate::{Error, Result};

/// How deep manifests are nested at most, unless the user says otherwise.
pub const MAX_DEPTH: usize = 10;

/// A run applies at most this many manifests below the first.
pub(crate) const MAX_MANIFESTS: usize = 1000;

/// A manifest that a resource applies.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// What the resource that applies it is called.
    pub name: &'a str,
    /// Its path, from where the manifest stands that names it.
    pub path: &'a str,
    /// The data that it is given; everything that the manifest above it sees
    /// when unset.
    pub data: Option<&'a Map>,
    /// Only say what would be done.
    pub noop: Option<bool>,
    /// Only look at the health of resources.
    pub health_check_only: Option<bool>,
    /// Whether it may apply manifests in turn.
    pub allow_apply: bool,
}

/// Counts of the outcomes of a manifest's resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChildSummary {
    /// Declared.
    pub resources: usize,
    /// Changed, or in noop would have been, as `type#name`.
    pub changed: Vec<String>,
    /// How many of these certainly are: they are not provisional.
    pub certain: usize,
    /// The resource on which the first provisional one depends.
    pub awaited: Option<String>,
    /// Resources that failed.
    pub failed: usize,
    /// Skipped because a requirement was not met.
    pub unmet: usize,
    /// Number of resources that ccm applied.
    pub applied: usize,
    /// Why not all of them had their turn.
    pub stop: Option<Stop>,
}

impl ChildSummary {
    /// Counts an event. Names are for the event of the resource that applied the
    /// manifest, which the first manifest does not have.
    fn add(&mut self, event: &Event, is_child: bool) {
        self.applied += 1;
        if is_child && event.changed && !event.failed {
            self.changed.push(format!("{}#{}", event.kind, event.name));
            self.certain += usize::from(!event.provisional);
        }
        self.awaited = self.awaited.take().or_else(|| event.waits_for.first().cloned());
        self.failed += usize::from(event.failed);
        self.unmet += usize::from(!event.unmet_requirements.is_empty());
    }

    /// Whether the events of its resources tell everything, so that the resource
    /// that applies the manifest adds nothing.
    pub(crate) fn speaks_for_itself(&self) -> bool {
        self.applied > 0 && (self.stop.is_none() || self.failed + self.unmet > 0)
    }

    pub(crate) fn is_without_errors(&self) -> bool {
        self.failed + self.unmet == 0 && self.stop.is_none()
    }
}

/// Restrictions on a run. A child manifest can add restrictions but not lift
/// them.
#[expect(clippy::struct_excessive_bools, reason = "each restriction holds by itself")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mode {
    /// Only say what would be done.
    pub noop: bool,
    /// Change nothing, only look at the health of resources.
    pub health_check_only: bool,
    /// A child manifest asks for noop: the real run changes nothing here either.
    pub is_aside: bool,
    /// Starts, stops and restarts no services: the first boot does.
    pub offline: bool,
}

impl Mode {
    /// The mode of a manifest that is applied by one with this mode.
    pub(crate) fn with(self, child: &Child<'_>) -> Self {
        let health_check_only = self.health_check_only || child.health_check_only == Some(true);
        // Where only health is looked at nothing is changed anyway, and a
        // child in noop is looked at like any other.
        let asks = child.noop == Some(true) && !self.health_check_only;
        let (noop, is_aside) = (self.noop || asks, self.is_aside || asks);
        Self { noop, health_check_only, is_aside, ..self }
    }

    /// The properties by which a child asks for more than it can have.
    fn refused_to(self, child: &Child<'_>) -> impl Iterator<Item = &'static str> {
        let asked = [
            ("noop", self.noop, child.noop),
            ("health_check_only", self.health_check_only, child.health_check_only),
        ];
        asked
            .into_iter()
            .filter_map(|(name, is_set, asked)| (is_set && asked == Some(false)).then_some(name))
    }
}

/// What holds for the resources of one manifest of a run.
#[derive(Clone)]
pub(crate) struct ManifestFrame {
    pub(crate) mode: Mode,
    pub(crate) working_directory: PathBuf,
    pub(crate) templates: Resolver,
    /// Stop at the first resource that fails.
    pub(crate) fail_on_error: bool,
    /// The files on the way here, this one last; none for a resource that
    /// stands in no manifest.
    pub(crate) files: Vec<String>,
    pub(crate) remote: Option<Arc<RemoteSource>>,
    /// Whether everything in it was selected with the resource that applies it.
    pub(crate) is_chosen: bool,
    /// The manifests on the way here as they are written, without the first.
    pub(crate) route: Vec<String>,
    /// What the resources that apply it and those above it are called.
    pub(crate) above: Vec<String>,
    /// The line of each resource, by index, whose name another one has too.
    pub(crate) repeated: Arc<HashMap<usize, usize>>,
    /// The text that the resources stand in.
    pub(crate) source: Option<Arc<Source>>,
}

impl ManifestFrame {
    /// The frame of a resource that stands in no manifest.
    pub(crate) fn outside(options: &RunOptions, templates: Resolver) -> Self {
        let templates = if options.mode.noop { in_preview(&templates) } else { templates };
        Self {
            mode: options.mode,
            working_directory: options.working_directory.clone(),
            templates,
            fail_on_error: false,
            files: Vec::new(),
            remote: None,
            is_chosen: false,
            route: Vec::new(),
            above: Vec::new(),
            repeated: Arc::default(),
            source: None,
        }
    }

    /// The same for a resource of a loop, whose variables its templates see.
    pub(crate) fn with_item(&self, item: &Arc<LoopItem>) -> Self {
        Self { templates: self.templates.with_item(item), ..self.clone() }
    }

    /// Where something stands in the manifest: file, line and column.
    pub(crate) fn place(&self, span: Option<Span>) -> Option<Box<str>> {
        let source = self.source.as_ref()?;
        let position = source.position(span?.start);
        Some(format!("{}:{}:{}", source.name(), position.line, position.column).into())
    }

    /// The files on the way to a manifest below this one, if it may be reached.
    fn files_to(&self, child: &Child<'_>, max_depth: usize) -> Result<Vec<String>> {
        let mut files = self.files.clone();
        files.push(shown(&self.working_directory.join(child.path), self.remote.as_deref()));
        if files.len() > max_depth + 1 {
            return Err(Error::TooDeep { limit: max_depth, files });
        }
        Ok(files)
    }
}

impl LifecycleContext<'_, '_> {
    /// Applies all resources of a manifest. Returns its `post_message`, because
    /// only the caller knows when the run has ended.
    pub(crate) fn run_manifest(
        &mut self,
        manifest: Manifest,
        mode: Mode,
        files: Vec<String>,
        is_chosen: bool,
        way: Way,
    ) -> (ChildSummary, Option<String>) {
        let Way { route, above } = way;
        self.enter_owed(&manifest, &route);
        self.record.declared.enter(&manifest, &route);
        let source = Some(Arc::clone(manifest.source()));
        let Manifest { working_directory, declarations, templates, warnings, remote, .. } =
            manifest;
        self.diagnosed(&warnings);
        let host = &self.options.host;
        for resource in &declarations.resources {
            host.add_secrets(resource.secrets());
        }
        let frame = ManifestFrame {
            mode,
            working_directory,
            templates,
            fail_on_error: declarations.fail_on_error,
            files,
            remote,
            is_chosen,
            route,
            above,
            repeated: Arc::new(declarations.repeated),
            source,
        };
        if let Some(message) = declarations.pre_message {
            let message = host.redactor().text(&message).into_owned();
            self.observer.borrow_mut().message(&message);
        }
        let is_child = frame.files.len() > 1;
        let mut summary =
            ChildSummary { resources: declarations.resources.len(), ..ChildSummary::default() };
        summary.stop = self
            .within(&frame)
            .run_all(declarations.resources, |event| summary.add(event, is_child));
        let message = declarations.post_message.filter(|_| summary.is_without_errors());
        let message = message.map(|text| self.options.host.redactor().text(&text).into_owned());
        (summary, message)
    }

    /// Reads and runs the manifest that a resource applies.
    /// `names` are what the resource that applies it is called.
    pub(crate) fn run_child(
        &mut self,
        child: &Child<'_>,
        is_chosen: bool,
        names: impl Iterator<Item = String>,
    ) -> Result<ChildSummary> {
        let files = self.frame.files_to(child, self.options.max_depth)?;
        if self.record.manifests == MAX_MANIFESTS {
            return Err(Error::TooMany { limit: MAX_MANIFESTS });
        }
        self.record.manifests += 1;
        for property in self.frame.mode.refused_to(child) {
            let message = format!(
                "`{property}: false` has no effect: the mode is already on in the parent manifest"
            );
            self.warn(Some(&format!("apply#{}", child.name)), &message);
        }
        let loaded = self.load_child(child);
        let mut manifest = loaded.inspect_err(|error| {
            if let ManifestError::Invalid(diagnosis) = error {
                self.observer.borrow_mut().diagnosed(diagnosis);
            }
        })?;
        // Of the highest level, so that every line of the log carries it.
        let path = self.options.host.redactor().name(child.path).into_owned();
        let span = tracing::error_span!("apply", manifest = path).entered();
        let mode = self.frame.mode.with(child);
        let mut way = Way { route: self.frame.route.clone(), above: self.frame.above.clone() };
        way.route.push(child.name.to_owned());
        way.above.extend(names);
        if mode.is_aside && !self.frame.mode.is_aside {
            // What a child in noop would do is not there for what comes after it.
            manifest.templates = in_preview(&manifest.templates);
        }
        let (summary, message) = self.run_manifest(manifest, mode, files, is_chosen, way);
        if let Some(message) = message {
            self.observer.borrow_mut().message(&message);
        }
        drop(span);
        let (resources, failed) = (summary.resources, summary.failed);
        let changed = summary.changed.len();
        if failed > 0 {
            tracing::error!(manifest = path, resources, changed, failed, "child manifest failed");
        } else {
            tracing::info!(manifest = path, resources, changed, failed, "applied");
        }
        Ok(summary)
    }

    /// Learns who subscribes to what in a manifest that is about to run.
    fn enter_owed(&mut self, manifest: &Manifest, route: &Vec<String>) {
        let host = &self.options.host;
        let Record { owed, session, .. } = &mut *self.record;
        let entered = owed.enter(manifest, route, host, |reference| {
            session.last(reference).is_some_and(|last| last.changed && !last.noop)
        });
        if let Err(error) = entered {
            host.warn(crate::chain(&error));
        }
    }

    fn load_child(&self, child: &Child<'_>) -> Result<Manifest, ManifestError> {
        let above = Above {
            templates: &self.frame.templates,
            path: self.frame.working_directory.join(child.path),
            remote: self.frame.remote.clone(),
        };
        let host = self.frame.templates.host();
        load_child(host, self.types, &self.options.inputs, child, above)
    }
}

/// The same templates in a preview that begins with them. Their host is the one
/// that the resources of a manifest are given.
fn in_preview(templates: &Resolver) -> Resolver {
    templates.with_host(templates.host().preview())
}

/// How a run came to a manifest.
#[derive(Default)]
pub(crate) struct Way {
    /// See [`ManifestFrame::route`].
    pub(crate) route: Vec<String>,
    /// See [`ManifestFrame::above`].
    pub(crate) above: Vec<String>,
}

/// What a child is read with that comes from the manifest above it.
pub(crate) struct Above<'a> {
    /// What the manifest above sees.
    pub(crate) templates: &'a Resolver,
    /// Where the child is.
    pub(crate) path: PathBuf,
    pub(crate) remote: Option<Arc<RemoteSource>>,
}

/// What a child sees beside its own data; `templates` are those of the manifest
/// above it.
pub fn child_inputs(inputs: &Inputs, child: &Child<'_>, templates: &Resolver) -> Inputs {
    let inherited = child.data.or_else(|| templates.data().as_map()).cloned();
    Inputs { inherited, ..inputs.clone() }
}

/// Reads the manifest that a resource applies.
pub(crate) fn load_child(
    host: &Host,
    types: &'static [&'static dyn AnyType],
    inputs: &Inputs,
    child: &Child<'_>,
    above: Above<'_>,
) -> Result<Manifest, ManifestError> {
    let inputs = child_inputs(inputs, child, above.templates);
    let loader = ManifestLoader { host, types, inputs: &inputs, has_history: true };
    let manifest = loader.load_file(&above.path, above.remote)?;
    if child.allow_apply {
        return Ok(manifest);
    }
    let resources = manifest.declarations.resources.iter();
    let findings: Vec<Finding> = resources
        .filter(|resource| resource.child().is_some())
        .map(|resource| {
            let message =
                "this manifest must not apply others: its parent sets `allow_apply: false`";
            let hint =
                "remove the `apply` resource, or `allow_apply: false` in the parent".to_owned();
            manifest.declarations.finding(&**resource, message).hint(hint)
        })
        .collect();
    if findings.is_empty() {
        return Ok(manifest);
    }
    Err(ManifestError::Invalid(Diagnosis { findings, ..manifest.warnings }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(noop: Option<bool>, health_check_only: Option<bool>) -> Child<'static> {
        Child { name: "a", path: "c", data: None, noop, health_check_only, allow_apply: true }
    }

    #[test]
    fn going_down_a_run_only_becomes_stricter() {
        let (yes, no) = (Some(true), Some(false));
        for (above, asked, effective, is_warned) in [
            (true, no, true, true),
            (true, yes, true, false),
            (true, None, true, false),
            (false, yes, true, false),
            (false, no, false, false),
            (false, None, false, false),
        ] {
            let noop = Mode { noop: above, ..Mode::default() };
            let asks = child(asked, None);
            let is_aside = asked == yes;
            assert_eq!(noop.with(&asks), Mode { noop: effective, is_aside, ..noop });
            assert_eq!(noop.refused_to(&asks).count(), usize::from(is_warned));
            let health = Mode { health_check_only: above, ..Mode::default() };
            let asks = child(None, asked);
            assert_eq!(health.with(&asks), Mode { health_check_only: effective, ..health });
            assert_eq!(health.refused_to(&asks).count(), usize::from(is_warned));
        }
        let monitoring = Mode { health_check_only: true, ..Mode::default() };
        assert_eq!(monitoring.with(&child(yes, None)), monitoring);
    }

    #[test]
    fn events_are_counted_once() {
        let mut summary = ChildSummary { resources: 5, ..ChildSummary::default() };
        let event =
            |name: &str| Event { name: name.into(), kind: "file".into(), ..Event::default() };
        for event in [
            Event { changed: true, ..event("a") },
            Event { changed: true, failed: true, ..event("b") },
            Event { skipped: true, ..event("c") },
            event("d"),
        ] {
            summary.add(&event, true);
        }
        assert_eq!((summary.applied, summary.failed, summary.unmet), (4, 1, 0));
        assert_eq!(summary.changed, ["file#a"]);
    }
}
