//! Logs to standard error; by default only warnings and errors.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ccm_model::redact_credentials;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::{Format, Full, Json, Writer};
use tracing_subscriber::fmt::time::SystemTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
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
    // Rows of the terminal say what becomes of child manifests.
    let children = if debug || info { level.into() } else { LevelFilter::OFF };
    let filter = Targets::new()
        .with_default(level)
        .with_target("async_nats", library)
        .with_target("ccm_engine::manifest_run", children);
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

/// The log of the agent, whose level and format can change.
pub(crate) struct AgentLog {
    set_level: Box<dyn Fn(Level)>,
    is_json: Arc<AtomicBool>,
}

impl AgentLog {
    pub(crate) fn set(&self, level: Level, is_json: bool) {
        (self.set_level)(level);
        self.is_json.store(is_json, Ordering::Relaxed);
    }
}

/// Starts the log of the agent: with a time, or for the journal with a
/// priority.
pub(crate) fn start_agent(is_journal: bool) -> AgentLog {
    let filter_at = |level: Level| {
        let library = if level == Level::DEBUG { LevelFilter::DEBUG } else { LevelFilter::OFF };
        Targets::new().with_default(level).with_target("async_nats", library)
    };
    let (filter, handle) = reload::Layer::new(filter_at(Level::INFO));
    let is_json = Arc::new(AtomicBool::new(false));
    let layer = tracing_subscriber::fmt::layer()
        .event_format(AgentFormat::new(is_journal, Arc::clone(&is_json)))
        .with_writer(|| Redacted)
        .with_ansi(false)
        .log_internal_errors(false);
    let _ = tracing_subscriber::registry().with(filter).with(layer).try_init();
    let set_level = Box::new(move |level| {
        let _ = handle.reload(filter_at(level));
    });
    AgentLog { set_level, is_json }
}

/// One line per event, as text or JSON.
struct AgentFormat {
    is_journal: bool,
    is_json: Arc<AtomicBool>,
    text: Format<Full, SystemTime>,
    text_without_time: Format<Full, ()>,
    json: Format<Json, SystemTime>,
}

impl AgentFormat {
    fn new(is_journal: bool, is_json: Arc<AtomicBool>) -> Self {
        let text = Format::default().with_target(false).with_ansi(false);
        let text_without_time = text.clone().without_time();
        // Spans are kept as text.
        let json = Format::default().json().with_target(false);
        let json = json.with_current_span(false).with_span_list(false);
        Self { is_journal, is_json, text, text_without_time, json }
    }
}

impl<S, N> FormatEvent<S, N> for AgentFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if self.is_journal {
            write!(writer, "<{}>", priority(*event.metadata().level()))?;
        }
        if self.is_json.load(Ordering::Relaxed) {
            return self.json.format_event(context, writer, event);
        }
        let mut line = String::new();
        if self.is_journal {
            self.text_without_time.format_event(context, Writer::new(&mut line), event)?;
        } else {
            self.text.format_event(context, Writer::new(&mut line), event)?;
        }
        writeln!(writer, "{}", in_one_line(&line))
    }
}

/// Names and output may hold ends of lines, behind which anything would look like
/// an event of its own.
fn in_one_line(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\n');
    if !line.contains(['\n', '\r']) {
        return Cow::Borrowed(line);
    }
    Cow::Owned(line.replace('\n', "\\n").replace('\r', "\\r"))
}

/// The priority by which syslog and the journal know a level.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}
