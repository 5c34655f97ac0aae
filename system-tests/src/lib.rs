//! Throw-away machines with a real systemd as their first process, for tests
//! of what would change the machine they run on.
//!
//! ```no_run
//! use system_tests::{Layer, Machine};
//!
//! # fn test() {
//! let Some(machine) = Machine::up(Layer::Plain) else { return };
//! machine.put("/etc/motd", "hello\n");
//! assert_eq!(machine.ok("cat /etc/motd"), "hello");
//! let ran = machine.ccm(&["status", "file", "/etc/motd"]);
//! assert_eq!(ran.code, 0);
//! # }
//! ```
//!
//! A machine is an overlay over the host's own root and boots in about a
//! second. It is gone when the value is dropped, or when the tests end in any
//! other way; nothing of it is left. `README.md` tells how that works.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test whose stage cannot be set has to fail"
)]

mod bed;
mod binary;
mod machine;
mod report;

pub use bed::Layer;
pub use binary::ccm;
pub use machine::{Machine, Ran};
pub use report::{Outcome, Report};
