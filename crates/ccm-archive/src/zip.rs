//! Zip archives. The central directory at the end and the local headers before
//! each file must agree.

mod directory;

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use ccm_host::Host;
use flate2::Crc;

use crate::entry::{Contents, Entry, EntryKind, Mode, NoContents, Piece, Visitor, clean, target};
use crate::{Error, Limits, Result};
use directory::{Record, u16_at, u32_at};

const BUFFER: usize = 128 << 10;
const LOCAL_HEADER: usize = 30;
/// What makes content unreadable without a password.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
/// Sizes and checksum follow the content.
const DESCRIBED_BEHIND: u16 = 1 << 3;

/// Hands every entry to the visitor, in the order of the directory.
pub(crate) fn read<F: Read + Seek>(
    host: &Host,
    file: &mut F,
    size: u64,
    limits: &Limits,
    visitor: &mut dyn Visitor,
) -> Result<()> {
    let records = directory::read(file, size, limits)?;
    check_names(&records)?;
    check_places(&records)?;
    for record in &records {
        let raw = record.readable_name();
        let name = clean(&raw)?;
        check(record, &name)?;
        let begin = check_local(file, record, &name)?;
        if begin + record.stored > record.directory_begin {
            return Err(Error::refused(&name, "its content overlaps with other content"));
        }
        file.seek(SeekFrom::Start(begin))?;
        let mut content = ZipContents::open(file, record)?;
        let (kind, mode) = kind_of(record, &raw, &name, &mut content)?;
        let is_file = kind == EntryKind::File;
        let entry = Entry {
            name,
            kind,
            mode,
            owner: None,
            mtime: record.mtime(host).map(|seconds| (seconds, 0)),
            size: if is_file { record.size } else { 0 },
        };
        if is_file {
            visitor.visit(entry, &mut content)?;
        } else {
            visitor.visit(entry, &mut NoContents)?;
        }
        // To its end, so that the checksum is compared.
        while content.next()?.is_some() {}
    }
    Ok(())
}

/// What the directory alone tells to be wrong.
fn check(record: &Record, name: &Path) -> Result<()> {
    let refused = |reason: String| Err(Error::refused(name, reason));
    if record.flags & ENCRYPTED != 0 {
        return refused("it is encrypted, which is not supported".to_owned());
    }
    match record.method {
        0 if record.stored != record.size => {
            refused("it is stored uncompressed, but has two sizes".to_owned())
        }
        0 | 8 | 12 => Ok(()),
        other => refused(format!("it is compressed by method {other}, which is not supported")),
    }
}

/// Rejects two files of one name: readers disagree on which one counts.
fn check_names(records: &[Record]) -> Result<()> {
    let mut names = std::collections::HashSet::with_capacity(records.len());
    for record in records {
        let name = clean(&record.readable_name())?;
        if !names.insert(name.clone()) {
            return Err(Error::refused(&name, "it appears twice"));
        }
    }
    Ok(())
}

/// Content that several files share makes much out of little.
fn check_places(records: &[Record]) -> Result<()> {
    let mut places: Vec<&Record> = records.iter().collect();
    places.sort_by_key(|record| record.header);
    for pair in places.windows(2) {
        let least = LOCAL_HEADER as u64 + pair[0].name.len() as u64;
        let end = pair[0].header.saturating_add(least).saturating_add(pair[0].stored);
        if end > pair[1].header {
            let name = clean(&pair[1].readable_name())?;
            return Err(Error::refused(&name, "its content overlaps with other content"));
        }
    }
    Ok(())
}

/// Compares the header before a file with the directory; where its content
/// begins.
fn check_local<F: Read + Seek>(file: &mut F, record: &Record, name: &Path) -> Result<u64> {
    let differs = |what: &str| {
        let reason = format!("its header has another {what} than the archive's directory");
        Err(Error::refused(name, reason))
    };
    file.seek(SeekFrom::Start(record.header))?;
    let mut header = [0; LOCAL_HEADER];
    file.read_exact(&mut header)?;
    if header[..4] != *b"PK\x03\x04" {
        return Err(Error::refused(name, "it has no header"));
    }
    let (flags, method) = (u16_at(&header, 6), u16_at(&header, 8));
    let (name_length, extra_length) = (u16_at(&header, 26), u16_at(&header, 28));
    let mut rest = vec![0; usize::from(name_length) + usize::from(extra_length)];
    file.read_exact(&mut rest)?;
    let (own_name, extra) = rest.split_at(usize::from(name_length));
    if own_name != record.name {
        return differs("name");
    }
    if method != record.method {
        return differs("method");
    }
    if (flags ^ record.flags) & (ENCRYPTED | DESCRIBED_BEHIND) != 0 {
        return differs("set of flags");
    }
    if flags & DESCRIBED_BEHIND == 0 {
        let mut sizes = (u64::from(u32_at(&header, 22)), u64::from(u32_at(&header, 18)));
        directory::large_sizes(extra, &mut sizes.0, &mut sizes.1, &mut 0);
        if sizes != (record.size, record.stored) {
            return differs("size");
        }
        if u32_at(&header, 14) != record.crc {
            return differs("checksum");
        }
    }
    Ok(record.header + (LOCAL_HEADER + rest.len()) as u64)
}

/// What an entry is, by its name and by what the system that made it said.
fn kind_of(
    record: &Record,
    raw: &[u8],
    name: &Path,
    content: &mut ZipContents<'_>,
) -> Result<(EntryKind, Mode)> {
    let is_directory = raw.ends_with(b"/");
    let refused = |reason: &str| Err(Error::refused(name, reason));
    let Some(mode) = record.unix_mode() else {
        let kind = if is_directory { EntryKind::Directory } else { EntryKind::File };
        let bits = if is_directory { 0o777 } else { 0o666 };
        let hidden = if record.is_read_only() && !is_directory { 0o222 } else { 0 };
        if is_directory && record.size != 0 {
            return refused("it is a directory with content");
        }
        return Ok((kind, Mode::Unknown(bits & !hidden)));
    };
    let kind = match mode & 0o170_000 {
        0o040_000 => EntryKind::Directory,
        0o120_000 if !is_directory => EntryKind::Symlink(target(name, &content.small()?)?),
        0o100_000 | 0 if is_directory => EntryKind::Directory,
        0o100_000 | 0 => EntryKind::File,
        0o020_000 | 0o060_000 => return refused("it is a device; ccm does not create devices"),
        0o010_000 => return refused("it is a FIFO; ccm does not create FIFOs"),
        _ => return refused("its entry type is unknown"),
    };
    if kind == EntryKind::Directory && record.size != 0 {
        return refused("it is a directory with content");
    }
    Ok((kind, Mode::Exact(mode & 0o7777)))
}

/// The content of one file.
struct ZipContents<'a> {
    decoder: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    left: u64,
    crc: Crc,
    wanted: u32,
    is_over: bool,
}

impl<'a> ZipContents<'a> {
    fn open<F: Read>(file: &'a mut F, record: &Record) -> Result<Self> {
        let stored = BufReader::with_capacity(BUFFER, file.take(record.stored));
        let decoder: Box<dyn Read + 'a> = match record.method {
            0 => Box::new(stored),
            8 => Box::new(flate2::bufread::DeflateDecoder::new(stored)),
            12 => Box::new(bzip2::bufread::BzDecoder::new(stored)),
            _ => return Err(Error::damaged("a method is not supported")),
        };
        Ok(Self {
            decoder,
            buffer: vec![0; BUFFER],
            left: record.size,
            crc: Crc::new(),
            wanted: record.crc,
            is_over: false,
        })
    }

    /// All of it, where there cannot be much.
    fn small(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(piece) = self.next()? {
            if let Piece::Data(bytes) = piece {
                all.extend_from_slice(bytes);
            }
            if all.len() > 4096 {
                return Err(Error::damaged("the target of a symlink is too long"));
            }
        }
        Ok(all)
    }
}

impl Contents for ZipContents<'_> {
    fn next(&mut self) -> Result<Option<Piece<'_>>> {
        if self.is_over {
            return Ok(None);
        }
        let count = loop {
            match self.decoder.read(&mut self.buffer) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        let Some(left) = self.left.checked_sub(count as u64) else {
            return Err(Error::damaged("a file is larger than the directory says"));
        };
        self.left = left;
        if count == 0 {
            self.is_over = true;
            if self.left > 0 {
                return Err(Error::damaged("a file is smaller than the directory says"));
            }
            if self.crc.sum() != self.wanted {
                return Err(Error::damaged("a file has a wrong checksum"));
            }
            return Ok(None);
        }
        self.crc.update(&self.buffer[..count]);
        Ok(Some(Piece::Data(&self.buffer[..count])))
    }
}
