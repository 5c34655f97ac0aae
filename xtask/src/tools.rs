//! Programs that tests compare ccm with, or attack it by.

use std::path::Path;
use std::process::Command;

use crate::{Result, nats, run, target_directory};

/// A program, and the Debian package that has it.
const TOOLS: [(&str, &str); 13] = [
    ("/usr/bin/strace", "strace"),
    ("/usr/bin/zip", "zip"),
    ("/usr/bin/unzip", "unzip"),
    ("/usr/bin/xz", "xz-utils"),
    ("/usr/bin/zstd", "zstd"),
    ("/usr/bin/bzip2", "bzip2"),
    ("/usr/bin/setpriv", "util-linux"),
    ("/usr/sbin/ip", "iproute2"),
    ("/lib/systemd/systemd", "systemd"),
    ("/usr/bin/lintian", "lintian"),
    ("/usr/bin/node", "nodejs"),
    ("/usr/bin/npm", "npm"),
    ("/usr/bin/chromium", "chromium"),
];

/// Installs what is missing where `CCM_INSTALL_TOOLS` allows it, as `.ci/run`
/// does. Elsewhere the tests without their program say `NOT RUN`.
pub(crate) fn install() -> Result {
    install_packages()?;
    install_promtool()?;
    if nats::is_there() {
        return Ok(());
    }
    if std::env::var_os("CCM_INSTALL_TOOLS").is_none() {
        println!(
            "missing: nats-server; some tests will say NOT RUN (`cargo xtask nats` builds it)"
        );
        return Ok(());
    }
    println!("building nats-server");
    nats::build()
}

fn install_packages() -> Result {
    let missing = TOOLS.iter().filter(|(program, _)| !Path::new(program).exists());
    let missing: Vec<&str> = missing.map(|&(_, package)| package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    if std::env::var_os("CCM_INSTALL_TOOLS").is_none() {
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
    if std::env::var_os("CCM_INSTALL_TOOLS").is_none() {
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
