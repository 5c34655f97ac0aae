//! The agent: fetches manifests and data, applies them on a schedule and on
//! change, checks health, and reports metrics.

pub mod config;
pub mod metrics;
pub mod schedule;
pub mod sources;

pub use metrics::Metrics;
