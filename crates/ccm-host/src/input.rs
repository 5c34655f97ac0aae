//! Standard input, with cancellation.

use std::io::{self, Read};
use std::os::fd::AsFd as _;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::file::utf8;
use crate::{Cancel, Error, Host, Result};

/// Standard input without a buffer of its own; ends when a signal comes.
#[derive(Debug)]
pub struct StandardInput {
    cancel: Cancel,
}

impl StandardInput {
    /// The standard input of this process, until the run is cancelled.
    pub fn of(host: &Host) -> Self {
        Self { cancel: host.cancel().clone() }
    }

    /// All of standard input as text.
    ///
    /// # Errors
    ///
    /// Returns that it cannot be read, is not UTF-8, or is longer than `limit`.
    pub fn read_text(self, limit: u64) -> Result<String> {
        let path = Path::new("standard input");
        let mut bytes = Vec::new();
        let read = self.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(Error::std_io("read", path))?;
        if bytes.len() as u64 > limit {
            return Err(Error::TooLarge { path: path.to_owned(), limit });
        }
        utf8(bytes, path)
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
