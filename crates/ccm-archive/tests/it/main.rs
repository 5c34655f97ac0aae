//! Archives of both kinds: those that mean well and those that do not.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod attacks;
mod build;
mod complete;
mod fetch;
mod honest;
mod hostile;
mod mutations;

use std::path::Path;

use ccm_archive::{Error, Extraction, Format, Limits};
use ccm_host::Host;

/// Extracts the archive at a path, all of it.
fn unpack(
    host: &Host,
    archive: &Path,
    format: Format,
    destination: &Path,
    limits: &Limits,
) -> Result<(), Error> {
    let (file, stat) = host.open(archive)?;
    let extraction = Extraction {
        format,
        destination,
        limits: *limits,
        checksum: None,
        creates: None,
        allows_setuid: false,
        subject: archive,
    };
    extraction.run(host, file, stat.size, &archive.display().to_string())?.complete()
}
