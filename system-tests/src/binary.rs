//! The binary under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The binary that `CCM_BINARY` names, or else `ccm` built by the profile that
/// the tests are built by.
pub fn ccm() -> &'static Path {
    static CCM: OnceLock<PathBuf> = OnceLock::new();
    CCM.get_or_init(|| match std::env::var_os("CCM_BINARY") {
        Some(binary) => {
            let binary = PathBuf::from(binary);
            assert!(binary.is_file(), "CCM_BINARY: {} is missing", binary.display());
            binary
        }
        None => build(),
    })
}

fn build() -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--package", "ccm"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    // What cargo tells a test about itself would make it build again what
    // looks at these variables.
    for (name, _) in std::env::vars_os() {
        let is_about_us = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_NAME", "CARGO_BIN_NAME"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        });
        if is_about_us {
            cargo.env_remove(name);
        }
    }
    let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
    assert!(status.success(), "ccm cannot be built");
    // Tests are in `deps`, binaries beside that.
    let me = std::env::current_exe().unwrap();
    let binary = me.ancestors().nth(2).unwrap().join("ccm");
    assert!(binary.exists(), "{} is missing", binary.display());
    binary
}
