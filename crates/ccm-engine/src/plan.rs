//! Plans: previews of whole manifests as data.

use std::borrow::Cow;
use std::path::Path;

use ccm_host::Host;
use ccm_model::{Diagnostic, Event, Plan, PlanHost, PlanTree};

use crate::manifest::{Diagnosis, Manifest};
use crate::resource::AnyResource;
use crate::run::{Finished, Observer, Position};

/// A plan, and how the preview that made it ended.
#[derive(Debug)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The end of the preview: cancelled or not, and its report.
    pub finished: Finished,
}

/// Collects what a preview finds, and lets another observer see it too.
pub(crate) struct PlanRecorder<'a> {
    observer: &'a mut dyn Observer,
    tree: PlanTree,
}

impl<'a> PlanRecorder<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, tree: PlanTree::default() }
    }

    /// The plan of everything that was seen.
    pub(crate) fn into_plan(self, finished: &Finished, host: &Host) -> Plan {
        Plan {
            protocol: Cow::Borrowed(Plan::PROTOCOL),
            manifest: finished.report.manifest.clone(),
            host: this_host(host),
            created: finished.report.started,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary: finished.report.summary.outcomes,
            resources: self.tree.into_rows(),
            warnings: finished.report.warnings.clone(),
            errors: Vec::new(),
        }
    }
}

impl Observer for PlanRecorder<'_> {
    fn loaded(&mut self, manifest: &Manifest) {
        self.observer.loaded(manifest);
    }

    fn starting(&mut self, resource: &dyn AnyResource, position: Position<'_>) {
        self.observer.starting(resource, position);
    }

    fn output(&mut self, line: &str) {
        self.observer.output(line);
    }

    fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        self.observer.diagnosed(diagnosis);
    }

    fn warning(&mut self, warning: &Diagnostic) {
        self.observer.warning(warning);
    }

    fn message(&mut self, text: &str) {
        self.observer.message(text);
    }

    fn finished(&mut self, event: &Event, diff: Option<&str>) {
        self.tree.add(event, diff);
        self.observer.finished(event, diff);
    }
}

/// The plan of something that cannot be run, with the reasons.
pub fn refused_plan(manifest: String, host: &Host, errors: Vec<Diagnostic>) -> Plan {
    Plan {
        protocol: Cow::Borrowed(Plan::PROTOCOL),
        manifest,
        host: this_host(host),
        created: host.now(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        errors,
        ..Plan::default()
    }
}

/// The machine: its name and its id, which is its name where it has none.
pub(crate) fn this_host(host: &Host) -> PlanHost {
    const IDS: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    let name = host.uname().hostname;
    let read = |path: &&str| host.read_text(Path::new(path), 1000).ok();
    let id = IDS.iter().find_map(read).map(|(text, _)| text.trim().to_owned());
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| name.clone());
    PlanHost { name, id }
}
