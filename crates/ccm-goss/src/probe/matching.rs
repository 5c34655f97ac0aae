//! `matching`

use govalue::Value;

use super::{Found, Probe};
use crate::compile::Entry;

/// A value that the rules bring along.
pub(super) struct Matching<'a> {
    pub(super) entry: &'a Entry,
}

impl Probe for Matching<'_> {
    fn find(&mut self, _: &str) -> Result<Found, String> {
        Ok(Found::Value(self.entry.settings.get("content").cloned().unwrap_or(Value::Nil)))
    }
}
