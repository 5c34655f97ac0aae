//! Processes as the kernel lists them.

use std::path::Path;
use std::time::Duration;

/// State, parent and processor time of a process.
fn stat(pid: i32) -> Option<(char, i32, Duration)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    let time = Duration::from_millis(ticks * 10);
    Some((fields.first()?.chars().next()?, fields.get(1)?.parse().ok()?, time))
}

fn all() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Whether a process still runs: one that has ended and waits for its parent
/// does not.
pub fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|(state, ..)| !matches!(state, 'Z' | 'X'))
}

/// The processes that a process has started and that still run.
pub fn children(pid: i32) -> Vec<i32> {
    let is_child = |other: &i32| stat(*other).is_some_and(|(_, parent, _)| parent == pid);
    all().filter(is_child).filter(|child| is_alive(*child)).collect()
}

/// Whether a process that still runs has this as its working directory.
pub fn is_work_in(directory: &Path) -> bool {
    let is_there =
        |pid: &i32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at == directory);
    all().filter(is_there).any(is_alive)
}

/// The processor time that a process has used.
pub fn processor_time(pid: i32) -> Duration {
    stat(pid).map(|(_, _, time)| time).unwrap_or_default()
}

/// Whether a process has a handler for a signal.
pub fn handles(pid: i32, signal: nix::sys::signal::Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask & (1 << (signal as i32 - 1)) != 0
}
