//! Directories rendered from templates.

mod choria;
mod command_line;
mod compare;
mod glob;
mod languages;
mod post;
mod predicted;
mod preview;
mod render;
mod stage;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

use std::fmt;
use std::path::{Path, PathBuf};

use ccm_engine::{
    CommandLine, Context, Declare, Diffs, Ensure, Extent, Findings, ManagedPath, ONLY_IN_THE_RUN,
    Prediction, ProviderDef, ResourceType, Result, Step, Trigger,
};
use ccm_model::{Change, Common, Data, Stage, Verb};
use ccm_template::Resolver;
use serde::{Deserialize, Serialize, Serializer};

use crate::file::validate;
use compare::FileStatus;
use glob::Glob;
use post::Post;
use render::{RenderedFile, Rules};

pub use preview::{Preview, preview};

/// The `scaffold` type.
pub struct Scaffold;

/// Render directories of templates
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// Directory of templates, or URL of a tarball with templates
    #[property(required, value = "SOURCE", format = Path, group = "Templates")]
    pub(crate) source: String,
    /// Template language: `jet` (default) or `go`
    #[property(template = never, format = OneOf(&["jet", "go"]), group = "Templates")]
    pub(crate) engine: Option<String>,
    /// Skip files that render empty
    #[property(group = "Result")]
    pub(crate) skip_empty: bool,
    /// Opening delimiter of actions in templates
    #[property(template = never, value = "TEXT", group = "Templates")]
    pub(crate) left_delimiter: Option<String>,
    /// Closing delimiter of actions in templates
    #[property(template = never, value = "TEXT", group = "Templates")]
    pub(crate) right_delimiter: Option<String>,
    /// Remove files from the target that the source does not have and no other
    /// resource declares
    #[property(group = "Result")]
    pub(crate) purge: bool,
    /// Data for the templates; replaces the manifest's data
    #[property(template = keys, group = "Templates")]
    pub(crate) data: Option<Data>,
    /// Commands to run on rendered files whose names match a pattern
    #[property(value = "PATTERN=COMMAND", group = "Result")]
    pub(crate) post: Vec<Post>,
    /// Command that checks each rendered file that changes before any file is
    /// written; `{}` is the path of a private copy
    #[property(value = "COMMAND", group = "Result")]
    pub(crate) validate: Option<String>,
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

    /// How its templates are rendered.
    fn rules(&self) -> Rules<'_> {
        let language = self.language().unwrap_or(Language::Jet);
        Rules {
            language,
            delimiters: self.delimiters(language),
            skip_empty: self.skip_empty,
            is_downloaded: self.is_fetched(),
        }
    }

    fn delimiters(&self, language: Language) -> (&str, &str) {
        let (left, right) = match language {
            Language::Jet => ("[[", "]]"),
            Language::Go => ("{{", "}}"),
        };
        (
            self.left_delimiter.as_deref().unwrap_or(left),
            self.right_delimiter.as_deref().unwrap_or(right),
        )
    }
}

/// Operations of a scaffold provider.
pub trait Provider {
    /// Renders everything and compares it with what is there.
    fn observe(&mut self, want: &Properties, cx: &mut Context<'_>) -> Result<State>;
    /// Runs the command of a step on a private copy of each file that it writes;
    /// fails if one of them does.
    fn validate(&mut self, render: &Render) -> Result<()>;
    /// Makes directories, writes files and removes others.
    fn render(&mut self, render: &Render) -> Result<()>;
    /// Removes files, and directories that this empties.
    fn remove(&mut self, remove: &Remove) -> Result<()>;
    /// The digest of a file, if it can be read.
    fn digest(&mut self, path: &Path) -> Option<String>;
    /// Whether a preview can tell what else is in a directory.
    fn is_settled(&self, directory: &Path) -> bool;
    /// Records what rendering would leave behind.
    fn predict_render(&mut self, render: &Render) -> Result<()>;
    /// Records what a removal would leave behind.
    fn predict_removal(&mut self, remove: &Remove) -> Result<()>;
    /// What rendering would change in texts.
    fn diff(&mut self, render: &Render, diffs: Diffs) -> Option<String>;
}

/// Files in the target, compared with the rendered files.
#[derive(Clone, Debug)]
pub struct State {
    name: String,
    provider: &'static str,
    engine: Language,
    target_exists: bool,
    /// Every file that would be rendered or is there, sorted.
    files: Vec<FileState>,
    /// Directories that would be made, each before what is in it.
    missing_directories: Vec<PathBuf>,
}

/// One file of a target.
#[derive(Clone, Debug)]
struct FileState {
    /// Where it is in the target.
    place: PathBuf,
    status: FileStatus,
    /// Desired content, if the scaffold contains the file.
    rendered: Option<RenderedFile>,
}

impl State {
    fn having<'a>(&'a self, wanted: &'a [FileStatus]) -> impl Iterator<Item = &'a FileState> {
        self.files.iter().filter(|file| wanted.contains(&file.status))
    }

    fn paths(&self, wanted: &[FileStatus]) -> Vec<String> {
        let path = |file: &FileState| self.path(file).to_string_lossy().into_owned();
        self.having(wanted).map(path).collect()
    }

    fn places(&self, wanted: &[FileStatus]) -> Vec<PathBuf> {
        self.having(wanted).map(|file| file.place.clone()).collect()
    }

    fn path(&self, file: &FileState) -> PathBuf {
        Path::new(&self.name).join(&file.place)
    }

    fn first(&self, wanted: &[FileStatus]) -> Option<PathBuf> {
        self.having(wanted).next().map(|file| self.path(file))
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
            #[serde(skip_serializing_if = "Vec::is_empty")]
            uncompared: Vec<String>,
            engine: Language,
        }
        // Of a target that is not there, nothing is known.
        let list = |wanted: &[FileStatus]| {
            if self.target_exists { self.paths(wanted) } else { Vec::new() }
        };
        let metadata = Metadata {
            name: &self.name,
            provider: self.provider,
            target_exists: self.target_exists,
            changed: list(&[FileStatus::Added, FileStatus::Updated]),
            purged: list(&[FileStatus::Foreign]),
            stable: list(&[FileStatus::Equal]),
            uncompared: list(&[FileStatus::Uncompared]),
            engine: self.engine,
        };
        Outer { metadata }.serialize(to)
    }
}

/// Files to write and remove in a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Render {
    target: PathBuf,
    /// Whether the target itself is to be made.
    is_new: bool,
    /// Directories to make, each before what is in it.
    directories: Vec<PathBuf>,
    /// Files to write.
    write: Vec<(PathBuf, RenderedFile)>,
    /// Files to remove.
    remove: Vec<PathBuf>,
    /// Command that checks the files first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    validate: Option<String>,
}

/// Files to remove from a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remove {
    target: PathBuf,
    /// Files of the scaffold.
    files: Vec<PathBuf>,
    /// Files that are in the target beside them and are counted with them.
    foreign: usize,
}

/// An action of this type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Write what differs, remove what is foreign if that is wanted.
    Render(Render),
    /// Remove what would be rendered.
    Remove(Remove),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Render(render) => {
                let count = match render.write.len() + render.remove.len() {
                    // Nothing but empty directories.
                    0 => render.directories.len() + usize::from(render.is_new),
                    files => files,
                };
                write!(f, "Would have changed {count} scaffold files")
            }
            Self::Remove(remove) => {
                let count = remove.files.len() + remove.foreign;
                write!(f, "Would have removed {count} scaffold files")
            }
        }
    }
}

impl Declare for Scaffold {
    type Properties = Properties;

    const NAME: &'static str = "scaffold";
    const ABOUT: &'static str = "Render directories of templates";
    const NAME_DOC: &'static str = "Absolute path of the target directory";
    const ENSURE: Ensure = Ensure::OneOf(&["present", "absent"]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);

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
            findings.add_with_hint("engine", message, "allowed: jet, go");
        }
        let delimiters =
            [("left_delimiter", &want.left_delimiter), ("right_delimiter", &want.right_delimiter)];
        for (property, delimiter) in delimiters {
            if delimiter.as_deref().is_some_and(|text| text.trim().is_empty()) {
                findings.add(property, "cannot be empty");
            }
        }
        if let Some(command) = &want.validate {
            validate::check(command, findings);
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

    fn source(want: &Properties) -> Option<&str> {
        let is_read = !want.is_fetched() && !want.is_removal();
        is_read.then_some(want.source.as_str())
    }

    fn check_source(want: &Properties, templates: &Resolver, path: &Path) -> Vec<String> {
        let own = want.data.as_ref().filter(|data| !data.0.is_empty());
        let own = own.map(|data| templates.with_data(data.0.clone()));
        render::check(templates.host(), path, want.rules(), own.as_ref().unwrap_or(templates))
    }

    fn can_create(want: &Properties, path: &Path) -> bool {
        want.common.ensure == "present" && path.starts_with(&want.common.name)
    }

    fn managed_paths(want: &Properties) -> Vec<ManagedPath> {
        vec![ManagedPath { path: want.target().to_owned(), extent: Extent::Tree }]
    }

    fn purges(want: &Properties) -> bool {
        want.purge
    }
}

impl ResourceType for Scaffold {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[choria::DEF];

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        on.observe(want, cx)
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        use FileStatus::{Added, Equal, Foreign, Uncompared, Updated};
        let target = want.target().to_owned();
        let foreign: &[FileStatus] = if want.purge { &[Foreign] } else { &[] };
        let list = |property, wanted: &[FileStatus]| {
            let paths = have.paths(wanted);
            (!paths.is_empty()).then_some((property, paths))
        };
        if want.is_removal() {
            let files = have.places(&[Updated, Equal, Uncompared]);
            if files.is_empty() {
                return Ok(vec![]);
            }
            let foreign = have.having(foreign).count();
            let removed = list("removed", &[Updated, Equal, Uncompared]);
            let action = Action::Remove(Remove { target, files, foreign });
            let mut step = Step::new(Verb::Removed, action);
            step.changes.extend(removed.map(|(property, paths)| Change::of(property).from(paths)));
            return Ok(vec![step]);
        }
        let write = have
            .having(&[Added, Updated])
            .filter_map(|file| Some((file.place.clone(), file.rendered.clone()?)));
        let render = Render {
            target,
            is_new: !have.target_exists,
            directories: have.missing_directories.clone(),
            write: write.collect(),
            remove: have.places(foreign),
            validate: want.validate.clone(),
        };
        let is_stable = render.write.is_empty()
            && render.remove.is_empty()
            && render.directories.is_empty()
            && !render.is_new;
        if is_stable {
            return Ok(vec![]);
        }
        let mut step = Step::new(Verb::Rendered, Action::Render(render));
        if !have.target_exists {
            step = step.change(Change::of("ensure").from("absent").to("present"));
        }
        for (property, paths) in
            [list("added", &[Added]), list("updated", &[Updated])].into_iter().flatten()
        {
            step = step.change(Change::of(property).to(paths));
        }
        if let Some((property, paths)) = list("removed", foreign) {
            step = step.change(Change::of(property).from(paths));
        }
        Ok(vec![step])
    }

    fn act(on: &mut Self::Provider, action: &Action, _cx: &mut Context<'_>) -> Result<()> {
        match action {
            Action::Render(render) => {
                on.validate(render)?;
                on.render(render)
            }
            Action::Remove(remove) => on.remove(remove),
        }
    }

    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Action>,
        _cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        match &step.action {
            Action::Render(render) => {
                on.validate(render)?;
                on.predict_render(render)?;
            }
            Action::Remove(remove) => on.predict_removal(remove)?,
        }
        Ok(Prediction::Exact)
    }

    fn places(want: &Properties) -> Vec<&Path> {
        vec![want.target()]
    }

    /// What would be overwritten or purged counts with its content. What else is
    /// in the target counts as far as a preview can tell.
    fn evidence(on: &mut Self::Provider, want: &Properties, have: &State) -> serde_json::Value {
        let mut have = have.clone();
        let mut foreign = serde_json::Value::Null;
        if !want.purge {
            let others = have.paths(&[FileStatus::Foreign]);
            let is_settled = on.is_settled(want.target());
            foreign = if is_settled { others.into() } else { ONLY_IN_THE_RUN.into() };
            have.files.retain(|file| file.status != FileStatus::Foreign);
        }
        let mut evidence = serde_json::to_value(&have).unwrap_or_default();
        let at_stake = have.having(&[FileStatus::Updated, FileStatus::Foreign]);
        let digests = at_stake.filter_map(|file| {
            let path = have.path(file);
            let digest = on.digest(&path)?;
            Some((path.to_string_lossy().into_owned(), digest.into()))
        });
        if let Some(evidence) = evidence.as_object_mut() {
            evidence.insert("content".to_owned(), serde_json::Value::Object(digests.collect()));
            evidence.insert("foreign".to_owned(), foreign);
        }
        evidence
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        if want.is_removal() {
            let left = have.first(&[FileStatus::Updated, FileStatus::Equal])?;
            return Some(format!("{} still exists", left.display()));
        }
        if !have.target_exists {
            return Some("the target does not exist".to_owned());
        }
        if let Some(path) = have.first(&[FileStatus::Added, FileStatus::Updated]) {
            return Some(format!("{} differs from what was rendered", path.display()));
        }
        let foreign = have.first(&[FileStatus::Foreign]).filter(|_| want.purge)?;
        Some(format!("{} should have been purged", foreign.display()))
    }

    fn diff(
        on: &mut Self::Provider,
        _want: &Properties,
        _have: &State,
        steps: &[Step<Action>],
        diffs: Diffs,
        _cx: &Context<'_>,
    ) -> Option<String> {
        match &steps.first()?.action {
            Action::Render(render) => on.diff(render, diffs),
            Action::Remove(_) => None,
        }
    }
}
