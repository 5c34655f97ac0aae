//! Archives, unpacked in-process, so that none can lead astray.
//!
//! An archive is read twice. The first time everything is checked: names,
//! links, kinds, bits, sizes and checksums, against each other and against what
//! is on the disk. Only an archive without fault is read again and written, by
//! a writer that could not leave the destination even if it wanted to.

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

use ccm_host::Host;

use entry::Visitor;
pub use error::{Error, Result};
pub use fetch::{TempTree, fetch_tree};
pub use format::Format;
use plan::Plan;
use write::Writer;

/// What an archive may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries.
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
pub(crate) enum Manner {
    /// As `tar -x` by the same user would make them.
    AsStored,
    /// For this process alone: regular files and directories, nothing else.
    Private,
}

/// Unpacks the archive at a path into a directory that is there, as `tar -x` or
/// `unzip` run by the same user would. An archive with a fault is refused
/// before anything is written.
pub fn unpack(
    host: &Host,
    archive: &Path,
    format: Format,
    destination: &Path,
    limits: &Limits,
) -> Result<()> {
    let (file, stat) = host.open(archive)?;
    let job = Job { host, format, destination, limits, manner: Manner::AsStored };
    job.run(file, stat.size).map_err(|error| error.of(&archive.display().to_string()))
}

/// What is unpacked, and how.
pub(crate) struct Job<'a> {
    host: &'a Host,
    format: Format,
    destination: &'a Path,
    limits: &'a Limits,
    manner: Manner,
}

impl Job<'_> {
    fn run<F: Read + Seek + Send + 'static>(&self, file: F, size: u64) -> Result<()> {
        let mut into = self.host.open_destination(self.destination)?;
        if self.manner == Manner::Private {
            into = into.passing();
        }
        let mut plan = Plan::new(self, into, size);
        let file = self.read(file, size, &mut plan)?;
        let (checked, into) = plan.finish()?;
        let mut writer = Writer::new(self, into, checked);
        self.read(file, size, &mut writer)?;
        writer.finish()
    }

    /// Hands all entries to a visitor, and the file back.
    fn read<F: Read + Seek + Send + 'static>(
        &self,
        mut file: F,
        size: u64,
        visitor: &mut dyn Visitor,
    ) -> Result<F> {
        file.rewind().map_err(|error| Error::damaged(error.to_string()))?;
        match self.format {
            Format::Zip => {
                zip::read(self.host, &mut file, size, self.limits, visitor)?;
                Ok(file)
            }
            Format::Tar(compression) => {
                let most = self.limits.bytes_from(size);
                // Headers and padding come on top of what is counted.
                let most = most.saturating_add(self.limits.entries.saturating_mul(4096));
                let mut input = decode::Ahead::start(file, compression, most)?;
                tar::read(&mut input, self.limits, visitor)?;
                input.finish()
            }
        }
    }
}
