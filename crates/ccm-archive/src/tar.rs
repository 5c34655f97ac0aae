//! Tar archives: plain, POSIX and GNU, with their extension headers.

mod header;
mod pax;
mod sparse;

use std::io::{BufRead, Read as _};

use crate::entry::{Contents, Entry, EntryKind, Mode, Owner, Piece, Visitor, clean, target};
use crate::{Error, Limits, Result};
use header::Header;
use pax::Pax;
use sparse::Extent;

pub(crate) const BLOCK: usize = 512;
/// Nothing that describes an entry is longer.
const MAX_DESCRIPTION: u64 = 1 << 20;

/// What was said of the next entry before its header.
#[derive(Default)]
struct PendingHeaders {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    pax: Option<Pax>,
}

/// Hands every entry to the visitor.
pub(crate) fn read(
    input: &mut dyn BufRead,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<()> {
    let mut global = Pax::default();
    let mut said = PendingHeaders::default();
    let mut headers = 0u64;
    loop {
        let Some(block) = block(input)? else {
            return Err(Error::damaged("it ends without an end marker: it is truncated"));
        };
        if block.iter().all(|&byte| byte == 0) {
            if said.name.is_some() || said.link.is_some() || said.pax.is_some() {
                return Err(Error::damaged("its last entry has headers but no content"));
            }
            return Ok(());
        }
        headers += 1;
        // Each entry may have a few headers that describe it.
        if headers > limits.entries.saturating_mul(4) {
            return Err(Error::excessive(format!("it has more than {} entries", limits.entries)));
        }
        let header = Header::parse(&block)?;
        match header.kind {
            b'L' => said.name = Some(text(description(input, header.size)?)),
            b'K' => said.link = Some(text(description(input, header.size)?)),
            b'x' | b'X' => said.pax = Some(Pax::parse(&description(input, header.size)?)?),
            b'g' => global.add_global(Pax::parse(&description(input, header.size)?)?)?,
            // A label for the whole.
            b'V' => skip(input, padded(header.size)?)?,
            _ => entry(input, header, std::mem::take(&mut said), &global, visitor)?,
        }
    }
}

fn entry(
    input: &mut dyn BufRead,
    header: Header,
    said: PendingHeaders,
    global: &Pax,
    visitor: &mut dyn Visitor,
) -> Result<()> {
    let pax = said.pax.unwrap_or_default().over(global);
    let raw_name = pax.path().or(said.name).unwrap_or(header.name);
    let name = clean(&raw_name)?;
    let refused = |reason: &str| Err(Error::refused(&name, reason));
    let stored = pax.size.unwrap_or(header.size);
    let link = pax.linkpath.clone().or(said.link).unwrap_or(header.link);
    let kind = match header.kind {
        b'0' | b'\0' | b'7' if raw_name.ends_with(b"/") && stored == 0 => EntryKind::Directory,
        b'0' | b'\0' | b'7' | b'S' => EntryKind::File,
        b'1' => EntryKind::HardLink(clean(&link)?),
        b'2' => EntryKind::Symlink(target(&name, &link)?),
        b'5' => EntryKind::Directory,
        b'3' | b'4' => return refused("it is a device; ccm does not create devices"),
        b'6' => return refused("it is a FIFO; ccm does not create FIFOs"),
        b'M' | b'N' => return refused("it belongs to an archive of several volumes"),
        _ => return refused("its entry type is unknown"),
    };
    if kind != EntryKind::File && stored != 0 {
        return refused("it has content, which its entry type does not allow");
    }
    let mut stored_left = stored;
    let (extents, size) = if header.kind == b'S' {
        let map = sparse::from_header(input, &header.block)?;
        (map, header.real_size)
    } else if let Some(size) = pax.sparse_size() {
        (pax.extents(input, &mut stored_left)?, size)
    } else {
        (vec![Extent { offset: 0, length: stored }], stored)
    };
    sparse::check(&extents, stored_left, size).or_else(refused)?;
    let owner = Owner {
        uid: pax.uid.unwrap_or(header.uid),
        gid: pax.gid.unwrap_or(header.gid),
        user: pax.uname.clone().unwrap_or(header.user),
        group: pax.gname.clone().unwrap_or(header.group),
    };
    let entry = Entry {
        name,
        kind,
        mode: Mode::Tar(header.mode),
        owner: Some(owner),
        mtime: Some(pax.mtime.unwrap_or((header.mtime, 0))),
        size,
    };
    let mut contents =
        TarContents { input, extents: extents.into_iter(), current: 0, position: 0, size, lent: 0 };
    visitor.visit(entry, &mut contents)?;
    while contents.next()?.is_some() {}
    skip(input, padded(stored)? - stored)
}

/// The content of one file in the stream.
struct TarContents<'a> {
    input: &'a mut dyn BufRead,
    extents: std::vec::IntoIter<Extent>,
    /// Bytes left of the current extent.
    current: u64,
    position: u64,
    size: u64,
    /// Bytes of the stream that the last piece consists of.
    lent: usize,
}

impl Contents for TarContents<'_> {
    fn next(&mut self) -> Result<Option<Piece<'_>>> {
        self.input.consume(std::mem::take(&mut self.lent));
        while self.current == 0 {
            let next = self.extents.next();
            let (offset, length) =
                next.map_or((self.size, 0), |extent| (extent.offset, extent.length));
            self.current = length;
            let hole = offset - self.position;
            if hole > 0 {
                self.position = offset;
                return Ok(Some(Piece::Hole(hole)));
            }
            if next.is_none() {
                return Ok(None);
            }
        }
        let buffer = self.input.fill_buf()?;
        if buffer.is_empty() {
            return Err(Error::damaged("it is truncated"));
        }
        let count = buffer.len().min(usize::try_from(self.current).unwrap_or(usize::MAX));
        self.lent = count;
        self.current -= count as u64;
        self.position += count as u64;
        Ok(Some(Piece::Data(&buffer[..count])))
    }
}

/// The next block; `None` at the end of the input.
fn block(input: &mut dyn BufRead) -> Result<Option<[u8; BLOCK]>> {
    if input.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut block = [0; BLOCK];
    input.read_exact(&mut block)?;
    Ok(Some(block))
}

/// The content of a header that describes the next entry.
fn description(input: &mut dyn BufRead, size: u64) -> Result<Vec<u8>> {
    if size > MAX_DESCRIPTION {
        return Err(Error::excessive("an entry's description is larger than 1 MiB"));
    }
    let mut bytes = vec![0; size as usize];
    input.read_exact(&mut bytes)?;
    skip(input, padded(size)? - size)?;
    Ok(bytes)
}

/// A text up to its NUL.
fn text(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    bytes
}

fn padded(size: u64) -> Result<u64> {
    size.checked_next_multiple_of(BLOCK as u64)
        .ok_or_else(|| Error::damaged("an entry has an impossible size"))
}

fn skip(input: &mut dyn BufRead, count: u64) -> Result<()> {
    let skipped = std::io::copy(&mut input.take(count), &mut std::io::sink())?;
    if skipped < count { Err(Error::damaged("it is truncated")) } else { Ok(()) }
}
