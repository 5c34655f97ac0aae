//! An agent in a place of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use ccm_testkit::{children, is_alive, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;

pub(crate) struct Bed {
    pub(crate) env: TestEnv,
}

impl Bed {
    pub(crate) fn new() -> Self {
        Self { env: TestEnv::new() }
    }

    /// Writes the configuration: what every test needs, and this.
    pub(crate) fn configure(&self, more: &str) -> PathBuf {
        self.env.write("config.yaml", &format!("cache_dir: [DIR]/cache\nsplay: 0\n{more}"))
    }

    /// Writes a manifest with these resources, in YAML's flow style.
    pub(crate) fn manifest(&self, name: &str, resources: &str) -> PathBuf {
        self.env.write(name, &format!("ccm: {{resources: [{resources}]}}\n"))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let config = self.env.path("config.yaml");
        let config = config.to_str().unwrap();
        self.env.command(["agent", "--config", config].iter().chain(args))
    }

    /// Runs the agent to its end: exit code, and what it says.
    pub(crate) fn run(&self, args: &[&str]) -> (i32, String) {
        let output = self.command(args).output().unwrap();
        let text = [&*output.stdout, &*output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    /// Starts an agent that logs into a file.
    pub(crate) fn start(&self, args: &[&str]) -> Agent {
        self.start_with(args, |_| {})
    }

    pub(crate) fn start_with(&self, args: &[&str], set: impl Fn(&mut Command)) -> Agent {
        let log = self.env.path("log");
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let before = std::fs::metadata(&log).unwrap().len();
        let mut command = self.command(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        set(&mut command);
        Agent { child: command.spawn().unwrap(), log, before }
    }
}

pub(crate) struct Agent {
    child: Child,
    log: PathBuf,
    before: u64,
}

impl Agent {
    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    pub(crate) fn log(&self) -> String {
        let text = std::fs::read(&self.log).unwrap();
        String::from_utf8_lossy(&text[usize::try_from(self.before).unwrap()..]).into_owned()
    }

    /// Waits until a line of the log has all of these words.
    pub(crate) fn wait_for(&mut self, words: &[&str]) -> String {
        self.wait_for_times(words, 1)
    }

    /// Waits until so many lines have them; the last one.
    pub(crate) fn wait_for_times(&mut self, words: &[&str], times: usize) -> String {
        let seen = std::fmt::from_fn(|f| write!(f, "{words:?} in\n{}", self.log()));
        wait_until(seen, || {
            // It writes nothing after its end.
            let is_running = is_alive(self.pid());
            let log = self.log();
            let mut found = log.lines().filter(|line| words.iter().all(|word| line.contains(word)));
            let found = found.nth(times - 1).map(str::to_owned);
            let is_late = found.is_none() && !is_running;
            assert!(!is_late, "the agent has ended before {words:?}:\n{log}");
            found
        })
    }

    pub(crate) fn count(&self, words: &[&str]) -> usize {
        let log = self.log();
        log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count()
    }

    /// Waits for the end.
    pub(crate) fn ends(&mut self) -> ExitStatus {
        wait_until("the agent to end", || self.child.try_wait().unwrap())
    }

    /// Asks it to stop, which it must do well.
    pub(crate) fn stop(mut self) -> String {
        self.signal(Signal::SIGTERM);
        let status = self.ends();
        let log = self.log();
        assert_eq!(status.code(), Some(0), "{log}");
        log
    }

    /// The process of the run at work.
    pub(crate) fn run_pid(&self) -> i32 {
        wait_until("a run", || children(self.pid()).first().copied())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a file and returns the number in it.
pub(crate) fn pid_in(path: &Path) -> i32 {
    wait_until("a number in a file", || std::fs::read_to_string(path).ok()?.trim().parse().ok())
}

/// How many bytes a file has; 0 if there is none.
pub(crate) fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
