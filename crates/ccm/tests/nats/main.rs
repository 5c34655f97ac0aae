//! The binary with real NATS servers. `cargo xtask nats` builds the server;
//! without it every test says `NOT RUN`.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod bed;
mod contexts;
#[path = "../it/env.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod env;
mod errors;
mod faults;
mod functions;
mod jwt;
mod many;
mod objects;
mod permissions;
mod publication;
mod registry;
mod rollout;
mod secrets;
mod sources;
