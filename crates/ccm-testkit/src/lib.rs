//! Test helpers: faulty HTTP servers, directory snapshots, and a parser for the
//! code blocks of the documentation.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "only tests use it, and they should stop at once"
)]

mod client;
mod dns;
pub mod markdown;
pub mod nats;
mod not_run;
mod random;
mod row;
mod server;
mod snapshot;
mod tarball;
mod tls;

pub use client::{Answer, Connection, Target};
pub use dns::{DnsManner, DnsRecord, DnsServer, dns_name};
pub use not_run::{is_root, lacks_program, lacks_root, lacks_strace, not_run, runs_as_nobody};
pub use random::Random;
pub use row::{is_row, without_time};
pub use server::{Server, Stream, answer};
pub use snapshot::{snapshot, snapshot_of_content};
pub use tarball::tarball;
pub use tls::Authority;
