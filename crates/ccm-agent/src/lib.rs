//! The agent: fetches manifests and data, applies them on a schedule and on
//! change, checks health, and reports metrics.

pub mod metrics;
pub mod monitor;

pub use metrics::Metrics;
