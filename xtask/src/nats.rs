//! The NATS server that tests talk to, built from its module with Go.

use std::path::PathBuf;
use std::process::Command;

use crate::{Result, run, target_directory};

/// The module, at a version that Go checks against its checksum database.
const MODULE: &str = "github.com/nats-io/nats-server/v2@v2.15.2";

fn program() -> Result<PathBuf> {
    Ok(target_directory()?.join("tools/nats-server"))
}

/// Whether there is a server for the tests.
pub(crate) fn is_there() -> bool {
    let given = std::env::var_os("CCM_NATS_SERVER").is_some();
    given || program().is_ok_and(|program| program.exists()) || in_path("nats-server")
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| place.join(program).exists())
}

/// Builds the server, unless it is there.
pub(crate) fn build() -> Result {
    let program = program()?;
    if program.exists() {
        return Ok(());
    }
    // Where Go is installed without being in the search path.
    let go = if in_path("go") { "go" } else { "/usr/local/go/bin/go" };
    let tools = program.parent().ok_or("no directory for tools")?;
    run(Command::new(go)
        .args(["install", MODULE])
        .env("GOBIN", tools)
        .env("GOFLAGS", "-buildvcs=false")
        .env("CGO_ENABLED", "0"))
}
