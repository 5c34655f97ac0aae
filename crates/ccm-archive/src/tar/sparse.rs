//! Sparse files: the map of bytes that the archive contains.

use std::io::BufRead;

use super::BLOCK;
use super::header::unsigned;
use crate::{Error, Result};

/// More pieces than any honest file has.
const MAX_EXTENTS: usize = 1 << 20;

/// Bytes that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// The map in a GNU header, and in the blocks that continue it.
pub(super) fn from_header(input: &mut dyn BufRead, header: &[u8; BLOCK]) -> Result<Vec<Extent>> {
    let mut extents = Vec::new();
    take(&header[386..482], &mut extents)?;
    let mut goes_on = header[482] != 0;
    while goes_on {
        let mut block = [0; BLOCK];
        input.read_exact(&mut block)?;
        take(&block[..504], &mut extents)?;
        goes_on = block[504] != 0;
    }
    Ok(extents)
}

fn take(fields: &[u8], extents: &mut Vec<Extent>) -> Result<()> {
    for pair in fields.chunks_exact(24) {
        if pair[0] == 0 {
            break;
        }
        extents.push(Extent { offset: unsigned(&pair[..12])?, length: unsigned(&pair[12..])? });
    }
    check_count(extents.len())
}

/// The map at the beginning of the content: decimal lines, padded to a block.
pub(super) fn from_content(input: &mut dyn BufRead, stored: &mut u64) -> Result<Vec<Extent>> {
    let mut lines = Lines { input, block: [0; BLOCK], at: BLOCK, stored };
    let count = lines.number()?;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    check_count(count)?;
    let mut numbers = Vec::new();
    for _ in 0..count * 2 {
        numbers.push(lines.number()?);
    }
    pairs(&numbers).ok_or_else(|| Error::damaged("a sparse file's map is malformed"))
}

struct Lines<'a> {
    input: &'a mut dyn BufRead,
    block: [u8; BLOCK],
    at: usize,
    stored: &'a mut u64,
}

impl Lines<'_> {
    fn number(&mut self) -> Result<u64> {
        let wrong = || Error::damaged("a sparse file's map is malformed");
        let mut number = 0u64;
        let mut digits = 0;
        loop {
            match self.byte()? {
                b'\n' if digits > 0 => return Ok(number),
                digit @ b'0'..=b'9' => {
                    let next = number.checked_mul(10);
                    let next = next.and_then(|value| value.checked_add(u64::from(digit - b'0')));
                    number = next.ok_or_else(wrong)?;
                    digits += 1;
                }
                _ => return Err(wrong()),
            }
        }
    }

    fn byte(&mut self) -> Result<u8> {
        if self.at == BLOCK {
            let left = self.stored.checked_sub(BLOCK as u64);
            *self.stored =
                left.ok_or_else(|| Error::damaged("a sparse file's map is truncated"))?;
            self.input.read_exact(&mut self.block)?;
            self.at = 0;
        }
        self.at += 1;
        Ok(self.block[self.at - 1])
    }
}

pub(super) fn pairs(numbers: &[u64]) -> Option<Vec<Extent>> {
    if !numbers.len().is_multiple_of(2) {
        return None;
    }
    Some(numbers.chunks(2).map(|pair| Extent { offset: pair[0], length: pair[1] }).collect())
}

fn check_count(count: usize) -> Result<()> {
    if count > MAX_EXTENTS {
        return Err(Error::excessive("a sparse file has too many pieces"));
    }
    Ok(())
}

/// Pieces come in order, lie within the file, and are all that is stored.
pub(super) fn check(extents: &[Extent], stored: u64, size: u64) -> Result<(), &'static str> {
    let mut position = 0u64;
    let mut sum = 0u64;
    for extent in extents {
        let end = extent.offset.checked_add(extent.length);
        let end = end.filter(|&end| end <= size && extent.offset >= position);
        position = end.ok_or("its sparse map is inconsistent")?;
        sum += extent.length;
    }
    if sum == stored { Ok(()) } else { Err("its sparse map does not match the stored data") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_checked() {
        let map = |pairs: &[(u64, u64)]| -> Vec<Extent> {
            pairs.iter().map(|&(offset, length)| Extent { offset, length }).collect()
        };
        assert!(check(&map(&[(0, 5), (10, 5), (20, 0)]), 10, 20).is_ok());
        for (pairs, stored, size) in [
            (&[(10, 5), (0, 5)][..], 10, 20),
            (&[(0, 5), (4, 5)], 10, 20),
            (&[(0, 5)], 4, 20),
            (&[(0, 5)], 5, 4),
            (&[(u64::MAX, 5)], 5, u64::MAX),
            (&[(0, u64::MAX)], 5, 20),
        ] {
            assert!(check(&map(pairs), stored, size).is_err(), "{pairs:?}");
        }
    }
}
