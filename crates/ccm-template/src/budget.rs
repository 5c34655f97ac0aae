//! Limits on templates that call other templates.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use govalue::Value;

use crate::Error;

/// Templates inside of one another.
const MAX_DEPTH: u32 = 12;
/// Templates and files used for one value in all.
const MAX_CALLS: u32 = 50_000;
/// Bytes that those may make in all.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes of one text, or what a value would have as text.
pub(crate) const MAX_TEXT: usize = 64 << 20;

/// Where in templates that call templates an expression is evaluated.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nesting {
    pub(crate) depth: u32,
    used: Arc<Used>,
}

#[derive(Debug, Default)]
struct Used {
    calls: AtomicU32,
    bytes: AtomicU64,
}

impl Nesting {
    /// The budget for a template within this one. Fails when they nest too deeply.
    pub(crate) fn deeper(&self) -> Result<Self, Error> {
        self.call()?;
        if self.depth >= MAX_DEPTH {
            return Err(Error::Limit {
                what: "templates call templates too deeply; does one call itself?",
            });
        }
        Ok(Self { depth: self.depth + 1, used: Arc::clone(&self.used) })
    }

    /// Counts the use of a template or a file.
    pub(crate) fn call(&self) -> Result<(), Error> {
        if self.used.calls.fetch_add(1, Relaxed) >= MAX_CALLS {
            return Err(Error::Limit { what: "templates and files are rendered too many times" });
        }
        Ok(())
    }

    /// Counts what a template or a file has given.
    pub(crate) fn made(&self, bytes: usize) -> Result<(), Error> {
        let before = self.used.bytes.fetch_add(bytes as u64, Relaxed);
        if before.saturating_add(bytes as u64) > MAX_BYTES {
            return Err(Error::Limit { what: "templates and files render more than 256 MiB" });
        }
        Ok(())
    }
}

/// Refuses values that share their parts so often that they would fill the
/// memory when written out; gives about the bytes that they would have.
pub(crate) fn size(value: &Value) -> Result<usize, Error> {
    let mut room = MAX_TEXT;
    if fits(value, &mut room) {
        Ok(MAX_TEXT - room)
    } else {
        Err(Error::Limit { what: "the value is larger than 64 MiB" })
    }
}

fn fits(value: &Value, room: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len() * 4,
        Value::Array(_) | Value::Map(_) => 2,
        _ => 8,
    };
    let Some(left) = room.checked_sub(own) else { return false };
    *room = left;
    match value {
        Value::Array(items) => items.iter().all(|item| fits(item, room)),
        Value::Map(map) => {
            map.iter().all(|(key, item)| fits(key.value(), room) && fits(item, room))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_share_their_parts_are_measured_as_written() {
        let mut value = Value::from("0123456789");
        for _ in 0..5 {
            value = Value::array(vec![value; 10]);
        }
        assert!(size(&value).unwrap() >= 1_000_000);
        for _ in 0..20 {
            value = Value::array(vec![value; 10]);
        }
        assert!(size(&value).is_err());
    }

    #[test]
    fn bounds_are_shared_by_all_levels() {
        let mut nesting = Nesting::default();
        for _ in 0..MAX_DEPTH {
            nesting = nesting.deeper().unwrap();
        }
        assert!(nesting.deeper().is_err());
        let outer = Nesting::default();
        outer.deeper().unwrap().made(MAX_BYTES as usize).unwrap();
        assert!(outer.made(1).is_err());
    }
}
