//! Signals: the first one cancels the run, the second ends the process at once.
//! The agent takes them by itself.
//!
//! Only the binary handles signals. The engine sees a token.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ccm_agent::Signal;
use ccm_engine::RunExit;
use ccm_host::{Cancel, CancelReason};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};

/// How long to wait before a system call that failed is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// A token that SIGHUP, SIGINT and SIGTERM cancel from now on. Those that are
/// ignored, as `nohup` does, stay ignored.
pub(crate) fn watch() -> io::Result<Cancel> {
    let cancel = Cancel::new()?;
    let token = cancel.clone();
    listen(&[SIGHUP, SIGINT, SIGTERM], move |signal| take(signal, &token))?;
    Ok(cancel)
}

/// Hands the signals of the agent on.
pub(crate) fn forward(take: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
    listen(&[SIGHUP, SIGINT, SIGTERM, SIGUSR1], move |signal| {
        take(match signal {
            SIGHUP => Signal::Reload,
            SIGUSR1 => Signal::ApplyAll,
            signal => Signal::Stop(signal),
        });
    })
}

/// Waits for these signals in a thread, without those that are ignored.
fn listen(signals: &[i32], take: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    let ignored = ccm_host::process::ignored_signals();
    let is_watched = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
    let watched = signals.iter().copied().filter(is_watched);
    let pipes = watched.map(pipe_of).collect::<io::Result<Vec<_>>>()?;
    std::thread::Builder::new().name("signals".into()).spawn(move || receive(&pipes, &take))?;
    Ok(())
}

/// Lets the handler of a signal write into a pipe; gives back its other end.
fn pipe_of(signal: i32) -> io::Result<(i32, UnixStream)> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal, write)?;
    Ok((signal, read))
}

/// Takes what the handlers write, for as long as the process lives.
fn receive(pipes: &[(i32, UnixStream)], take: &dyn Fn(i32)) {
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
                take(*signal);
            }
        }
    }
}

#[expect(clippy::exit, reason = "whoever sends a second signal does not want to wait")]
fn take(signal: i32, cancel: &Cancel) {
    if !cancel.cancel(CancelReason::Signal(signal)) {
        cancel.abandon();
        std::process::exit(RunExit::Interrupted(signal).code(false).into());
    }
}
