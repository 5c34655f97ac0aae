//! Plans: previews of whole manifests as data.

use std::borrow::Cow;
use std::path::Path;

use ccm_host::Host;
use ccm_model::{Diagnostic, Event, Plan, PlanHost, PlanSummary, PlannedResource};

use crate::manifest::Diagnosis;
use crate::resource::AnyResource;
use crate::run::{Finished, Observer};

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
    /// The resources of the manifests that are being run, outermost first.
    levels: Vec<Vec<PlannedResource>>,
    /// The resources of the manifest that ran last, for the one that applied it.
    children: Vec<PlannedResource>,
}

impl<'a> PlanRecorder<'a> {
    pub(crate) fn new(observer: &'a mut dyn Observer) -> Self {
        Self { observer, levels: vec![Vec::new()], children: Vec::new() }
    }

    /// The plan of everything that was seen.
    pub(crate) fn into_plan(self, finished: &Finished, host: &Host) -> Plan {
        let resources = self.levels.into_iter().next().unwrap_or_default();
        let not_selected = finished.report.summary.not_selected;
        let mut summary = PlanSummary { not_selected, ..PlanSummary::default() };
        for resource in &resources {
            resource.count(&mut summary);
        }
        Plan {
            protocol: Cow::Borrowed(Plan::PROTOCOL),
            manifest: finished.report.manifest.clone(),
            host: this_host(host),
            created: finished.report.started,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            summary,
            resources,
            warnings: finished.report.warnings.clone(),
        }
    }
}

impl Observer for PlanRecorder<'_> {
    fn starting(&mut self, resource: &dyn AnyResource, number: usize, total: usize) {
        self.observer.starting(resource, number, total);
    }

    fn output(&mut self, line: &str) {
        self.observer.output(line);
    }

    fn entering(&mut self, manifest: &str) {
        self.levels.push(Vec::new());
        self.observer.entering(manifest);
    }

    fn leaving(&mut self) {
        self.children = self.levels.pop().unwrap_or_default();
        self.observer.leaving();
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
        let children = std::mem::take(&mut self.children);
        let resource = PlannedResource { children, ..PlannedResource::new(event, diff) };
        if let Some(level) = self.levels.last_mut() {
            level.push(resource);
        }
        self.observer.finished(event, diff);
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
