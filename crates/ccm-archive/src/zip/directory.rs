//! The central directory at the end of a zip archive.

use std::io::{BufReader, Read, Seek, SeekFrom};

use ccm_host::Host;

use crate::{Error, Limits, Result};

const END: usize = 22;
const LARGE_END: usize = 56;
const LOCATOR: usize = 20;
const RECORD: usize = 46;
/// The end may have a comment behind it.
const MAX_COMMENT: usize = 0xffff;

/// One file, as the directory describes it.
pub(super) struct Record {
    pub(super) name: Vec<u8>,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc: u32,
    /// Its bytes in the archive.
    pub(super) stored: u64,
    pub(super) size: u64,
    /// Where its header is.
    pub(super) header: u64,
    /// Where the directory is: no content reaches into it.
    pub(super) directory_begin: u64,
    made_by: u8,
    attributes: u32,
    time: u16,
    date: u16,
    /// Seconds since 1970, where the archive says.
    exact_time: Option<i64>,
    unicode_name: Option<Vec<u8>>,
}

impl Record {
    /// The name; old programs of other systems wrote other separators.
    pub(super) fn readable_name(&self) -> Vec<u8> {
        let mut name = self.unicode_name.clone().unwrap_or_else(|| self.name.clone());
        if self.made_by == 0 && !name.contains(&b'/') {
            name.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
        }
        name
    }

    /// Kind and permissions, where a Unix system made it.
    pub(super) fn unix_mode(&self) -> Option<u32> {
        let is_unix = matches!(self.made_by, 3 | 19);
        Some(self.attributes >> 16).filter(|&mode| is_unix && mode != 0)
    }

    pub(super) fn is_read_only(&self) -> bool {
        self.attributes & 1 != 0
    }

    /// When it was last changed, in seconds since 1970.
    pub(super) fn mtime(&self, host: &Host) -> Option<i64> {
        self.exact_time.or_else(|| {
            let date = (
                1980 + (self.date >> 9) as i16,
                (self.date >> 5 & 15) as i8,
                (self.date & 31) as i8,
            );
            let time =
                ((self.time >> 11) as i8, (self.time >> 5 & 63) as i8, (self.time & 31) as i8 * 2);
            host.local_time(date, time)
        })
    }
}

/// Where the directory is, and how many records it has.
struct CentralDirectory {
    records: u64,
    begin: u64,
    length: u64,
}

pub(super) fn read<F: Read + Seek>(
    file: &mut F,
    size: u64,
    limits: &Limits,
) -> Result<Vec<Record>> {
    let place = find(file, size)?;
    if place.records > limits.entries {
        return Err(Error::excessive(format!("it has more than {} entries", limits.entries)));
    }
    file.seek(SeekFrom::Start(place.begin))?;
    let mut input = BufReader::with_capacity(64 << 10, file).take(place.length);
    let mut records = Vec::new();
    for _ in 0..place.records {
        records.push(record(&mut input, place.begin)?);
    }
    if input.limit() > 0 {
        return Err(Error::damaged("its directory has more records than it says"));
    }
    Ok(records)
}

/// Looks for the end of the directory at the end of the file, and nowhere else:
/// whoever finds another one reads another archive.
fn find<F: Read + Seek>(file: &mut F, size: u64) -> Result<CentralDirectory> {
    let length = size.min((END + MAX_COMMENT) as u64);
    file.seek(SeekFrom::Start(size - length))?;
    let mut tail = vec![0; length as usize];
    file.read_exact(&mut tail)?;
    let is_end = |at: &usize| {
        tail[*at..].starts_with(b"PK\x05\x06")
            && at + END + usize::from(u16_at(&tail, at + 20)) == tail.len()
    };
    let no_end =
        || Error::damaged("it has no central directory: it is truncated, or not a zip archive");
    let last = tail.len().checked_sub(END).ok_or_else(no_end)?;
    let mut ends = (0..=last).rev().filter(is_end);
    let at = ends.next().ok_or_else(no_end)?;
    if ends.next().is_some() {
        return Err(Error::damaged("it has two directories"));
    }
    let end = &tail[at..];
    let position = size - length + at as u64;
    let volumes = [u16_at(end, 4), u16_at(end, 6)];
    let mut place = CentralDirectory {
        records: u64::from(u16_at(end, 10)),
        begin: u64::from(u32_at(end, 16)),
        length: u64::from(u32_at(end, 12)),
    };
    let is_large =
        place.records == 0xffff || place.begin == 0xffff_ffff || place.length == 0xffff_ffff;
    let mut directory_end = position;
    match large(file, position)? {
        Some((large, at)) if is_large => {
            place = large;
            directory_end = at;
        }
        _ if volumes != [0, 0] => {
            return Err(Error::damaged("it is one of several volumes, which is not supported"));
        }
        _ => {}
    }
    if place.begin.checked_add(place.length) != Some(directory_end) {
        return Err(Error::damaged("its directory is not where it says"));
    }
    Ok(place)
}

/// The end for large archives, and where it is.
fn large<F: Read + Seek>(file: &mut F, position: u64) -> Result<Option<(CentralDirectory, u64)>> {
    let Some(locator_at) = position.checked_sub(LOCATOR as u64) else { return Ok(None) };
    let mut locator = [0; LOCATOR];
    file.seek(SeekFrom::Start(locator_at))?;
    file.read_exact(&mut locator)?;
    if !locator.starts_with(b"PK\x06\x07") {
        return Ok(None);
    }
    let at = u64_at(&locator, 8);
    if at.checked_add(LARGE_END as u64).is_none_or(|end| end > locator_at) {
        return Err(Error::damaged("its directory is not where it says"));
    }
    let mut end = [0; LARGE_END];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut end)?;
    if !end.starts_with(b"PK\x06\x06") {
        return Err(Error::damaged("its directory is not where it says"));
    }
    let place = CentralDirectory {
        records: u64_at(&end, 32),
        begin: u64_at(&end, 48),
        length: u64_at(&end, 40),
    };
    Ok(Some((place, at)))
}

fn record(input: &mut impl Read, directory_begin: u64) -> Result<Record> {
    let mut fixed = [0; RECORD];
    input.read_exact(&mut fixed)?;
    if !fixed.starts_with(b"PK\x01\x02") {
        return Err(Error::damaged("its directory is malformed"));
    }
    let lengths = [28, 30, 32].map(|at| usize::from(u16_at(&fixed, at)));
    let mut rest = vec![0; lengths.iter().sum()];
    input.read_exact(&mut rest)?;
    let (name, rest) = rest.split_at(lengths[0]);
    let extra = &rest[..lengths[1]];
    let mut record = Record {
        name: name.to_vec(),
        flags: u16_at(&fixed, 8),
        method: u16_at(&fixed, 10),
        crc: u32_at(&fixed, 16),
        stored: u64::from(u32_at(&fixed, 20)),
        size: u64::from(u32_at(&fixed, 24)),
        header: u64::from(u32_at(&fixed, 42)),
        directory_begin,
        made_by: fixed[5],
        attributes: u32_at(&fixed, 38),
        time: u16_at(&fixed, 12),
        date: u16_at(&fixed, 14),
        exact_time: None,
        unicode_name: None,
    };
    large_sizes(extra, &mut record.size, &mut record.stored, &mut record.header);
    if record.header.checked_add(record.stored).is_none_or(|end| end > directory_begin) {
        return Err(Error::damaged("its directory refers to content that does not exist"));
    }
    for (tag, value) in fields(extra) {
        match tag {
            // Seconds since 1970, if the first bit says so. In 32 bits they
            // are before 1970 or after 2038: the other date tells, and is
            // taken where it cannot reach that far back.
            0x5455 if value.len() >= 5 && value[0] & 1 != 0 => {
                let seconds = u32_at(value, 1);
                let is_late = record.date >> 9 >= 2038 - 1980;
                let is_clear = is_late || i32::try_from(seconds).is_ok();
                record.exact_time = is_clear.then_some(i64::from(seconds));
            }
            // The name in UTF-8, if it belongs to the other one.
            0x7075 if value.len() > 5 && value[0] == 1 => {
                let mut crc = flate2::Crc::new();
                crc.update(name);
                if crc.sum() == u32_at(value, 1) {
                    record.unicode_name = Some(value[5..].to_vec());
                }
            }
            _ => {}
        }
    }
    Ok(record)
}

/// Reads sizes that need more than 32 bits, each where its short form says so.
pub(super) fn large_sizes(extra: &[u8], size: &mut u64, stored: &mut u64, header: &mut u64) {
    let Some((_, mut value)) = fields(extra).find(|&(tag, _)| tag == 1) else { return };
    for short in [size, stored, header] {
        if *short == 0xffff_ffff && value.len() >= 8 {
            *short = u64_at(value, 0);
            value = &value[8..];
        }
    }
}

/// The extra fields of an entry as pairs of tag and value. A truncated one ends the list.
fn fields(mut extra: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        if extra.len() < 4 {
            return None;
        }
        let (tag, length) = (u16_at(extra, 0), usize::from(u16_at(extra, 2)));
        let value = extra.get(4..4 + length)?;
        extra = &extra[4 + length..];
        Some((tag, value))
    })
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
