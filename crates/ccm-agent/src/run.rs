//! Runs, each in a process of its own.
//!
//! The process is handed everything through a pipe: the path of the manifest,
//! facts, data, mode. It has no credentials and no connection. What it wants to
//! know of others, or tell them, goes through the agent. A run that crashes, is
//! killed or runs out of memory is a failed run, not the end of the agent.

mod facts;
pub mod job;
mod process;
mod protocol;

pub use facts::FactLayers;
pub use process::{Asked, Ended, RunProcess, Told};
pub(crate) use protocol::registry_name;
pub use protocol::{DataDocument, Job, JobResult};
