//! Files on a Unix system.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ccm_engine::{Context, Detail, Error, ONLY_IN_THE_RUN, ProviderDef, Result, chain};
use ccm_host::{Attributes, Digest, FileKind, Host, NewContent, Stat};

use super::{
    Action, Content, ContentState, Copy, CopyState, CurrentFile, File, Properties, Provider, State,
    WriteMethod,
    copy::{self, SourceTree},
    link::Link,
    mode, validate,
};
use crate::text_diff::{MAX_TEXT, line_counts};

const NAME: &str = "posix";

/// The mode of every symlink on Linux.
const LINK_MODE: u32 = 0o777;
/// The kind of a target that does not exist.
pub(super) const NO_TARGET: &str = "none";

pub(super) const DEF: ProviderDef<File> = ProviderDef {
    name: NAME,
    rank: |_, _| Some(1),
    open: |host| {
        let host = host.clone();
        Box::new(Posix { host, inline: None, is_missing: false, has_content: false, source: None })
    },
};

struct Posix {
    host: Host,
    /// The digest of inline content, worked out once.
    inline: Option<Digest>,
    /// Nothing was at the path when it was last observed.
    is_missing: bool,
    /// The file had the wanted content when it was last observed.
    has_content: bool,
    /// The directory to copy, as it was compared.
    source: Option<SourceTree>,
}

impl Posix {
    fn wanted(&self, want: &Properties) -> Result<Option<Attributes>> {
        if want.common.ensure == "absent" {
            return Ok(None);
        }
        if want.common.ensure == "link" {
            return self.wanted_of_link(want).map(Some);
        }
        let mode = mode::parse(&want.mode).map_err(ccm_engine::Error::refused)?;
        let is_directory = want.common.ensure == "directory";
        Ok(Some(Attributes {
            uid: self.host.uid(&want.owner)?,
            gid: self.host.gid(&want.group)?,
            mode: if is_directory { mode::for_directory(mode) } else { mode },
        }))
    }

    /// Owner and group of the symlink: those of the one that is there, where none
    /// are given.
    fn wanted_of_link(&self, want: &Properties) -> Result<Attributes> {
        let found = if self.host.is_root() { self.host.lstat(want.path())? } else { None };
        let found = found.filter(|found| found.kind == FileKind::Symlink);
        let own = found.map_or_else(|| self.host.whoami(), |found| (found.uid, found.gid));
        Ok(Attributes {
            uid: if want.owner.is_empty() { own.0 } else { self.host.uid(&want.owner)? },
            gid: if want.group.is_empty() { own.1 } else { self.host.gid(&want.group)? },
            mode: LINK_MODE,
        })
    }

    /// The symlink at a path. What it points to is looked at for those who read
    /// the state.
    fn link_at(&self, path: &Path, cx: &Context<'_>) -> Result<Link> {
        let target = self.host.read_link(path)?;
        let is_shown = cx.detail >= Detail::Report;
        let kind = if is_shown { self.kind_of_target(path, &target) } else { None };
        Ok(Link { target, kind })
    }

    /// What the text of a symlink at a path points to; `None` where nobody knows.
    fn kind_of_target(&self, path: &Path, target: &Path) -> Option<&'static str> {
        let target = path.parent()?.join(target);
        Some(match self.host.stat(&target).ok()?.map(|stat| stat.kind) {
            None => NO_TARGET,
            Some(FileKind::File) => "file",
            Some(FileKind::Directory) => "directory",
            Some(FileKind::Symlink | FileKind::Other) => "other",
        })
    }

    /// What is to be written.
    fn content<'c>(&self, content: &'c Content) -> Result<ccm_host::Content<'c>> {
        Ok(match content {
            Content::Empty => ccm_host::Content::Bytes(b""),
            Content::Text(text) => ccm_host::Content::Bytes(text.as_bytes()),
            Content::CopyOf(source) => ccm_host::Content::Copy(self.host.open_trusted(source)?.0),
        })
    }

    fn found(&self, want: &Properties, cx: &Context<'_>) -> Result<(CurrentFile, Option<Stat>)> {
        let path = want.path();
        let is_link = want.common.ensure == "link";
        let is_removal = want.common.ensure == "absent";
        // Who only looks is told of the symlink itself.
        let is_link_itself = is_removal || is_link || cx.detail >= Detail::Inspect;
        let stat = if is_link_itself { self.host.lstat(path)? } else { self.host.stat(path)? };
        let Some(stat) = stat else { return Ok((CurrentFile::Nothing, None)) };
        let found = match stat.kind {
            FileKind::File => CurrentFile::File,
            FileKind::Symlink => CurrentFile::Symlink,
            FileKind::Other => CurrentFile::Other,
            FileKind::Directory if is_link == want.force && (is_link || is_removal) => {
                CurrentFile::Directory { empty: Some(self.host.is_empty_directory(path)?) }
            }
            FileKind::Directory => CurrentFile::Directory { empty: None },
        };
        Ok((found, Some(stat)))
    }

    /// Compares sizes first, bytes or digests only where the sizes are equal or
    /// someone will read the digests.
    fn compare(
        &mut self,
        want: &Properties,
        source: Option<&Path>,
        found: Option<Stat>,
        cx: &Context<'_>,
    ) -> Result<Compared> {
        // Opened even where there is nothing to compare with: what would be
        // written must be known, in noop too.
        let source = match source {
            Some(path) => {
                let (file, stat) = self.host.open_trusted(path)?;
                Some((path, file, stat))
            }
            None => None,
        };
        let inline = &mut self.inline;
        let mut wanted_digest = || match (&want.content, &source) {
            (Some(content), _) => {
                Ok(Some(*inline.get_or_insert_with(|| Digest::of(content.as_bytes()))))
            }
            (None, Some((path, file, stat))) => self.host.digest(file, path, stat.size).map(Some),
            (None, None) => Ok(None),
        };
        // A digest of what changes is shown; one of what stays only in a report.
        let is_shown = want.manages_content() && cx.detail >= Detail::Changes;
        let Some(found) = found else {
            let wanted = if is_shown { wanted_digest()? } else { None };
            return Ok(Compared { wanted, ..Compared::new(ContentState::Differs) });
        };
        let wanted_size = match (&want.content, &source) {
            (Some(content), _) => content.len() as u64,
            (None, Some((_, _, stat))) => stat.size,
            (None, None) => found.size,
        };
        let is_open_question = wanted_size == found.size && want.manages_content();
        if !is_open_question && !is_shown && cx.detail < Detail::Inspect {
            return Ok(Compared::new(if want.manages_content() {
                ContentState::Differs
            } else {
                ContentState::Unmanaged
            }));
        }
        let path = want.path();
        if let (Some(content), true) = (&want.content, cx.detail < Detail::Report) {
            // Equal content needs no digest.
            let file = self.host.open_found(path, found)?;
            if self.host.holds(&file, path, content.as_bytes())? {
                return Ok(Compared::new(ContentState::Same));
            }
            if !is_shown {
                return Ok(Compared::new(ContentState::Differs));
            }
        }
        let have = match self.host.open_found(path, found) {
            Ok(file) => self.host.digest(&file, path, found.size)?,
            // Someone who only looks may not be allowed to read.
            Err(_) if !want.manages_content() => {
                return Ok(Compared::new(ContentState::Unmanaged));
            }
            Err(error) => return Err(error.into()),
        };
        let wanted = wanted_digest()?;
        let state = match wanted {
            None => ContentState::Unmanaged,
            Some(wanted) if wanted == have => ContentState::Same,
            Some(_) => ContentState::Differs,
        };
        Ok(Compared { state, have: Some(have), wanted })
    }

    /// Compares a directory with the one that it is to be a copy of.
    fn compare_copy(
        &mut self,
        want: &Properties,
        wanted: &Attributes,
        is_new: bool,
        cx: &Context<'_>,
    ) -> Result<Option<CopyState>> {
        let Some(path) = source(want, cx) else { return Ok(None) };
        let source = SourceTree::read(&self.host, &path)?;
        let state = copy::compare(&self.host, &source, want, wanted, is_new, cx)?;
        self.source = Some(source);
        Ok(Some(state))
    }

    /// What is at a path in a directory that is to be removed: the digest of a
    /// file, and of a large one how large it is.
    fn holds(&self, path: &Path) -> Option<String> {
        let stat = self.host.lstat(path).ok()??;
        match stat.kind {
            FileKind::File if stat.size <= MAX_TEXT => {
                let file = self.host.open_found(path, stat).ok()?;
                Some(self.host.digest(&file, path, stat.size).ok()?.to_string())
            }
            FileKind::File => Some(stat.size.to_string()),
            FileKind::Symlink => Some(self.host.read_link(path).ok()?.display().to_string()),
            FileKind::Directory | FileKind::Other => None,
        }
    }

    /// Whether nothing secret is in a file that others cannot read. Of what is to
    /// be replaced, nobody knows.
    fn is_harmless(&self, want: &Properties, have: &State) -> bool {
        let is_plain = |text: &str| self.host.redactor().text(text) == text;
        match (have.content, &want.content) {
            (ContentState::Differs, _) => false,
            (ContentState::Same, Some(content)) => is_plain(content),
            _ => {
                let read = self.host.read_text(want.path(), MAX_TEXT);
                read.is_ok_and(|(text, _)| is_plain(&text))
            }
        }
    }

    /// How many lines a file would gain and lose, where both texts are short.
    fn changed_lines(
        &self,
        want: &Properties,
        source: Option<&Path>,
        found: Option<Stat>,
    ) -> Option<(u64, u64)> {
        let old = match found {
            Some(found) if found.size > MAX_TEXT => return None,
            Some(_) => self.host.read_text(want.path(), MAX_TEXT).ok()?.0,
            None => String::new(),
        };
        match (source, &want.content) {
            (Some(source), _) => {
                Some(line_counts(&old, &self.host.read_text(source, MAX_TEXT).ok()?.0))
            }
            (None, Some(new)) if new.len() as u64 <= MAX_TEXT => Some(line_counts(&old, new)),
            _ => None,
        }
    }
}

/// How the content compares, and the digests as far as they are known.
struct Compared {
    state: ContentState,
    have: Option<Digest>,
    wanted: Option<Digest>,
}

impl Compared {
    fn new(state: ContentState) -> Self {
        Self { state, have: None, wanted: None }
    }
}

/// Why a file was not replaced, and what to do about it.
fn not_replaced(error: ccm_host::Error) -> Error {
    match error {
        ccm_host::Error::MountedFile { .. } => Error::Refused {
            reason: error.to_string(),
            hint: Some("set `write: in_place` to write into it".to_owned()),
        },
        error => error.into(),
    }
}

/// The file to copy; a relative path begins at the manifest.
fn source(want: &Properties, cx: &Context<'_>) -> Option<PathBuf> {
    want.source.as_ref().map(|source| cx.working_directory.join(source))
}

impl Provider for Posix {
    fn observe(&mut self, want: &Properties, cx: &Context<'_>) -> Result<State> {
        let wanted = self.wanted(want)?;
        let found = self.host.check_managed_path(want.path()).map_err(Error::from);
        let mut is_denied = false;
        let (found, stat) = match found.and_then(|()| self.found(want, cx)) {
            // Who only looks is told what can be seen.
            Err(Error::Host(error)) if cx.detail >= Detail::Inspect && error.is_denied() => {
                self.host.warn(format!("{}; ccm reports it as absent", chain(&error)));
                is_denied = true;
                (CurrentFile::Nothing, None)
            }
            found => found?,
        };
        self.is_missing = found == CurrentFile::Nothing;
        let is_file_wanted = want.common.ensure == "present";
        if is_file_wanted && want.manages_content() {
            let by = format!("file#{}", want.common.name);
            crate::whole::note(&self.host, &by, [want.path().to_owned()]);
        }
        let is_new = self.is_missing;
        let copied = match (found, wanted) {
            (CurrentFile::Nothing | CurrentFile::Directory { .. }, Some(wanted))
                if want.copies_directory() =>
            {
                self.compare_copy(want, &wanted, is_new, cx)?
            }
            _ => None,
        };
        let source = source(want, cx);
        let compared = match found {
            CurrentFile::File if is_file_wanted => {
                self.compare(want, source.as_deref(), stat, cx)?
            }
            CurrentFile::Nothing if is_file_wanted && want.manages_content() => {
                self.compare(want, source.as_deref(), None, cx)?
            }
            _ => Compared::new(ContentState::Unmanaged),
        };
        self.has_content = compared.state == ContentState::Same;
        let mut state = State {
            found,
            content: compared.state,
            source,
            lines: None,
            is_link: false,
            link: match found {
                CurrentFile::Symlink => Some(self.link_at(want.path(), cx)?),
                _ => None,
            },
            copy: copied.map(Box::new),
            checksum: compared.have,
            shows_checksum: true,
            wanted_checksum: compared.wanted,
            wanted,
            name: want.common.name.clone(),
            provider: NAME,
            owner: None,
            group: None,
            stat,
        };
        // The user who requests the status of this file can read it.
        state.shows_checksum = cx.detail >= Detail::Inspect
            || !state.is_hidden()
            || (state.checksum.is_some() && self.is_harmless(want, &state));
        let is_right = state.attributes_match()
            && state.copy.as_deref().is_none_or(|copy| !copy.differs(want));
        if cx.detail >= Detail::Report || !is_right {
            state.owner = stat.map(|stat| self.host.user_name(stat.uid));
            state.group = stat.map(|stat| self.host.group_name(stat.gid));
        }
        let is_question = (found == CurrentFile::Nothing && !is_denied) || !is_right;
        let is_followed = wanted.is_some() && want.common.ensure != "link";
        if state.content == ContentState::Unmanaged && is_followed && is_question {
            let link = self.host.lstat(want.path())?;
            state.is_link = link.is_some_and(|link| link.kind == FileKind::Symlink);
        }
        if state.content == ContentState::Differs
            && matches!(found, CurrentFile::File | CurrentFile::Nothing)
            && !state.is_hidden()
        {
            state.lines = self.changed_lines(want, state.source.as_deref(), stat);
        }
        Ok(state)
    }

    fn store(
        &mut self,
        path: &Path,
        content: &Content,
        attributes: &Attributes,
        write: WriteMethod,
    ) -> Result<()> {
        let content = self.content(content)?;
        match write {
            WriteMethod::InPlace => {
                let content = Some(content).filter(|_| !self.has_content);
                Ok(self.host.write_in_place(path, content, attributes)?)
            }
            WriteMethod::Replace if self.is_missing => {
                self.host.create(path, content, attributes).map_err(not_replaced)
            }
            WriteMethod::Replace => {
                self.host.replace(path, content, attributes).map_err(not_replaced)
            }
        }
    }

    fn validate(
        &mut self,
        command: &str,
        path: &Path,
        content: &Content,
        attributes: &Attributes,
    ) -> Result<()> {
        validate::run(&self.host, command, path, self.content(content)?, attributes)
    }

    fn set_attributes(&mut self, path: &Path, attributes: &Attributes) -> Result<()> {
        Ok(self.host.set_attributes(path, attributes)?)
    }

    fn create_directory(&mut self, path: &Path, attributes: &Attributes) -> Result<()> {
        Ok(self.host.create_directory(path, attributes)?)
    }

    fn copy(&mut self, copy: &Copy) -> Result<()> {
        let source = self.source.take();
        let source = source.ok_or_else(|| Error::refused("the source was not compared"))?;
        copy::apply(&self.host, &source, copy)
    }

    fn digest_of(&mut self, directory: &Path, places: Vec<&Path>) -> String {
        let all: Vec<_> =
            places.into_iter().map(|place| (place, self.holds(&directory.join(place)))).collect();
        Digest::of(format!("{all:?}").as_bytes()).to_string()
    }

    fn link(&mut self, path: &Path, target: &Path, owner: (u32, u32), force: bool) -> Result<()> {
        let _kept = force.then(|| self.host.must_keep());
        Ok(self.host.replace_with_symlink(path, target, owner)?)
    }

    fn remove(&mut self, path: &Path, force: bool) -> Result<()> {
        let _kept = force.then(|| self.host.must_keep());
        let removed = if force { self.host.remove_tree(path) } else { self.host.remove(path) };
        Ok(removed?)
    }

    fn fingerprint(&mut self, path: &Path) -> Option<String> {
        let host = &self.host;
        let stat = host.lstat(path).ok()??;
        match stat.kind {
            FileKind::File => {
                let file = host.open_found(path, stat).ok()?;
                Some(host.digest(&file, path, stat.size).ok()?.to_string())
            }
            FileKind::Directory => {
                if host.unsettled(path).is_some() {
                    return Some(ONLY_IN_THE_RUN.to_owned());
                }
                let entries = crate::tree::predicted(host, path).ok()?;
                let names = entries.files.into_iter().chain(entries.directories);
                let names: BTreeSet<PathBuf> = names.collect();
                let all: Vec<_> =
                    names.iter().map(|name| (name, self.holds(&path.join(name)))).collect();
                Some(Digest::of(format!("{all:?}").as_bytes()).to_string())
            }
            FileKind::Symlink | FileKind::Other => None,
        }
    }

    fn predict(&mut self, action: &Action) -> Result<()> {
        let host = &self.host;
        Ok(match action {
            Action::Store { path, content, attributes, write, .. } => {
                let content = match content {
                    Content::Empty => NewContent::Bytes(b""),
                    Content::Text(text) => NewContent::Bytes(text.as_bytes()),
                    Content::CopyOf(source) => NewContent::CopyOf(source),
                };
                match write {
                    WriteMethod::InPlace => {
                        let content = Some(content).filter(|_| !self.has_content);
                        host.predict_in_place(path, content, attributes)
                    }
                    WriteMethod::Replace => {
                        return host.predict_file(path, content, attributes).map_err(not_replaced);
                    }
                }
            }
            Action::SetAttributes { path, attributes } => host.predict_attributes(path, attributes),
            Action::CreateDirectory { path, attributes } => {
                host.predict_directory(path, attributes)
            }
            Action::Copy(copy) => return copy::predict(host, copy),
            Action::Link { path, target, owner, group, force } => {
                let _kept = force.then(|| host.must_keep());
                if self.kind_of_target(path, target) == Some(NO_TARGET) {
                    let (path, target) = (path.display(), target.display());
                    host.warn(format!("{path}: target does not exist: {target}"));
                }
                host.predict_symlink(path, target, (*owner, *group))
            }
            Action::Remove { path } | Action::RemoveDirectory { path } => {
                host.predict_removal(path, false)
            }
            Action::RemoveTree { path } => {
                let _kept = host.must_keep();
                host.predict_removal(path, true)
            }
        }?)
    }

    fn texts<'c>(
        &mut self,
        path: &Path,
        content: &'c Content,
        is_new: bool,
    ) -> Option<(String, Cow<'c, str>)> {
        let old = if is_new { String::new() } else { self.host.read_text(path, MAX_TEXT).ok()?.0 };
        let new = match content {
            Content::Empty => Cow::Borrowed(""),
            Content::Text(text) => Cow::Borrowed(&**text),
            Content::CopyOf(source) => self.host.read_text(source, MAX_TEXT).ok()?.0.into(),
        };
        (new.len() as u64 <= MAX_TEXT).then_some((old, new))
    }
}
