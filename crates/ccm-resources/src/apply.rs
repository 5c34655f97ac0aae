//! Manifests made of smaller manifests: a resource whose step is a run.

mod ccmmanifest;
mod command_line;
#[cfg(test)]
mod tests;

use std::fmt;

use ccm_engine::{
    Child, CommandLine, Context, Ensure, Findings, ProviderDef, ResourceType, Result, Stop, Tally,
    Trigger,
};
use ccm_model::{Common, Data, ResourceRef, Stage, redact_credentials};
use serde::Serialize;

/// The `apply` type.
pub struct Apply;

/// Apply other manifests
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// Only say what would be done; a run in noop stays so
    pub(crate) noop: Option<bool>,
    /// Only look at the health of resources; a run that does so keeps to it
    pub(crate) health_check_only: Option<bool>,
    /// Whether the manifest may apply others, true when unset
    pub(crate) allow_apply: Option<bool>,
    /// Data for the manifest; all data of this one when unset
    pub(crate) data: Option<Data>,
    /// Resources whose change counts as a refresh, as `type#name`
    #[property(value = "TYPE#NAME")]
    pub(crate) subscribe: Vec<ResourceRef>,
}

/// What an apply provider can do.
pub trait Provider {
    /// Applies the manifest.
    fn apply_manifest(&mut self, child: &Child<'_>, cx: &mut Context<'_>) -> Result<()>;
    /// What became of its resources, once it was applied.
    fn tally(&self) -> Option<Tally>;
}

/// What became of the manifest's resources.
#[derive(Clone, Debug, Default, Serialize)]
pub struct State {
    resource_count: usize,
    changed_count: usize,
    failed_count: usize,
    #[serde(skip)]
    unmet: usize,
    #[serde(skip)]
    applied: usize,
    #[serde(skip)]
    stop: Option<Stop>,
}

impl From<Tally> for State {
    fn from(tally: Tally) -> Self {
        Self {
            resource_count: tally.resources,
            changed_count: tally.changed,
            failed_count: tally.failed,
            unmet: tally.unmet,
            applied: tally.applied,
            stop: tally.stop,
        }
    }
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &'static str {
        "present"
    }
}

/// The one step there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplyManifest;

impl fmt::Display for ApplyManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Would have applied the manifest")
    }
}

impl ResourceType for Apply {
    type Properties = Properties;
    type State = State;
    type Action = ApplyManifest;
    type Provider = dyn Provider;

    const NAME: &'static str = "apply";
    const ABOUT: &'static str = "Apply other manifests";
    const ENSURE: Ensure = Ensure::OneOf(&["present"]);
    const PROVIDERS: &'static [ProviderDef<Self>] = &[ccmmanifest::DEF];
    const COMMAND_LINE: CommandLine = command_line::VIEW;
    const NO_STATUS: Option<&'static str> =
        Some("a manifest has no state of its own, only its resources have");
    const NESTS: bool = true;

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        let name = &want.common.name;
        if name.contains("://") {
            let message = format!("`{}` is a URL, not a path", redact_credentials(name));
            findings.add_with_hint("name", message, "apply a manifest that lies beside this one");
        } else if name.contains('\0') {
            findings.add("name", "a path cannot contain a NUL character");
        }
        if want.noop == Some(true) && want.health_check_only == Some(true) {
            findings.add("health_check_only", "a preview has no health to look at: `noop` is set");
        }
    }

    fn subscribe(want: &Properties) -> &[ResourceRef] {
        &want.subscribe
    }

    fn child(want: &Properties) -> Option<Child<'_>> {
        Some(Child {
            path: &want.common.name,
            data: want.data.as_ref().map(|data| &data.0),
            noop: want.noop,
            health_check_only: want.health_check_only,
            allow_apply: want.allow_apply.unwrap_or(true),
        })
    }

    fn observe(
        on: &mut Self::Provider,
        _want: &Properties,
        _cx: &mut Context<'_>,
    ) -> Result<State> {
        Ok(on.tally().map(State::from).unwrap_or_default())
    }

    /// What the resources of the manifest need is theirs to decide.
    fn decide(_want: &Properties, _have: &State, _why: Trigger) -> Result<Vec<ApplyManifest>> {
        Ok(vec![ApplyManifest])
    }

    fn act(
        on: &mut Self::Provider,
        want: &Properties,
        _step: &ApplyManifest,
        cx: &mut Context<'_>,
    ) -> Result<()> {
        Self::child(want).map_or(Ok(()), |child| on.apply_manifest(&child, cx))
    }

    fn has_changed(_before: &State, have: &State) -> bool {
        have.changed_count > 0
    }

    fn mismatch(_want: &Properties, have: &State) -> Option<String> {
        let State { resource_count: all, failed_count: failed, unmet, applied, .. } = *have;
        if let Some(Stop::Cancelled(_)) = have.stop {
            return Some(format!("interrupted after {applied} of {all} resources"));
        }
        let mut reasons = Vec::new();
        if failed > 0 {
            reasons.push(format!("{failed} of {all} resources failed"));
        }
        if unmet > 0 {
            reasons.push(format!("{unmet} of {all} resources had unmet requirements"));
        }
        if have.stop == Some(Stop::Failed) {
            reasons.push("Terminating manifest execution due to failed resource".to_owned());
        }
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }
}
