//! Manifests within a run: what a resource brings, and how it is applied.
//!
//! Every manifest of a run has a [`Level`] of its own, so what holds for a
//! child (working directory, data, noop) ends with it, however it ends.

use std::path::Path;

use ccm_host::Host;
use ccm_model::{Event, Finding};
use ccm_template::Resolver;
use govalue::Map;

use crate::inputs::{Handed, Inputs};
use crate::lifecycle::Surroundings;
use crate::manifest::{Diagnosis, Manifest, ManifestError};
use crate::resource::AnyType;
use crate::run::{Settings, Stop};
use crate::{Error, Result};

/// The first manifest is at depth 0, this one is the last that runs.
pub(crate) const MAX_DEPTH: usize = 10;

/// A run applies at most this many manifests below the first.
const MAX_MANIFESTS: usize = 1000;

/// What a resource may use to have a manifest applied within the run.
pub trait Nested {
    /// Applies all resources of a manifest.
    fn apply(&mut self, child: &Child<'_>) -> Result<Tally>;
}

/// Where nothing is applied, no manifest is either.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Nested for Nowhere {
    fn apply(&mut self, _: &Child<'_>) -> Result<Tally> {
        Err(Error::refused("a manifest can only be applied within a run"))
    }
}

/// A manifest that a resource brings.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    /// Its path, from where the manifest stands that names it.
    pub path: &'a str,
    /// What it is handed; everything that the manifest above it sees when
    /// unset.
    pub data: Option<&'a Map>,
    /// Only say what would be done.
    pub noop: Option<bool>,
    /// Only look at the health of resources.
    pub health_check_only: Option<bool>,
    /// Whether it may bring manifests in turn.
    pub allow_apply: bool,
}

/// What became of the resources of a manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Declared.
    pub resources: usize,
    /// Changed, or in noop would have been.
    pub changed: usize,
    /// Could not be brought to their desired state.
    pub failed: usize,
    /// Skipped because a requirement was not met.
    pub unmet: usize,
    /// Whose turn came.
    pub applied: usize,
    /// Why not all of them had their turn.
    pub stop: Option<Stop>,
}

impl Tally {
    fn add(&mut self, event: &Event) {
        self.applied += 1;
        self.changed += usize::from(event.changed && !event.failed);
        self.failed += usize::from(event.failed);
        self.unmet += usize::from(!event.unmet_requirements.is_empty());
    }

    fn is_without_errors(&self) -> bool {
        self.failed + self.unmet == 0 && self.stop.is_none()
    }
}

/// How much a run may do. Going down, it can only become less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) noop: bool,
    pub(crate) health_check_only: bool,
}

impl Mode {
    /// The mode of a resource that brings a manifest, or of any other.
    pub(crate) fn with(self, child: Option<&Child<'_>>) -> Self {
        let Some(child) = child else { return self };
        let health_check_only = self.health_check_only || child.health_check_only == Some(true);
        // Where only health is looked at nothing is changed anyway, and a
        // child in noop is looked at like any other.
        let noop = self.noop || child.noop == Some(true) && !self.health_check_only;
        Self { noop, health_check_only }
    }

    /// The properties by which a child asks for more than it can have.
    fn weakened_by(self, child: &Child<'_>) -> impl Iterator<Item = &'static str> {
        let asked = [
            ("noop", self.noop, child.noop),
            ("health_check_only", self.health_check_only, child.health_check_only),
        ];
        asked
            .into_iter()
            .filter_map(|(name, is_set, asked)| (is_set && asked == Some(false)).then_some(name))
    }
}

/// One manifest of a run: the first, or one that a resource brought.
pub(crate) struct Level<'r> {
    pub(crate) settings: Settings,
    pub(crate) templates: &'r Resolver,
    /// The files on the way here, this one last.
    pub(crate) files: Vec<String>,
}

impl Level<'_> {
    pub(crate) fn mode(&self) -> Mode {
        let Settings { noop, health_check_only, .. } = self.settings;
        Mode { noop, health_check_only }
    }

    /// The files on the way to a manifest below this one, if it may be reached.
    fn files_to(&self, child: &Child<'_>, inputs: &Inputs) -> Result<Vec<String>> {
        let mut files = self.files.clone();
        files.push(inputs.shown(&self.settings.working_directory.join(child.path)));
        if files.len() > MAX_DEPTH + 1 {
            return Err(Error::TooDeep { limit: MAX_DEPTH, files });
        }
        Ok(files)
    }
}

/// What manifests within a run are read with.
#[derive(Clone, Copy)]
pub(crate) struct Library<'a> {
    pub(crate) types: &'a [&'static dyn AnyType],
    pub(crate) inputs: &'a Inputs,
}

impl Nested for Surroundings<'_, '_> {
    fn apply(&mut self, child: &Child<'_>) -> Result<Tally> {
        let library = self
            .library
            .ok_or_else(|| Error::refused("a manifest can only be applied within a manifest"))?;
        let level = self.level;
        let files = level.files_to(child, library.inputs)?;
        if self.record.manifests == MAX_MANIFESTS {
            return Err(Error::TooMany { limit: MAX_MANIFESTS });
        }
        self.record.manifests += 1;
        for property in level.mode().weakened_by(child) {
            let manifest = child.path;
            tracing::warn!(manifest, "`{property}: false` has no effect, the run above has it on");
        }
        let Settings { host, working_directory, .. } = &level.settings;
        let data = level.templates.data().as_map();
        let manifest = match load(host, working_directory, library, child, data) {
            Ok(manifest) => manifest,
            Err(error) => {
                if let ManifestError::Invalid(diagnosis) = &error {
                    self.observer.borrow_mut().diagnosed(diagnosis);
                }
                return Err(error.into());
            }
        };
        self.observer.borrow_mut().diagnosed(&manifest.warnings);
        let Mode { noop, health_check_only } = level.mode().with(Some(child));
        let declared = manifest.declarations;
        let below = Level {
            settings: Settings {
                noop,
                health_check_only,
                working_directory: manifest.working_directory,
                fail_on_error: declared.fail_on_error,
                ..level.settings.clone()
            },
            templates: &manifest.templates,
            files,
        };
        let mut tally = Tally { resources: declared.resources.len(), ..Tally::default() };
        // Of the highest level, so that every line of the log carries it.
        let span = tracing::error_span!("apply", manifest = child.path).entered();
        self.observer.borrow_mut().entering(child.path);
        if let Some(message) = declared.pre_message {
            self.observer.borrow_mut().message(&message);
        }
        let mut around = Surroundings {
            level: &below,
            record: self.record,
            observer: self.observer,
            library: self.library,
        };
        tally.stop = around.apply_all(declared.resources, |event| tally.add(event));
        if let Some(message) = declared.post_message.filter(|_| tally.is_without_errors()) {
            self.observer.borrow_mut().message(&message);
        }
        self.observer.borrow_mut().leaving();
        drop(span);
        Ok(tally)
    }
}

/// Reads the manifest that a resource brings; `above` is the data that the
/// resource's own manifest sees.
pub(crate) fn load(
    host: &Host,
    directory: &Path,
    library: Library<'_>,
    child: &Child<'_>,
    above: Option<&Map>,
) -> Result<Manifest, ManifestError> {
    let handed = match child.data {
        Some(data) => Handed::Some(data.clone()),
        None => Handed::All(above.cloned().unwrap_or_default()),
    };
    let inputs = Inputs { handed, ..library.inputs.clone() };
    let path = directory.join(child.path);
    let manifest = Manifest::load(host, &path, library.types, &inputs, true)?;
    if child.allow_apply {
        return Ok(manifest);
    }
    let nests =
        |kind: &str| library.types.iter().any(|known| known.name() == kind && known.nests());
    let resources = manifest.declarations.resources.iter();
    let findings: Vec<Finding> = resources
        .filter(|resource| nests(resource.kind()))
        .map(|resource| {
            let message = "whoever applies this manifest does not allow it to apply others";
            let hint = "take it out, or drop `allow_apply: false` above".to_owned();
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
        Child { path: "c", data: None, noop, health_check_only, allow_apply: true }
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
            let noop = Mode { noop: above, health_check_only: false };
            let asks = child(asked, None);
            assert_eq!(noop.with(Some(&asks)), Mode { noop: effective, ..noop });
            assert_eq!(noop.weakened_by(&asks).count(), usize::from(is_warned));
            let health = Mode { noop: false, health_check_only: above };
            let asks = child(None, asked);
            assert_eq!(health.with(Some(&asks)), Mode { health_check_only: effective, ..health });
            assert_eq!(health.weakened_by(&asks).count(), usize::from(is_warned));
            assert_eq!(health.with(None), health);
        }
        let monitoring = Mode { noop: false, health_check_only: true };
        assert_eq!(monitoring.with(Some(&child(yes, None))), monitoring);
    }

    #[test]
    fn events_are_tallied_once() {
        let mut tally = Tally { resources: 5, ..Tally::default() };
        for event in [
            Event { changed: true, ..Event::default() },
            Event { changed: true, failed: true, ..Event::default() },
            Event { skipped: true, ..Event::default() },
            Event::default(),
        ] {
            tally.add(&event);
        }
        assert_eq!((tally.applied, tally.changed, tally.failed, tally.unmet), (4, 1, 1, 0));
    }
}
