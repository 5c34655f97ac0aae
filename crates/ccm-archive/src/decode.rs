//! Decompression in a separate thread that reads ahead.

mod zstd;

use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use ccm_host::{Digest, Digesting};

use crate::format::Compression;
use crate::{Error, Result};

const BUFFER: usize = 256 << 10;
/// How many full buffers may wait.
const AHEAD: usize = 4;
/// Memory that a decoder may take, for those whose input says how much.
const MAX_WINDOW_KIB: u32 = 160 << 10;

type Chunk = io::Result<Vec<u8>>;

/// The decompressed bytes of a file.
pub(crate) struct Ahead<F> {
    full: Option<Receiver<Chunk>>,
    empty: Option<SyncSender<Vec<u8>>>,
    chunk: Vec<u8>,
    at: usize,
    is_over: bool,
    thread: Option<JoinHandle<io::Result<(F, Digest)>>>,
}

impl<F: Read + Send + 'static> Ahead<F> {
    /// Begins to decompress; more than `most` bytes are an error.
    pub(crate) fn start(file: F, size: u64, compression: Compression, most: u64) -> Result<Self> {
        let (full, filled) = sync_channel(AHEAD);
        let (empty, emptied) = sync_channel(AHEAD + 2);
        let work = move || {
            let mut file = Digesting::new(file);
            let mut source = BufReader::with_capacity(BUFFER, &mut file);
            if let Some((name, beginning)) = compression.beginning()
                && !source.fill_buf()?.starts_with(beginning)
            {
                // An error page saved in its place is told from a damaged archive.
                let error = Error::not_a(name, size);
                let _ = full.send(Err(io::Error::other(error)));
                return Err(io::Error::other("it was not read"));
            }
            let mut pump = Pump { full, emptied, left: most };
            let is_all = match compression {
                Compression::None => pump.run(source),
                Compression::Gzip => pump.run(flate2::bufread::MultiGzDecoder::new(source)),
                Compression::Bzip2 => pump.run(bzip2::bufread::MultiBzDecoder::new(source)),
                Compression::Xz => {
                    pump.run(lzma_rust2::XzReader::new_mem_limit(source, true, MAX_WINDOW_KIB))
                }
                Compression::Zstd => pump.run(zstd::Frames::new(source, MAX_WINDOW_KIB)),
            };
            drop(pump);
            if is_all { file.finish() } else { Err(io::Error::other("it was not read")) }
        };
        let thread = std::thread::Builder::new().name("decode".into()).spawn(work)?;
        Ok(Self {
            full: Some(filled),
            empty: Some(empty),
            chunk: Vec::new(),
            at: 0,
            is_over: false,
            thread: Some(thread),
        })
    }

    /// Reads to the end, so that every checksum is compared, and gives the file
    /// back with the digest of all its bytes.
    pub(crate) fn finish(mut self) -> Result<(F, Digest)> {
        loop {
            let count = self.fill_buf()?.len();
            if count == 0 {
                break;
            }
            self.consume(count);
        }
        self.full = None;
        self.empty = None;
        let stopped = || Error::damaged("its decoder stopped");
        Ok(self.thread.take().ok_or_else(stopped)?.join().map_err(|_| stopped())??)
    }
}

impl<F> Drop for Ahead<F> {
    fn drop(&mut self) {
        // Without its channels the thread ends at its next buffer.
        self.full = None;
        self.empty = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl<F> Read for Ahead<F> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(into)?;
        self.consume(count);
        Ok(count)
    }
}

impl<F> BufRead for Ahead<F> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.chunk.len() && !self.is_over {
            let done = std::mem::take(&mut self.chunk);
            if let Some(empty) = &self.empty {
                let _ = empty.try_send(done);
            }
            self.at = 0;
            let next = self.full.as_ref().and_then(|full| full.recv().ok());
            // An end is said; a thread that is gone without a word has failed.
            self.chunk = next.unwrap_or_else(|| Err(io::Error::other("its decoder stopped")))?;
            self.is_over = self.chunk.is_empty();
        }
        Ok(&self.chunk[self.at..])
    }

    fn consume(&mut self, count: usize) {
        self.at = (self.at + count).min(self.chunk.len());
    }
}

/// The thread's side.
struct Pump {
    full: SyncSender<Chunk>,
    emptied: Receiver<Vec<u8>>,
    left: u64,
}

impl Pump {
    /// Sends everything, then an empty chunk, or an error; ends early when
    /// nobody listens. Whether everything was sent.
    fn run(&mut self, mut from: impl Read) -> bool {
        loop {
            let chunk = self.fill(&mut from);
            let is_end = chunk.as_ref().is_ok_and(Vec::is_empty);
            let is_error = chunk.is_err();
            let is_heard = self.full.send(chunk).is_ok();
            if !is_heard || is_error || is_end {
                return is_heard && is_end;
            }
        }
    }

    fn fill(&mut self, from: &mut impl Read) -> Chunk {
        let mut buffer = self.emptied.try_recv().unwrap_or_default();
        buffer.resize(BUFFER, 0);
        let mut length = 0;
        while length < buffer.len() {
            match from.read(&mut buffer[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let Some(left) = self.left.checked_sub(length as u64) else {
            return Err(io::Error::other(Error::excessive(
                "it expands to too many bytes for its size",
            )));
        };
        self.left = left;
        buffer.truncate(length);
        Ok(buffer)
    }
}
