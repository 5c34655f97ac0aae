//! Sources with real servers: NATS, and HTTP servers that misbehave.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod bed;
mod copies;
mod disk;
mod faults;
mod http;
mod killed;
mod local;
mod objects;
mod secrets;
