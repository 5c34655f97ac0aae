//! Signals: the first one cancels the run, the second ends the process at once.
//!
//! Only the binary handles signals. The engine sees a token.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ccm_host::{Cancel, CancelReason};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// How long to wait before a system call that failed is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// A token that SIGHUP, SIGINT and SIGTERM cancel from now on. Those that are
/// ignored, as `nohup` does, stay ignored.
pub(crate) fn watch() -> io::Result<Cancel> {
    let cancel = Cancel::new()?;
    let ignored = ccm_host::ignored_signals();
    let is_watched = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
    let watched = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(is_watched);
    let pipes = watched.map(pipe_of).collect::<io::Result<Vec<_>>>()?;
    let token = cancel.clone();
    std::thread::Builder::new().name("signals".into()).spawn(move || receive(&pipes, &token))?;
    Ok(cancel)
}

/// Lets the handler of a signal write into a pipe; gives back its other end.
fn pipe_of(signal: i32) -> io::Result<(i32, UnixStream)> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, write)?;
    Ok((signal, read))
}

/// Takes what the handlers write, for as long as the process lives.
fn receive(pipes: &[(i32, UnixStream)], cancel: &Cancel) {
    if pipes.is_empty() {
        return;
    }
    loop {
        let mut ready: Vec<PollFd<'_>> =
            pipes.iter().map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN)).collect();
        if poll(&mut ready, None).is_err_and(|errno| errno != Errno::INTR) {
            // Without memory for a moment: the signals wait in their pipes.
            std::thread::sleep(RETRY);
            continue;
        }
        let ready: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();
        for ((signal, pipe), is_ready) in pipes.iter().zip(ready) {
            // Signals of one kind that came at once are one.
            if is_ready && rustix::io::read(pipe, &mut [0_u8; 64]).is_ok_and(|got| got > 0) {
                take(*signal, cancel);
            }
        }
    }
}

#[expect(clippy::exit, reason = "whoever sends a second signal does not want to wait")]
fn take(signal: i32, cancel: &Cancel) {
    if !cancel.cancel(CancelReason::Signal(signal)) {
        cancel.abandon();
        std::process::exit(128 + signal);
    }
}
