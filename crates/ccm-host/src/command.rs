//! Runs commands. All processes are started here.

mod lookup;
mod run_as;
mod wait;

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::extended::name_of;
use crate::lock::Lock;
use crate::{ChangeCounters, Error, Host, Result};

pub use run_as::{Identity, RUN_AS, become_command};

/// Where system tools are looked for.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// What package managers are told of proxies by.
const PROXIES: [&str; 10] = [
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];
/// How much output is kept of each stream unless the command says otherwise.
const CAPTURE: usize = 1 << 20;
/// How many lines of standard error a failure carries.
const LAST_LINES: usize = 10;

/// A command to run: never through a shell, standard input empty, in a process
/// group of its own.
#[derive(Clone, Debug)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    directory: PathBuf,
    environment: Environment,
    identity: Identity,
    variables: Vec<(&'static str, &'static str)>,
    timeout: Option<Duration>,
    capture: usize,
    is_query: bool,
    is_finished: bool,
    has_proxies: bool,
    input: Option<Input>,
}

/// What a command reads from its standard input; never shown, as it may be secret.
#[derive(Clone)]
struct Input(Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Input {
    /// A file in memory without a name, from which the command reads it.
    fn file(&self) -> std::io::Result<File> {
        let mut file = File::from(memfd_create("ccm-input", MemfdFlags::CLOEXEC)?);
        file.write_all(&self.0)?;
        file.rewind()?;
        Ok(file)
    }
}

/// Environment of a command.
#[derive(Clone, Debug)]
pub enum Environment {
    /// For system tools that ccm itself chose: a plain locale, a fixed path and
    /// a home directory. Nothing of ccm's own environment, where `LD_PRELOAD` or
    /// `DPKG_ADMINDIR` could make a tool do something else.
    System,
    /// For commands of users: ccm's own environment and some more.
    Inherited {
        /// Variables to add, as `(key, value)`.
        add: Vec<(String, String)>,
        /// Replacement for `PATH`, for the lookup and for the command.
        path: Option<String>,
    },
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// A signal ended it, with this number.
    Signal(i32),
}

/// Where a line of output came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Lines that the command prints as its result.
    Stdout,
    /// Lines that the command logs or complains in.
    Stderr,
}

/// Result of a command.
#[derive(Clone, Debug)]
pub struct Output {
    /// Exit code or signal; the caller decides which of them is a failure.
    pub exit: Exit,
    /// The last of its standard output, at least a mebibyte if there was more
    /// and the command does not say otherwise.
    pub stdout: Vec<u8>,
    /// The last of its standard error, likewise.
    pub stderr: Vec<u8>,
}

impl Output {
    /// The last lines of standard error, for messages.
    pub fn stderr_tail(&self, lines: usize) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let mut tail: VecDeque<&str> = VecDeque::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if tail.len() == lines {
                tail.pop_front();
            }
            tail.push_back(line);
        }
        Vec::from(tail).join("\n")
    }

    /// This end as an error.
    pub fn failure(&self, command: &Command) -> Error {
        Error::Failed {
            command: command.words(),
            exit: self.exit,
            last_words: self.stderr_tail(LAST_LINES),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
        }
    }
}

impl Command {
    /// A command of a provider: system environment, in `/`.
    pub fn new<S: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = S>,
    ) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: args.into_iter().map(|arg| arg.as_ref().to_owned()).collect(),
            directory: PathBuf::from("/"),
            environment: Environment::System,
            identity: Identity::default(),
            variables: Vec::new(),
            timeout: None,
            capture: CAPTURE,
            is_query: false,
            is_finished: false,
            has_proxies: false,
            input: None,
        }
    }

    /// Runs it in a directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Runs it with another environment.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Runs it as another user, with another group or umask, in a new session.
    #[must_use]
    pub fn identity(mut self, identity: Identity) -> Self {
        self.identity = identity;
        self
    }

    /// Terminates it and its process group after this time.
    #[must_use]
    pub fn timeout(mut self, timeout: Option<Duration>) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets a variable, whatever the environment is.
    #[must_use]
    pub fn variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    /// Passes the proxy variables of ccm's environment to the command.
    #[must_use]
    pub fn proxies(mut self) -> Self {
        self.has_proxies = true;
        self
    }

    /// Passes this to the command on standard input. Unlike arguments, no other
    /// user can see it. A command with an identity gets no input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(Input(input.into()));
        self
    }

    /// Keeps at least this many bytes of each stream.
    #[must_use]
    pub fn capture(mut self, bytes: usize) -> Self {
        self.capture = bytes;
        self
    }

    /// Marks the command as read-only: it does not invalidate cached state.
    #[must_use]
    pub fn query(mut self) -> Self {
        self.is_query = true;
        self
    }

    /// Lets it finish if the run is interrupted, because half of its work is
    /// worse than all of it. A second cancellation kills it.
    #[must_use]
    pub fn uninterruptible(mut self) -> Self {
        self.is_finished = true;
        self
    }

    /// What was run, for messages.
    pub fn words(&self) -> String {
        let words = std::iter::once(&self.program).chain(&self.args);
        words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }
}

impl Host {
    /// Runs a command and waits for it; calls `on_line` for each line of output
    /// as it arrives.
    pub fn run(&self, command: &Command, on_line: &mut dyn FnMut(Stream, &str)) -> Result<Output> {
        self.forget_parent();
        if !command.is_query {
            self.inner.commands.fetch_add(1, Ordering::Relaxed);
        }
        if tracing::enabled!(tracing::Level::DEBUG) {
            let words = self.redactor().text(&command.words()).into_owned();
            tracing::debug!(command = words, "running");
        }
        let path = self.search_path(command);
        let program = lookup::find(&command.program, &path, &command.directory)
            .map_err(|error| self.awaited_program(command, &path, error))?;
        let held = self.hold_directory(&command.directory)?;
        let directory = self.working_directory(&command.directory, held.as_ref());
        if command.identity.is_set() {
            return self.run_as(command, &command.identity, program, directory, on_line);
        }
        let input = match &command.input {
            None => Stdio::null(),
            Some(input) => input
                .file()
                .map_err(|source| Error::Spawn { command: command.name(), source })?
                .into(),
        };
        let mut child = std::process::Command::new(program);
        child
            .arg0(&command.program)
            .args(&command.args)
            .current_dir(directory)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        match &command.environment {
            Environment::System => {
                child.env_clear().env("LC_ALL", "C").env("LANG", "C").env("PATH", SYSTEM_PATH);
                // Not that of the environment: rpm runs what ~/.rpmmacros says.
                child.env("HOME", if self.is_root() { "/root" } else { "/" });
                let proxies = PROXIES.iter().filter(|_| command.has_proxies);
                child.envs(proxies.filter_map(|name| Some((name, self.env(name)?))));
            }
            Environment::Inherited { add, path } => {
                child.envs(add.iter().map(|(key, value)| (key, value)));
                if let Some(path) = path {
                    child.env("PATH", path);
                }
            }
        }
        child.envs(command.variables.iter().copied());
        if let Some(token) = &*self.inner.run_token.hold() {
            child.env(crate::run_lock::VARIABLE, token);
        }
        let spawned = child.spawn().map_err(|source| self.spawn_error(command, source))?;
        wait::wait(self.cancel(), spawned, command, on_line)
    }

    /// Runs a command; an exit code other than 0 is an error.
    pub fn run_checked(
        &self,
        command: &Command,
        on_line: &mut dyn FnMut(Stream, &str),
    ) -> Result<Output> {
        let output = self.run(command, on_line)?;
        if output.exit == Exit::Code(0) { Ok(output) } else { Err(output.failure(command)) }
    }

    /// Opens the directory that a command is to run in. As root, whoever owns a
    /// directory on the way must not choose where the command works.
    fn hold_directory(&self, directory: &Path) -> Result<Option<OwnedFd>> {
        if !self.is_root() || directory == Path::new("/") {
            return Ok(None);
        }
        self.open_managed(directory).map(Some)
    }

    /// A name by which the child enters a directory that is held open.
    fn working_directory(&self, path: &Path, held: Option<&OwnedFd>) -> PathBuf {
        let name = held.map(|held| PathBuf::from(name_of(held)));
        // Where /proc is not mounted there is only the path.
        let name = name.filter(|name| self.stat(name).is_ok_and(|found| found.is_some()));
        name.unwrap_or_else(|| path.to_owned())
    }

    fn spawn_error(&self, command: &Command, source: std::io::Error) -> Error {
        // The child's failure to enter its directory comes back as its own.
        if !self.stat(&command.directory).is_ok_and(|found| found.is_some()) {
            return Error::NotADirectory { path: command.directory.clone() };
        }
        Error::Spawn { command: command.name(), source }
    }

    /// Finds a system tool. The result is cached until something may have
    /// changed it, because every resource asks.
    pub fn which(&self, program: &str) -> bool {
        let known = self.cached::<Tools>();
        let now = self.changes();
        if let Some(&(then, is_there)) = known.0.hold().get(program)
            && then == now
        {
            return is_there;
        }
        let is_there =
            self.find_program(OsStr::new(program), OsStr::new(SYSTEM_PATH), Path::new("/")).is_ok();
        known.0.hold().insert(program.to_owned(), (now, is_there));
        is_there
    }

    /// Checks that a command can be started, without starting it: its directory
    /// and its program are there, or in a preview will be.
    pub fn check_command(&self, command: &Command) -> Result<()> {
        self.resolve_identity(&command.identity)?;
        let directory = &command.directory;
        match self.stat(directory)? {
            Some(stat) if stat.kind == crate::FileKind::Directory => {}
            _ => return Err(Error::NotADirectory { path: directory.clone() }),
        }
        let program = self.find_program(&command.program, &self.search_path(command), directory)?;
        if self.is_program(&program) {
            return Ok(());
        }
        Err(Error::io("run", &program)(rustix::io::Errno::ACCESS))
    }

    fn search_path(&self, command: &Command) -> OsString {
        match &command.environment {
            Environment::System => SYSTEM_PATH.into(),
            Environment::Inherited { path: Some(path), .. } => path.into(),
            Environment::Inherited { path: None, .. } => {
                self.env("PATH").unwrap_or_else(|| SYSTEM_PATH.into())
            }
        }
    }

    /// In a preview: a program that an earlier step brings cannot be run yet.
    fn awaited_program(&self, command: &Command, path: &OsStr, error: Error) -> Error {
        let found = self.find_program(&command.program, path, &command.directory);
        let by = found.ok().and_then(|file| Some((self.predicted_below(&file)?, file)));
        match by {
            Some((by, path)) => Error::Unpredictable { path, by },
            None => error,
        }
    }

    /// The file of a program, which in a preview an earlier step may bring or
    /// remove.
    fn find_program(&self, program: &OsStr, path: &OsStr, directory: &Path) -> Result<PathBuf> {
        if !self.is_preview() {
            return lookup::find(program, path, directory);
        }
        if lookup::is_path(program) {
            let file = directory.join(program);
            let found = self.stat(&file)?.map(|_| file);
            return found.ok_or_else(|| lookup::not_found(program, program));
        }
        let candidates = lookup::candidates(program, path, directory);
        let found = candidates.into_iter().find(|file| self.is_program(file));
        found.ok_or_else(|| lookup::not_found(program, path))
    }

    /// Whether the user can execute a file, or in a preview will be able to.
    fn is_program(&self, file: &Path) -> bool {
        self.is_predicted_program(file).unwrap_or_else(|| lookup::is_executable(file))
    }
}

/// Which tools were looked for, when, and whether they were there.
#[derive(Default)]
struct Tools(Lock<HashMap<String, (ChangeCounters, bool)>>);

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn sh(script: &str) -> Command {
        Command::new("/bin/sh", ["-c", script])
    }

    fn run(command: &Command) -> Result<Output> {
        Host::new().run(command, &mut |_, _| {})
    }

    #[test]
    fn output_and_exit_are_told_apart() {
        let output = run(&sh("echo out; echo err >&2; exit 3")).unwrap();
        assert_eq!(output.exit, Exit::Code(3));
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.stderr_tail(5), "err");
        assert_eq!(run(&sh("kill -9 $$")).unwrap().exit, Exit::Signal(9));
    }

    #[test]
    fn input_is_read_and_is_not_among_the_arguments() {
        let script = "cat; tr '\\0' ' ' < /proc/$$/cmdline";
        let command = sh(script).input("secret:word\n");
        let output = run(&command).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("secret:word\n") && text.matches("secret").count() == 1, "{text}");
        assert!(!format!("{command:?}").contains("secret"));
        let long = vec![b'x'; 1 << 20];
        let output = run(&sh("wc -c").input(long)).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), "1048576");
        // Nobody reads it.
        assert_eq!(run(&sh("true").input("secret")).unwrap().exit, Exit::Code(0));
    }

    #[test]
    fn system_tools_see_the_plain_locale_root_directory_and_no_input() {
        let output = run(&sh("pwd; echo $LC_ALL $LANG $PATH; cat")).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, format!("/\nC C {SYSTEM_PATH}\n"));
        // Of what the test itself has (CARGO_MANIFEST_DIR and more), nothing.
        let output = run(&Command::new("env", [""; 0])).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut names: Vec<_> = text.lines().filter_map(|line| line.split('=').next()).collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "LANG", "LC_ALL", "PATH"]);
    }

    #[test]
    fn the_environment_is_inherited_added_to_and_the_path_replaced() {
        let environment = Environment::Inherited {
            add: vec![("CCM_TEST_X".into(), "1 2".into())],
            path: Some("/bin:/usr/bin".into()),
        };
        let output = run(&sh("echo \"$CCM_TEST_X|$PATH|${HOME:+home}\"").environment(environment));
        let home = if std::env::var_os("HOME").is_some() { "home" } else { "" };
        assert_eq!(output.unwrap().stdout, format!("1 2|/bin:/usr/bin|{home}\n").into_bytes());
    }

    #[test]
    fn a_timeout_ends_the_whole_group() {
        let dir = tempfile::tempdir().unwrap();
        let marker = dir.path().join("alive");
        let script =
            format!("(sleep 60; touch {0}) & echo $! > {0}.pid; sleep 60", marker.display());
        let begin = Instant::now();
        let error = run(&sh(&script).timeout(Some(Duration::from_millis(200)))).unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        let pid = std::fs::read_to_string(dir.path().join("alive.pid")).unwrap();
        let pid = pid.trim().parse().unwrap();
        ccm_testkit::wait_until("a grandchild to end", || !ccm_testkit::is_alive(pid));
        assert!(!marker.exists(), "a grandchild outlived the timeout");
    }

    #[test]
    fn a_group_that_ignores_the_first_signal_gets_the_second() {
        let begin = Instant::now();
        let stubborn = sh("trap '' TERM; while :; do sleep 0.1; done");
        let error = run(&stubborn.timeout(Some(Duration::from_millis(100)))).unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }), "{error}");
        assert!(begin.elapsed() < wait::GRACE + Duration::from_secs(3));
    }

    #[test]
    fn a_grandchild_that_holds_the_pipe_does_not_hang_the_run() {
        let begin = Instant::now();
        let output = run(&sh("sleep 30 & echo done")).unwrap();
        assert_eq!(output.stdout, b"done\n");
        assert!(begin.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_flood_is_bounded_and_its_end_kept() {
        let output = run(&sh("head -c 20000000 /dev/zero; echo; echo last")).unwrap();
        assert!(output.stdout.len() <= 2 * CAPTURE);
        assert!(output.stdout.ends_with(b"\nlast\n"));
    }

    #[test]
    fn lines_arrive_while_the_command_runs() {
        let mut lines = Vec::new();
        let begin = Instant::now();
        let script = sh("echo one; sleep 0.4; echo two >&2; printf three");
        Host::new()
            .run(&script, &mut |stream, line| {
                lines.push((stream, line.to_owned(), begin.elapsed()));
            })
            .unwrap();
        let texts: Vec<_> = lines.iter().map(|(_, line, _)| line.as_str()).collect();
        assert_eq!(texts, ["one", "two", "three"]);
        assert_eq!(lines[1].0, Stream::Stderr);
        assert!(lines[0].2 + Duration::from_millis(200) < lines[1].2);
    }

    #[test]
    fn what_fails_tells_its_code_and_last_lines() {
        let script = sh("seq 20 >&2; exit 7");
        let error = Host::new().run_checked(&script, &mut |_, _| {}).unwrap_err().to_string();
        assert!(
            error.starts_with("`/bin/sh -c seq 20 >&2; exit 7` exited with code 7\n11\n"),
            "{error}"
        );
        assert!(error.ends_with("\n20"), "{error}");
        let killed = Host::new().run_checked(&sh("kill -9 $$"), &mut |_, _| {}).unwrap_err();
        assert_eq!(killed.to_string(), "`/bin/sh -c kill -9 $$` was killed by signal 9");
    }

    #[test]
    fn commands_count_as_changes_unless_they_only_look() {
        let host = Host::new();
        let before = host.changes();
        host.run(&sh("true").query(), &mut |_, _| {}).unwrap();
        assert_eq!(host.changes(), before);
        host.run(&sh("true"), &mut |_, _| {}).unwrap();
        assert_ne!(host.changes().commands, before.commands);
        assert_eq!(host.changes().files, before.files);
    }

    #[test]
    fn tools_are_looked_for_again_when_something_may_have_changed() {
        let host = Host::new();
        assert!(host.which("sh") && host.which("sh"));
        assert!(!host.which("no-such-command"));
        // As if it had been there, and a command had removed it.
        let stale = (host.changes(), true);
        host.cached::<Tools>().0.hold().insert("no-such-command".into(), stale);
        assert!(host.which("no-such-command"));
        host.run(&sh("true"), &mut |_, _| {}).unwrap();
        assert!(!host.which("no-such-command"));
    }

    #[test]
    fn variables_are_set_and_more_is_kept_where_asked_for() {
        let script =
            sh("echo $CCM_X; head -c 3000000 /dev/zero").variable("CCM_X", "y").capture(4 << 20);
        let output = run(&script).unwrap();
        assert!(output.stdout.starts_with(b"y\n"));
        assert_eq!(output.stdout.len(), 3_000_002);
    }

    #[test]
    fn what_cannot_run_is_told_clearly() {
        let missing = run(&Command::new("no-such-command", [""; 0])).unwrap_err();
        assert_eq!(missing.to_string(), "command not found: no-such-command");
        assert!(missing.hint().unwrap().starts_with("searched /usr/local/sbin"));
        let forbidden = run(&Command::new("/etc/passwd", [""; 0])).unwrap_err();
        assert!(matches!(forbidden, Error::Spawn { .. }), "{forbidden}");
        let nowhere = run(&sh("true").directory("/nonexistent")).unwrap_err();
        assert_eq!(nowhere.to_string(), "/nonexistent is not a directory: it does not exist");
    }
}
