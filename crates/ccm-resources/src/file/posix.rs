//! Files on a Unix system.

use std::path::{Path, PathBuf};

use ccm_engine::{Context, Detail, ProviderDef, Result};
use ccm_host::{Attributes, Content, Digest, FileKind, Host, Stat};

use super::{ContentState, File, Found, Properties, Provider, State, mode};
use crate::text_diff::MAX_TEXT;

const NAME: &str = "posix";

pub(super) const DEF: ProviderDef<File> = ProviderDef {
    name: NAME,
    rank: |_, _| Some(1),
    open: |host| Box::new(Posix { host: host.clone(), inline: None }),
};

struct Posix {
    host: Host,
    /// The digest of inline content, worked out once.
    inline: Option<Digest>,
}

impl Posix {
    fn wanted(&self, want: &Properties) -> Result<Option<Attributes>> {
        if want.common.ensure == "absent" {
            return Ok(None);
        }
        let mode = mode::parse(&want.mode).map_err(ccm_engine::Error::refused)?;
        let is_directory = want.common.ensure == "directory";
        Ok(Some(Attributes {
            uid: self.host.uid(&want.owner)?,
            gid: self.host.gid(&want.group)?,
            mode: if is_directory { mode::for_directory(mode) } else { mode },
        }))
    }

    fn found(&self, want: &Properties) -> Result<(Found, Option<Stat>)> {
        let path = want.path();
        let is_removal = want.common.ensure == "absent";
        let stat = if is_removal { self.host.lstat(path)? } else { self.host.stat(path)? };
        let Some(stat) = stat else { return Ok((Found::Nothing, None)) };
        let found = match stat.kind {
            FileKind::File => Found::File,
            FileKind::Symlink => Found::Symlink,
            FileKind::Other => Found::Other,
            FileKind::Directory if is_removal && !want.force => {
                Found::Directory { empty: Some(self.host.is_empty_directory(path)?) }
            }
            FileKind::Directory => Found::Directory { empty: None },
        };
        Ok((found, Some(stat)))
    }

    /// Compares sizes first, digests only where the sizes are equal.
    fn compare(
        &mut self,
        want: &Properties,
        found: Option<Stat>,
        cx: &Context<'_>,
    ) -> Result<(ContentState, Option<Digest>)> {
        // Opened even where there is nothing to compare with: what would be
        // written must be known, in noop too.
        let source = match source(want, cx) {
            Some(path) => {
                let (file, stat) = self.host.open_trusted(&path)?;
                Some((path, file, stat))
            }
            None => None,
        };
        let Some(found) = found else { return Ok((ContentState::Differs, None)) };
        let wanted_size = match (&want.content, &source) {
            (Some(content), _) => content.len() as u64,
            (None, Some((_, _, stat))) => stat.size,
            (None, None) => found.size,
        };
        let is_open_question = wanted_size == found.size && want.manages_content();
        let is_for_report = want.manages_content() && cx.detail >= Detail::Report;
        if !is_open_question && !is_for_report && cx.detail < Detail::Inspect {
            let state = if want.manages_content() {
                ContentState::Differs
            } else {
                ContentState::Unmanaged
            };
            return Ok((state, None));
        }
        let path = want.path();
        if let (Some(content), true) = (&want.content, cx.detail < Detail::Report) {
            // Nobody will read a digest, and bytes that are equal need none.
            let file = self.host.open_found(path, found)?;
            let is_same = self.host.holds(&file, path, content.as_bytes())?;
            let state = if is_same { ContentState::Same } else { ContentState::Differs };
            return Ok((state, None));
        }
        let have = match self.host.open_found(path, found) {
            Ok(file) => self.host.digest(&file, path, found.size)?,
            // Someone who only looks may not be allowed to read.
            Err(_) if !want.manages_content() => return Ok((ContentState::Unmanaged, None)),
            Err(error) => return Err(error.into()),
        };
        let wanted = match (&want.content, source) {
            (Some(content), _) => {
                *self.inline.get_or_insert_with(|| Digest::of(content.as_bytes()))
            }
            (None, Some((path, file, stat))) => self.host.digest(&file, &path, stat.size)?,
            (None, None) => return Ok((ContentState::Unmanaged, Some(have))),
        };
        let state = if have == wanted { ContentState::Same } else { ContentState::Differs };
        Ok((state, Some(have)))
    }
}

/// The file to copy; a relative path begins at the manifest.
fn source(want: &Properties, cx: &Context<'_>) -> Option<PathBuf> {
    want.source.as_ref().map(|source| cx.working_directory.join(source))
}

impl Provider for Posix {
    fn observe(&mut self, want: &Properties, cx: &Context<'_>) -> Result<State> {
        let wanted = self.wanted(want)?;
        self.host.check_managed_path(want.path())?;
        let (found, stat) = self.found(want)?;
        let is_file_wanted = want.common.ensure == "present";
        let (content, checksum) = match found {
            Found::File if is_file_wanted => self.compare(want, stat, cx)?,
            Found::Nothing if is_file_wanted && want.manages_content() => {
                self.compare(want, None, cx)?
            }
            _ => (ContentState::Unmanaged, None),
        };
        let is_read = cx.detail >= Detail::Report;
        let mut state = State {
            found,
            content,
            is_link: false,
            checksum,
            wanted,
            name: want.common.name.clone(),
            provider: NAME,
            owner: stat.filter(|_| is_read).map(|stat| self.host.user_name(stat.uid)),
            group: stat.filter(|_| is_read).map(|stat| self.host.group_name(stat.gid)),
            stat,
        };
        let is_question = found == Found::Nothing || !state.attributes_match();
        if content == ContentState::Unmanaged && wanted.is_some() && is_question {
            let link = self.host.lstat(want.path())?;
            state.is_link = link.is_some_and(|link| link.kind == FileKind::Symlink);
        }
        Ok(state)
    }

    fn store(
        &mut self,
        want: &Properties,
        attributes: &Attributes,
        cx: &Context<'_>,
    ) -> Result<()> {
        let content = match source(want, cx) {
            Some(path) => Content::Copy(self.host.open_trusted(&path)?.0),
            None => Content::Bytes(want.content.as_deref().unwrap_or_default().as_bytes()),
        };
        Ok(self.host.replace(want.path(), content, attributes)?)
    }

    fn set_attributes(&mut self, path: &Path, attributes: &Attributes) -> Result<()> {
        Ok(self.host.set_attributes(path, attributes)?)
    }

    fn create_directory(&mut self, path: &Path, attributes: &Attributes) -> Result<()> {
        Ok(self.host.create_directory(path, attributes)?)
    }

    fn remove(&mut self, path: &Path, force: bool) -> Result<()> {
        let removed = if force { self.host.remove_tree(path) } else { self.host.remove(path) };
        Ok(removed?)
    }

    fn texts(&mut self, want: &Properties, cx: &Context<'_>) -> Option<(String, String)> {
        let old = match self.host.stat(want.path()).ok()? {
            Some(_) => self.host.read_text(want.path(), MAX_TEXT).ok()?.0,
            None => String::new(),
        };
        let new = match source(want, cx) {
            Some(path) => self.host.read_text(&path, MAX_TEXT).ok()?.0,
            None => want.content.clone()?,
        };
        (new.len() as u64 <= MAX_TEXT).then_some((old, new))
    }
}
