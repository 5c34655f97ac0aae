//! Runs all tests, several test programs at a time.
//!
//! `cargo test` runs one test program after the other. Many of ours mostly wait,
//! for services, servers, agents and a browser, so that one at a time leaves the
//! machine idle.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::{Result, at_root, output, studio, target_directory};

/// The slowest ones, which begin first, so that no long one runs alone at the
/// end.
const FIRST: [&str; 7] =
    ["page", "system-tests/it", "ccm/it", "ccm/agent", "ccm/nats", "doc", "ccm/studio"];

/// Something to run: a test program, the examples in comments, or the page.
struct Job {
    name: String,
    command: Command,
}

/// What became of a job.
struct Done {
    name: String,
    passed: bool,
    took: Duration,
}

/// Which test programs run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of them, the examples in comments and the page.
    All,
    /// Those inside of crates, and the conformance vectors.
    Quick,
}

impl Scope {
    /// The test programs of the workspace, as `cargo test` selects them.
    fn selection(self) -> &'static [&'static str] {
        match self {
            Self::All => &[],
            Self::Quick => &["--lib", "--bins", "--test", "conformance"],
        }
    }
}

/// Builds and runs test programs.
pub(crate) fn run(scope: Scope) -> Result {
    let target = target_directory()?;
    let not_run = target.join("not-run.log");
    let _ = std::fs::remove_file(&not_run);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = std::env::var("RUST_TEST_THREADS").unwrap_or(cores.to_string());
    let mut jobs = programs(scope)?;
    if scope == Scope::All {
        jobs.push(documentation());
        jobs.extend(page()?);
    }
    for job in &mut jobs {
        job.command
            .env("RUST_TEST_THREADS", &threads)
            .env("CCM_BINARY", target.join("debug/ccm"))
            .env("CCM_NOT_RUN_LOG", &not_run);
    }
    let rank = |job: &Job| FIRST.iter().position(|name| *name == job.name);
    // The next job is taken from the end.
    jobs.sort_by_key(|job| std::cmp::Reverse(rank(job).unwrap_or(FIRST.len())));
    let done = run_all(jobs, cores + 1);
    let log = std::fs::read_to_string(&not_run).unwrap_or_default();
    println!("\n{log}{} tests not run", log.lines().count());
    summarize(done)
}

/// The test programs of the workspace, built. With all of them comes the binary.
fn programs(scope: Scope) -> Result<Vec<Job>> {
    let common = ["test", "--workspace", "--locked", "--no-run", "--quiet"];
    let build = [&common, scope.selection()].concat();
    // Errors of the compiler are for people, so they come before the messages.
    crate::cargo(&build)?;
    let messages = output(Command::new("cargo").args(build).arg("--message-format=json"))?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let jobs: Vec<Job> = messages.filter_map(|message| program(&message)).collect();
    if jobs.is_empty() { Err("cargo built no test programs".into()) } else { Ok(jobs) }
}

fn program(message: &serde_json::Value) -> Option<Job> {
    let is_test = message["profile"]["test"] == true;
    let executable = message["executable"].as_str().filter(|_| is_test)?;
    let manifest = PathBuf::from(message["manifest_path"].as_str()?);
    let package = manifest.parent()?;
    let name =
        format!("{}/{}", package.file_name()?.to_str()?, message["target"]["name"].as_str()?);
    let mut command = Command::new(executable);
    at_root(&mut command).current_dir(package).env("CARGO_MANIFEST_DIR", package);
    Some(Job { name, command })
}

fn documentation() -> Job {
    let mut command = Command::new("cargo");
    at_root(&mut command).args(["test", "--workspace", "--locked", "--doc", "--quiet"]);
    Job { name: "doc".into(), command }
}

/// The tests of the page, which this program runs in a process of its own.
fn page() -> Result<Option<Job>> {
    if !studio::can_test()? {
        return Ok(None);
    }
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    at_root(&mut command).arg("studio-test");
    Ok(Some(Job { name: "page".into(), command }))
}

/// Runs so many at a time. The output of each is printed when it is done, so
/// that outputs do not mix.
fn run_all(jobs: Vec<Job>, at_once: usize) -> Vec<Done> {
    let (jobs, done) = (Mutex::new(jobs), Mutex::new(Vec::new()));
    let next = || jobs.lock().ok()?.pop();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(mut job) = next() {
                    let begin = Instant::now();
                    let result = job.command.output();
                    let took = begin.elapsed();
                    let passed = result.as_ref().is_ok_and(|output| output.status.success());
                    let Ok(mut done) = done.lock() else { return };
                    println!("\n-- {}: {:.1} s", job.name, took.as_secs_f64());
                    match result {
                        Ok(output) => {
                            print!("{}", String::from_utf8_lossy(&output.stdout));
                            print!("{}", String::from_utf8_lossy(&output.stderr));
                        }
                        Err(error) => println!("cannot run: {error}"),
                    }
                    done.push(Done { name: job.name, passed, took });
                }
            });
        }
    });
    done.into_inner().unwrap_or_default()
}

/// What took longest, and what failed.
fn summarize(mut done: Vec<Done>) -> Result {
    done.sort_by_key(|done| std::cmp::Reverse(done.took));
    for done in done.iter().take(8) {
        println!("{:8.1} s  {}", done.took.as_secs_f64(), done.name);
    }
    let failed = done.iter().filter(|done| !done.passed).map(|done| done.name.as_str());
    let failed: Vec<&str> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}
