//! Running rules: one test after the other, within a time limit.
//!
//! The tests run in another thread. A system call that hangs, for example on an
//! unreachable file server, cannot be cancelled. Its thread is abandoned, and
//! the remaining tests fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ccm_host::Host;
use govalue::Value;

use crate::compile::{Entry, Test};
use crate::kinds::Id;
use crate::matcher::Found;
use crate::probe::{self, Machine};
use crate::report::{Outcome, Report, TestResult};
use crate::rules::Rules;
use crate::tree::to_json;

/// How often a wait looks whether the run was cancelled.
const SLICE: Duration = Duration::from_millis(50);
/// How long a command may take to end once it was told to, and some more.
const GRACE: Duration = Duration::from_millis(5_500);
/// Limit on the length of reported values.
const LONGEST_FOUND: usize = 4096;

/// The run was cancelled before all tests were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run was interrupted")]
pub struct Interrupted;

/// What the thread of the tests and the one that waits for it know of each other.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The run has been abandoned.
    is_over: AtomicBool,
    /// A command runs, which ends within its grace.
    pub(crate) has_command: AtomicBool,
}

impl Rules {
    /// Runs every test in the order written, all of them within `timeout`.
    ///
    /// # Errors
    ///
    /// Fails only if the run is cancelled.
    pub fn run(&self, host: &Host, timeout: Duration) -> Result<Report, Interrupted> {
        let begin = Instant::now();
        // A timeout beyond all times is none.
        let deadline = begin.checked_add(timeout).unwrap_or(begin + Duration::from_hours(24 * 365));
        let shared = Arc::new(Shared::default());
        let (sender, results) = channel();
        let machine = Machine::new(host.clone(), deadline, Arc::clone(&shared), &self.entries);
        let entries = self.entries.clone();
        let done = match host.in_thread(move || run_all(&entries, &machine, &sender)) {
            Ok(()) => collect(host, &results, &shared, deadline)?,
            Err(error) => (Vec::new(), format!("cannot start a thread: {error}")),
        };
        Ok(Report::new(self.with_the_rest(done, timeout), begin.elapsed(), host))
    }

    /// Adds a result for every test that has none.
    fn with_the_rest(
        &self,
        (mut results, reason): (Vec<TestResult>, String),
        timeout: Duration,
    ) -> Vec<TestResult> {
        let tests =
            self.entries.iter().flat_map(|entry| entry.tests.iter().map(move |test| (entry, test)));
        let reason = match reason.as_str() {
            "" => format!("it did not finish within {timeout:?}, the timeout for all tests"),
            _ => reason,
        };
        let known = results.len();
        for (entry, test) in tests.skip(known) {
            let mut result = blank(entry, test);
            if !entry.is_skipped {
                result.outcome = Outcome::Failed;
                result.reason = Some(reason.clone());
            }
            results.push(result);
        }
        results
    }
}

/// Takes results until there are no more, or the time is up.
fn collect(
    host: &Host,
    results: &Receiver<TestResult>,
    shared: &Shared,
    deadline: Instant,
) -> Result<(Vec<TestResult>, String), Interrupted> {
    let mut done = Vec::new();
    let mut end: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let left = end.unwrap_or(deadline).saturating_duration_since(now);
        match results.recv_timeout(left.min(SLICE)) {
            Ok(result) => done.push(result),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let is_cancelled = host.cancel().is_cancelled();
        if end.is_none() && (is_cancelled || Instant::now() >= deadline) {
            shared.is_over.store(true, Ordering::Relaxed);
            // Wait until the command is terminated; no other code does that.
            let grace = if shared.has_command.load(Ordering::Relaxed) { GRACE } else { SLICE };
            end = Some(Instant::now() + grace);
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            break;
        }
    }
    if host.cancel().is_cancelled() { Err(Interrupted) } else { Ok((done, String::new())) }
}

fn run_all(entries: &[Entry], machine: &Machine, results: &Sender<TestResult>) {
    for entry in entries {
        if run_entry(entry, machine, results).is_none() {
            return;
        }
    }
}

/// Runs the tests of an entry; none if the run was abandoned.
fn run_entry(entry: &Entry, machine: &Machine, results: &Sender<TestResult>) -> Option<()> {
    let mut probe = probe::open(entry, machine);
    let mut is_decided = entry.is_skipped;
    for (at, test) in entry.tests.iter().enumerate() {
        if machine.shared.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let mut result = blank(entry, test);
        if !is_decided {
            let begin = Instant::now();
            let found = probe.find(test.attribute.name);
            // The first test may say that there is nothing to ask further.
            let is_false = matches!(found, Ok(Found::Value(Value::Bool(false))));
            judge(test, found, &mut result);
            result.duration = begin.elapsed();
            let is_first = at == 0 && entry.kind.has_first && entry.kind.id != Id::Command;
            is_decided = is_first && (is_false || result.outcome == Outcome::Failed);
        }
        results.send(result).ok()?;
    }
    Some(())
}

fn blank(entry: &Entry, test: &Test) -> TestResult {
    TestResult {
        kind: entry.kind.name,
        label: entry.kind.label,
        name: entry.name.clone(),
        title: entry.title.clone(),
        property: test.attribute.name,
        outcome: Outcome::Skipped,
        expected: Some(test.expected.clone()),
        found: None,
        reason: None,
        duration: Duration::ZERO,
    }
}

fn judge(test: &Test, found: Result<Found, String>, result: &mut TestResult) {
    let (holds, found) = match found {
        Ok(found) => (test.matcher.holds(&found), Some(found)),
        Err(reason) => (Err(reason), None),
    };
    match &found {
        Some(Found::Value(value)) => result.found = Some(told(value)),
        Some(Found::Hidden(_)) => result.found = Some("[redacted]".into()),
        Some(Found::LargeFile(..)) | None => {}
    }
    result.outcome = match holds {
        Ok(true) => Outcome::Passed,
        Ok(false) => Outcome::Failed,
        Err(reason) => {
            result.reason = Some(reason);
            Outcome::Failed
        }
    };
}

/// What was found, its long texts cut short.
fn told(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) if text.len() > LONGEST_FOUND => {
            let start = govalue::Str::from_bytes(&text.as_bytes()[..LONGEST_FOUND]);
            format!("{}…", start.to_str_lossy()).into()
        }
        value => to_json(value),
    }
}
