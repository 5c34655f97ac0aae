//! Archives of both kinds: those that mean well and those that do not.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod build;
mod complete;
mod fetch;
mod honest;
mod hostile;
mod mutations;
