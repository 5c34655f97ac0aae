//! Logs: to standard error, warnings and worse unless more is asked for.

use tracing::Level;

pub(crate) fn start(debug: bool, info: bool, json: bool) {
    let level = match (debug, info) {
        (true, _) => Level::DEBUG,
        (false, true) => Level::INFO,
        (false, false) => Level::WARN,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(false);
    // A second start is impossible in this binary and harmless elsewhere.
    let _ = if json { builder.json().try_init() } else { builder.without_time().try_init() };
}
