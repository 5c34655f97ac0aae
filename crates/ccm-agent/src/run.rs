//! Runs, each in a separate process.
//!
//! The agent passes everything through a pipe: the path of the manifest, facts,
//! data, mode. The process has no credentials and no connection: its lookups
//! and registrations go through the agent. If it crashes, is killed or runs out
//! of memory, the run fails and the agent continues.

mod facts;
pub mod job;
mod process;
mod protocol;

pub use facts::FactLayers;
pub use process::{Ended, RunProcess, RunServices, Told};
pub(crate) use protocol::registry_name;
pub use protocol::{Applied, DataDocument, Job, JobResult, ValidManifest};
