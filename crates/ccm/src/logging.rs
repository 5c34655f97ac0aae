//! Logs: to standard error, warnings and worse unless more is asked for.

use std::io::{self, Write};

use ccm_model::redact_credentials;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

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
    // What goes wrong with a connection is said in words of ours.
    let library = if debug { LevelFilter::DEBUG } else { LevelFilter::OFF };
    let filter = Targets::new().with_default(level).with_target("async_nats", library);
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(|| Redacted)
        .with_target(false)
        // A log that cannot be written must not end a run.
        .log_internal_errors(false)
        .with_ansi(false);
    // A second start is impossible in this binary and harmless elsewhere.
    let _ = if json {
        builder.json().finish().with(filter).try_init()
    } else {
        builder.without_time().finish().with(filter).try_init()
    };
}
