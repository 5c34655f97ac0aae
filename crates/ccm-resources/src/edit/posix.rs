//! Edits of files on a Unix system.

use std::path::Path;
use std::sync::Arc;

use ccm_engine::{Context, Detail, Error, ProviderDef, Result};
use ccm_host::{Attributes, Digest, Host, NewContent, Stat};
use ccm_textedit::{Edited, MAX_SIZE};

use super::state::{Found, State};
use super::{Action, Edit, Properties, Provider, convert, fights, refused};
use crate::file::{WriteMethod, mode, validate};

const NAME: &str = "posix";

pub(super) const DEF: ProviderDef<Edit> = ProviderDef {
    name: NAME,
    rank: |_, _| Some(1),
    open: |host| Box::new(Posix { host: host.clone() }),
};

struct Posix {
    host: Host,
}

/// A file and what an edit makes of it.
struct Made {
    edited: Edited,
    /// What the file will have.
    attributes: Attributes,
    is_new: bool,
}

impl Posix {
    /// The attributes with which a missing file is made.
    fn create(&self, want: &Properties) -> Result<Option<Attributes>> {
        let (Some(owner), Some(group), Some(mode)) = (&want.owner, &want.group, &want.mode) else {
            return Ok(None);
        };
        if !want.create || want.is_removal() {
            return Ok(None);
        }
        let mode = mode::parse(mode).map_err(Error::refused)?;
        Ok(Some(Attributes { uid: self.host.uid(owner)?, gid: self.host.gid(group)?, mode }))
    }

    /// Makes the edit in what the file holds now.
    fn make(&self, action: &Action) -> Result<Made> {
        let read = self.host.read_managed(&action.path, MAX_SIZE)?;
        let is_new = read.is_none();
        let (text, attributes) = match (read, action.create) {
            (Some((text, stat)), _) => (text, attributes(&stat)),
            (None, Some(wanted)) => (Vec::new(), wanted),
            (None, None) => {
                let reason = format!("{} does not exist any more", action.path.display());
                return Err(Error::refused(reason));
            }
        };
        let edited = ccm_textedit::apply(&text, &action.edit).map_err(|error| refused(&error))?;
        fights::check(&self.host, &action.path, &action.name, &edited.text)?;
        if let Some(command) = &action.validate {
            let content = ccm_host::Content::Bytes(&edited.text);
            validate::run(&self.host, command, &action.path, content, &attributes)?;
        }
        Ok(Made { edited, attributes, is_new })
    }
}

/// What a replaced file keeps.
fn attributes(stat: &Stat) -> Attributes {
    Attributes { uid: stat.uid, gid: stat.gid, mode: stat.mode & 0o777 }
}

/// Why a file was not written, and what to do about it.
fn not_written(error: ccm_host::Error) -> Error {
    match error {
        ccm_host::Error::MountedFile { .. } => Error::Refused {
            reason: error.to_string(),
            hint: Some("set `write: in_place` to write into it".to_owned()),
        },
        error => error.into(),
    }
}

impl Provider for Posix {
    fn observe(&mut self, want: &Properties, cx: &Context<'_>) -> Result<State> {
        let host = &self.host;
        let path = host.managed_file(want.path())?;
        host.check_managed_path(&path)?;
        if let Some(by) = crate::whole::writer(host, &path).filter(|_| !want.is_removal()) {
            let reason = format!("{by} writes the whole content; this edit would be lost");
            return Err(Error::refused(reason));
        }
        let create = self.create(want)?;
        let edit = convert::edit(want).map_err(|(_, reason)| Error::refused(reason))?;
        let read = host.read_managed(&path, MAX_SIZE)?;
        let (text, stat, found) = match read {
            Some((text, stat)) => {
                let edited = ccm_textedit::apply(&text, &edit);
                (text, Some(stat), Found::File(edited))
            }
            None => {
                let made = create.map(|_| ccm_textedit::apply(b"", &edit));
                (Vec::new(), None, Found::Missing(made))
            }
        };
        let mode = stat.map(|stat| stat.mode).or(create.map(|create| create.mode));
        let is_hidden = mode.is_some_and(|mode| mode & 0o004 == 0);
        let is_shown = cx.detail >= Detail::Report;
        let mut state = State {
            name: want.common.name.clone(),
            provider: NAME,
            format: want.format.clone(),
            path,
            found,
            stat,
            create,
            is_secret: want.secret.unwrap_or(is_hidden),
            checksum: None,
            text: Arc::default(),
            owner: stat.filter(|_| is_shown).map(|stat| host.user_name(stat.uid)),
            group: stat.filter(|_| is_shown).map(|stat| host.group_name(stat.gid)),
            ensure: "present",
        };
        // A digest of a text that others cannot read would let them guess it.
        if stat.is_some() && is_shown && (!is_hidden || cx.detail >= Detail::Inspect) {
            state.checksum = Some(Digest::of(&text));
        }
        let is_satisfied = state.is_satisfied(want.is_removal());
        if is_satisfied && stat.is_some() {
            fights::note(host, &state.path, &state.name, &edit);
        }
        if is_satisfied == want.is_removal() {
            state.ensure = "absent";
        }
        if state.pending().is_some_and(|changes| !changes.is_empty()) {
            state.text = text.into();
        }
        Ok(state)
    }

    fn edit(&mut self, action: &Action) -> Result<()> {
        let Made { edited, attributes, is_new } = self.make(action)?;
        let content = ccm_host::Content::Bytes(&edited.text);
        match action.write {
            WriteMethod::InPlace => {
                self.host.write_in_place(&action.path, Some(content), &attributes)
            }
            WriteMethod::Replace if is_new => self.host.create(&action.path, content, &attributes),
            WriteMethod::Replace => self.host.replace(&action.path, content, &attributes),
        }
        .map_err(not_written)
    }

    fn predict(&mut self, action: &Action) -> Result<()> {
        let Made { edited, attributes, .. } = self.make(action)?;
        let content = NewContent::Bytes(&edited.text);
        let path: &Path = &action.path;
        match action.write {
            WriteMethod::InPlace => self.host.predict_in_place(path, Some(content), &attributes),
            WriteMethod::Replace => self.host.predict_file(path, content, &attributes),
        }
        .map_err(not_written)?;
        fights::note(&self.host, path, &action.name, &action.edit);
        Ok(())
    }
}
