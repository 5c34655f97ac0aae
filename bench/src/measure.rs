//! CPU time and peak memory of a process.

use std::ffi::OsStr;
use std::io::{self, Error};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

/// What a process used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    pub(crate) peak_kib: u64,
}

/// Runs a command in a measuring process of its own, several times; the median
/// of the CPU time and the highest peak.
pub(crate) fn median<S: AsRef<OsStr>>(
    times: usize,
    command: &[S],
    mut before: impl FnMut() -> io::Result<()>,
) -> io::Result<Usage> {
    let mut usages = Vec::new();
    for _ in 0..times {
        before()?;
        usages.push(once(command)?);
    }
    usages.sort_by_key(|usage| usage.cpu);
    let peak_kib = usages.iter().map(|usage| usage.peak_kib).max().unwrap_or_default();
    Ok(Usage { cpu: usages[usages.len() / 2].cpu, peak_kib })
}

fn once<S: AsRef<OsStr>>(command: &[S]) -> io::Result<Usage> {
    let output = Command::new(std::env::current_exe()?).arg("measure").args(command).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse().ok());
    match (output.status.success(), numbers.next(), numbers.next()) {
        (true, Some(cpu), Some(peak_kib)) => {
            Ok(Usage { cpu: Duration::from_micros(cpu), peak_kib })
        }
        _ => Err(Error::other(format!("the measured command failed: {text}"))),
    }
}

/// The measuring process: runs the command as its only child and prints what
/// that used.
pub(crate) fn child(command: &[&str]) -> io::Result<()> {
    let (program, args) = command.split_first().ok_or_else(|| Error::other("no command"))?;
    // Not the machine's own state, which other runs may hold.
    let state = std::env::temp_dir().join(format!("ccm-bench-state-{}", std::process::id()));
    let mut measured = Command::new(program);
    measured.args(args).env("CCM_STATE_DIR", &state).stdout(Stdio::null());
    let status = measured.status();
    let _ = std::fs::remove_dir_all(&state);
    let status = status?;
    if !status.success() {
        return Err(Error::other(format!("{program} ended with {status}")));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let cpu = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    println!("{} {}", cpu(usage.user_time()) + cpu(usage.system_time()), usage.max_rss());
    Ok(())
}
