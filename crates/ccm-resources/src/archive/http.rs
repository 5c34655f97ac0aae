//! Archives over HTTP.

use std::path::Path;

use ccm_archive::{Format, Limits};
use ccm_engine::{Context, Detail, Error, ProviderDef, Result, chain};
use ccm_host::{Attributes, FileKind, Host, Request, Stat};

use super::{Archive, Found, Properties, Provider, State};

const NAME: &str = "http";
/// What nobody but the owner needs to read.
const MODE: u32 = 0o600;

pub(super) const DEF: ProviderDef<Archive> = ProviderDef {
    name: NAME,
    rank: |_, want| {
        let is_known = want.url.is_empty() || ccm_host::check_url(&want.url).is_ok();
        is_known.then_some(1)
    },
    open: |host| Box::new(Http { host: host.clone(), is_fresh: false }),
};

struct Http {
    host: Host,
    /// The archive was fetched just now.
    is_fresh: bool,
}

impl Http {
    fn found(&self, want: &Properties) -> Result<(Found, Option<Stat>)> {
        let path = want.path();
        let Some(itself) = self.host.lstat(path)? else { return Ok((Found::Nothing, None)) };
        if itself.kind != FileKind::Symlink || want.is_removal() {
            return Ok((kind(itself), Some(itself)));
        }
        // What counts is what a link leads to, if it leads anywhere.
        let Some(stat) = self.host.stat(path)? else { return Ok((Found::Nothing, None)) };
        let found = if stat.kind == FileKind::File { Found::Link } else { kind(stat) };
        Ok((found, Some(stat)))
    }

    /// Makes the directory to unpack into, where it is not there; what was made
    /// for nothing goes again.
    fn unpack(&self, want: &Properties, parent: &Path) -> Result<()> {
        let format = Format::of(&want.common.name)
            .ok_or_else(|| Error::refused("archive type not supported"))?;
        let made = self.missing(parent)?;
        if !made.is_empty() {
            let (uid, gid) = self.host.whoami();
            let attributes = Attributes { uid, gid, mode: 0o755 };
            self.host.create_directory(parent, &attributes)?;
        }
        let unpacked =
            ccm_archive::unpack(&self.host, want.path(), format, parent, &Limits::ARCHIVE);
        unpacked.map_err(|error| {
            for directory in made {
                let _ = self.host.remove(directory);
            }
            match error {
                ccm_archive::Error::Host(error) => Error::Host(error),
                error => Error::Refused { reason: chain(&error), hint: error.hint() },
            }
        })
    }

    /// The directories on the way to a path that are not there, innermost first.
    fn missing<'a>(&self, path: &'a Path) -> Result<Vec<&'a Path>> {
        let mut missing = Vec::new();
        for directory in path.ancestors() {
            if self.host.stat(directory)?.is_some() {
                break;
            }
            missing.push(directory);
        }
        Ok(missing)
    }
}

fn kind(stat: Stat) -> Found {
    match stat.kind {
        FileKind::File => Found::File,
        FileKind::Symlink => Found::Link,
        FileKind::Directory => Found::Directory,
        FileKind::Other => Found::Other,
    }
}

impl Provider for Http {
    fn observe(&mut self, want: &Properties, cx: &Context<'_>) -> Result<State> {
        let wanted = if want.is_removal() {
            None
        } else {
            let (uid, gid) = (self.host.uid(&want.owner)?, self.host.gid(&want.group)?);
            Some(Attributes { uid, gid, mode: MODE })
        };
        self.host.check_managed_path(want.path())?;
        if let Some(parent) = &want.extract_parent {
            self.host.check_managed_directory(Path::new(parent))?;
        }
        let (found, stat) = self.found(want)?;
        let creates = match &want.creates {
            Some(creates) => Some(self.host.stat(Path::new(creates))?.is_some()),
            None => None,
        };
        let expected = want.checksum().transpose().map_err(Error::refused)?;
        let is_question = expected.is_some() && creates != Some(true) && !want.is_removal();
        let is_read = is_question || cx.detail >= Detail::Report;
        let checksum = match stat {
            Some(stat) if is_read && stat.kind == FileKind::File => {
                let file = self.host.open_found(want.path(), stat)?;
                Some(self.host.digest(&file, want.path(), stat.size)?)
            }
            _ => None,
        };
        let is_right =
            expected.filter(|_| is_question).zip(checksum).map(|(one, other)| one == other);
        let is_told = cx.detail >= Detail::Report;
        Ok(State {
            found,
            checksum,
            is_right,
            creates,
            wanted,
            name: want.common.name.clone(),
            provider: NAME,
            owner: stat.filter(|_| is_told).map(|stat| self.host.user_name(stat.uid)),
            group: stat.filter(|_| is_told).map(|stat| self.host.group_name(stat.gid)),
            stat,
        })
    }

    fn download(&mut self, want: &Properties, attributes: &Attributes) -> Result<()> {
        let mut request = Request::new(&want.url);
        if let Some(user) = &want.username {
            request = request.user(user, want.password.as_deref().unwrap_or_default());
        }
        for (name, value) in want.headers.entries() {
            request = request.header(name, value);
        }
        let expected = want.checksum().transpose().map_err(Error::refused)?;
        self.host.download(&request, want.path(), attributes, expected)?;
        self.is_fresh = true;
        Ok(())
    }

    fn set_owner(&mut self, want: &Properties, attributes: &Attributes) -> Result<()> {
        let stat = self.host.lstat(want.path())?;
        let mode = stat.map_or(attributes.mode, |stat| stat.mode & 0o777);
        Ok(self.host.set_attributes(want.path(), &Attributes { mode, ..*attributes })?)
    }

    fn extract(&mut self, want: &Properties) -> Result<()> {
        let Some(parent) = want.extract_parent.as_deref().map(Path::new) else { return Ok(()) };
        let creates = want.creates.as_deref().map(Path::new);
        // It says that everything is unpacked, so it goes if that fails.
        let witness = match creates.filter(|creates| creates.starts_with(parent)) {
            Some(creates) if self.host.lstat(creates)?.is_none() => Some(creates),
            _ => None,
        };
        self.unpack(want, parent).inspect_err(|_| {
            if let Some(witness) = witness.filter(|witness| *witness != parent) {
                let _ = self.host.remove_tree(witness);
            }
            // The same for an archive that would look like one that was
            // unpacked long ago.
            if self.is_fresh {
                let _ = self.host.remove(want.path());
            }
        })
    }

    fn remove(&mut self, want: &Properties) -> Result<()> {
        Ok(self.host.remove(want.path())?)
    }
}
