//! POSIX extended headers (pax), which describe the next entry.

use std::io::BufRead;

use super::header::id;
use super::sparse::{self, Extent};
use crate::{Error, Result};

/// What was said, as far as it matters here.
#[derive(Clone, Default)]
pub(super) struct Pax {
    path: Option<Vec<u8>>,
    pub(super) linkpath: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
    pub(super) uid: Option<u32>,
    pub(super) gid: Option<u32>,
    pub(super) uname: Option<String>,
    pub(super) gname: Option<String>,
    pub(super) mtime: Option<(i64, u32)>,
    sparse: Sparse,
}

/// GNU's three ways to describe a sparse file.
#[derive(Clone, Default)]
struct Sparse {
    name: Option<Vec<u8>>,
    size: Option<u64>,
    /// The map comes at the beginning of the content.
    is_map_inside: bool,
    extents: Vec<Extent>,
    offset: Option<u64>,
}

impl Pax {
    /// Reads records of the form `length key=value\n`.
    pub(super) fn parse(mut bytes: &[u8]) -> Result<Self> {
        let wrong = || Error::damaged("an extended header is malformed");
        let mut pax = Self::default();
        while !bytes.is_empty() {
            let blank = bytes.iter().position(|&byte| byte == b' ').ok_or_else(wrong)?;
            let length = decimal(&bytes[..blank]).ok_or_else(wrong)?;
            let length = usize::try_from(length).map_err(|_| wrong())?;
            if length <= blank + 1 || length > bytes.len() {
                return Err(wrong());
            }
            let record = bytes[blank + 1..length].strip_suffix(b"\n").ok_or_else(wrong)?;
            let equals = record.iter().position(|&byte| byte == b'=').ok_or_else(wrong)?;
            pax.set(&record[..equals], &record[equals + 1..]).ok_or_else(wrong)?;
            bytes = &bytes[length..];
        }
        Ok(pax)
    }

    /// `None` for a value that is none.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        let number = || if value.is_empty() { Some(None) } else { decimal(value).map(Some) };
        let owner = || number()?.map(id).transpose().ok();
        let name = || (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned());
        let bytes = || (!value.is_empty()).then(|| value.to_vec());
        match key {
            b"path" => self.path = bytes(),
            b"linkpath" => self.linkpath = bytes(),
            b"size" => self.size = number()?,
            b"uid" => self.uid = owner()?,
            b"gid" => self.gid = owner()?,
            b"uname" => self.uname = name(),
            b"gname" => self.gname = name(),
            b"mtime" if value.is_empty() => self.mtime = None,
            b"mtime" => self.mtime = Some(time(value)?),
            b"GNU.sparse.name" => self.sparse.name = bytes(),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => self.sparse.size = number()?,
            b"GNU.sparse.major" => self.sparse.is_map_inside = decimal(value)? > 0,
            b"GNU.sparse.offset" => self.sparse.offset = number()?,
            b"GNU.sparse.numbytes" => {
                let offset = self.sparse.offset.take()?;
                self.sparse.extents.push(Extent { offset, length: decimal(value)? });
            }
            b"GNU.sparse.map" => {
                let numbers: Vec<u64> =
                    value.split(|&byte| byte == b',').map(decimal).collect::<Option<_>>()?;
                self.sparse.extents = sparse::pairs(&numbers)?;
            }
            _ => {}
        }
        Some(())
    }

    /// Takes what is said for all entries. Names and sizes are never the same
    /// for all, so whoever says so wants to confuse.
    pub(super) fn add_global(&mut self, said: Self) -> Result<()> {
        let is_odd = said.path.is_some()
            || said.linkpath.is_some()
            || said.size.is_some()
            || said.sparse.size.is_some()
            || said.sparse.name.is_some();
        if is_odd {
            return Err(Error::damaged(
                "a global header sets a name or size, which only a single entry can have",
            ));
        }
        *self = said.over(self);
        Ok(())
    }

    /// This, and below it the other.
    pub(super) fn over(self, below: &Self) -> Self {
        Self {
            path: self.path,
            linkpath: self.linkpath,
            size: self.size,
            uid: self.uid.or(below.uid),
            gid: self.gid.or(below.gid),
            uname: self.uname.or_else(|| below.uname.clone()),
            gname: self.gname.or_else(|| below.gname.clone()),
            mtime: self.mtime.or(below.mtime),
            sparse: self.sparse,
        }
    }

    /// The entry's name.
    pub(super) fn path(&self) -> Option<Vec<u8>> {
        self.sparse.name.clone().or_else(|| self.path.clone())
    }

    /// The size of a sparse file, holes included.
    pub(super) fn sparse_size(&self) -> Option<u64> {
        self.sparse.size
    }

    /// Where the content of a sparse file belongs; `stored` becomes the bytes
    /// that are left of it.
    pub(super) fn extents(&self, input: &mut dyn BufRead, stored: &mut u64) -> Result<Vec<Extent>> {
        if self.sparse.is_map_inside {
            return sparse::from_content(input, stored);
        }
        Ok(self.sparse.extents.clone())
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |value, &digit| match digit {
        b'0'..=b'9' => value.checked_mul(10)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Seconds with a fraction, possibly before 1970.
fn time(value: &[u8]) -> Option<(i64, u32)> {
    let (is_negative, value) = match value.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let mut parts = value.splitn(2, |&byte| byte == b'.');
    let seconds = i64::try_from(decimal(parts.next()?)?).ok()?;
    let mut nanoseconds = 0;
    let fraction = parts.next().unwrap_or_default();
    for at in 0..9 {
        let digit = fraction.get(at).copied().unwrap_or(b'0');
        nanoseconds = nanoseconds * 10 + char::from(digit).to_digit(10)?;
    }
    Some(match (is_negative, nanoseconds) {
        (false, _) => (seconds, nanoseconds),
        (true, 0) => (-seconds, 0),
        (true, _) => (-seconds - 1, 1_000_000_000 - nanoseconds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_malformed_ones_refused() {
        let pax = Pax::parse(b"12 path=a=b\n16 mtime=12.5xxx\n");
        assert!(pax.is_err());
        let pax = Pax::parse(b"12 path=a=b\n14 mtime=12.5\n12 size=123\n13 comment=x\n").unwrap();
        assert_eq!(pax.path.as_deref(), Some(&b"a=b"[..]));
        assert_eq!((pax.mtime, pax.size), (Some((12, 500_000_000)), Some(123)));
        for bytes in [
            &b"5 path"[..],
            b"x path=a\n",
            b"99 path=a\n",
            b"9 path=ab\n",
            b"3 a\n",
            b"2 \n",
            b"0 path=a\n",
            b"99999999999999999999999 a=b\n",
            b"11 size=-1\n",
            b"11 size=1x\n",
            b"17 uid=4294967296\n",
            b"17 gid=4294967295\n",
        ] {
            assert!(Pax::parse(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn times_before_the_epoch() {
        assert_eq!(time(b"-1.25"), Some((-2, 750_000_000)));
        assert_eq!(time(b"-1"), Some((-1, 0)));
        assert_eq!(time(b"5.1234567891"), Some((5, 123_456_789)));
        assert_eq!(time(b"5."), Some((5, 0)));
        assert_eq!(time(b""), None);
        assert_eq!(time(b"1e9"), None);
    }
}
