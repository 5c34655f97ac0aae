//! Tar and zip extraction without external tools, safe against path traversal.
//!
//! An archive is read twice. The first pass checks names, symlinks, types, mode
//! bits, sizes and checksums, against each other and against the files on disk.
//! Only an archive without errors is read again and extracted, by a writer that
//! resolves every path beneath the destination.

mod decode;
mod entry;
mod error;
mod fetch;
mod format;
mod plan;
mod tar;
mod write;
mod zip;

use std::io::{Read, Seek};
use std::path::Path;

use ccm_host::{Destination, Digest, Digesting, Host};

use entry::Visitor;
pub use error::{Error, Result};
pub use fetch::{TempTree, check_tree_url, extract_tree, fetch_tree, tree_request};
pub use format::Format;
use plan::Plan;
use write::Writer;

/// Limits on the number of entries and the extracted size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most entries that ccm extracts from one archive.
    pub entries: u64,
    /// Bytes that are always granted.
    pub bytes: u64,
    /// Beyond those, bytes for each byte of the archive.
    pub ratio: u64,
}

impl Limits {
    /// For archives that someone put into a manifest on purpose.
    pub const ARCHIVE: Self = Self { entries: 1_000_000, bytes: 1 << 30, ratio: 200 };
    /// For trees of manifests and templates.
    pub const TREE: Self = Self { entries: 10_000, bytes: 256 << 20, ratio: 0 };

    /// Bytes that an archive of this size may become.
    fn bytes_from(&self, size: u64) -> u64 {
        self.bytes.max(size.saturating_mul(self.ratio))
    }
}

/// How entries become files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtractMode {
    /// As `tar -x` by the same user would make them.
    AsStored,
    /// For this process alone: regular files and directories, nothing else.
    Private,
}

/// An extraction: archive, format, target and limits.
#[derive(Clone, Copy, Debug)]
pub struct Extraction<'a> {
    /// Format of the archive.
    pub format: Format,
    /// The directory to extract into; made if it is not there.
    pub destination: &'a Path,
    /// Limits on the archive.
    pub limits: Limits,
    /// The digest that the archive must have, whenever it is read.
    pub checksum: Option<Digest>,
    /// A path that appears when everything else is in place, if it is one that
    /// the archive has.
    pub creates: Option<&'a Path>,
    /// Whether entries may have setuid and setgid bits, and keep them.
    pub allows_setuid: bool,
    /// Identifies the extraction for [`ccm_host::Host::is_incomplete`].
    pub subject: &'a Path,
}

impl Extraction<'_> {
    /// Extracts an archive as `tar -x` or `unzip` run by the same user would.
    /// Refuses an invalid archive before it writes anything; errors call the
    /// archive `name`. No other user may be able to write to the file.
    ///
    /// Files are written under temporary names and renamed. The destination
    /// stays marked as incomplete until the caller completes the result.
    pub fn run<F>(&self, host: &Host, file: F, size: u64, name: &str) -> Result<Extracted>
    where
        F: Read + Seek + Send + 'static,
    {
        let into = Destination::open_marked(host, self.destination, self.subject)?;
        let creates = self.creates.and_then(|path| path.strip_prefix(self.destination).ok());
        let creates = creates.filter(|name| !name.as_os_str().is_empty());
        let job = Extractor {
            host,
            format: self.format,
            limits: &self.limits,
            extract_mode: ExtractMode::AsStored,
            allows_setuid: self.allows_setuid,
            checksum: self.checksum,
            creates,
        };
        let (into, digest) = job.run(into, file, size).map_err(|error| error.of(name))?;
        Ok(Extracted { into, digest })
    }
}

/// An archive that is extracted, while its destination is still marked as
/// incomplete.
#[derive(Debug)]
#[must_use]
pub struct Extracted {
    into: Destination,
    digest: Digest,
}

impl Extracted {
    /// The digest of the archive.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Marks the extraction as complete, after everything is on disk unless
    /// syncing is off.
    pub fn complete(self) -> Result<()> {
        Ok(self.into.complete()?)
    }
}

/// What is unpacked, and how.
pub(crate) struct Extractor<'a> {
    host: &'a Host,
    format: Format,
    limits: &'a Limits,
    extract_mode: ExtractMode,
    allows_setuid: bool,
    checksum: Option<Digest>,
    creates: Option<&'a Path>,
}

impl Extractor<'_> {
    /// Gives back the destination, and the digest of the archive.
    fn run<F>(&self, into: Destination, file: F, size: u64) -> Result<(Destination, Digest)>
    where
        F: Read + Seek + Send + 'static,
    {
        let mut plan = Plan::new(self, into, size);
        let (file, digest) = self.read(file, size, &mut plan)?;
        if let Some(expected) = self.checksum.filter(|&expected| expected != digest) {
            let reason = format!("its checksum is {digest}, not {expected}");
            return Err(Error::damaged(reason));
        }
        let (checked, into) = plan.finish()?;
        let mut writer = Writer::new(self, into, checked)?;
        let (_, again) = self.read(file, size, &mut writer)?;
        if again != digest {
            return Err(write::changed());
        }
        Ok((writer.finish()?, digest))
    }

    /// Hands all entries to a visitor, and back the file with the digest of
    /// what was read.
    fn read<F: Read + Seek + Send + 'static>(
        &self,
        mut file: F,
        size: u64,
        visitor: &mut dyn Visitor,
    ) -> Result<(F, Digest)> {
        file.rewind()?;
        match self.format {
            Format::Zip => {
                zip::read(self.host, &mut file, size, self.limits, visitor)?;
                // It was read here and there.
                file.rewind()?;
                Ok(Digesting::new(file).finish()?)
            }
            Format::Tar(compression) => {
                let most = self.limits.bytes_from(size);
                // Headers and padding come on top of what is counted.
                let most = most.saturating_add(self.limits.entries.saturating_mul(4096));
                let mut input = decode::Ahead::start(file, size, compression, most)?;
                tar::read(&mut input, self.limits, visitor)?;
                input.finish()
            }
        }
    }
}
