//! SHA-256 of files and bytes.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::{Error, Host, Result};

/// A SHA-256 digest; prints as hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    ///
    /// ```
    /// let digest = ccm_host::Digest::of(b"");
    /// assert!(digest.to_string().starts_with("e3b0c44298fc1c14"));
    /// ```
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hexadecimal digits. Formatting byte by byte takes longer than
    /// digesting a short text.
    pub fn hex(&self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 0xf)];
        }
        text
    }
}

impl From<Sha256> for Digest {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

/// Reads on, and keeps the digest of everything that was read.
#[derive(Debug)]
pub struct Digesting<R> {
    from: R,
    hasher: Sha256,
}

impl<R: io::Read> Digesting<R> {
    /// Digests everything that is read through it from the reader's current position on.
    pub fn new(from: R) -> Self {
        Self { from, hasher: Sha256::new() }
    }

    /// Reads to the end; the digest of all that was read.
    pub fn finish(mut self) -> io::Result<(R, Digest)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((self.from, self.hasher.into()))
    }
}

impl<R: io::Read> io::Read for Digesting<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.hasher.update(&into[..count]);
        Ok(count)
    }
}

/// Copies to the end; the number of bytes and their digest.
pub(crate) fn copy_digested(from: &mut impl io::Read, to: &mut File) -> io::Result<(u64, Digest)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; Host::CHUNK];
    let mut size = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok((size, hasher.into())),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
        size += count as u64;
    }
}

/// Takes up bytes one part after the other.
#[derive(Debug, Default)]
pub(crate) struct PartialDigest(Sha256);

impl PartialDigest {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        self.0.into()
    }
}

/// Reads 64 hexadecimal digits, of either case.
impl std::str::FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "a SHA-256 checksum has 64 hexadecimal digits";
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(wrong);
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| wrong)?;
        }
        // A sign is no digit, though a number may have one.
        if text.contains('+') { Err(wrong) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.hex()).unwrap_or_default())
    }
}

impl serde::Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(std::str::from_utf8(&self.hex()).unwrap_or_default())
    }
}

impl<'de> serde::Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Host {
    const CHUNK: usize = 128 * 1024;

    /// Whether an open file holds exactly these bytes.
    pub fn holds(&self, file: &File, path: &Path, wanted: &[u8]) -> Result<bool> {
        let mut buffer = self.inner.buffer.hold();
        buffer.resize(Self::CHUNK, 0);
        let mut rest = wanted;
        loop {
            let count = rustix::io::retry_on_intr(|| rustix::io::read(file, &mut *buffer))
                .map_err(Error::io("read", path))?;
            if count == 0 {
                return Ok(rest.is_empty());
            }
            let Some(more) = rest.strip_prefix(&buffer[..count]) else { return Ok(false) };
            rest = more;
            // A short read at the wanted end spares the call that would give 0:
            // the caller knows the size.
            if rest.is_empty() && count < buffer.len() {
                return Ok(true);
            }
        }
    }

    /// Whether two open files hold the same. `paths` are where they are.
    pub fn is_same(&self, files: [&File; 2], paths: [&Path; 2]) -> Result<bool> {
        let mut buffer = self.inner.buffer.hold();
        buffer.resize(2 * Self::CHUNK, 0);
        let (one, other) = buffer.split_at_mut(Self::CHUNK);
        loop {
            let count = fill(files[0], paths[0], one)?;
            if fill(files[1], paths[1], other)? != count || one[..count] != other[..count] {
                return Ok(false);
            }
            if count < Self::CHUNK {
                return Ok(true);
            }
        }
    }

    /// The digest of an open file of a known size, from its beginning to its end.
    pub fn digest(&self, file: &File, path: &Path, size: u64) -> Result<Digest> {
        let mut buffer = self.inner.buffer.hold();
        buffer.resize(Self::CHUNK, 0);
        let mut hasher = Sha256::new();
        let mut total = 0;
        loop {
            let count = rustix::io::retry_on_intr(|| rustix::io::read(file, &mut *buffer))
                .map_err(Error::io("read", path))?;
            hasher.update(&buffer[..count]);
            total += count as u64;
            // At the known end a short read spares the call that would give 0.
            if count == 0 || (total == size && count < buffer.len()) {
                return Ok(Digest(hasher.finalize().into()));
            }
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &File, path: &Path, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        let count = rustix::io::retry_on_intr(|| rustix::io::read(file, &mut buffer[filled..]))
            .map_err(Error::io("read", path))?;
        if count == 0 {
            break;
        }
        filled += count;
    }
    Ok(filled)
}

impl Host {
    /// The digest of the first `size` bytes of an open file: whoever may write
    /// to it cannot keep ccm reading.
    pub(crate) fn digest_of_first(&self, file: &File, path: &Path, size: u64) -> Result<Digest> {
        let mut buffer = self.inner.buffer.hold();
        buffer.resize(Self::CHUNK, 0);
        let mut hasher = Sha256::new();
        let mut left = size;
        while left > 0 {
            let chunk = usize::try_from(left).unwrap_or(usize::MAX).min(Self::CHUNK);
            let count = rustix::io::retry_on_intr(|| rustix::io::read(file, &mut buffer[..chunk]))
                .map_err(Error::io("read", path))?;
            if count == 0 {
                break;
            }
            hasher.update(&buffer[..count]);
            left -= count as u64;
        }
        Ok(hasher.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_compared_to_the_last_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let host = Host::new();
        for size in [0, 1, 1023, Host::CHUNK, Host::CHUNK + 1, 2 * Host::CHUNK] {
            let bytes: Vec<u8> = (0..size).map(|n| n as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            let holds = |wanted: &[u8]| {
                let (file, _) = host.open(&path).unwrap();
                host.holds(&file, &path, wanted).unwrap()
            };
            assert!(holds(&bytes), "{size}");
            let mut other = bytes.clone();
            other.push(0);
            assert!(!holds(&other), "{size}");
            let other_path = dir.path().join("g");
            let is_same = |bytes: &[u8]| {
                std::fs::write(&other_path, bytes).unwrap();
                let (one, other) = (host.open(&path).unwrap().0, host.open(&other_path).unwrap().0);
                host.is_same([&one, &other], [&path, &other_path]).unwrap()
            };
            assert!(is_same(&bytes) && !is_same(&other), "{size}");
            if let Some(last) = bytes.last() {
                *other.last_mut().unwrap() = *last;
                let mut changed = bytes.clone();
                *changed.last_mut().unwrap() ^= 1;
                assert!(!holds(&changed) && !is_same(&changed), "{size}");
            }
        }
    }

    #[test]
    fn files_of_every_size_hash_as_their_bytes_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let host = Host::new();
        for size in [0, 1, 1023, Host::CHUNK - 1, Host::CHUNK, Host::CHUNK + 1, 3 * Host::CHUNK] {
            let bytes: Vec<u8> = (0..size).map(|n| n as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            let (file, stat) = host.open(&path).unwrap();
            assert_eq!(host.digest(&file, &path, stat.size).unwrap(), Digest::of(&bytes), "{size}");
            let (file, _) = host.open(&path).unwrap();
            assert_eq!(host.digest(&file, &path, 7).unwrap(), Digest::of(&bytes), "{size}");
            for first in [0, 1, size / 2, size] {
                let (file, _) = host.open(&path).unwrap();
                let digest = host.digest_of_first(&file, &path, first as u64).unwrap();
                assert_eq!(digest, Digest::of(&bytes[..first.min(size)]), "{first} of {size}");
            }
        }
    }
}
