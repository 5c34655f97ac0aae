//! Directories rendered from templates.

mod choria;
mod command_line;
mod compare;
mod glob;
mod languages;
mod post;
mod render;
mod stage;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

use std::fmt;
use std::path::{Path, PathBuf};

use ccm_engine::{
    CommandLine, Context, Diffs, Ensure, Findings, ProviderDef, ResourceType, Result, Trigger,
};
use ccm_model::{Common, Data, Stage};
use serde::{Serialize, Serializer};

use compare::Fate;
use glob::Glob;
use post::Post;

/// The `scaffold` type.
pub struct Scaffold;

/// Render directories of templates
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// Directory of templates, or the URL of a tarball of one
    #[property(required, value = "SOURCE")]
    pub(crate) source: String,
    /// Template language, `jet` or `go`; `jet` when unset
    #[property(template = never, format = OneOf(&["jet", "go"]))]
    pub(crate) engine: Option<String>,
    /// Leave out files that come out empty
    pub(crate) skip_empty: bool,
    /// What opens an action in a template
    #[property(template = never, value = "TEXT")]
    pub(crate) left_delimiter: Option<String>,
    /// What closes an action in a template
    #[property(template = never, value = "TEXT")]
    pub(crate) right_delimiter: Option<String>,
    /// Remove files from the target that the source does not have
    pub(crate) purge: bool,
    /// Data for the templates, in place of the manifest's own
    #[property(template = keys)]
    pub(crate) data: Option<Data>,
    /// Commands to run on rendered files, by patterns of their names
    #[property(value = "PATTERN=COMMAND")]
    pub(crate) post: Vec<Post>,
}

/// A template language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    Jet,
    Go,
}

impl Properties {
    fn target(&self) -> &Path {
        Path::new(&self.common.name)
    }

    fn is_removal(&self) -> bool {
        self.common.ensure == "absent"
    }

    /// Whether the source is a URL, not a directory.
    fn is_fetched(&self) -> bool {
        ccm_host::url_scheme(&self.source).is_some()
    }

    fn language(&self) -> Option<Language> {
        match self.engine.as_deref() {
            None | Some("jet") => Some(Language::Jet),
            Some("go") => Some(Language::Go),
            Some(_) => None,
        }
    }

    fn delimiters(&self, language: Language) -> (&str, &str) {
        match (self.left_delimiter.as_deref(), self.right_delimiter.as_deref(), language) {
            (Some(left), Some(right), _) => (left, right),
            (_, _, Language::Jet) => ("[[", "]]"),
            (_, _, Language::Go) => ("{{", "}}"),
        }
    }
}

/// What a scaffold provider can do.
pub trait Provider {
    /// Renders everything and compares it with what is there.
    fn observe(&mut self, want: &Properties, cx: &mut Context<'_>) -> Result<State>;
    /// Replaces what differs, and removes what is foreign if that is wanted.
    fn render(&mut self, want: &Properties) -> Result<()>;
    /// Removes what would be rendered, and directories that this empties.
    fn remove(&mut self, want: &Properties) -> Result<()>;
    /// What rendering would change in texts.
    fn diff(&mut self, want: &Properties, diffs: Diffs) -> Option<String>;
}

/// What is in the target, compared with what would be rendered.
#[derive(Clone, Debug)]
pub struct State {
    name: String,
    provider: &'static str,
    engine: Language,
    target_exists: bool,
    /// Every file that would be rendered or is there, sorted, with its
    /// absolute path.
    files: Vec<(PathBuf, Fate)>,
    /// Directories that would be made, the target included.
    missing_directories: usize,
}

impl State {
    fn count(&self, wanted: &[Fate]) -> usize {
        self.files.iter().filter(|(_, fate)| wanted.contains(fate)).count()
    }

    fn first(&self, wanted: &[Fate]) -> Option<&Path> {
        self.files.iter().find(|(_, fate)| wanted.contains(fate)).map(|(path, _)| path.as_path())
    }
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &'static str {
        if self.target_exists { "present" } else { "absent" }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Outer<'a> {
            metadata: Metadata<'a>,
        }
        #[derive(Serialize)]
        struct Metadata<'a> {
            name: &'a str,
            provider: &'a str,
            target_exists: bool,
            changed: Vec<String>,
            purged: Vec<String>,
            stable: Vec<String>,
            engine: Language,
        }
        let list = |wanted: &[Fate]| {
            let files = self.files.iter().filter(|(_, fate)| wanted.contains(fate));
            // Of a target that is not there, nothing is known.
            let files = files.filter(|_| self.target_exists);
            files.map(|(path, _)| path.to_string_lossy().into_owned()).collect()
        };
        let metadata = Metadata {
            name: &self.name,
            provider: self.provider,
            target_exists: self.target_exists,
            changed: list(&[Fate::Added, Fate::Updated]),
            purged: list(&[Fate::Foreign]),
            stable: list(&[Fate::Equal]),
            engine: self.engine,
        };
        Outer { metadata }.serialize(to)
    }
}

/// A step towards the desired state, with the number of files it concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write what differs, remove what is foreign if that is wanted.
    Render(usize),
    /// Remove what would be rendered.
    Remove(usize),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Render(count) => write!(f, "Would have changed {count} scaffold files"),
            Self::Remove(count) => write!(f, "Would have removed {count} scaffold files"),
        }
    }
}

impl ResourceType for Scaffold {
    type Properties = Properties;
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const NAME: &'static str = "scaffold";
    const ABOUT: &'static str = "Render directories of templates";
    const ENSURE: Ensure = Ensure::OneOf(&["present", "absent"]);
    const PROVIDERS: &'static [ProviderDef<Self>] = &[choria::DEF];
    const COMMAND_LINE: CommandLine = command_line::VIEW;

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        if !want.common.name.is_empty() {
            findings.check_path("name", &want.common.name);
        }
        if want.common.name == "/" {
            findings.add("name", "the root directory cannot be a target");
        }
        if want.source.trim().is_empty() {
            findings.add("source", "cannot be empty");
        } else if want.source.contains('\0') {
            findings.add("source", "is not a path");
        } else if want.is_fetched() {
            findings.check_url("source", &want.source);
        }
        if want.language().is_none() {
            let engine = want.engine.as_deref().unwrap_or_default();
            let message = format!("unknown scaffold engine `{engine}`");
            findings.add_with_hint("engine", message, "it is jet or go");
        }
        let delimiters =
            [("left_delimiter", &want.left_delimiter), ("right_delimiter", &want.right_delimiter)];
        match delimiters {
            [(_, None), (given, Some(_))] | [(given, Some(_)), (_, None)] => {
                findings.add(given, "both left_delimiter and right_delimiter must be set");
            }
            _ => {}
        }
        for (property, delimiter) in delimiters {
            if delimiter.as_deref().is_some_and(|text| text.trim().is_empty()) {
                findings.add(property, "cannot be empty");
            }
        }
        for (pattern, command) in want.post.iter().flat_map(Post::entries) {
            if pattern.is_empty() {
                findings.add("post", "a pattern cannot be empty");
            } else if let Err(reason) = Glob::parse(pattern) {
                findings.add("post", format!("the pattern `{pattern}` is wrong: {reason}"));
            }
            match ccm_model::shellquote::split(command) {
                Ok(words) if words.is_empty() => {
                    findings.add("post", format!("the command for `{pattern}` is empty"));
                }
                Ok(_) => {}
                Err(error) => findings.add("post", format!("`{command}`: {error}")),
            }
        }
    }

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        on.observe(want, cx)
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Action>> {
        let foreign = if want.purge { have.count(&[Fate::Foreign]) } else { 0 };
        if want.is_removal() {
            let managed = have.count(&[Fate::Updated, Fate::Equal]);
            return Ok(if managed == 0 { vec![] } else { vec![Action::Remove(managed + foreign)] });
        }
        let files = have.count(&[Fate::Added, Fate::Updated]) + foreign;
        Ok(match (files, have.missing_directories) {
            (0, 0) => vec![],
            // Nothing but empty directories.
            (0, directories) => vec![Action::Render(directories)],
            (files, _) => vec![Action::Render(files)],
        })
    }

    fn act(
        on: &mut Self::Provider,
        want: &Properties,
        step: &Action,
        _cx: &mut Context<'_>,
    ) -> Result<()> {
        match step {
            Action::Render(_) => on.render(want),
            Action::Remove(_) => on.remove(want),
        }
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        if want.is_removal() {
            let left = have.first(&[Fate::Updated, Fate::Equal])?;
            return Some(format!("{} is still there", left.display()));
        }
        if !have.target_exists {
            return Some("the target is not there".to_owned());
        }
        if let Some(path) = have.first(&[Fate::Added, Fate::Updated]) {
            return Some(format!("{} is not as it was rendered", path.display()));
        }
        let foreign = have.first(&[Fate::Foreign]).filter(|_| want.purge)?;
        Some(format!("{} should have been purged", foreign.display()))
    }

    fn diff(
        on: &mut Self::Provider,
        want: &Properties,
        _have: &State,
        plan: &[Action],
        diffs: Diffs,
        _cx: &Context<'_>,
    ) -> Option<String> {
        matches!(plan, [Action::Render(_)]).then(|| on.diff(want, diffs)).flatten()
    }
}
