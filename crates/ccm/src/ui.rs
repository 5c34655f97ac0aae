//! Everything that ccm says: results to standard output, the rest to standard
//! error. Nothing else in the binary prints.

mod live;
mod outcome;
mod summary;
mod waiting;

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use ccm_engine::{AnyResource, Diagnosis, Observer, frame};
use ccm_host::Host;
use ccm_model::{Diagnostic, Event, Report};
use ccm_resources::TYPES;

use crate::error::Error;
use live::Live;

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// What is shown of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Show {
    /// No lines: what is on standard output is for a machine.
    pub(crate) quiet: bool,
    /// Remember the slowest resources.
    pub(crate) profile: bool,
}

/// The screen, or whatever stands in its place.
pub(crate) struct Ui {
    out: BufWriter<io::Stdout>,
    color: bool,
    /// Colour on standard error, which may be a file while the other is not.
    error_color: bool,
    live: Option<Live>,
    show: Show,
    /// The manifests that resources brought and that run now, the last inmost.
    manifests: Vec<String>,
    slowest: Vec<(Duration, String)>,
    lost: Option<io::Error>,
    reader_is_gone: bool,
}

const SLOWEST: usize = 10;

const BOLD: Style = Style::new().bold();
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

impl Ui {
    pub(crate) fn new(color: ColorChoice) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_colored = |is_terminal: bool| match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && environment_allows_color(),
        };
        let error_color = is_colored(io::stderr().is_terminal());
        let color = is_colored(is_terminal);
        let live = (is_terminal && io::stderr().is_terminal()).then(Live::new);
        Self {
            out: BufWriter::new(io::stdout()),
            color,
            error_color,
            live,
            show: Show::default(),
            manifests: Vec::new(),
            slowest: Vec::new(),
            lost: None,
            reader_is_gone: false,
        }
    }

    /// Says how the coming run is shown.
    pub(crate) fn show(&mut self, show: Show) {
        self.show = show;
    }

    /// Shows how far downloads of this host are, where there is a screen.
    pub(crate) fn follow(&self, host: &Host) {
        if let Some(live) = &self.live {
            live.follow(host);
        }
    }

    /// Prints a result as it is.
    pub(crate) fn print(&mut self, text: &str) {
        self.print_bytes(text.as_bytes());
    }

    /// Prints a result that is known to be text.
    pub(crate) fn print_bytes(&mut self, text: &[u8]) {
        self.clear_live();
        // What cannot be written is no reason to stop managing the machine.
        let written = self.out.write_all(text);
        self.remember_loss(written);
        self.flush();
    }

    /// Prints a value as JSON.
    pub(crate) fn print_json(&mut self, value: &impl serde::Serialize) {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.print(&format!("{text}\n"));
    }

    pub(crate) fn flush(&mut self) {
        let flushed = self.out.flush();
        self.remember_loss(flushed);
    }

    /// A reader that went away does not want more; other losses are told.
    fn remember_loss(&mut self, written: io::Result<()>) {
        match written {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.reader_is_gone = true,
            Err(error) => drop(self.lost.get_or_insert(error)),
            Ok(()) => {}
        }
    }

    /// Whether nobody reads any more.
    pub(crate) fn reader_is_gone(&self) -> bool {
        self.reader_is_gone
    }

    /// The output that was lost, if any was.
    pub(crate) fn take_loss(&mut self) -> Option<Error> {
        self.lost.take().map(|source| Error::Output { source })
    }

    fn clear_live(&mut self) {
        if let Some(live) = &self.live {
            live.clear();
        }
    }

    fn paint(&self, style: Style, text: &str) -> String {
        paint(self.color, style, text)
    }

    /// Says what went wrong, and what to do about it.
    pub(crate) fn error(&mut self, error: &Error) {
        if let Some(diagnosis) = error.diagnosis() {
            self.diagnosis(diagnosis);
            return;
        }
        let color = self.error_color;
        if let Error::Request(wrong) = error {
            let mut text = String::new();
            for (message, hint) in wrong.messages() {
                text.push_str(&format!("{} {message}\n", paint(color, RED, "error:")));
                if let Some(hint) = hint {
                    text.push_str(&format!("{} {hint}\n", paint(color, CYAN, "hint:")));
                }
            }
            self.say(&ccm_model::redact_credentials(&text));
            return;
        }
        let mut text = format!("{} {error}\n", paint(color, RED, "error:"));
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            text.push_str(&format!("{} {cause}\n", paint(color, BOLD, "caused by:")));
            source = cause.source();
        }
        if let Some(hint) = error.hint() {
            text.push_str(&format!("{} {hint}\n", paint(color, CYAN, "hint:")));
        }
        // Arguments may be URLs, and errors quote arguments.
        self.say(&ccm_model::redact_credentials(&text));
    }

    /// Shows everything that is wrong with a source.
    pub(crate) fn diagnosis(&mut self, diagnosis: &Diagnosis) {
        if !diagnosis.findings.is_empty() {
            let text = frame::render(diagnosis, TYPES, self.error_color);
            self.say(&text);
        }
    }

    /// Shows what a command without a run has noted about the machine.
    pub(crate) fn warnings(&mut self, host: &Host) {
        for message in host.take_warnings() {
            self.warning(&Diagnostic::warning(message));
        }
    }

    fn say(&mut self, text: &str) {
        self.clear_live();
        self.flush();
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// A line of its own about the run.
    pub(crate) fn note(&mut self, level: &str, text: &str) {
        let line = format!("{} {text}\n", self.paint(RED, level));
        self.print(&line);
    }

    /// Prints the summary of a run, and the slowest resources if asked for.
    pub(crate) fn summary(&mut self, report: &Report) {
        let text = summary::render(self, report);
        self.print(&text);
    }

    pub(crate) fn profile(&mut self) {
        let mut slowest = std::mem::take(&mut self.slowest);
        slowest.sort_by_key(|entry| std::cmp::Reverse(entry.0));
        let mut text = format!("\n{}\n", self.paint(BOLD, "Slowest resources"));
        for (duration, name) in &slowest {
            text.push_str(&format!("  {:>10}  {name}\n", outcome::precise(*duration)));
        }
        self.print(&text);
    }

    fn remember_duration(&mut self, event: &Event) {
        let fastest = self.slowest.iter().enumerate().min_by_key(|(_, (duration, _))| *duration);
        let entry = || (event.duration, format!("{}#{}", event.kind, event.name));
        match fastest {
            Some((at, &(duration, _))) if self.slowest.len() == SLOWEST => {
                if event.duration > duration {
                    self.slowest[at] = entry();
                }
            }
            _ => self.slowest.push(entry()),
        }
    }
}

fn paint(color: bool, style: Style, text: &str) -> String {
    if color { format!("{style}{text}{style:#}") } else { text.to_owned() }
}

/// Whether the environment allows colour on a terminal.
fn environment_allows_color() -> bool {
    let host = ccm_host::Host::new();
    host.env("NO_COLOR").is_none() && host.env("TERM").is_none_or(|term| term != "dumb")
}

impl Observer for Ui {
    fn starting(&mut self, resource: &dyn AnyResource, number: usize, total: usize) {
        if let Some(live) = &self.live {
            live.show(|| {
                let manifest = self.manifests.last().map(|manifest| format!(" {manifest}"));
                let manifest = manifest.unwrap_or_default();
                format!("[{number}/{total}{manifest}] {}", resource.display())
            });
        }
    }

    fn output(&mut self, line: &str) {
        self.clear_live();
        if self.show.quiet {
            let _ = writeln!(io::stderr(), "{}", outcome::printable(line));
            return;
        }
        let line = format!("{} {}\n", self.paint(DIM, "INFO "), outcome::printable(line));
        self.print(&line);
    }

    fn entering(&mut self, manifest: &str) {
        self.manifests.push(manifest.to_owned());
    }

    fn leaving(&mut self) {
        self.manifests.pop();
    }

    fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        self.diagnosis(diagnosis);
    }

    fn warning(&mut self, warning: &Diagnostic) {
        let resource = warning.resource.as_deref().map(|name| format!("{name}: "));
        let label = paint(self.error_color, YELLOW, "warning:");
        let text = format!("{}{}", resource.unwrap_or_default(), warning.message);
        self.say(&format!("{label} {}\n", outcome::printable(&text)));
    }

    fn message(&mut self, text: &str) {
        if !self.show.quiet {
            let newline = if text.ends_with('\n') { "" } else { "\n" };
            self.print(&format!("{text}{newline}"));
        }
    }

    fn finished(&mut self, event: &Event, diff: Option<&str>) {
        self.clear_live();
        if self.show.profile {
            self.remember_duration(event);
        }
        if self.show.quiet {
            return;
        }
        let manifest = self.manifests.last().map(String::as_str);
        outcome::write(&mut self.out, event, manifest, self.color);
        if let Some(diff) = diff {
            outcome::write_diff(&mut self.out, diff, self.color);
        }
        // Whoever reads it, or a second signal, must not wait for the next
        // resource.
        self.flush();
    }
}
