//! One header block.

use super::BLOCK;
use crate::{Error, Result};

pub(super) struct Header {
    pub(super) name: Vec<u8>,
    pub(super) link: Vec<u8>,
    pub(super) kind: u8,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) user: String,
    pub(super) group: String,
    pub(super) mtime: i64,
    /// Bytes of content that follow the header in the archive.
    pub(super) size: u64,
    /// Bytes of a sparse file.
    pub(super) real_size: u64,
    pub(super) block: [u8; BLOCK],
}

impl Header {
    pub(super) fn parse(block: &[u8; BLOCK]) -> Result<Self> {
        check_sum(block)?;
        let is_gnu = &block[257..265] == b"ustar  \0";
        let is_posix = &block[257..262] == b"ustar" && !is_gnu;
        let mut name = text(&block[..100]).to_vec();
        let prefix = text(&block[345..500]);
        if is_posix && !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
        let is_sparse = block[156] == b'S';
        let named = is_gnu || is_posix;
        let owner = |field| named.then(|| String::from_utf8_lossy(text(field)).into_owned());
        Ok(Self {
            name,
            link: text(&block[157..257]).to_vec(),
            kind: block[156],
            mode: (unsigned(&block[100..108])? & 0o7777) as u32,
            uid: id(unsigned(&block[108..116])?)?,
            gid: id(unsigned(&block[116..124])?)?,
            user: owner(&block[265..297]).unwrap_or_default(),
            group: owner(&block[297..329]).unwrap_or_default(),
            mtime: number(&block[136..148])?,
            size: unsigned(&block[124..136])?,
            real_size: if is_sparse { unsigned(&block[483..495])? } else { 0 },
            block: *block,
        })
    }
}

/// Some old programs added up signed bytes.
fn check_sum(block: &[u8; BLOCK]) -> Result<()> {
    let said = number(&block[148..156])?;
    let bytes = || {
        block
            .iter()
            .enumerate()
            .map(|(at, &byte)| if (148..156).contains(&at) { b' ' } else { byte })
    };
    let unsigned: i64 = bytes().map(i64::from).sum();
    let signed: i64 = bytes().map(|byte| i64::from(byte as i8)).sum();
    if said == unsigned || said == signed {
        return Ok(());
    }
    Err(Error::damaged("invalid header checksum: the archive is damaged, or not a tar archive"))
}

/// A field up to its NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A number in octal digits or, where they do not suffice, in binary.
pub(super) fn number(field: &[u8]) -> Result<i64> {
    let wrong = || {
        Error::damaged("invalid number in a header: the archive is damaged, or not a tar archive")
    };
    let (&first, rest) = field.split_first().ok_or_else(wrong)?;
    if first & 0x80 != 0 {
        // Two's complement, its sign in the second bit.
        let is_negative = first & 0x40 != 0;
        let start = if is_negative { i128::from(first as i8) } else { i128::from(first & 0x3f) };
        let value = rest.iter().try_fold(start, |value, &byte| {
            value.checked_mul(256).map(|value| value + i128::from(byte))
        });
        return value.and_then(|value| i64::try_from(value).ok()).ok_or_else(wrong);
    }
    let digits = field.split(|&byte| byte == 0).next().unwrap_or_default().trim_ascii();
    if digits.is_empty() {
        return Ok(0);
    }
    digits.iter().try_fold(0i64, |value, &digit| match digit {
        b'0'..=b'7' => value
            .checked_mul(8)
            .and_then(|value| value.checked_add(i64::from(digit - b'0')))
            .ok_or_else(wrong),
        _ => Err(wrong()),
    })
}

/// A user or group; the largest number means "leave as it is" to the system.
pub(super) fn id(number: u64) -> Result<u32> {
    let id = u32::try_from(number).ok().filter(|&id| id != u32::MAX);
    id.ok_or_else(|| Error::damaged("a header has an invalid owner"))
}

pub(super) fn unsigned(field: &[u8]) -> Result<u64> {
    u64::try_from(number(field)?).map_err(|_| Error::damaged("a header has a negative number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (field, wanted) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"77777777", Some(0o77_777_777)),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff", Some(-1)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
            (b"0000008\0", None),
            (b"-000001\0", None),
            (b"0x10\0\0\0\0", None),
            (b"777777777777777777777777", None),
        ] {
            assert_eq!(number(field).ok(), wanted, "{field:?}");
        }
        assert!(unsigned(b"\xff\xff\xff\xff\xff\xff\xff\xff").is_err());
    }
}
