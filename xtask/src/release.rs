//! Packages of a binary for machines like this one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, licences, output, root, run, target_directory};

/// Makes a Debian package of a binary, or of one that is built for it.
pub(crate) fn deb(binary: Option<&Path>) -> Result {
    package("packaging/deb.sh", binary)
}

/// Makes an rpm package of a binary, or of one that is built for it.
pub(crate) fn rpm(binary: Option<&Path>) -> Result {
    if Command::new("rpmbuild").arg("--version").output().is_err() {
        return Err("`rpmbuild` is missing. On Debian it is in the package rpm. To have it for \
            this one command:\n\n    packaging/overlay.sh rpm -- cargo xtask rpm"
            .into());
    }
    package("packaging/rpm.sh", binary)
}

fn package(script: &str, binary: Option<&Path>) -> Result {
    let binary = match binary {
        Some(binary) => binary.canonicalize().map_err(|error| error.to_string())?,
        None => build()?,
    };
    pack(Command::new(root().join(script)).arg(&binary))
}

fn pack(script: &mut Command) -> Result {
    let directory = target_directory()?.join("packages");
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let licenses = directory.join("LICENSES.third-party");
    licences::write(&licenses)?;
    run(script
        .arg(directory)
        .env("CCM_LICENSES", licenses)
        .env("SOURCE_DATE_EPOCH", source_date()?))
}

/// Builds ccm for this machine.
fn build() -> Result<PathBuf> {
    run(&mut build_command("release")?)?;
    Ok(target_directory()?.join("release/ccm"))
}

/// The command that builds ccm so that the same source makes the same binary,
/// wherever it lies.
pub(crate) fn build_command(profile: &str) -> Result<Command> {
    let directory = target_directory()?;
    let home = cargo_home();
    let project = root().canonicalize().map_err(|error| error.to_string())?;
    // Of several that match, the last one counts.
    let mut flags = OsString::new();
    for (path, name) in [(&project, "/ccm"), (&home, "/cargo"), (&directory, "/target")] {
        flags.push("--remap-path-prefix=");
        flags.push(path);
        flags.push(format!("={name}\x1f"));
    }
    let given = std::env::var("RUSTFLAGS").unwrap_or_default();
    flags.push(given.split_whitespace().map(|flag| format!("{flag}\x1f")).collect::<String>());
    // The last one is separated from nothing.
    let flags = flags.into_string().map_err(|flags| format!("not UTF-8: {}", flags.display()))?;
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--locked", "--package", "ccm", "--profile", profile])
        .env("SOURCE_DATE_EPOCH", source_date()?)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.trim_end_matches('\x1f'));
    Ok(cargo)
}

/// Where cargo keeps the sources of libraries.
pub(crate) fn cargo_home() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).unwrap_or_default()
}

/// The moment that stands for the time of the build: what the caller says, or
/// that of the commit.
pub(crate) fn source_date() -> Result<String> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => Ok(seconds),
        Err(_) => output(Command::new("git").args(["log", "-1", "--format=%ct"]))
            .map(|text| text.trim().to_owned())
            .map_err(|error| format!("set SOURCE_DATE_EPOCH, as git cannot tell: {error}")),
    }
}
