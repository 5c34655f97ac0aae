//! Standard input, as long as nobody wants the run to stop.

use std::io::{self, Read};
use std::os::fd::AsFd as _;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::{Cancel, Host};

/// Standard input without a buffer of its own; ends when a signal comes.
#[derive(Debug)]
pub struct StandardInput {
    cancel: Cancel,
}

impl Host {
    /// Standard input, which ends when a signal comes.
    pub fn standard_input(&self) -> StandardInput {
        StandardInput { cancel: self.cancel().clone() }
    }
}

impl Read for StandardInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        let stdin = stdin.as_fd();
        loop {
            if let Some(wake) = self.cancel.wake() {
                let readable = PollFlags::IN;
                let mut both = [
                    PollFd::from_borrowed_fd(stdin, readable),
                    PollFd::from_borrowed_fd(wake, readable),
                ];
                let polled = poll(&mut both, None);
                if self.cancel.is_cancelled() {
                    return Ok(0);
                }
                // A signal ends the wait before it is noted. What cannot be
                // waited for can still be read.
                if polled == Err(Errno::INTR) || polled.is_ok() && both[0].revents().is_empty() {
                    continue;
                }
            }
            match rustix::io::read(stdin, &mut *buffer) {
                Err(Errno::INTR) => {}
                other => return other.map_err(Into::into),
            }
        }
    }
}
