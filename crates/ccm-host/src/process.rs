//! This process itself: its memory, its signals, its log.

use std::os::unix::process::CommandExt as _;

use rustix::thread::{disable_transparent_huge_pages, transparent_huge_pages_are_disabled};

use crate::Host;

/// Allows this process, and those it starts from now on, memory in huge pages
/// again.
pub fn allow_huge_pages() {
    // A kernel that knows nothing of it needs nothing done.
    let _ = disable_transparent_huge_pages(false);
}

/// Starts this program anew, in this process and with the same arguments, but
/// without huge pages. They save time where much memory is used for a short
/// while; a process that waits wastes most of each. What it had at its start
/// it would keep otherwise. Returns if there are none already, or if it cannot
/// be done.
pub fn without_huge_pages() {
    if !matches!(transparent_huge_pages_are_disabled(), Ok(false)) {
        return;
    }
    let mut args = std::env::args_os();
    // By its path, as the name in lists of processes is taken from it.
    if let (Ok(path), Some(name)) = (std::env::current_exe(), args.next())
        && disable_transparent_huge_pages(true).is_ok()
    {
        let _ = std::process::Command::new(path).arg0(name).args(args).exec();
    }
}

/// Whether standard error is the journal, which adds timestamps.
pub fn logs_to_journal(host: &Host) -> bool {
    // The variable names the file, so that it is not taken for that of
    // another one which has inherited it.
    let Some(stream) = host.env("JOURNAL_STREAM") else { return false };
    let Ok(stat) = rustix::fs::fstat(std::io::stderr()) else { return false };
    stream.to_str() == Some(&*format!("{}:{}", stat.st_dev, stat.st_ino))
}

/// The signals that this process ignores, one bit each from 1 on.
///
/// Asking for the disposition itself takes `unsafe` code; the kernel also
/// prints it. Where it cannot be read, nothing counts as ignored.
pub fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
