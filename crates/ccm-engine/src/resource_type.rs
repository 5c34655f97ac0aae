//! What a resource type implements.

use std::fmt;
use std::path::Path;

use ccm_host::{Fetchers, Host};
use ccm_model::{Properties, ResourceRef, Stage};
use ccm_template::Engine;
use serde::Serialize;

use crate::cli::CommandLine;
use crate::nested::{Child, Nested};
use crate::{Error, Result};

/// A type of resources: what can be wanted, how the machine is asked, and what
/// is to be done about the difference. It never touches the machine itself;
/// its providers do.
pub trait ResourceType: Sized + 'static {
    /// What can be wanted.
    type Properties: Properties;
    /// What can be found.
    type State: State;
    /// A step from one to the other; prints as what noop says of it.
    type Action: fmt::Display;
    /// What its providers can do.
    type Provider: ?Sized;

    /// Its name in manifests.
    const NAME: &'static str;
    /// What it is for, one line.
    const ABOUT: &'static str;
    /// The states that can be asked for.
    const ENSURE: Ensure;
    /// Its providers.
    const PROVIDERS: &'static [ProviderDef<Self>];
    /// How it looks at the command line.
    const COMMAND_LINE: CommandLine;
    /// Why `ccm status` cannot show one, where it cannot.
    const NO_STATUS: Option<&'static str> = None;

    /// Whether its resources bring resources of their own, which others may
    /// then refer to. Their step is a run, which keeps to noop by itself.
    const NESTS: bool = false;

    /// Finds what the field table cannot know to be wrong. At
    /// [`Stage::Parse`] deferred properties may still hold templates.
    fn validate(want: &Self::Properties, stage: Stage, findings: &mut Findings);

    /// Takes note of what the properties of the first phase say about those of
    /// the second.
    fn settle(_want: &mut Self::Properties) {}

    /// The properties that are secret in this resource, beside those that always
    /// are. Events, reports and rendered manifests show them redacted.
    fn secrets(_want: &Self::Properties) -> &'static [&'static str] {
        &[]
    }

    /// The resources whose change this one reacts to.
    fn subscribe(_want: &Self::Properties) -> &[ResourceRef] {
        &[]
    }

    /// The manifest that a resource brings, if it does.
    fn child(_want: &Self::Properties) -> Option<Child<'_>> {
        None
    }

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
    ) -> Result<Vec<Self::Action>>;

    /// Takes one step.
    fn act(
        on: &mut Self::Provider,
        want: &Self::Properties,
        step: &Self::Action,
        cx: &mut Context<'_>,
    ) -> Result<()>;

    /// Whether a step is what a change elsewhere has triggered.
    fn is_refresh(_step: &Self::Action) -> bool {
        true
    }

    /// After acting: which attribute is not as wanted, what it is, and what it
    /// should be.
    fn mismatch(want: &Self::Properties, have: &Self::State) -> Option<String>;

    /// After acting: whether that made a difference. Only what has to act to
    /// find out can say no.
    fn has_changed(_before: &Self::State, _after: &Self::State) -> bool {
        true
    }

    /// What noop says of a plan.
    fn describe(plan: &[Self::Action]) -> String {
        let steps: Vec<String> = plan.iter().map(ToString::to_string).collect();
        steps.join(". ")
    }

    /// What a plan would change in a text, as a unified diff.
    fn diff(
        _on: &mut Self::Provider,
        _want: &Self::Properties,
        _have: &Self::State,
        _plan: &[Self::Action],
        _diffs: Diffs,
        _cx: &Context<'_>,
    ) -> Option<String> {
        None
    }
}

/// What was found on the machine; serialises to the fields that its type adds
/// to the common ones of a status.
pub trait State: fmt::Debug + Serialize {
    /// The state in the words of `ensure`.
    fn ensure(&self) -> &str;
}

/// The states that a type can be asked for.
#[derive(Clone, Copy, Debug)]
pub enum Ensure {
    /// These, the first when none is given.
    OneOf(&'static [&'static str]),
    /// Any text, this when none is given.
    Any(&'static str),
}

impl Ensure {
    /// The state when none is given.
    pub fn default(self) -> &'static str {
        match self {
            Self::OneOf(words) => words.first().copied().unwrap_or_default(),
            Self::Any(word) => word,
        }
    }
}

/// One provider of a type.
pub struct ProviderDef<T: ResourceType> {
    /// Its name.
    pub name: &'static str,
    /// Whether it can manage this resource on this host; the lowest rank wins.
    pub rank: fn(&Host, &T::Properties) -> Option<u32>,
    /// Makes one, for one resource.
    pub open: fn(&Host) -> Box<T::Provider>,
}

impl<T: ResourceType> fmt::Debug for ProviderDef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Why a resource is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// It is its turn.
    Turn,
    /// Something that it subscribes to has changed.
    Refresh,
}

/// How much of a state someone will read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Only what decides.
    Decide,
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

/// What a provider may use while it works on one resource.
pub struct Context<'a> {
    /// Where relative paths begin.
    pub working_directory: &'a Path,
    /// What templates see and call.
    pub templates: &'a Engine,
    /// Why the resource is applied.
    pub trigger: Trigger,
    /// How much of the state will be read.
    pub detail: Detail,
    /// Takes lines of output while they arrive.
    pub output: &'a mut dyn FnMut(&str),
    /// Applies manifests within the run.
    pub nested: &'a mut dyn Nested,
}

/// Collects what is wrong with properties.
#[derive(Debug, Default)]
pub struct Findings {
    fetchers: Fetchers,
    found: Vec<PropertyFinding>,
}

#[derive(Debug)]
pub(crate) struct PropertyFinding {
    pub(crate) property: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Findings {
    /// Nothing is wrong yet. URLs are checked against what this host can fetch.
    pub(crate) fn new(host: &Host) -> Self {
        Self { fetchers: host.fetchers().clone(), found: Vec::new() }
    }

    /// Something is wrong with a property.
    pub fn add(&mut self, property: &'static str, message: impl Into<String>) {
        self.found.push(PropertyFinding { property, message: message.into(), hint: None });
    }

    /// Something is wrong with a property, and this helps.
    pub fn add_with_hint(
        &mut self,
        property: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let hint = Some(hint.into());
        self.found.push(PropertyFinding { property, message: message.into(), hint });
    }

    /// A path must be absolute, and written without detours.
    pub fn check_path(&mut self, property: &'static str, path: &str) {
        if !path.starts_with('/') {
            self.add(property, format!("path must be absolute, `{path}` is not"));
        } else if path.contains('\0') {
            self.add(property, "a path cannot contain a NUL character");
        } else if let Some(clean) = clean(path) {
            let message = "path must be clean: without `.`, `..`, `//` or a trailing `/`";
            self.add_with_hint(property, message, format!("write it as `{clean}`"));
        }
    }

    /// A URL must be one that can be fetched. Returns whether it is.
    pub fn check_url(&mut self, property: &'static str, url: &str) -> bool {
        let Err(error) = self.fetchers.check(url) else { return true };
        let hint = error.hint();
        let message = match error {
            ccm_host::Error::Fetch { reason, .. } => reason,
            error => error.to_string(),
        };
        self.found.push(PropertyFinding { property, message, hint });
        false
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(crate) fn into_inner(self) -> Vec<PropertyFinding> {
        self.found
    }

    /// The first finding as a resource's failure.
    pub(crate) fn into_result(self) -> Result<()> {
        match self.found.into_iter().next() {
            Some(PropertyFinding { property, message, .. }) => {
                Err(Error::Invalid { property: property.to_owned(), message })
            }
            None => Ok(()),
        }
    }
}

/// An absolute path without detours, if it has any.
fn clean(path: &str) -> Option<String> {
    let is_detour = |part: &str| matches!(part, "" | "." | "..");
    if path == "/" || !path[1..].split('/').any(is_detour) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detours_are_found_and_removed() {
        for (path, wanted) in [
            ("/", None),
            ("/a/b", None),
            ("/a/b.c..d", None),
            ("/a/", Some("/a")),
            ("//a", Some("/a")),
            ("/a/./b", Some("/a/b")),
            ("/a/../b", Some("/b")),
            ("/../..", Some("/")),
        ] {
            assert_eq!(clean(path).as_deref(), wanted, "{path}");
        }
    }
}
