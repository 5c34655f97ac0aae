//! The agent: downloads manifests and data, applies them on a schedule and on
//! change, checks health, and reports metrics.

mod agent;
pub mod config;
pub mod metrics;
pub mod monitor;
mod problems;
mod registrar;
pub mod run;
pub mod schedule;
pub mod sources;

pub use agent::{Agent, AgentEnd, AgentError, Mailbox, Settings, Signal};
pub use metrics::Metrics;
