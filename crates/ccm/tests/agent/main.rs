//! The agent as a process: runs, signals, kills, reloads, and real NATS
//! servers. Tests wait generously: machines can be busy.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod bed;
mod budget;
#[path = "../it/env.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod env;
mod fleet;
mod hostile;
mod lifecycle;
#[path = "../nats/bed.rs"]
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
mod nats_bed;
mod network;
mod reload;
mod service_manager;
