//! Trees that are fetched for the time of a run.

use std::path::{Path, PathBuf};

use ccm_host::{Host, RecordedFetch, Request, TemporaryDirectory};

use crate::{Error, ExtractMode, Extractor, Format, Limits, Result};

/// No tree of manifests or templates is larger, compressed.
const MAX_DOWNLOAD: u64 = 100 << 20;

/// What was extracted, in a private directory that goes with this value, or
/// what a saved plan has of it.
#[derive(Debug)]
pub struct TempTree(Place);

#[derive(Debug)]
enum Place {
    Own(TemporaryDirectory),
    Replayed(PathBuf),
}

impl TempTree {
    /// The directory that holds the files, until the value is dropped.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Place::Own(directory) => directory.path(),
            Place::Replayed(path) => path,
        }
    }
}

/// Fetches a tarball by its URL and extracts it into a private directory:
/// regular files and directories, nothing else. Credentials in the URL are sent
/// to its own host and never shown.
pub fn fetch_tree(host: &Host, url: &str, limits: &Limits) -> Result<TempTree> {
    if let Some(RecordedFetch::Tree(path)) = host.replayed_fetch(url) {
        return Ok(TempTree(Place::Replayed(path)));
    }
    host.fetchers().check(url)?;
    let request = Request::new(url).with_limit(MAX_DOWNLOAD);
    let shown = format!("{request:?}");
    let Some(format @ Format::Tar(_)) = Format::of_url(url) else {
        return Err(Error::Unsupported { name: shown });
    };
    let fetched = host.fetch_file(&request)?;
    let directory = host.temporary_directory("ccm-tree-")?;
    let into = host.open_destination(directory.path())?.passing();
    let checksum = Some(fetched.digest);
    let job = Extractor {
        host,
        format,
        limits,
        extract_mode: ExtractMode::Private,
        checksum,
        creates: None,
    };
    drop(job.run(into, fetched.file, fetched.size).map_err(|error| error.of(&shown))?);
    host.record_fetch(url, RecordedFetch::Tree(directory.path().to_owned()));
    Ok(TempTree(Place::Own(directory)))
}
