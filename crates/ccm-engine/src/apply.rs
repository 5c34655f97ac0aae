//! The type `apply`, which applies a child manifest with the same code as the
//! parent.

#[cfg(test)]
mod tests;

use std::path::Path;

use ccm_host::{Host, Reach};
use ccm_model::{
    Change, Common, Data, Event, Properties as _, ResourceRef, Stage, redact_credentials,
};
use ccm_template::Resolver;
use serde::Serialize;
use serde_json::Value;

use crate::cli::CommandLine;
use crate::declare::{Declare, Ensure, Findings};
use crate::manage::{Manage, Turn, status};
use crate::manifest_run::{Child, ChildSummary, Mode};
use crate::resource_type::{Detail, Trigger};
use crate::run::Stop;
use crate::{Error, Result};

/// The one provider there is: manifests from local files.
const PROVIDER: &str = "ccmmanifest";

/// The `apply` type.
pub struct Apply;

/// Apply other manifests
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// Path of the child manifest, relative to the parent manifest; defaults to `name`
    #[property(value = "PATH")]
    pub(crate) manifest: Option<String>,
    /// Preview the child manifest without applying it; cannot turn noop mode off
    pub(crate) noop: Option<bool>,
    /// Run only the health checks; cannot turn this mode off
    pub(crate) health_check_only: Option<bool>,
    /// Whether the child manifest may apply further manifests; defaults to `true`
    pub(crate) allow_apply: Option<bool>,
    /// Data for the child manifest; defaults to all data of this one
    pub(crate) data: Option<Data>,
    /// Resources whose change counts as a refresh, as `type#name`
    #[property(value = "TYPE#NAME")]
    pub(crate) subscribe: Vec<ResourceRef>,
}

impl Properties {
    fn child(&self) -> Child<'_> {
        Child {
            name: &self.common.name,
            path: self.manifest.as_ref().unwrap_or(&self.common.name),
            data: self.data.as_ref().map(|data| &data.0),
            noop: self.noop,
            health_check_only: self.health_check_only,
            allow_apply: self.allow_apply.unwrap_or(true),
        }
    }
}

/// How many resources the manifest has, and what became of them.
#[expect(clippy::struct_field_names, reason = "the wire format has these names")]
#[derive(Clone, Copy, Debug, Serialize)]
struct State {
    resource_count: usize,
    changed_count: usize,
    failed_count: usize,
}

impl crate::State for State {
    fn ensure(&self) -> &'static str {
        "present"
    }
}

impl Declare for Apply {
    type Properties = Properties;

    const NAME: &'static str = "apply";
    const ABOUT: &'static str = "Apply other manifests";
    const NAME_DOC: &'static str =
        "Path of the child manifest, relative to the parent manifest, unless `manifest` is set";
    const ENSURE: Ensure = Ensure::OneOf(&["present"]);
    // At the shell, `ccm apply` applies a manifest.
    const COMMAND_LINE: Option<CommandLine> = None;
    const REACH: Reach = Reach::Anything;
    const NO_STATUS: Option<&'static str> =
        Some("a manifest has no state of its own, only its resources have");

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        let property = if want.manifest.is_some() { "manifest" } else { "name" };
        let path = want.child().path;
        if path.is_empty() {
            findings.add(property, "a path cannot be empty");
        } else if path.contains("://") {
            let message = format!("`{}` is a URL, not a path", redact_credentials(path));
            findings.add_with_hint(property, message, "use the path of a local manifest");
        } else if path.contains('\0') {
            findings.add(property, "a path cannot contain a NUL character");
        }
        if want.noop == Some(true) && want.health_check_only == Some(true) {
            findings
                .add("health_check_only", "conflicts with `noop`: a preview runs no health checks");
        }
    }

    fn subscribe(want: &Properties) -> &[ResourceRef] {
        &want.subscribe
    }

    fn mode(want: &Properties, above: Mode) -> Mode {
        above.with(&want.child())
    }

    fn child(want: &Properties) -> Option<Child<'_>> {
        Some(want.child())
    }
}

impl Manage for Apply {
    fn providers() -> Vec<&'static str> {
        vec![PROVIDER]
    }

    fn select_provider(want: &Properties, _host: &Host) -> Result<(usize, &'static str)> {
        match &want.common.provider {
            Some(name) if name != PROVIDER => Err(Error::UnknownProvider {
                name: name.clone(),
                kind: Self::NAME,
                known: Self::providers(),
            }),
            _ => Ok((0, PROVIDER)),
        }
    }

    fn manage(
        want: &Properties,
        _provider: usize,
        turn: &mut Turn<'_, '_, '_>,
        event: &mut Event,
    ) -> Result<()> {
        let names = std::iter::once(&want.common.name).chain(&want.common.alias);
        let names = names.map(|name| format!("{}#{name}", Self::NAME));
        let summary = turn.run.run_child(&want.child(), turn.is_chosen, names)?;
        let (resources, failed) = (summary.resources, summary.failed);
        let reason = failure(&summary);
        event.aggregate = summary.speaks_for_itself();
        event.changed = !summary.changed.is_empty() && reason.is_none();
        let is_triggered = turn.trigger == Trigger::Refresh && turn.awaited.is_none();
        event.refreshed = event.changed && is_triggered;
        if event.changed && turn.mode.noop {
            event.noop_message = Some("Would have applied the manifest".to_owned());
        }
        "present".clone_into(&mut event.final_ensure);
        let changed_count = summary.changed.len();
        if changed_count > 0 {
            event.changes = vec![Change::of("resources").to(summary.changed.clone())];
        }
        if turn.run.options.detail >= Detail::Report {
            let state = State { resource_count: resources, changed_count, failed_count: failed };
            event.status = status(Self::NAME, &state, event, reason.is_some());
        }
        // It changes something only if one of its resources does.
        let awaited = summary.awaited.filter(|_| summary.certain == 0);
        match (reason, awaited) {
            (Some(reason), _) => Err(Error::NotConverged { reason }),
            (None, Some(by)) => Err(Error::Awaited { by: by.into() }),
            (None, None) => Ok(()),
        }
    }

    fn status(want: &Properties, _: &Host, _: &Path, _: &Resolver) -> Result<Value> {
        let name = &want.common().name;
        Err(Error::refused(format!("apply#{name} has no state of its own")))
    }
}

/// What the outcome of a manifest means for the resource that applied it: why
/// it failed, if it did.
fn failure(summary: &ChildSummary) -> Option<String> {
    let ChildSummary { resources: all, failed, unmet, applied, stop, .. } = *summary;
    if let Some(Stop::Cancelled(_)) = stop {
        return Some(format!("interrupted after {applied} of {all} resources"));
    }
    let mut reasons = Vec::new();
    if failed > 0 {
        reasons.push(format!("{failed} of {all} resources failed"));
    }
    if unmet > 0 {
        reasons.push(format!("{unmet} of {all} resources had unmet requirements"));
    }
    if stop == Some(Stop::Failed) {
        reasons.push("Terminating manifest execution due to failed resource".to_owned());
    }
    (!reasons.is_empty()).then(|| reasons.join(", "))
}
