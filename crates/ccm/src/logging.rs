//! Logs: to standard error, warnings and worse unless more is asked for.

use std::io::{self, Write};

use ccm_model::redact_credentials;
use tracing::Level;

/// Standard error, without credentials in URLs: libraries log them too.
struct Redacted;

impl Write for Redacted {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        io::stderr().write_all(redact_credentials(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

pub(crate) fn start(debug: bool, info: bool, json: bool) {
    let level = match (debug, info) {
        (true, _) => Level::DEBUG,
        (false, true) => Level::INFO,
        (false, false) => Level::WARN,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| Redacted)
        .with_target(false)
        // A log that cannot be written must not end a run.
        .log_internal_errors(false)
        .with_ansi(false);
    // A second start is impossible in this binary and harmless elsewhere.
    let _ = if json { builder.json().try_init() } else { builder.without_time().try_init() };
}
