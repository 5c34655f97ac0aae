//! Programs that tests compare ccm with, or attack it by.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workflows::ACTIONLINT;
use crate::{Result, nats, run, target_directory};

/// A program, and the Debian package that has it.
const TOOLS: [(&str, &str); 17] = [
    ("/usr/bin/strace", "strace"),
    ("/usr/bin/bwrap", "bubblewrap"),
    ("/usr/bin/zip", "zip"),
    ("/usr/bin/unzip", "unzip"),
    ("/usr/bin/xz", "xz-utils"),
    ("/usr/bin/zstd", "zstd"),
    ("/usr/bin/bzip2", "bzip2"),
    ("/usr/bin/setpriv", "util-linux"),
    ("/usr/sbin/ip", "iproute2"),
    ("/lib/systemd/systemd", "systemd"),
    ("/usr/bin/lintian", "lintian"),
    ("/usr/bin/shellcheck", "shellcheck"),
    ("/bin/busybox", "busybox"),
    ("/usr/bin/node", "nodejs"),
    ("/usr/bin/npm", "npm"),
    ("/usr/bin/chromium", "chromium"),
    // A source of users beside the files, for machines that use it.
    ("/usr/share/doc/libnss-extrausers", "libnss-extrausers"),
];

/// Installs what is missing where `CCM_INSTALL_TOOLS` allows it, as `.ci/run`
/// does. Elsewhere the tests without their program say `NOT RUN`.
pub(crate) fn install() -> Result {
    install_packages()?;
    install_promtool()?;
    if !nats::is_there() {
        nats::SERVER.install_or_say("some tests")?;
    }
    if ACTIONLINT.find()?.is_none() {
        ACTIONLINT.install_or_say("a check")?;
    }
    Ok(())
}

/// A program that Go builds from a module.
pub(crate) struct Go {
    /// Its file name.
    pub(crate) name: &'static str,
    /// The module with its version, which Go checks against its checksum database.
    pub(crate) module: &'static str,
}

impl Go {
    /// The program, if it was built or is in the search path.
    pub(crate) fn find(&self) -> Result<Option<PathBuf>> {
        let built = target_directory()?.join("tools").join(self.name);
        Ok(if built.exists() { Some(built) } else { in_path(self.name) })
    }

    /// Builds the program, unless it is there.
    pub(crate) fn build(&self) -> Result {
        let tools = target_directory()?.join("tools");
        if tools.join(self.name).exists() {
            return Ok(());
        }
        // Where Go is installed without being in the search path.
        let go = in_path("go").unwrap_or_else(|| "/usr/local/go/bin/go".into());
        run(Command::new(go)
            .args(["install", self.module])
            .env("GOBIN", tools)
            .env("GOFLAGS", "-buildvcs=false")
            .env("CGO_ENABLED", "0"))
    }

    fn install_or_say(&self, what: &str) -> Result {
        if allowed() {
            println!("building {}", self.name);
            return self.build();
        }
        println!("missing: {}; {what} will say NOT RUN (CCM_INSTALL_TOOLS=1 builds it)", self.name);
        Ok(())
    }
}

/// A program in the search path.
pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|place| place.join(program)).find(|file| file.exists())
}

/// Whether tools that are missing may be installed.
pub(crate) fn allowed() -> bool {
    std::env::var_os("CCM_INSTALL_TOOLS").is_some()
}

fn install_packages() -> Result {
    let missing = TOOLS.iter().filter(|(program, _)| !Path::new(program).exists());
    let missing: Vec<&str> = missing.map(|&(_, package)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if !allowed() {
        println!(
            "missing: {}; some tests will say NOT RUN (CCM_INSTALL_TOOLS=1 installs them)",
            missing.join(", ")
        );
        return Ok(());
    }
    println!("installing {}", missing.join(", "));
    let apt = |args: &[&str]| {
        run(Command::new("apt-get").args(args).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update", "-qq"])?;
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(missing);
    apt(&install)
}

/// Takes `promtool` out of its package. Installing that would start a server.
fn install_promtool() -> Result {
    let tools = target_directory()?.join("tools");
    let program = tools.join("promtool");
    if program.exists() || Path::new("/usr/bin/promtool").exists() {
        return Ok(());
    }
    if !allowed() {
        println!("missing: promtool; a test will say NOT RUN (CCM_INSTALL_TOOLS=1 gets it)");
        return Ok(());
    }
    println!("getting promtool");
    let script = "set -eu
        mkdir -p \"$1\"
        work=$(mktemp -d)
        trap 'rm -rf \"$work\"' EXIT
        cd \"$work\"
        apt-get update -qq
        apt-get download -qq prometheus
        dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
        mv usr/bin/promtool \"$1\"";
    run(Command::new("sh").args(["-c", script, "sh"]).arg(tools))
}
