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
mod process;
mod random;
mod row;
mod seccomp;
mod server;
mod snapshot;
mod tarball;
mod tls;
mod versions;
mod wait;

pub use client::{Answer, Connection, Target};
pub use dns::{DnsManner, DnsRecord, DnsServer, dns_name};
pub use not_run::{is_root, lacks_program, lacks_root, lacks_strace, not_run, runs_as_nobody};
pub use process::{children, handles, is_alive, is_work_in, processor_time};
pub use random::Random;
pub use row::{is_row, without_time};
pub use seccomp::{OPENAT2_ERRORS, without_openat2};
pub use server::{Server, Stream, answer};
pub use snapshot::{snapshot, snapshot_of_content};
pub use tarball::tarball;
pub use tls::Authority;
pub use versions::{is_whole_version, versioned_content, versioned_name};
pub use wait::{PATIENCE, Sign, wait_until};
