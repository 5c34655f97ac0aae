//! Reports tests that cannot run on this machine. A test that passes without
//! testing anything would hide errors.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// `cargo xtask test` names a file here and shows at its end what is in it.
const LOG: &str = "CCM_NOT_RUN_LOG";

/// Reports that the current test cannot run, and why. The caller returns.
///
/// # Panics
///
/// With `CI=true` as root, where every test has what it needs.
pub fn not_run(reason: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let line = format!("NOT RUN: {test}: {reason}\n");
    // The test harness keeps what is printed through macros to itself.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(log) = std::env::var_os(LOG)
        && let Ok(mut log) = std::fs::OpenOptions::new().append(true).create(true).open(log)
    {
        let _ = log.write_all(line.as_bytes());
    }
    let is_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!(is_ci && is_root()), "with CI=true every test runs: {reason}");
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Whether the test has to return because it is not root.
pub fn lacks_root() -> bool {
    let lacks = !is_root();
    if lacks {
        not_run("it needs root");
    }
    lacks
}

/// Whether the test has to return because a program is missing.
pub fn lacks_program(program: &str) -> bool {
    let command = &mut Command::new("sh");
    command.args(["-c", "command -v \"$0\" > /dev/null", program]).stdin(Stdio::null());
    let lacks = !command.status().is_ok_and(|status| status.success());
    if lacks {
        not_run(&format!("there is no `{program}` on this machine"));
    }
    lacks
}

/// Whether the test has to return because system calls cannot be traced: there
/// is no `strace`, or the sandbox does not let it work.
pub fn lacks_strace() -> bool {
    let traced = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    let lacks = !traced.is_ok_and(|status| status.success());
    if lacks {
        not_run("`strace` is missing or may not trace here");
    }
    lacks
}

/// Runs the current test once more as `nobody` if this is root, for what root
/// is never refused. The caller returns when this is true.
pub fn runs_as_nobody() -> bool {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    use std::os::unix::process::CommandExt as _;
    const NOBODY: u32 = 65534;
    if !is_root() {
        return false;
    }
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let directory = std::env::temp_dir().join(format!("ccm-nobody-{}-{test}", std::process::id()));
    std::fs::DirBuilder::new().mode(0o755).create(&directory).unwrap();
    let copy = directory.join("test");
    // By another process: a descriptor of ours that a sibling test's child
    // inherits would keep the copy from being executed.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&copy).status();
    assert!(copied.unwrap().success());
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(&copy)
        .args([&test, "--exact"])
        .current_dir("/")
        .env_remove(LOG)
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    std::fs::remove_dir_all(&directory).unwrap();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{output:?}");
    true
}
