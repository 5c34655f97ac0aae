//! State that a run keeps for later runs: owed reactions, what was extracted, and
//! the history.
//!
//! A file here is a list of records, each a line with its own checksum. Records
//! are only appended while a run goes on, so a killed run leaves at most half a
//! last line, which counts as not written. A line that was damaged otherwise is
//! reported, and the file is set aside.

mod extractions;
pub mod history;
mod owed;
mod records;

pub use extractions::Extractions;
pub use owed::{Change, Listing, OwedRecord, OwedStore, list};
