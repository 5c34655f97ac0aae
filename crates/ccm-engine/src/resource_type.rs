//! The traits that a resource type implements.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_host::Host;
use ccm_model::{Change, Verb};
use ccm_state::Extractions;
use ccm_state::history::Former;
use ccm_template::Resolver;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Result;
use crate::decision_log::DecisionPolicy;
use crate::declare::Declare;
use crate::declared::DeclaredPaths;
use crate::step::Step;

/// A resource type: how to observe a resource, decide on steps, and take them.
/// A type does no I/O; its providers do.
pub trait ResourceType: Declare {
    /// What can be found.
    type State: State + 'static;
    /// What can be done; prints as what noop says of it.
    type Action: Clone
        + fmt::Debug
        + fmt::Display
        + PartialEq
        + Serialize
        + DeserializeOwned
        + 'static;
    /// What its providers can do.
    type Provider: ?Sized;

    /// Its providers.
    const PROVIDERS: &'static [ProviderDef<Self>];

    /// How steps of adjacent resources are taken together, if they can be.
    const TOGETHER: Option<Together<Self>> = None;

    /// Makes ready what asking and acting rest on. Not called in a preview, as
    /// that is to leave the machine alone.
    fn prepare(_on: &mut Self::Provider) -> Result<()> {
        Ok(())
    }

    /// Asks the machine.
    fn observe(
        on: &mut Self::Provider,
        want: &Self::Properties,
        cx: &mut Context<'_>,
    ) -> Result<Self::State>;

    /// Pure: the steps from `have` to `want`; none means stable.
    fn decide(
        want: &Self::Properties,
        have: &Self::State,
        why: Trigger,
    ) -> Result<Vec<Step<Self::Action>>>;

    /// Does what a step says, and nothing that it does not say.
    fn act(on: &mut Self::Provider, action: &Self::Action, cx: &mut Context<'_>) -> Result<()>;

    /// In a preview, instead of acting: records on the provider's host what the
    /// step would leave behind, and fails where acting would fail for a reason
    /// that can be seen now. May complete the changes with what only the machine
    /// knows. Changes nothing.
    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Self::Action>,
        cx: &mut Context<'_>,
    ) -> Result<Prediction>;

    /// For the history: what a state was, beside files, which the host records
    /// by itself.
    fn former(_want: &Self::Properties, _have: &Self::State) -> Former {
        Former::Files
    }

    /// For `undo --refresh`: the properties of a request that makes a resource
    /// react to what is restored, from its former state and from what the run did
    /// to it. `None` if it need not react, or if that may do harm.
    fn reaction(_former: &Value, _verbs: &[Verb]) -> Option<Value> {
        None
    }

    /// For saved plans: everything about the observed state that must still be so
    /// when the plan is applied. What a preview cannot know is
    /// [`ONLY_IN_THE_RUN`](crate::ONLY_IN_THE_RUN).
    fn evidence(
        _on: &mut Self::Provider,
        _want: &Self::Properties,
        have: &Self::State,
    ) -> serde_json::Value {
        serde_json::to_value(have).unwrap_or_default()
    }

    /// For saved plans: the paths that the resource manages or works in. Symlinks
    /// on the way to them must lead to where they led.
    fn places(_want: &Self::Properties) -> Vec<&Path> {
        Vec::new()
    }

    /// Whether a step is what a change elsewhere has triggered.
    fn is_refresh(_step: &Step<Self::Action>) -> bool {
        true
    }

    /// What the run leaves to the first boot, of what would be done otherwise.
    fn deferred(_want: &Self::Properties, _have: &Self::State, _why: Trigger) -> Vec<String> {
        Vec::new()
    }

    /// After acting: which attribute is not as wanted, what it is, and what it
    /// should be.
    fn mismatch(want: &Self::Properties, have: &Self::State) -> Option<String>;

    /// After acting: whether that made a difference. Only what has to act to
    /// find out can say no.
    fn has_changed(_before: &Self::State, _after: &Self::State) -> bool {
        true
    }

    /// After acting: puts into the changes what only the machine could know.
    fn complete(_changes: &mut [Change], _after: &Self::State) {}

    /// What noop says of a step.
    fn describe(step: &Step<Self::Action>) -> String {
        step.action.to_string()
    }

    /// The properties that events show redacted because of what was there, beside
    /// those that [`Declare::secrets`] names.
    fn hidden(_want: &Self::Properties, _have: &Self::State) -> &'static [&'static str] {
        &[]
    }

    /// What the steps would change in a text, as a unified diff.
    fn diff(
        _on: &mut Self::Provider,
        _want: &Self::Properties,
        _have: &Self::State,
        _steps: &[Step<Self::Action>],
        _diffs: Diffs,
        _cx: &Context<'_>,
    ) -> Option<String> {
        None
    }
}

/// The current state; serializes to the fields that the type adds to a status.
pub trait State: fmt::Debug + Serialize {
    /// The state in the words of `ensure`.
    fn ensure(&self) -> &str;

    /// How often something was tried, for types that try more than once.
    fn tries(&self) -> Option<u32> {
        None
    }
}

/// One provider of a type.
pub struct ProviderDef<T: ResourceType> {
    /// Its name.
    pub name: &'static str,
    /// Whether it can manage this resource on this machine; ccm chooses the lowest rank.
    pub rank: fn(&Host, &T::Properties) -> Option<u32>,
    /// Makes one, for one resource.
    pub open: fn(&Host) -> Box<T::Provider>,
}

impl<T: ResourceType> fmt::Debug for ProviderDef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// How steps of adjacent resources are taken together, in one command instead of
/// one for each.
pub struct Together<T: ResourceType> {
    /// Steps with the same word can be taken together; those without one only at
    /// the turn of their resource.
    pub kind: fn(&T::Action) -> Option<&'static str>,
    /// Reads the states of the resources of these names at once. `observe` uses them
    /// until something may have changed them.
    pub survey: fn(&mut T::Provider, &[&str]) -> Result<()>,
    /// Takes the steps, and nothing else. Where it fails, the engine looks at each
    /// resource and goes on one by one.
    pub act: ActTogether<T>,
    /// In a preview, before the turn of the first resource: finds out at once what
    /// `predict` then says of each. Where it fails, `predict` finds out by itself.
    pub predict: ActTogether<T>,
}

/// Takes or predicts the steps of several resources.
pub type ActTogether<T> = fn(
    &mut <T as ResourceType>::Provider,
    &[&<T as ResourceType>::Action],
    &mut Context<'_>,
) -> Result<()>;

impl<T: ResourceType> fmt::Debug for Together<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::NAME)
    }
}

/// How far a preview can tell what a step leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Exactly as recorded.
    Exact,
    /// It may change more than that: other files, users, programs.
    Open,
    /// The same, by what packages bring.
    Packages,
    /// It brings files of which only the run can tell, below what is recorded.
    Files,
    /// The step would change nothing.
    Nothing,
}

/// Why a resource is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The resource is applied in the order written.
    Turn,
    /// Something that it subscribes to has changed.
    Refresh,
}

/// In a preview: a trigger of which only the run can tell whether it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The resource after which it is known.
    pub by: Arc<str>,
    /// It comes as things are now.
    pub is_now: bool,
}

/// How much detail of a state the caller needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Only what decides.
    #[default]
    Decide,
    /// That, and before and after of what changes.
    Changes,
    /// The whole of what is managed.
    Report,
    /// Everything that can be known.
    Inspect,
}

/// Which diffs are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Diffs {
    /// None.
    #[default]
    None,
    /// Those of files that everybody may read.
    Public,
    /// All of them.
    All,
}

/// Records changes, before and after they are made.
pub trait ChangeRecorder {
    /// Something is about to change that was this before.
    ///
    /// # Errors
    ///
    /// An error keeps it from being changed.
    fn before(&mut self, former: Former) -> Result<()>;
    /// It has changed, and is this now.
    fn after(&mut self, now: Former);
}

/// A recorder that records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecorder;

impl ChangeRecorder for NoRecorder {
    fn before(&mut self, _former: Former) -> Result<()> {
        Ok(())
    }

    fn after(&mut self, _now: Former) {}
}

/// The context of a provider while it manages one resource.
pub struct Context<'a> {
    /// Where relative paths begin.
    pub working_directory: &'a Path,
    /// Resolver for templates.
    pub templates: &'a Resolver,
    /// Why the resource is applied.
    pub trigger: Trigger,
    /// In a preview: the resource after which is known whether there is such a
    /// trigger, where that is not known yet.
    pub awaited: Option<&'a Awaited>,
    /// In a preview, set by `observe`: the resource that may change the answer.
    /// What is decided then holds now, and the resource is provisional.
    pub unsettled: Option<Arc<str>>,
    /// In a preview: run no commands on staged copies, and put into `at_apply` the
    /// paths whose content they decide.
    pub skips_post: bool,
    /// In a preview, set by `observe`: paths of which only the run knows the content.
    pub at_apply: Vec<PathBuf>,
    /// For a resource that purges: what the manifests of the run declare.
    pub declared: &'a DeclaredPaths,
    /// How much of the state will be read.
    pub detail: Detail,
    /// Services are left to the first boot.
    pub offline: bool,
    /// Sees what was decided before anything is done, if anyone wants to know.
    pub decisions: &'a DecisionPolicy,
    /// Key of the resource in the decision log; empty if decisions are not recorded.
    pub key: &'a str,
    /// What earlier runs have extracted; `None` without a state directory.
    pub extractions: Option<&'a Extractions>,
    /// Told of changes.
    pub recorder: &'a mut dyn ChangeRecorder,
    /// Takes lines of output while they arrive.
    pub output: &'a mut dyn FnMut(&str),
}
