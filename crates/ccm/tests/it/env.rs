//! A place of its own for each test, and a picture of what ccm said there.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A directory, an environment with nothing in it, and the binary.
pub(crate) struct TestEnv {
    directory: tempfile::TempDir,
    /// Its own, so that tests neither wait for each other nor touch the machine's.
    state: tempfile::TempDir,
    session: Option<PathBuf>,
}

impl TestEnv {
    pub(crate) fn new() -> Self {
        let [directory, state] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        Self { directory, state, session: None }
    }

    /// The same with a session in the environment.
    pub(crate) fn with_session() -> Self {
        let mut env = Self::new();
        assert!(env.run(["session", "new", "session"]).status.success());
        env.session = Some(env.path("session"));
        env
    }

    pub(crate) fn dir(&self) -> &Path {
        self.directory.path()
    }

    /// The state directory of the runs of this test.
    pub(crate) fn state(&self) -> &Path {
        self.state.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// Writes a file; `[DIR]` in it is the directory of the test, `[ME]` the
    /// numeric owner and group that the test may use.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, self.fill(text)).unwrap();
        path
    }

    /// Writes the manifest that the tests apply.
    pub(crate) fn manifest(&self, text: &str) {
        self.write("manifest.yaml", text);
    }

    fn fill(&self, text: &str) -> String {
        let ids =
            format!("owner: \"{}\", group: \"{}\"", nix::unistd::geteuid(), nix::unistd::getegid());
        text.replace("[DIR]", self.dir().to_str().unwrap()).replace("[ME]", &ids)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// A copy of the binary, which itself may lie where other users cannot go.
    ///
    /// Another process writes it: what this one holds open for writing is held
    /// by whatever another test is about to start as well, and the kernel runs
    /// no file that anybody could still write to.
    pub(crate) fn copy_of_ccm(&self) -> PathBuf {
        let copy = self.path("ccm");
        let status = Command::new("cp").arg(env!("CARGO_BIN_EXE_ccm")).arg(&copy).status().unwrap();
        assert!(status.success());
        copy
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.program(&binary());
        command.args(args);
        command
    }

    /// A shell that runs a script, in which `$0` is ccm.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = self.program("/bin/sh".as_ref());
        command.args(["-c", script]).arg(binary());
        command
    }

    fn program(&self, program: &OsStr) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.dir())
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", self.dir())
            .env("TMPDIR", self.dir())
            .env("LC_ALL", "C.UTF-8")
            .env("CCM_STATE_DIR", self.state())
            .env("RUST_BACKTRACE", "0");
        if let Some(session) = &self.session {
            command.env("CCM_SESSION_STORE", session);
        }
        command
    }

    /// Runs ccm; `[DIR]` in arguments is the directory of the test.
    pub(crate) fn run<const N: usize>(&self, args: [&str; N]) -> Output {
        self.command(args.map(|arg| self.fill(arg))).output().unwrap()
    }

    /// Starts `ccm apply manifest.yaml` with its output piped.
    pub(crate) fn start(&self) -> Child {
        let mut command = self.command(["apply", "manifest.yaml"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs ccm and pictures everything that a person would see.
    pub(crate) fn ccm<const N: usize>(&self, args: [&str; N]) -> String {
        let output = self.run(args);
        let mut picture = format!("exit: {}\n", output.status.code().unwrap_or(-1));
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            let text = self.steady(&String::from_utf8_lossy(bytes));
            if !text.is_empty() {
                let _ = write!(picture, "--- {name} ---\n{text}");
                if !text.ends_with('\n') {
                    picture.push('\n');
                }
            }
        }
        picture
    }

    /// Everything that differs from run to run, replaced by what it is.
    pub(crate) fn steady(&self, text: &str) -> String {
        let text = text.replace(self.dir().to_str().unwrap(), "[DIR]");
        let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
        let text = text.replace(&format!("owner {user}, group {group}"), "[ME]");
        let uname = rustix::system::uname();
        let plan = format!(" on {}\n", uname.nodename().to_str().unwrap());
        let text = text.replace(&plan, " on [HOST]\n");
        let mut steady = String::new();
        for line in text.split_inclusive('\n') {
            let mut line = line.to_owned();
            for before in ["runtime=", " in "] {
                line = mask_duration(&line, before);
            }
            steady.push_str(&steady_row(&line));
        }
        steady
    }

    /// The names of everything below the test's directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut pending = vec![self.dir().to_owned()];
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    pending.push(path.clone());
                }
                let name = path.strip_prefix(self.dir()).unwrap();
                names.push(name.to_string_lossy().into_owned());
            }
        }
        names.sort();
        names
    }
}

/// The row of a resource without what depends on the machine: its padding,
/// which follows the length of the test's directory, and its time.
fn steady_row(line: &str) -> String {
    let Some(row) = line.strip_suffix('\n').filter(|line| ccm_testkit::is_row(line)) else {
        return line.to_owned();
    };
    let rest = row.trim_start_matches(' ');
    let (indent, mut rest) = (&row[..row.len() - rest.len()], rest.to_owned());
    while rest.contains("   ") {
        rest = rest.replace("   ", "  ");
    }
    ccm_testkit::without_time(&format!("{indent}{rest}")) + "\n"
}

/// Replaces the word behind `before` if it is a duration.
fn mask_duration(line: &str, before: &str) -> String {
    let Some(start) = line.rfind(before).map(|at| at + before.len()) else {
        return line.to_owned();
    };
    let end = line[start..].find([' ', ':', '\n']).map_or(line.len(), |at| start + at);
    let is_duration = line[start..end].ends_with('s')
        && line[start..end].starts_with(|c: char| c.is_ascii_digit());
    if !is_duration {
        return line.to_owned();
    }
    format!("{}[TIME]{}", &line[..start], &line[end..])
}

/// Long runs of tests go on with a copy while others build.
fn binary() -> OsString {
    std::env::var_os("CCM_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_ccm").into())
}
