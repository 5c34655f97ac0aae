//! What tests share: servers that misbehave on purpose, and snapshots that show
//! whether anything in a directory has changed.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "only tests use it, and they should stop at once"
)]

mod server;
mod snapshot;
mod tls;

pub use server::{Server, Stream, answer};
pub use snapshot::{snapshot, snapshot_of_content};
pub use tls::Authority;
