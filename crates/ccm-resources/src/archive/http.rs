//! The provider `http`: archives downloaded by URL.

use std::io::{Read, Seek};
use std::path::Path;

use ccm_archive::{Extracted, Extraction, Format, Limits};
use ccm_engine::{Context, Detail, Error, Prediction, ProviderDef, Result, chain};
use ccm_host::{Attributes, Digest, FileKind, Host, Incoming, NewContent, Request, Stat};

use super::{
    Action, Archive, CurrentArchive, Download, Extract, Properties, Provider, State, parse_checksum,
};

const NAME: &str = "http";
/// Mode of files that only their owner needs to read.
const MODE: u32 = 0o600;

pub(super) const DEF: ProviderDef<Archive> = ProviderDef {
    name: NAME,
    rank: |host, want| {
        let is_known = want.url.is_empty() || host.fetchers().check(&want.url).is_ok();
        is_known.then_some(1)
    },
    open: |host| Box::new(Http { host: host.clone(), fetched: None }),
};

struct Http {
    host: Host,
    /// The archive that was fetched just now, to be placed when it is unpacked,
    /// and the attributes that it gets then.
    fetched: Option<(Incoming, Attributes)>,
}

impl Http {
    fn found(&self, want: &Properties) -> Result<(CurrentArchive, Option<Stat>)> {
        let path = want.path();
        let Some(itself) = self.host.lstat(path)? else {
            return Ok((CurrentArchive::Nothing, None));
        };
        if itself.kind != FileKind::Symlink || want.is_removal() {
            return Ok((kind(itself), Some(itself)));
        }
        // What counts is what a link leads to, if it leads anywhere.
        let Some(stat) = self.host.stat(path)? else { return Ok((CurrentArchive::Nothing, None)) };
        let found = if stat.kind == FileKind::File { CurrentArchive::Link } else { kind(stat) };
        Ok((found, Some(stat)))
    }

    /// Extracts a file that no other user can change.
    fn unpack(
        &self,
        extract: &Extract,
        (file, size): (impl Read + Seek + Send + 'static, u64),
    ) -> Result<Extracted> {
        let name = extract.path.to_string_lossy();
        let extraction = Extraction {
            format: Format::of(&name)
                .ok_or_else(|| Error::refused("archive type not supported"))?,
            destination: &extract.parent,
            limits: Limits::ARCHIVE,
            checksum: checksum(extract.checksum.as_deref())?,
            creates: extract.creates.as_deref(),
            allows_setuid: extract.allows_setuid,
            subject: extract.subject(),
        };
        extraction.run(&self.host, file, size, &name).map_err(refused)
    }

    fn is_incomplete(&self, extract: &Extract) -> Result<bool> {
        Ok(self.host.is_incomplete(&extract.parent, extract.subject())?)
    }

    /// The directory that an archive is extracted into must be one that can be
    /// written; what will be in it, only the run can tell.
    fn predict_extraction(&self, extract: &Extract) -> Result<()> {
        let (uid, gid) = self.host.whoami();
        let new = Attributes { uid, gid, mode: 0o755 };
        match self.host.stat(&extract.parent)? {
            None => self.host.predict_directory(&extract.parent, &new)?,
            Some(_) => {
                let probe = extract.parent.join(".ccm-extraction");
                self.host.predict_file(&probe, NewContent::Bytes(b""), &new)?;
            }
        }
        self.host.predict_unknown_content(&extract.parent);
        if let Some(creates) = &extract.creates {
            self.host.predict_something(creates);
        }
        Ok(())
    }

    /// What was extracted last, where nothing else tells.
    fn extracted(&self, want: &Properties, cx: &Context<'_>) -> Result<Option<Digest>> {
        let is_question = want.cleanup && want.checksum.is_some() && !want.is_removal();
        let Some(extractions) = cx.extractions.filter(|_| is_question) else { return Ok(None) };
        let Some(parent) = &want.extract_parent else { return Ok(None) };
        Ok(extractions.find(&want.common.name, Path::new(parent))?)
    }

    /// Records what is extracted and ends the extraction. A run that is killed in
    /// between leaves the extraction incomplete, so the next one repeats it.
    fn complete(&self, extract: &Extract, extracted: Extracted, cx: &Context<'_>) -> Result<()> {
        if let Some(extractions) = cx.extractions.filter(|_| extract.cleanup) {
            let name = extract.path.to_string_lossy();
            extractions.record(&self.host, &name, &extract.parent, extracted.digest())?;
        }
        extracted.complete().map_err(refused)
    }

    fn is_created(&self, creates: Option<&Path>) -> Result<Option<bool>> {
        let Some(creates) = creates else { return Ok(None) };
        Ok(Some(self.host.exists(creates)?))
    }
}

fn checksum(text: Option<&str>) -> Result<Option<Digest>> {
    text.map(parse_checksum).transpose().map_err(Error::refused)
}

fn refused(error: ccm_archive::Error) -> Error {
    match error {
        ccm_archive::Error::Host(error) => Error::Host(error),
        error => Error::Refused { reason: chain(&error), hint: error.hint() },
    }
}

fn kind(stat: Stat) -> CurrentArchive {
    match stat.kind {
        FileKind::File => CurrentArchive::File,
        FileKind::Symlink => CurrentArchive::Link,
        FileKind::Directory => CurrentArchive::Directory,
        FileKind::Other => CurrentArchive::Other,
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
        let (mut found, mut stat) = self.found(want)?;
        let creates = self.is_created(want.creates.as_deref().map(Path::new))?;
        let is_incomplete = match want.extraction() {
            Some(extract) if !want.is_removal() => self.is_incomplete(&extract)?,
            _ => false,
        };
        let expected = checksum(want.checksum.as_deref())?;
        let is_question = expected.is_some() && !want.is_removal();
        let is_read = is_question || cx.detail >= Detail::Report;
        let mut found_checksum = None;
        if let Some(there) = stat.filter(|stat| is_read && stat.kind == FileKind::File) {
            match self.host.open_found(want.path(), there) {
                Ok(file) => {
                    found_checksum = Some(self.host.digest(&file, want.path(), there.size)?);
                }
                // Another run has cleaned up meanwhile.
                Err(error) if error.is_missing() => (found, stat) = (CurrentArchive::Nothing, None),
                Err(error) => return Err(error.into()),
            }
        }
        let is_right =
            expected.filter(|_| is_question).zip(found_checksum).map(|(one, other)| one == other);
        let is_told = cx.detail >= Detail::Report || wanted.is_some();
        Ok(State {
            found,
            checksum: found_checksum,
            is_right,
            creates,
            is_incomplete,
            extracted: self.extracted(want, cx)?,
            wanted,
            name: want.common.name.clone(),
            provider: NAME,
            owner: stat.filter(|_| is_told).map(|stat| self.host.user_name(stat.uid)),
            group: stat.filter(|_| is_told).map(|stat| self.host.group_name(stat.gid)),
            stat,
        })
    }

    fn download(&mut self, download: &Download) -> Result<()> {
        let mut request = Request::new(&download.url);
        if let Some((user, password)) = &download.user {
            request = request.with_user(user, password);
        }
        for (name, value) in &download.headers {
            request = request.with_header(name, value);
        }
        let expected = checksum(download.checksum.as_deref())?;
        let incoming = self.host.download(&request, &download.path, expected)?;
        if download.is_unpacked {
            self.fetched = Some((incoming, download.attributes));
            return Ok(());
        }
        Ok(incoming.place(&download.attributes)?)
    }

    fn set_owner(&mut self, path: &Path, attributes: &Attributes) -> Result<()> {
        let stat = self.host.lstat(path)?;
        let mode = stat.map_or(attributes.mode, |stat| stat.mode & 0o777);
        Ok(self.host.set_attributes(path, &Attributes { mode, ..*attributes })?)
    }

    fn extract(&mut self, extract: &Extract, cx: &Context<'_>) -> Result<()> {
        if let Some((incoming, attributes)) = self.fetched.take() {
            let extracted = self.unpack(extract, incoming.file()?)?;
            // With `cleanup` it goes again, so it need not come. A run that is
            // killed before it has gone must not look complete: nobody would
            // remove it then.
            if extract.cleanup {
                drop(incoming);
            } else {
                incoming.place(&attributes)?;
            }
            return self.complete(extract, extracted, cx);
        }
        match self.host.open_unchanging(&extract.path) {
            Ok(file) => self.complete(extract, self.unpack(extract, file)?, cx),
            Err(error) => {
                // Another run may have extracted it and cleaned up meanwhile.
                let is_done = error.is_missing()
                    && self.is_created(extract.creates.as_deref())? == Some(true)
                    && !self.is_incomplete(extract)?;
                if is_done { Ok(()) } else { Err(error.into()) }
            }
        }
    }

    fn remove(&mut self, path: &Path) -> Result<()> {
        Ok(self.host.remove(path)?)
    }

    fn predict(&mut self, action: &Action) -> Result<Prediction> {
        let host = &self.host;
        match action {
            Action::Download(download) => {
                let Download { path, attributes, .. } = download;
                // Checks what can be checked; the content stays unknown.
                let expected = checksum(download.checksum.as_deref())?;
                host.preview_download(&Request::new(&download.url), expected)?;
                host.predict_file(path, NewContent::Bytes(b""), attributes)?;
                host.predict_something(path);
            }
            Action::SetOwner { path, attributes } => {
                let mode = host.lstat(path)?.map_or(attributes.mode, |stat| stat.mode & 0o777);
                host.predict_attributes(path, &Attributes { mode, ..*attributes })?;
            }
            Action::Extract(extract) => {
                self.predict_extraction(extract)?;
                return Ok(Prediction::Files);
            }
            Action::CleanUp { path } | Action::Remove { path } => {
                host.predict_removal(path, false)?;
            }
        }
        Ok(Prediction::Exact)
    }
}
