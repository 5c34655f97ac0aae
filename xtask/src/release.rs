//! What is handed to people who do not build ccm themselves.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, licences, output, quickstart, root, run, target_directory};

/// The target whose binaries need nothing of the machine they run on.
const STATIC: &str = "x86_64-unknown-linux-musl";

/// Builds a static binary, sees that it is one and that it works, and packs it.
pub(crate) fn dist() -> Result {
    let has_compiler = std::env::var_os(format!("CC_{}", STATIC.replace('-', "_"))).is_some()
        || Command::new("musl-gcc").arg("--version").output().is_ok();
    if !has_compiler {
        return Err("`musl-gcc` is missing, which some dependencies need for their C code.\n\
            On Debian it is in the package musl-tools. To have it for this one command:\n\n    \
            packaging/overlay.sh musl-tools -- cargo xtask dist"
            .into());
    }
    let binary = build(Some(STATIC))?;
    check_static(&binary)?;
    check_works(&binary)?;
    pack(Command::new(root().join("packaging/tar.sh")).arg(&binary).arg(STATIC))
}

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
        None => build(None)?,
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

/// Builds ccm so that the same source makes the same binary, wherever it lies.
fn build(target: Option<&str>) -> Result<PathBuf> {
    let directory = target_directory()?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).unwrap_or_default();
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
        .args(["build", "--release", "--locked", "--package", "ccm"])
        .env("SOURCE_DATE_EPOCH", source_date()?)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.trim_end_matches('\x1f'));
    if let Some(target) = target {
        cargo.args(["--target", target]);
    }
    run(&mut cargo)?;
    Ok(directory.join(target.unwrap_or_default()).join("release/ccm"))
}

/// The moment that stands for the time of the build: what the caller says, or
/// that of the commit.
fn source_date() -> Result<String> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => Ok(seconds),
        Err(_) => output(Command::new("git").args(["log", "-1", "--format=%ct"]))
            .map(|text| text.trim().to_owned())
            .map_err(|error| format!("set SOURCE_DATE_EPOCH, as git cannot tell: {error}")),
    }
}

fn check_static(binary: &Path) -> Result {
    // Depending on how it was linked, `ldd` fails, or succeeds with these words.
    let ldd = Command::new("ldd").arg(binary).output().map_err(|error| format!("ldd: {error}"))?;
    let said = [ldd.stdout, ldd.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    if said.contains("statically linked") || said.contains("not a dynamic executable") {
        Ok(())
    } else {
        Err(format!("{} is not static:\n{said}", binary.display()))
    }
}

/// The quickstart, twice, with nothing in the environment.
fn check_works(binary: &Path) -> Result {
    let bare = |args: &[&str]| output(Command::new(binary).args(args).env_clear());
    let version = bare(&["--version"])?;
    let expected = concat!("ccm ", env!("CARGO_PKG_VERSION"), " (");
    if !version.starts_with(expected) {
        return Err(format!("the version is {version:?}"));
    }
    let directory = std::env::temp_dir().join(format!("ccm-dist-{}", std::process::id()));
    let result = (|| {
        let manifest = quickstart::write(&root(), &directory)?;
        let manifest = manifest.to_str().ok_or("the directory's name is not UTF-8")?;
        let changed = |json: &str| -> Result<Vec<bool>> {
            let report: serde_json::Value =
                serde_json::from_str(json).map_err(|error| error.to_string())?;
            let events = report["events"].as_array().ok_or("a report without events")?;
            Ok(events.iter().map(|event| event["changed"] == true).collect())
        };
        let first = changed(&bare(&["apply", manifest, "--json"])?)?;
        let second = changed(&bare(&["apply", manifest, "--json"])?)?;
        if !first.contains(&true) || second.is_empty() || second.contains(&true) {
            return Err(format!("the quickstart changed {first:?}, then {second:?}"));
        }
        Ok(())
    })();
    let _ = std::fs::remove_dir_all(&directory);
    result
}
