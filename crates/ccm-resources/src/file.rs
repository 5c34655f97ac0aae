//! Files, directories and symlinks: existence, content, owner, group and mode.

mod changes;
mod command_line;
mod copy;
mod diff;
mod link;
pub(crate) mod mode;
mod posix;
#[cfg(test)]
mod tests;
pub(crate) mod validate;

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_engine::{
    CommandLine, Context, Declare, Diffs, Ensure, Error, Extent, Findings, ManagedPath, Prediction,
    ProviderDef, ResourceType, Result, Step, Trigger,
};
use ccm_host::{Attributes, Digest, FileKind, Stat};
use ccm_model::{Change, Common, Properties as _, Stage, Verb};
use ccm_template::Resolver;
use serde::{Deserialize, Serialize, Serializer};

use copy::CopyState;
pub use copy::{Copy, Member};

/// The `file` type.
pub struct File;

/// Manage files, directories and symlinks
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// Desired content; if omitted, ccm does not manage the content
    #[property(
        template = deferred,
        alias = "contents",
        value = "TEXT",
        conflicts("source"),
        group = "Content"
    )]
    pub(crate) content: Option<String>,
    /// Local file to copy, or with `directory` the directory to copy, relative to
    /// the manifest
    #[property(template = deferred, value = "FILE", format = Path, group = "Content")]
    pub(crate) source: Option<String>,
    /// With `directory` and `source`, remove what the source does not have and no
    /// other resource declares
    #[property(group = "Content")]
    pub(crate) purge: bool,
    /// With `purge`, let an empty source empty the directory
    #[property(group = "Content")]
    pub(crate) allow_empty: bool,
    /// Text of the symlink: the path that it points to; only with `link`
    #[property(value = "PATH", format = Path, group = "Content")]
    pub(crate) target: Option<String>,
    /// Owner, as user name or ID
    #[property(
        required_unless(ensure = "absent" | "link"),
        value = "USER[:GROUP]",
        format = User,
        group = "Permissions"
    )]
    pub(crate) owner: String,
    /// Group, as name or ID
    #[property(required_unless(ensure = "absent" | "link"), format = Group, group = "Permissions")]
    pub(crate) group: String,
    /// Permissions in octal, `0777` at most
    #[property(required_unless(ensure = "absent" | "link"), format = Mode, group = "Permissions")]
    pub(crate) mode: String,
    /// With `absent`, remove a directory even if it is not empty; with `link`,
    /// replace a file or an empty directory
    #[property(group = "Behavior")]
    pub(crate) force: bool,
    /// How to write content: `replace` the file atomically (default), or write
    /// `in_place`, for files that are mount points
    #[property(format = OneOf(&["replace", "in_place"]), group = "Behavior")]
    pub(crate) write: Option<String>,
    /// Command that checks new content before it is written; `{}` is the path
    /// of a private copy
    #[property(value = "COMMAND", group = "Behavior")]
    pub(crate) validate: Option<String>,
}

impl Properties {
    fn path(&self) -> &Path {
        Path::new(&self.common.name)
    }

    /// Whether a directory is copied.
    fn copies_directory(&self) -> bool {
        self.common.ensure == "directory" && self.source.is_some()
    }

    fn manages_content(&self) -> bool {
        self.content.is_some() || self.source.is_some()
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

/// How content gets into a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteMethod {
    /// Replace the file atomically.
    #[default]
    Replace,
    /// The old file gets new content and keeps its inode. Not atomic.
    InPlace,
}

/// Operations of a file provider.
pub trait Provider {
    /// What is there, compared with what is wanted.
    fn observe(&mut self, want: &Properties, cx: &Context<'_>) -> Result<State>;
    /// Makes a file with this content, or writes the content into the file.
    fn store(
        &mut self,
        path: &Path,
        content: &Content,
        attributes: &Attributes,
        write: WriteMethod,
    ) -> Result<()>;
    /// Runs a command on a private copy of what is to be written; fails if the
    /// command does.
    fn validate(
        &mut self,
        command: &str,
        path: &Path,
        content: &Content,
        attributes: &Attributes,
    ) -> Result<()>;
    /// Sets owner, group and mode and nothing else.
    fn set_attributes(&mut self, path: &Path, attributes: &Attributes) -> Result<()>;
    /// Makes a directory, its parents too, or sets its attributes.
    fn create_directory(&mut self, path: &Path, attributes: &Attributes) -> Result<()>;
    /// Makes a symlink with this text and owner in place of what is there.
    /// With `force`, the history must keep what was there.
    fn link(&mut self, path: &Path, target: &Path, owner: (u32, u32), force: bool) -> Result<()>;
    /// Writes and removes what makes a directory a copy.
    fn copy(&mut self, copy: &Copy) -> Result<()>;
    /// A digest of these files in a directory.
    fn digest_of(&mut self, directory: &Path, places: Vec<&Path>) -> String;
    /// Removes what is there, with everything in it if `force`.
    fn remove(&mut self, path: &Path, force: bool) -> Result<()>;
    /// A digest of what is at a path: of a file's content, of the names in a
    /// directory. `None` if it cannot be read.
    fn fingerprint(&mut self, path: &Path) -> Option<String>;
    /// Records what an action would leave behind.
    fn predict(&mut self, action: &Action) -> Result<()>;
    /// The text at a path before and after it gets this content, where both are
    /// text. `is_new` says that nothing is there.
    fn texts<'c>(
        &mut self,
        path: &Path,
        content: &'c Content,
        is_new: bool,
    ) -> Option<(String, Cow<'c, str>)>;
}

/// Current state of the path, compared with the desired state.
#[derive(Clone, Debug)]
pub struct State {
    found: CurrentFile,
    /// Attributes of what was found.
    stat: Option<Stat>,
    content: ContentState,
    /// The file to copy the wanted content from.
    source: Option<PathBuf>,
    /// How many lines the wanted content adds and takes away, where both are
    /// text.
    lines: Option<(u64, u64)>,
    /// The path is a link to what was found; known where it matters.
    is_link: bool,
    /// The symlink that was found.
    link: Option<link::Link>,
    /// The directory, compared with its source.
    copy: Option<Box<CopyState>>,
    checksum: Option<Digest>,
    /// Whether reports show the digest: one of a text that others cannot read
    /// would let them guess it.
    shows_checksum: bool,
    /// The digest of the wanted content, where someone will read it.
    wanted_checksum: Option<Digest>,
    /// The wanted owner, group and mode as numbers.
    wanted: Option<Attributes>,
    name: String,
    provider: &'static str,
    owner: Option<Arc<str>>,
    group: Option<Arc<str>>,
}

/// What is at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CurrentFile {
    Nothing,
    File,
    /// `empty` is known where it matters.
    Directory {
        empty: Option<bool>,
    },
    /// A symlink; distinguished from its target for `link` and `absent`.
    Symlink,
    /// A socket, FIFO or device.
    Other,
}

/// How the content compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentState {
    Unmanaged,
    Same,
    Differs,
}

impl State {
    fn attributes_match(&self) -> bool {
        self.wrong_attribute().is_none()
    }

    /// The first attribute that differs: name, current value, desired value.
    fn wrong_attribute(&self) -> Option<(&'static str, String, String)> {
        let (have, wanted) = (self.stat.as_ref()?, self.wanted?);
        if have.uid != wanted.uid {
            return Some(("owner", have.uid.to_string(), wanted.uid.to_string()));
        }
        if have.gid != wanted.gid {
            return Some(("group", have.gid.to_string(), wanted.gid.to_string()));
        }
        let mode = have.mode & 0o777;
        (mode != wanted.mode)
            .then(|| ("mode", format!("{mode:04o}"), format!("{:04o}", wanted.mode)))
    }

    /// Whether the current state matches the desired state.
    fn is_stable(&self, want: &Properties) -> bool {
        match (want.common.ensure.as_str(), self.found) {
            ("absent", found) => found == CurrentFile::Nothing,
            ("link", _) => link::is_stable(want, self),
            ("directory", CurrentFile::Directory { .. }) => {
                let is_copy = |copy: &CopyState| copy.obstacle.is_none() && !copy.differs(want);
                self.attributes_match() && self.copy.as_deref().is_none_or(is_copy)
            }
            ("present", CurrentFile::File | CurrentFile::Symlink) => {
                self.content != ContentState::Differs && self.attributes_match()
            }
            _ => false,
        }
    }

    /// Whether the mode, the old one or the new one, hides the content from
    /// others.
    fn is_hidden(&self) -> bool {
        let wanted = self.wanted.map_or(0o004, |wanted| wanted.mode);
        let had = self.stat.as_ref().map_or(wanted, |stat| stat.mode);
        [had, wanted].iter().any(|mode| mode & 0o004 == 0)
    }

    fn ensure_change(&self, wanted: &str) -> Change {
        Change::of("ensure").from(ccm_engine::State::ensure(self)).to(wanted)
    }
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        match self.found {
            CurrentFile::Nothing => "absent",
            CurrentFile::Directory { .. } => "directory",
            CurrentFile::Symlink => "link",
            CurrentFile::File | CurrentFile::Other => "present",
        }
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
            #[serde(skip_serializing_if = "Option::is_none")]
            checksum: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            owner: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            group: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            mode: Option<String>,
            provider: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            mtime: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            size: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            target: Option<std::borrow::Cow<'a, str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            target_exists: Option<bool>,
            #[serde(skip_serializing_if = "Option::is_none")]
            target_kind: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            files_total: Option<usize>,
            #[serde(skip_serializing_if = "Option::is_none")]
            files_different: Option<usize>,
            #[serde(skip_serializing_if = "Option::is_none")]
            files_foreign: Option<usize>,
        }
        let kind = self.link.as_ref().and_then(|link| link.kind);
        let stat = self.stat.as_ref();
        let metadata = Metadata {
            name: &self.name,
            checksum: self
                .checksum
                .filter(|_| self.shows_checksum)
                .map(|digest| digest.to_string()),
            owner: self.owner.as_deref(),
            group: self.group.as_deref(),
            mode: stat.map(|stat| format!("{:04o}", stat.mode)),
            provider: self.provider,
            mtime: stat.map(|stat| stat.mtime.to_string()),
            size: stat.map(|stat| stat.size),
            target: self.link.as_ref().map(|link| link.target.to_string_lossy()),
            target_exists: kind.map(|kind| kind != posix::NO_TARGET),
            target_kind: kind.filter(|kind| *kind != posix::NO_TARGET),
            files_total: self.copy.as_ref().map(|copy| copy.total),
            files_different: self.copy.as_ref().map(|copy| copy.different_files()),
            files_foreign: self.copy.as_ref().map(|copy| copy.foreign_files()),
        };
        Outer { metadata }.serialize(to)
    }
}

/// Desired content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Nothing: content is not managed.
    Empty,
    /// This.
    Text(String),
    /// The content of this file.
    CopyOf(PathBuf),
}

/// An action of this type.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Write content and attributes.
    Store {
        path: PathBuf,
        content: Content,
        attributes: Attributes,
        #[serde(default)]
        write: WriteMethod,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        validate: Option<String>,
    },
    /// Set owner, group and mode of a file.
    SetAttributes { path: PathBuf, attributes: Attributes },
    /// Make a directory, or set its owner, group and mode.
    CreateDirectory { path: PathBuf, attributes: Attributes },
    /// Make a symlink, or replace what is there by one.
    Link {
        path: PathBuf,
        target: PathBuf,
        owner: u32,
        group: u32,
        /// It replaces something else, which the history must keep.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    },
    /// Make a directory a copy of another.
    Copy(Copy),
    /// Remove a file or link.
    Remove { path: PathBuf },
    /// Remove an empty directory.
    RemoveDirectory { path: PathBuf },
    /// Remove a directory and everything in it.
    RemoveTree { path: PathBuf },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Store { content: Content::Empty, .. } => {
                "Would have created an empty file with requested attributes"
            }
            Self::Store { .. } => "Would have created the file",
            Self::SetAttributes { .. } => "Would have updated attributes",
            Self::CreateDirectory { .. } => "Would have created directory",
            Self::Link { .. } => "Would have created symlink",
            Self::Copy(_) => "Would have copied the directory",
            Self::Remove { .. } => "Would have removed the file",
            Self::RemoveDirectory { .. } => "Would have removed the directory",
            Self::RemoveTree { .. } => "Would have recursively removed the directory",
        })
    }
}

/// Properties that a symlink does not have.
const NOT_OF_LINKS: &[&str] = &["mode", "content", "source", "write", "validate"];

/// A symlink has a target and no content of its own; nothing else has a target.
fn check_link(want: &Properties, findings: &mut Findings) {
    if want.common.ensure != "link" {
        if want.target.is_some() {
            findings.add("target", "only `ensure: link` has a target");
        }
        return;
    }
    if !want.mode.is_empty() {
        findings.add("mode", "a symlink has no mode");
    }
    for (property, is_set) in [
        ("content", want.content.is_some()),
        ("source", want.source.is_some()),
        ("write", want.write.is_some()),
        ("validate", want.validate.is_some()),
    ] {
        if is_set {
            findings.add(property, "a symlink has no content");
        }
    }
    match want.target.as_deref() {
        None => findings.add_with_hint(
            "target",
            "a symlink needs a target",
            "set `target` to the path that it points to",
        ),
        Some("") => findings.add("target", "cannot be empty"),
        Some(target) if target.contains('\0') => findings.add("target", "contains a NUL byte"),
        Some(target) if target.len() > MAX_TARGET => {
            findings.add("target", format!("is longer than {MAX_TARGET} bytes"));
        }
        Some(_) => {}
    }
}

/// The command that checks content gets the path of the content.
fn check_command(want: &Properties, findings: &mut Findings) {
    let Some(command) = want.validate.as_deref() else { return };
    if want.copies_directory() {
        findings.add("validate", "only the content of a single file can be checked");
    } else if want.common.ensure != "link" && !want.manages_content() {
        findings.add("validate", "there is no `content` or `source` to check");
    }
    validate::check(command, findings);
}

/// Only a copy of a directory can be purged.
fn check_copy(want: &Properties, findings: &mut Findings) {
    if want.common.ensure == "directory" && want.content.is_some() {
        findings.add("content", "a directory has no content");
    }
    if want.purge && !want.copies_directory() {
        findings.add("purge", "only `ensure: directory` with a `source` can be purged");
    }
    if want.allow_empty && !want.purge {
        findings.add("allow_empty", "it has no meaning without `purge: true`");
    }
}

/// The longest text of a symlink that Linux allows.
const MAX_TARGET: usize = 4095;

impl Declare for File {
    type Properties = Properties;

    const NAME: &'static str = "file";
    const ABOUT: &'static str = "Manage files, directories and symlinks";
    const NAME_DOC: &'static str = "Absolute path, without `.`, `..`, `//` or a trailing `/`";
    const ENSURE: Ensure = Ensure::OneOf(&["present", "absent", "directory", "link"]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        let common = want.common();
        if !common.name.is_empty() {
            findings.check_path_of("name", "file path", &common.name);
        }
        let is_link = common.ensure == "link";
        if want.force && common.ensure != "absent" && !is_link {
            findings.add("force", "only `ensure: absent` and `ensure: link` can be forced");
        }
        check_link(want, findings);
        check_command(want, findings);
        if want.write_method().is_none() {
            let word = want.write.as_deref().unwrap_or_default();
            let message = format!("unknown way to write `{word}`");
            findings.add_with_hint("write", message, "allowed: replace, in_place");
        }
        if want.write.is_some() && common.ensure != "present" && !is_link {
            findings.add("write", "only `ensure: present` writes content");
        }
        if common.name == "/" && common.ensure == "absent" {
            findings.add("name", "the root directory cannot be removed");
        }
        if !want.mode.is_empty()
            && let Err(reason) = mode::parse(&want.mode)
        {
            findings.add("mode", reason);
        }
        if common.ensure != "absent" && !is_link {
            for (property, value, message) in [
                ("owner", &want.owner, "user name cannot be empty"),
                ("group", &want.group, "group name cannot be empty"),
                ("mode", &want.mode, "cannot be empty"),
            ] {
                if value.is_empty() {
                    findings.add(property, message);
                }
            }
        }
        check_copy(want, findings);
        if want.source.as_deref().is_some_and(|source| source.is_empty() || source.contains('\0')) {
            findings.add("source", "is not a path");
        }
    }

    /// What a symlink does not have is for the other resources of the block.
    fn takes_default(property: &str, ensure: &str) -> bool {
        match property {
            "target" => ensure == "link",
            "purge" | "allow_empty" => ensure == "directory",
            property => ensure != "link" || !NOT_OF_LINKS.contains(&property),
        }
    }

    /// Content that others may not read on the machine is not shown elsewhere.
    fn secrets(want: &Properties) -> &'static [&'static str] {
        let is_shown = mode::parse(&want.mode).is_ok_and(|mode| mode & 0o004 != 0);
        if is_shown || want.content.is_none() { &[] } else { &["content"] }
    }

    fn source(want: &Properties) -> Option<&str> {
        want.source.as_deref()
    }

    fn can_create(want: &Properties, path: &Path) -> bool {
        match want.common.ensure.as_str() {
            "present" => path == want.path(),
            _ => want.copies_directory() && path.starts_with(want.path()),
        }
    }

    fn managed_paths(want: &Properties) -> Vec<ManagedPath> {
        let extent = match want.source.as_ref().filter(|_| want.copies_directory()) {
            // Only the resource itself knows what a template stands for.
            Some(source) if source.contains("{{") => Extent::Tree,
            Some(source) => Extent::CopyOf(source.into()),
            None => Extent::Itself,
        };
        vec![ManagedPath { path: want.path().to_owned(), extent }]
    }

    fn whole_file(want: &Properties) -> Option<&Path> {
        let is_written = want.common.ensure == "present" && want.manages_content();
        is_written.then(|| want.path())
    }

    fn purges(want: &Properties) -> bool {
        want.purge
    }

    fn check_source(want: &Properties, templates: &Resolver, path: &Path) -> Vec<String> {
        let found = templates.host().stat(path).ok().flatten().map(|stat| stat.kind);
        let message = match (found, want.common.ensure.as_str()) {
            (Some(FileKind::Directory), "present") => "is a directory; use `ensure: directory`",
            (Some(FileKind::File), "directory") => "is a file; use `ensure: present`",
            _ => return Vec::new(),
        };
        vec![format!("the source {} {message}", path.display())]
    }
}

impl ResourceType for File {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[posix::DEF];

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        on.observe(want, cx)
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        if have.is_stable(want) {
            return Ok(vec![]);
        }
        if want.common.ensure == "link" {
            return link::decide(want, have);
        }
        let name = &want.common.name;
        let path = want.path().to_owned();
        let Some(attributes) = have.wanted else {
            let action = match have.found {
                CurrentFile::Directory { .. } if want.force => Action::RemoveTree { path },
                CurrentFile::Directory { empty: Some(false) } => {
                    return Err(ccm_host::Error::NotEmpty { path }.into());
                }
                CurrentFile::Directory { .. } => Action::RemoveDirectory { path },
                CurrentFile::Nothing
                | CurrentFile::File
                | CurrentFile::Symlink
                | CurrentFile::Other => Action::Remove { path },
            };
            return Ok(vec![Step::new(Verb::Removed, action).change(have.ensure_change("absent"))]);
        };
        let through_link = || Error::Refused {
            reason: format!("{name} is a symlink, and ccm changes nothing through symlinks"),
            hint: Some("manage the path that it points to".to_owned()),
        };
        if want.common.ensure == "directory" {
            return Ok(match have.found {
                CurrentFile::Directory { .. } if have.is_link => return Err(through_link()),
                CurrentFile::Nothing | CurrentFile::Directory { .. } => {
                    let is_made = have.found != CurrentFile::Nothing && have.attributes_match();
                    let make = Action::CreateDirectory { path, attributes };
                    let make = (!is_made).then(|| changes::step(want, have, make));
                    let copy = have.copy.as_deref();
                    let copy =
                        copy.map(|copy| copy::decide(want, copy, &attributes)).transpose()?;
                    make.into_iter().chain(copy.flatten()).collect()
                }
                CurrentFile::File | CurrentFile::Symlink | CurrentFile::Other => {
                    return Err(Error::Refused {
                        reason: format!("{name} exists and is not a directory"),
                        hint: Some("remove it first; ccm never replaces it on its own".to_owned()),
                    });
                }
            });
        }
        let content = match (&have.source, &want.content) {
            (Some(source), _) => Content::CopyOf(source.clone()),
            (None, Some(text)) => Content::Text(text.clone()),
            (None, None) => Content::Empty,
        };
        let write = want.write_method().unwrap_or_default();
        let is_new = have.content == ContentState::Differs;
        let validate = want.validate.clone().filter(|_| is_new);
        let action = match have.found {
            CurrentFile::Directory { .. } => {
                return Err(Error::Refused {
                    reason: format!("{name}: path exists as a directory"),
                    hint: Some("use `ensure: directory` to manage directories".to_owned()),
                });
            }
            CurrentFile::Other => {
                let reason = format!("{name} is a socket, FIFO or device, not a file");
                return Err(Error::refused(reason));
            }
            CurrentFile::Nothing if have.is_link && !want.manages_content() => {
                return Err(through_link());
            }
            CurrentFile::Nothing => Action::Store { path, content, attributes, write, validate },
            CurrentFile::File | CurrentFile::Symlink => match have.content {
                ContentState::Differs | ContentState::Same => {
                    Action::Store { path, content, attributes, write, validate }
                }
                ContentState::Unmanaged if have.is_link => return Err(through_link()),
                ContentState::Unmanaged => Action::SetAttributes { path, attributes },
            },
        };
        Ok(vec![changes::step(want, have, action)])
    }

    fn act(on: &mut Self::Provider, action: &Action, _cx: &mut Context<'_>) -> Result<()> {
        match action {
            Action::Store { path, content, attributes, write, validate } => {
                if let Some(command) = validate {
                    on.validate(command, path, content, attributes)?;
                }
                on.store(path, content, attributes, *write)
            }
            Action::SetAttributes { path, attributes } => on.set_attributes(path, attributes),
            Action::CreateDirectory { path, attributes } => on.create_directory(path, attributes),
            Action::Link { path, target, owner, group, force } => {
                on.link(path, target, (*owner, *group), *force)
            }
            Action::Copy(copy) => on.copy(copy),
            Action::Remove { path } | Action::RemoveDirectory { path } => on.remove(path, false),
            Action::RemoveTree { path } => on.remove(path, true),
        }
    }

    /// What is to be removed counts with everything in it. A saved plan belongs
    /// to its owner alone, so it has digests of everything.
    fn evidence(on: &mut Self::Provider, want: &Properties, have: &State) -> serde_json::Value {
        let whole = State { shows_checksum: true, ..have.clone() };
        let mut evidence = serde_json::to_value(whole).unwrap_or_default();
        if have.wanted.is_none()
            && let Some(evidence) = evidence.as_object_mut()
        {
            evidence.insert("content".to_owned(), on.fingerprint(Path::new(&have.name)).into());
        }
        if let (Some(copy), Some(evidence)) = (&have.copy, evidence.as_object_mut()) {
            let places = copy.at_stake(want).collect();
            evidence.insert("content".to_owned(), on.digest_of(want.path(), places).into());
            // What is beside a copy matters to a purge alone.
            if let Some(metadata) = evidence.get_mut("metadata").filter(|_| !want.purge)
                && let Some(metadata) = metadata.as_object_mut()
            {
                metadata.remove("files_foreign");
            }
        }
        evidence
    }

    fn places(want: &Properties) -> Vec<&Path> {
        vec![want.path()]
    }

    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Action>,
        _cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        if let Action::Store { path, content, attributes, validate: Some(command), .. } =
            &step.action
        {
            on.validate(command, path, content, attributes)?;
        }
        on.predict(&step.action)?;
        Ok(Prediction::Exact)
    }

    /// A change of owner or mode alone is none of the rest, whatever is written.
    fn describe(step: &Step<Action>) -> String {
        let is_made = step.touches("ensure") || step.touches("content");
        if let Some(text) = copy::describe(step) {
            return text;
        }
        match step.verb {
            Verb::Updated if !step.touches("ensure") && step.touches("target") => {
                "Would have updated target".to_owned()
            }
            Verb::Updated if !is_made => "Would have updated attributes".to_owned(),
            _ => step.action.to_string(),
        }
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        let found = ccm_engine::State::ensure(have);
        if found != want.common.ensure {
            return Some(format!("ensure is {found}, should be {}", want.common.ensure));
        }
        if want.common.ensure == "link" && !link::is_stable(want, have) {
            let text = have.link.as_ref().map(|link| link.target.to_string_lossy());
            let (is, should) = (text.unwrap_or_default(), want.target.as_deref());
            if Some(&*is) != should {
                return Some(format!("target is {is}, should be {}", should.unwrap_or_default()));
            }
        }
        if have.content == ContentState::Differs {
            return Some("content is not what was written".to_owned());
        }
        if let Some(reason) = have.copy.as_ref().and_then(|copy| copy.mismatch(want)) {
            return Some(reason);
        }
        let (attribute, is, should) = have.wrong_attribute()?;
        Some(format!("{attribute} is {is}, should be {should}"))
    }

    /// Who may not read the content yet must not learn it from a report.
    fn hidden(want: &Properties, have: &State) -> &'static [&'static str] {
        if have.is_hidden() && want.content.is_some() { &["content"] } else { &[] }
    }

    fn diff(
        on: &mut Self::Provider,
        _want: &Properties,
        have: &State,
        steps: &[Step<Action>],
        diffs: Diffs,
        cx: &Context<'_>,
    ) -> Option<String> {
        let Action::Store { path, content, attributes, .. } = &steps.first()?.action else {
            return None;
        };
        diff::of(on, path, content, attributes, have, diffs, cx.templates.host())
    }
}
