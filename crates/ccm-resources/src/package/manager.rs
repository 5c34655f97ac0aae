//! Runs the commands of package managers.

use std::path::Path;

use ccm_engine::{Error, Result};
use ccm_host::{Command, Host, Output};

/// Only one run of a process calls package managers at a time.
const TOOL: &str = "package manager";

/// Room for the answer about every package of a large machine.
const CAPTURE: usize = 64 << 20;

/// Words in what a package manager said, and what to do about it.
pub(super) type Advice = &'static [(&'static str, &'static str)];

/// Runs a command that only looks. It finishes too, as what was changed a
/// moment before an interrupt is still to be verified.
pub(super) fn query(host: &Host, command: Command) -> Result<Output> {
    let command = command.query().uninterruptible().capture(CAPTURE);
    Ok(host.exclusively(TOOL, || host.run(&command, &mut |_, _| {}))?)
}

/// Runs a command that changes something, to its end even when the run is
/// interrupted, and says when it waits for another package manager.
pub(super) fn change(
    host: &Host,
    command: Command,
    advice: Advice,
    say: &mut dyn FnMut(&str),
) -> Result<()> {
    let command = command.uninterruptible().proxies();
    let mut wait_logged = false;
    let mut on_line = |_, line: &str| {
        // Repeated for as long as it lasts; once is enough.
        if line.contains("Waiting for") && !std::mem::replace(&mut wait_logged, true) {
            say(line.trim());
        }
    };
    let done = host.exclusively(TOOL, || host.run_checked(&command, &mut on_line));
    done.map(drop).map_err(|error| advise(error, advice))
}

/// Adds what to do about a failure, where that is known.
/// A change that the package manager refuses: another resource may bring the
/// repository or the package that it lacks.
pub(super) fn missing(error: ccm_host::Error, advice: Advice) -> Error {
    match advise(error, advice) {
        Error::Refused { reason, hint } => Error::Missing { reason, hint, by: None },
        error => Error::Missing { reason: error.to_string(), hint: error.hint(), by: None },
    }
}

fn advise(error: ccm_host::Error, advice: Advice) -> Error {
    let said = error.to_string();
    match advice.iter().find(|(words, _)| said.contains(words)) {
        Some((_, hint)) => Error::Refused { reason: said, hint: Some((*hint).to_owned()) },
        None => error.into(),
    }
}

/// A package manager comes first on the systems that are made of its packages,
/// which these files mark, and second where it is only installed.
pub(super) fn rank(host: &Host, marks: &[&str]) -> u32 {
    let is_there = |mark: &str| host.stat(Path::new(mark)).is_ok_and(|found| found.is_some());
    if marks.iter().copied().any(is_there) { 1 } else { 2 }
}
