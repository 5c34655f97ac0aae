//! Runs ccm under `strace`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::scenarios::Scenario;

/// A run that takes longer hangs. Generous, as other tests run beside it.
const HANGS: Duration = Duration::from_mins(1);

/// One system call that fails.
pub(crate) struct Fault {
    call: String,
    error: &'static str,
    /// Which of the calls of this kind, from 1; in every process on its own.
    when: usize,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:error={}:when={}", self.call, self.error, self.when)
    }
}

/// How a run ended.
pub(crate) struct Ended {
    /// `None` after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) was_injected: bool,
}

/// The errors that a call is made to give; none for calls whose failure only
/// the allocator, the loader or the runtime would see.
fn errors_of(call: &str) -> &'static [&'static str] {
    match call {
        "mmap" | "munmap" | "mremap" | "mprotect" | "madvise" | "brk" | "futex" | "exit"
        | "exit_group" | "rt_sigaction" | "rt_sigprocmask" | "rt_sigreturn" | "sigaltstack"
        | "arch_prctl" | "set_tid_address" | "set_robust_list" | "rseq" | "prlimit64"
        | "sched_getaffinity" | "sched_yield" | "clock_nanosleep" | "restart_syscall" | "prctl"
        | "gettid" | "getpid" | "getppid" | "getuid" | "geteuid" | "getgid" | "getegid"
        | "umask" | "close" | "getpgrp" | "uname" | "sysinfo" => &[],
        "write" | "writev" | "pwrite64" | "ftruncate" | "fallocate" | "copy_file_range"
        | "sendfile" | "fsync" | "fdatasync" | "syncfs" | "sync_file_range" => {
            &["ENOSPC", "EIO", "EDQUOT"]
        }
        "rename" | "renameat" | "renameat2" | "linkat" | "symlinkat" | "mkdir" | "mkdirat" => {
            &["EIO", "ENOSPC", "EACCES"]
        }
        "open" | "openat" | "openat2" => &["EIO", "EMFILE", "EACCES", "ENOSPC"],
        "fchown" | "fchownat" | "chown" | "fchmod" | "fchmodat" | "chmod" | "utimensat"
        | "fsetxattr" | "setxattr" => &["EPERM", "EIO"],
        "clone" | "clone3" | "vfork" | "fork" => &["EAGAIN", "ENOMEM"],
        "execve" => &["ENOENT", "EACCES", "ENOMEM"],
        "pipe" | "pipe2" | "eventfd2" | "socket" | "socketpair" | "dup" | "dup2" | "dup3"
        | "epoll_create1" => &["EMFILE"],
        // The runtime aborts when its first `poll` gives anything else.
        "poll" | "ppoll" | "epoll_wait" => &["EINTR", "ENOMEM"],
        "wait4" | "waitid" | "select" => &["EINTR"],
        // The kernel gives no other; the standard library panics on others.
        "getrandom" => &["ENOSYS", "EINTR"],
        "flock" => &["EWOULDBLOCK", "EIO", "ENOLCK"],
        "read" | "pread64" | "readv" => &["EIO", "EINTR", "EISDIR"],
        "newfstatat" | "fstat" | "statx" | "stat" | "lstat" => &["EIO", "EACCES", "ENOMEM"],
        "unlink" | "unlinkat" | "rmdir" => &["EIO", "EBUSY"],
        _ => &["EIO", "ENOMEM"],
    }
}

/// Every fault that a run of a scenario offers.
pub(crate) fn faults_of(scenario: &Scenario) -> Vec<Fault> {
    let stage = tempfile::tempdir().unwrap();
    let directory = stage.path();
    (scenario.set_up)(directory);
    let ended = traced(scenario, directory, &["-e", "trace=all"]).unwrap();
    assert_eq!(ended.code, Some(0), "{}\n{}\n{}", scenario.name, ended.stdout, ended.stderr);
    (scenario.is_desired)(directory).unwrap();
    let trace = std::fs::read_to_string(directory.join("trace")).unwrap();
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for line in trace.lines() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let Some((call, _)) = rest.trim_start().split_once('(') else { continue };
        if call.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            *counts.entry((process, call)).or_default() += 1;
        }
    }
    let mut most: BTreeMap<&str, usize> = BTreeMap::new();
    for ((_, call), count) in counts {
        let known = most.entry(call).or_default();
        *known = (*known).max(count);
    }
    let mut faults = Vec::new();
    for (call, count) in most {
        for when in 1..=count {
            let of = |&error| Fault { call: call.to_owned(), error, when };
            faults.extend(errors_of(call).iter().map(of));
        }
    }
    faults
}

/// Runs a scenario, with a fault or without; `None` if it hangs.
pub(crate) fn run(scenario: &Scenario, directory: &Path, fault: Option<&Fault>) -> Option<Ended> {
    match fault {
        None => traced(scenario, directory, &["-e", "trace=none"]),
        Some(fault) => {
            let trace = format!("trace={}", fault.call);
            let inject = format!("inject={fault}");
            traced(scenario, directory, &["--seccomp-bpf", "-e", &trace, "-e", &inject])
        }
    }
}

fn traced(scenario: &Scenario, directory: &Path, options: &[&str]) -> Option<Ended> {
    let trace = directory.join("trace");
    let output = |name: &str| std::fs::File::create(directory.join(name)).unwrap();
    let mut command = if scenario.needs_tools {
        // Programs of our own take the places of the real ones, in a mount
        // namespace that the machine never sees. All places: a fault may make
        // the search go on behind the first.
        let mut command = Command::new("unshare");
        let mount = "set -e; mount -t tmpfs none /run; mkdir -p /run/systemd/system; \
                     mount --bind tools /usr/local/sbin; for tool in tools/*; do for dir in \
                     /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do real=$dir/${tool##*/}; if [ \
                     -e $real ]; then mount --bind $tool $real; fi; done; done; exec \"$@\"";
        command.args(["--mount", "sh", "-c", mount, "sh", "strace"]);
        command
    } else {
        Command::new("strace")
    };
    let mut child = command
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(options)
        .arg(env!("CARGO_BIN_EXE_ccm"))
        .args(["apply", "manifest.yaml"])
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .env("CCM_STATE_DIR", directory.join("state"))
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(output("stdout"))
        .stderr(output("stderr"))
        .process_group(0)
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > HANGS {
            let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
            let _ = child.wait();
            return None;
        }
        // Between two looks: thousands of runs are waited for.
        std::thread::sleep(Duration::from_millis(1));
    };
    let text = |name: &str| {
        String::from_utf8_lossy(&std::fs::read(directory.join(name)).unwrap()).into_owned()
    };
    let trace = std::fs::read_to_string(trace).unwrap_or_default();
    Some(Ended {
        code: status.code(),
        stdout: text("stdout"),
        stderr: text("stderr"),
        was_injected: trace.contains("(INJECTED)"),
    })
}
