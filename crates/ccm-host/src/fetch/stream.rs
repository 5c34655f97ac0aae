//! Response bodies, limited and hashed while they are written to disk.

use std::fmt;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

use super::{Body, OFFLINE, Request, Validators, local_path};
use crate::file::mode;
use crate::{Digest, Error, Host, Incoming, Result};

const CHUNK: usize = 128 * 1024;
/// How often progress is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// How far a download is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that have arrived so far.
    pub received: u64,
    /// Bytes in total, if that is known.
    pub total: Option<u64>,
}

/// Who wants to know.
#[derive(Default)]
pub(crate) struct ProgressSink(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "watched" } else { "unwatched" })
    }
}

/// A download in an unnamed temporary file, which disappears when this value is
/// dropped or the process ends.
#[derive(Debug)]
pub struct Fetched {
    /// The downloaded file, positioned at its start.
    pub file: File,
    /// How many bytes arrived in total.
    pub size: u64,
    /// The SHA-256 digest of these bytes.
    pub digest: Digest,
    /// Which version the server says it is.
    pub validators: Validators,
}

impl Host {
    /// Sets a callback for the progress of downloads.
    pub fn on_progress(&self, tell: impl Fn(Progress) + Send + Sync + 'static) {
        self.inner.progress.set(ProgressSink(Some(Arc::new(tell))));
    }

    /// Downloads into a private file beside `path`, and verifies the expected
    /// digest. [`Incoming::place`] gives it its name.
    pub fn download(
        &self,
        request: &Request<'_>,
        path: &Path,
        expected: Option<Digest>,
    ) -> Result<Incoming> {
        self.incoming(path, |file| {
            let (size, digest) = self.stream(request, &mut |chunk| {
                file.write_all(chunk).map_err(Error::std_io("write", path))
            })?;
            match expected {
                Some(expected) if expected != digest => {
                    let url = format!("{request:?}");
                    Err(Error::Checksum { url, expected, actual: digest })
                }
                _ => Ok(size),
            }
        })
    }

    /// In a preview: fails where [`Host::download`] would for a reason that can be
    /// seen without asking a server. The content is read only to compare it.
    pub fn preview_download(&self, request: &Request<'_>, expected: Option<Digest>) -> Result<()> {
        let fetch = self.fetchers().find(request.url)?;
        let (Some(body), Some(expected)) = (fetch.open_preview(request, self)?, expected) else {
            return Ok(());
        };
        let read = crate::Digesting::new(body.reader).finish();
        let (_, actual) = read.map_err(|error| request.failed(error.to_string()))?;
        if actual == expected {
            return Ok(());
        }
        Err(Error::Checksum { url: format!("{request:?}"), expected, actual })
    }

    /// Fetches into a private file without a name.
    pub fn fetch_file(&self, request: &Request<'_>) -> Result<Fetched> {
        let body = self.begin_fetch(request)?;
        self.receive_file(request, body, &self.temp_dir())
    }

    /// The same on the file system of a directory; `None` if the server has
    /// nothing but what [`Request::with_validators`] names.
    pub fn fetch_new(&self, request: &Request<'_>, directory: &Path) -> Result<Option<Fetched>> {
        let body = self.begin_fetch(request)?;
        if body.is_unchanged {
            return Ok(None);
        }
        self.receive_file(request, body, directory).map(Some)
    }

    fn begin_fetch(&self, request: &Request<'_>) -> Result<Body> {
        let fetch = self.fetchers().find(request.url)?;
        if self.inner.system.is_offline() && local_path(request.url).is_none() {
            return Err(request.failed(OFFLINE));
        }
        fetch.open(request, self)
    }

    fn receive_file(
        &self,
        request: &Request<'_>,
        mut body: Body,
        directory: &Path,
    ) -> Result<Fetched> {
        let validators = std::mem::take(&mut body.validators);
        let mut file = self.unnamed_file(directory)?;
        let (size, digest) = self.receive(request, body, &mut |chunk| {
            file.write_all(chunk).map_err(Error::std_io("write a file in", directory))
        })?;
        file.rewind().map_err(Error::std_io("read a file in", directory))?;
        Ok(Fetched { file, size, digest, validators })
    }

    /// Hands the body on in chunks, and its size and digest at the end.
    pub(super) fn stream(
        &self,
        request: &Request<'_>,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<(u64, Digest)> {
        let body = self.begin_fetch(request)?;
        self.receive(request, body, take)
    }

    fn receive(
        &self,
        request: &Request<'_>,
        mut body: Body,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<(u64, Digest)> {
        let total = body.length;
        let too_large = || request.failed(format!("it is larger than {} bytes", request.limit));
        if total.is_some_and(|total| total > request.limit) {
            return Err(too_large());
        }
        let mut told = Instant::now();
        let mut hasher = Sha256::new();
        let mut received = 0;
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = body.reader.read(&mut buffer);
            if self.cancel().is_cancelled() {
                return Err(request.failed("the run was interrupted"));
            }
            let count = match read {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(request.failed(error.to_string())),
            };
            if count == 0 {
                return Ok((received, Digest::from(hasher)));
            }
            received += count as u64;
            if received > request.limit {
                return Err(too_large());
            }
            hasher.update(&buffer[..count]);
            take(&buffer[..count])?;
            if told.elapsed() >= PROGRESS_INTERVAL {
                told = Instant::now();
                self.tell(Progress { received, total });
            }
        }
    }

    fn tell(&self, progress: Progress) {
        let sink = self.inner.progress.hold().0.clone();
        if let Some(tell) = sink {
            tell(progress);
        }
    }

    /// A private file that never has a name, or has it only for an instant.
    pub(crate) fn unnamed_file(&self, directory: &Path) -> Result<File> {
        let fail = |errno| Error::io("create a file in", directory)(errno);
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::openat(CWD, directory, flags | OFlags::TMPFILE, mode(0o600)) {
            Ok(file) => return Ok(file.into()),
            // Not every file system can.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            Err(errno) => return Err(fail(errno)),
        }
        let path = directory.join(self.random_name(".ccm-"));
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(fail)?;
        rustix::fs::unlink(&path).map_err(fail)?;
        Ok(file.into())
    }
}
