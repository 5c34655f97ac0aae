//! One machine.

use std::fmt;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use ccm_testkit::not_run;

use crate::bed::{Bed, Layer, bed, first_line, script};
use crate::{Report, binary};

/// No command may take longer, in seconds.
const TIMEOUT: &str = "180";

/// Where the binary under test is.
const CCM: &str = "/usr/local/bin/ccm";

/// A machine that is up.
pub struct Machine {
    /// The number of its first process on the host.
    pid: String,
    /// Its standard input is the machine's life.
    launcher: Child,
}

/// What became of a command in a machine.
#[derive(Clone)]
pub struct Ran {
    /// Its exit code, or -1.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl fmt::Debug for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { code, stdout, stderr } = self;
        write!(f, "exit: {code}\n--- stdout ---\n{stdout}\n--- stderr ---\n{stderr}")
    }
}

impl Machine {
    /// A new machine without a network, `ccm` in its path. None, after saying
    /// so loudly, where machines cannot be made.
    pub fn up(layer: Layer) -> Option<Self> {
        match bed() {
            Ok(bed) => Some(Self::boot(bed, &layer.lower(bed), None, "none")),
            Err(reason) => {
                not_run(reason);
                None
            }
        }
    }

    pub(crate) fn boot(bed: &Bed, lower: &str, upper: Option<&Path>, network: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mut launcher = Command::new("nsenter")
            .args(["--target", &bed.keeper.to_string(), "--mount", "bash"])
            .arg(script("machine.sh"))
            .arg(format!("ccm-bed-{}-{number}", std::process::id()))
            .arg(&bed.directory)
            .arg(lower)
            .arg(upper.unwrap_or(Path::new("")))
            .arg(network)
            .arg(format!("{}:{CCM}", binary::ccm().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let line = first_line(&mut launcher);
        let pid = line.strip_prefix("ready ").map(str::to_owned);
        Self { pid: pid.expect("a machine did not boot"), launcher }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--target", &self.pid, "--mount", "--uts", "--ipc", "--net", "--pid"])
            .args(["--cgroup", "--root", "--wd", "env", "-i", "HOME=/root", "LANG=C.UTF-8"])
            .arg("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            // Ended inside: what is killed from outside would stay inside.
            .args(["timeout", "--kill-after=5", TIMEOUT])
            .args(words);
        command
    }

    /// A program of the host that reaches the machine's own loopback: only its
    /// network is that of the machine.
    pub fn beside(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid, "--net", program]);
        command
    }

    fn run_with(&self, words: &[&str], input: &[u8]) -> Ran {
        let mut child = self
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // What does not read its input to the end need not.
        let _ = stdin.write_all(input);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// Runs a command.
    pub fn run(&self, words: &[&str]) -> Ran {
        self.run_with(words, b"")
    }

    /// Runs a shell script.
    pub fn sh(&self, script: &str) -> Ran {
        self.run(&["bash", "-euo", "pipefail", "-c", script])
    }

    /// Runs a shell script that has to succeed; what it printed.
    pub fn ok(&self, script: &str) -> String {
        let ran = self.sh(script);
        assert_eq!(ran.code, 0, "{script}\n{ran:?}");
        ran.stdout
    }

    /// Runs `ccm`.
    pub fn ccm(&self, args: &[&str]) -> Ran {
        let words: Vec<&str> = std::iter::once(CCM).chain(args.iter().copied()).collect();
        self.run(&words)
    }

    /// Applies a manifest.
    pub fn apply(&self, manifest: &str) -> Report {
        self.apply_with(manifest, &[])
    }

    /// Says what a manifest would change.
    pub fn noop(&self, manifest: &str) -> Report {
        self.apply_with(manifest, &["--noop"])
    }

    fn apply_with(&self, manifest: &str, flags: &[&str]) -> Report {
        self.put("/tmp/manifest.yaml", manifest);
        let mut args = vec!["apply", "/tmp/manifest.yaml", "--json"];
        args.extend(flags);
        Report::new(self.ccm(&args))
    }

    /// Applies a manifest after the commands of a shell script, in a mount
    /// namespace of its own; `enter` is what precedes `ccm`, such as `chroot /mnt`.
    pub fn apply_apart(&self, script: &str, enter: &str, manifest: &str, flags: &str) -> Report {
        self.put("/tmp/manifest.yaml", manifest);
        let script =
            format!("{script}; exec {enter} {CCM} apply /tmp/manifest.yaml --json {flags}");
        Report::new(self.run(&["unshare", "--mount", "bash", "-euo", "pipefail", "-c", &script]))
    }

    /// Writes a file.
    pub fn put(&self, path: &str, content: &str) {
        self.put_bytes(path, content.as_bytes());
    }

    /// Writes a file that need not be text.
    pub fn put_bytes(&self, path: &str, content: &[u8]) {
        let script = "mkdir -p \"${1%/*}\"; cat > \"$1\"";
        let ran = self.run_with(&["sh", "-c", script, "sh", path], content);
        assert_eq!(ran.code, 0, "{path}\n{ran:?}");
    }

    /// Reads a file.
    pub fn read(&self, path: &str) -> String {
        let ran = self.run(&["cat", path]);
        assert_eq!(ran.code, 0, "{path}\n{ran:?}");
        ran.stdout
    }

    /// Whether something is at a path.
    pub fn has(&self, path: &str) -> bool {
        self.run(&["test", "-e", path]).code == 0
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.launcher.stdin.take());
        let _ = self.launcher.wait();
    }
}
