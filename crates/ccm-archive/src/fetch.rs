//! Downloaded directory trees that last as long as a run.

use std::path::{Path, PathBuf};

use ccm_host::{Destination, Fetched, Host, RecordedFetch, Request, TemporaryDirectory};

use crate::{Error, ExtractMode, Extractor, Format, Limits, Result};

/// No tree of manifests or templates is larger, compressed.
const MAX_DOWNLOAD: u64 = 100 << 20;

/// An extracted tree in a private directory that is removed with this value, or
/// the copy of it in a saved plan.
#[derive(Debug)]
pub struct TempTree(Location);

#[derive(Debug)]
enum Location {
    Own(TemporaryDirectory),
    Replayed(PathBuf),
}

impl TempTree {
    /// The directory that holds the files, until the value is dropped.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Location::Own(directory) => directory.path(),
            Location::Replayed(path) => path,
        }
    }
}

/// Downloads a tarball and extracts its regular files and directories into a
/// private directory. Sends credentials in the URL only to its own host, and
/// redacts them.
pub fn fetch_tree(host: &Host, url: &str, limits: &Limits) -> Result<TempTree> {
    if let Some(RecordedFetch::Tree(path)) = host.replayed_fetch(url) {
        return Ok(TempTree(Location::Replayed(path)));
    }
    host.fetchers().check(url)?;
    let request = tree_request(url);
    let format = tree_format(&request)?;
    let fetched = host.fetch_file(&request)?;
    let directory = host.temporary_directory("ccm-tree-")?;
    let into = Destination::open(host, directory.path())?.passing();
    extract(host, fetched, format, limits, into, &format!("{request:?}"))?;
    host.record_fetch(url, RecordedFetch::Tree(directory.path().to_owned()));
    Ok(TempTree(Location::Own(directory)))
}

/// A request for a tree, with its limit.
pub fn tree_request(url: &str) -> Request<'_> {
    Request::new(url).with_limit(MAX_DOWNLOAD)
}

/// Checks that a URL stands for a tarball that [`extract_tree`] extracts.
///
/// # Errors
///
/// Returns [`Error::Unsupported`].
pub fn check_tree_url(url: &str) -> Result<()> {
    tree_format(&tree_request(url)).map(drop)
}

/// Extracts a downloaded tarball into a directory that only this user can write
/// to. Accepts regular files and directories only. They are on disk after
/// [`Host::sync`].
pub fn extract_tree(
    host: &Host,
    request: &Request<'_>,
    fetched: Fetched,
    limits: &Limits,
    into: &Path,
) -> Result<()> {
    let format = tree_format(request)?;
    let into = Destination::open(host, into)?;
    extract(host, fetched, format, limits, into, &format!("{request:?}"))
}

fn tree_format(request: &Request<'_>) -> Result<Format> {
    match Format::of_url(request.url()) {
        Some(format @ Format::Tar(_)) => Ok(format),
        _ => Err(Error::Unsupported { name: format!("{request:?}") }),
    }
}

fn extract(
    host: &Host,
    fetched: Fetched,
    format: Format,
    limits: &Limits,
    into: Destination,
    name: &str,
) -> Result<()> {
    let job = Extractor {
        host,
        format,
        limits,
        extract_mode: ExtractMode::Private,
        allows_setuid: false,
        checksum: Some(fetched.digest),
        creates: None,
    };
    drop(job.run(into, fetched.file, fetched.size).map_err(|error| error.of(name))?);
    Ok(())
}
