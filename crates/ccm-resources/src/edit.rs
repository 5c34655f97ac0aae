//! Parts of files that something else owns: lines, blocks, entries.

mod changes;
mod command_line;
mod convert;
mod fights;
mod posix;
mod state;
#[cfg(test)]
mod tests;
mod validate;

use std::fmt;
use std::path::{Path, PathBuf};

use ccm_engine::{
    CommandLine, Context, Declare, Diffs, Ensure, Error, Extent, Findings, ManagedPath, Prediction,
    ProviderDef, ResourceType, Result, Step, Trigger,
};
use ccm_host::Attributes;
use ccm_model::{Common, Data, Stage, Verb};
use ccm_textedit::Comment;
use serde::{Deserialize, Serialize};

use crate::file::WriteMethod;
pub use state::State;

/// The `edit` type.
pub struct Edit;

/// Change a part of a file
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// File to edit; defaults to the name
    #[property(value = "PATH", format = Path, group = "File")]
    pub(crate) path: Option<String>,
    /// Format of the file
    #[property(required, format = OneOf(FORMATS), group = "File")]
    pub(crate) format: String,
    /// With `line`: the line that must be there, or with `absent` must not
    #[property(template = deferred, value = "TEXT", group = "Line")]
    pub(crate) line: Option<String>,
    /// With `line`: regular expression of the line to replace
    #[property(value = "REGEX", group = "Line")]
    pub(crate) r#match: Option<String>,
    /// With `line`: which line to replace if several match; `only` removes the others
    #[property(format = OneOf(&["first", "last", "only"]), group = "Line")]
    pub(crate) which: Option<String>,
    /// With `line`: what to do if no line matches; defaults to `insert`
    #[property(format = OneOf(&["insert", "skip", "error"]), group = "Line")]
    pub(crate) if_missing: Option<String>,
    /// With `block`: the lines between the markers
    #[property(template = deferred, value = "TEXT", group = "Block")]
    pub(crate) block: Option<String>,
    /// With `block`: how the file writes comments; defaults to `#`
    #[property(format = OneOf(COMMENTS), group = "Block")]
    pub(crate) comment: Option<String>,
    /// With `line` and `block`: insert behind the last line that this regular
    /// expression matches, or at `start` or `end`
    #[property(value = "REGEX", conflicts("before"), group = "Line")]
    pub(crate) after: Option<String>,
    /// With `line` and `block`: insert before the first line that this regular
    /// expression matches, or at `start` or `end`
    #[property(value = "REGEX", group = "Line")]
    pub(crate) before: Option<String>,
    /// With structured formats: values by key, merged into the file
    #[property(template = deferred, group = "Entries")]
    pub(crate) set: Option<Data>,
    /// With `json`, `yaml` and `toml`: members that a list must have, by JSON Pointer
    #[property(template = deferred, group = "Entries")]
    pub(crate) add: Option<Data>,
    /// With structured formats: JSON Pointers of entries that must not be there
    #[property(value = "POINTER", group = "Entries")]
    pub(crate) remove: Vec<String>,
    /// With `properties`: who reads the file; defaults to `java`
    #[property(format = OneOf(&["java", "shell"]), group = "Entries")]
    pub(crate) dialect: Option<String>,
    /// With `yaml`: which document of the file, from 0
    #[property(value = "NUMBER", format = Within(0, 999), group = "Entries")]
    pub(crate) document: Option<i32>,
    /// Make the file if it does not exist; needs `owner`, `group` and `mode`
    #[property(group = "File")]
    pub(crate) create: bool,
    /// Owner of a file that is made
    #[property(value = "USER[:GROUP]", format = User, group = "File")]
    pub(crate) owner: Option<String>,
    /// Group of a file that is made
    #[property(format = Group, group = "File")]
    pub(crate) group: Option<String>,
    /// Permissions of a file that is made, in octal, `0777` at most
    #[property(format = Mode, group = "File")]
    pub(crate) mode: Option<String>,
    /// Redact what is written; defaults to `true` for files that are not
    /// world-readable
    #[property(group = "Behavior")]
    pub(crate) secret: Option<bool>,
    /// How to write the file: `replace` it atomically (default), or write `in_place`,
    /// for files that are mount points
    #[property(format = OneOf(&["replace", "in_place"]), group = "Behavior")]
    pub(crate) write: Option<String>,
    /// Command that checks the new content before it is written; `{}` is the path
    /// of a private copy
    #[property(value = "COMMAND", group = "Behavior")]
    pub(crate) validate: Option<String>,
}

/// The formats, as a manifest names them.
const FORMATS: &[&str] = &["line", "block", "ini", "json", "yaml", "toml", "properties"];

/// The comments of markers, as a manifest writes them.
const COMMENTS: &[&str] = &[
    Comment::Hash.as_str(),
    Comment::Semicolon.as_str(),
    Comment::Slashes.as_str(),
    Comment::Dashes.as_str(),
    Comment::Markup.as_str(),
];

impl Properties {
    /// The file as it was written, symlinks not followed.
    fn path(&self) -> &Path {
        Path::new(self.path.as_deref().unwrap_or(&self.common.name))
    }

    fn is_removal(&self) -> bool {
        self.common.ensure == "absent"
    }

    /// Whether the format has keys with values.
    fn is_structured(&self) -> bool {
        !matches!(self.format.as_str(), "line" | "block")
    }

    /// `None` for a word that means nothing.
    fn write_method(&self) -> Option<WriteMethod> {
        match self.write.as_deref() {
            None | Some("replace") => Some(WriteMethod::Replace),
            Some("in_place") => Some(WriteMethod::InPlace),
            Some(_) => None,
        }
    }
}

/// Operations of a provider of edits.
pub trait Provider {
    /// What is in the file, and what the edit would make of it.
    fn observe(&mut self, want: &Properties, cx: &Context<'_>) -> Result<State>;
    /// Makes the edit in what the file holds now.
    fn edit(&mut self, action: &Action) -> Result<()>;
    /// Checks and records what the edit would leave behind.
    fn predict(&mut self, action: &Action) -> Result<()>;
}

/// An action of this type: one edit of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The file, all symlinks followed.
    path: PathBuf,
    /// The resource, for messages about others that want something else.
    name: String,
    edit: ccm_textedit::Edit,
    /// The file is made with these attributes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    create: Option<Attributes>,
    #[serde(default)]
    write: WriteMethod,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    validate: Option<String>,
    /// What noop says of it.
    said: String,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl Declare for Edit {
    type Properties = Properties;

    const NAME: &'static str = "edit";
    const ABOUT: &'static str = "Change a part of a file (manifests: `ccm edit`)";
    const NAME_DOC: &'static str = "Absolute path of the file, unless `path` is set; with `block`, \
         the name in the markers";
    const ENSURE: Ensure = Ensure::OneOf(&["present", "absent"]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);

    fn validate(want: &Properties, stage: Stage, findings: &mut Findings) {
        validate::check(want, stage, findings);
    }

    fn secrets(want: &Properties) -> &'static [&'static str] {
        if want.secret == Some(true) { SECRETS } else { &[] }
    }

    fn can_create(want: &Properties, path: &Path) -> bool {
        want.create && !want.is_removal() && want.path() == path
    }

    fn part_of(want: &Properties) -> Option<&Path> {
        (!want.is_removal()).then(|| want.path())
    }

    fn managed_paths(want: &Properties) -> Vec<ManagedPath> {
        vec![ManagedPath { path: want.path().to_owned(), extent: Extent::Itself }]
    }
}

/// The properties with content of the file.
const SECRETS: &[&str] = &["line", "match", "block", "set", "add"];

impl ResourceType for Edit {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[posix::DEF];

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        on.observe(want, cx)
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        let edited = match &have.found {
            state::Found::Missing(_) if want.is_removal() => return Ok(vec![]),
            state::Found::Missing(None) => {
                return Err(Error::Missing {
                    reason: format!(
                        "{} does not exist; set `create: true` or declare a file",
                        want.path().display()
                    ),
                    hint: None,
                    by: None,
                });
            }
            state::Found::Missing(Some(edited)) | state::Found::File(edited) => edited,
        };
        let edited = edited.as_ref().map_err(refused)?;
        let is_new = have.stat.is_none();
        if edited.changes.is_empty() && !is_new {
            return Ok(vec![]);
        }
        let action = Action {
            path: have.path.clone(),
            name: want.common.name.clone(),
            edit: convert::edit(want).map_err(|(_, reason)| Error::refused(reason))?,
            create: have.create,
            write: want.write_method().unwrap_or_default(),
            validate: want.validate.clone(),
            said: changes::said(want, have, &edited.changes),
        };
        let verb = if is_new { Verb::Created } else { Verb::Updated };
        Ok(vec![Step { verb, changes: changes::of(want, have, &edited.changes), action }])
    }

    fn act(on: &mut Self::Provider, action: &Action, _cx: &mut Context<'_>) -> Result<()> {
        on.edit(action)
    }

    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Action>,
        _cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        on.predict(&step.action)?;
        Ok(Prediction::Exact)
    }

    /// Only the entries that the edit names count: what else changes in the file is
    /// none of its business.
    fn evidence(_on: &mut Self::Provider, want: &Properties, have: &State) -> serde_json::Value {
        have.evidence(want)
    }

    fn places(want: &Properties) -> Vec<&Path> {
        vec![want.path()]
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        have.mismatch(want)
    }

    /// Who may not read the file must not learn from a report what is in it.
    fn hidden(_want: &Properties, have: &State) -> &'static [&'static str] {
        if have.is_secret { SECRETS } else { &[] }
    }

    fn diff(
        _on: &mut Self::Provider,
        _want: &Properties,
        have: &State,
        _steps: &[Step<Action>],
        diffs: Diffs,
        cx: &Context<'_>,
    ) -> Option<String> {
        changes::diff(have, diffs, cx.templates.host())
    }
}

/// A refusal of the text as the failure of a resource.
fn refused(refusal: &ccm_textedit::Refusal) -> Error {
    Error::Refused { reason: refusal.message.clone(), hint: refusal.hint.clone() }
}
