//! The NATS server that tests talk to.

use crate::tools::Go;

/// The server, at a version that Go checks against its checksum database.
pub(crate) const SERVER: Go =
    Go { name: "nats-server", module: "github.com/nats-io/nats-server/v2@v2.15.2" };

/// Whether there is a server for the tests.
pub(crate) fn is_there() -> bool {
    let given = std::env::var_os("CCM_NATS_SERVER").is_some();
    given || SERVER.find().is_ok_and(|program| program.is_some())
}
