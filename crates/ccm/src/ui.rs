//! All output: results to standard output, the rest to standard error. Nothing
//! else in the binary prints.

mod change;
mod counts;
mod live;
mod plan;
mod row;
mod show;
mod summary;
mod text;
mod theme;
mod waiting;

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::time::Duration;

use anstyle::Style;
use ccm_author::frame;
use ccm_engine::{AnyResource, Diagnosis, Observer, Position};
use ccm_host::Host;
use ccm_model::{Diagnostic, Event, Outcome, Plan, PlanDifference, Report};
use ccm_resources::TYPES;

use crate::error::Error;
use crate::exit::Exit;
use live::Live;
pub(crate) use plan::PlanView;
use row::{Row, RowLayout};
use show::Frame;
pub(crate) use show::{Amount, Closing, Output, Show};
use summary::Ending;
use text::{columns, precise, printable, printable_lines, wrap};
use theme::{BOLD, CYAN, DIM, RED, Theme, YELLOW};

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// The screen, or whatever stands in its place.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Ui {
    out: BufWriter<io::Stdout>,
    theme: Theme,
    /// Color on standard error, which may be a file while the other is not.
    error_color: bool,
    live: Option<Live>,
    /// The machine of the run, which knows its secrets.
    host: Option<Host>,
    show: Show,
    /// The manifests that resources apply and that run now, the last inmost.
    frames: Vec<Frame>,
    /// The resource at work, and the first that had output.
    current: String,
    first_with_output: Option<String>,
    has_rows: bool,
    failures: Vec<String>,
    slowest: Vec<(Duration, String)>,
    lost: Option<io::Error>,
    reader_is_gone: bool,
    has_printed: bool,
}

const SLOWEST: usize = 10;
/// The column that names are padded to while a run goes on. What follows is not
/// known yet, so it cannot depend on other names.
const COLUMN: usize = 32;

impl Ui {
    pub(crate) fn new(color: ColorChoice) -> Self {
        let is_terminal = io::stdout().is_terminal();
        let is_colored = |is_terminal: bool| match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && environment_allows_color(),
        };
        let error_color = is_colored(io::stderr().is_terminal());
        let theme = Theme::of_stdout(&Host::new(), is_colored(is_terminal));
        let has_live_line = is_terminal && io::stderr().is_terminal();
        let live = has_live_line.then(|| Live::new(theme.is_utf8, theme.width));
        Self {
            out: BufWriter::new(io::stdout()),
            theme,
            error_color,
            live,
            host: None,
            show: Show::default(),
            frames: Vec::new(),
            current: String::new(),
            first_with_output: None,
            has_rows: false,
            failures: Vec::new(),
            slowest: Vec::new(),
            lost: None,
            reader_is_gone: false,
            has_printed: false,
        }
    }

    /// Says how the coming run is shown.
    pub(crate) fn show(&mut self, show: Show) {
        self.show = show;
    }

    /// Shows how far downloads of this host are, where there is a screen, and
    /// nothing that its run knows to be secret.
    pub(crate) fn follow(&mut self, host: &Host) {
        self.host = Some(host.clone());
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
        self.has_printed = true;
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

    /// Whether something went to standard output.
    pub(crate) fn has_printed(&self) -> bool {
        self.has_printed
    }

    /// Whether the reader of standard output has closed it.
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

    /// Says what went wrong, and what to do about it.
    /// Prints what was lost at the end of a run, which is then no success.
    pub(crate) fn losses(
        &mut self,
        losses: impl IntoIterator<Item = impl Into<Error>>,
        exit: Exit,
    ) -> Exit {
        let count = losses.into_iter().map(|loss| self.error(&loss.into())).count();
        if count > 0 { exit.or_failed() } else { exit }
    }

    pub(crate) fn error(&mut self, error: &Error) {
        if let Some(diagnosis) = error.diagnosis() {
            self.diagnosis(&diagnosis);
            return;
        }
        let color = self.error_color;
        let mut text = String::new();
        // Errors quote names, and what servers and files say.
        let mut add = |style, label: &str, message: &str| {
            let message = printable_lines(message);
            text.push_str(&format!("{} {message}\n", paint(color, style, label)));
        };
        if let Error::Request(wrong) = error {
            for (message, hint) in wrong.messages() {
                add(RED, "error:", &message);
                if let Some(hint) = hint {
                    add(CYAN, "hint:", hint);
                }
            }
            self.say(&ccm_model::redact_credentials(&text));
            return;
        }
        add(RED, "error:", &error.to_string());
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            add(BOLD, "caused by:", &cause.to_string());
            source = cause.source();
        }
        if let Some(hint) = error.hint() {
            add(CYAN, "hint:", &hint);
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

    /// A line that is no result: it goes to standard error.
    #[cfg(feature = "studio")]
    pub(crate) fn remark(&mut self, text: &str) {
        self.say(&format!("{}\n", printable(text)));
    }

    /// A line of its own about the run.
    pub(crate) fn note(&mut self, text: &str) {
        self.has_rows = true;
        self.print(&format!("{text}\n"));
    }

    /// Prints a line that may quote names, whatever these contain.
    pub(crate) fn line(&mut self, text: &str) {
        self.has_rows = true;
        self.print(&format!("{}\n", printable(text)));
    }

    /// Prints lines behind marks, wrapped where they are too long.
    pub(crate) fn marked(&mut self, lines: impl IntoIterator<Item = (char, String)>) {
        let room = self.theme.width.map(|width| width.saturating_sub(8).max(16));
        let mut text = String::new();
        for (mark, line) in lines {
            let line = printable(&line);
            let mut parts = wrap(&line, room).into_iter();
            text.push_str(&format!("  {mark} {}\n", parts.next().unwrap_or_default()));
            for part in parts {
                text.push_str(&format!("        {part}\n"));
            }
        }
        if !text.is_empty() {
            self.print(&format!("{text}\n"));
        }
    }

    /// Prints the failures of a run in full, and a line with counts.
    pub(crate) fn summary(&mut self, report: &Report, is_interrupted: bool) {
        let counts = counts::done(&report.summary.outcomes);
        // Those without the rest have been told in full.
        let failures = match self.show.amount {
            Amount::Quiet => &[][..],
            _ => &self.failures,
        };
        let is_first = !self.has_rows;
        let ending = Ending { report, counts, failures, is_interrupted, is_first };
        let text = summary::render(&ending, self.theme);
        self.print(&text);
    }

    /// Prints what became of the resources of a session.
    pub(crate) fn session(&mut self, report: &Report) {
        let text = summary::of_events(report, self.theme);
        self.print(&text);
    }

    /// Prints a plan.
    pub(crate) fn plan(&mut self, plan: &Plan, view: PlanView) {
        plan::render(plan, self.theme, view, &mut |part| self.print(part));
    }

    /// Prints what two plans see differently.
    pub(crate) fn plan_differences(&mut self, differences: &[PlanDifference]) {
        let text = plan::render_differences(differences, self.theme);
        self.print(&text);
    }

    /// Prints rows below headings, each column as wide as its longest entry.
    pub(crate) fn table(&mut self, headings: &[&str], rows: &[Vec<String>]) {
        let widths: Vec<usize> = (0..headings.len())
            .map(|at| {
                let cells = rows.iter().filter_map(|row| row.get(at));
                cells.map(|cell| columns(cell)).chain([headings[at].len()]).max().unwrap_or(0)
            })
            .collect();
        let line = |cells: &[&str]| {
            let padded = cells.iter().zip(&widths).map(|(cell, &width)| {
                let gap = width.saturating_sub(columns(cell));
                format!("{}{:gap$}", printable(cell), "")
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        let mut text = format!("{}\n", self.theme.paint(BOLD, &line(headings)));
        for row in rows {
            let cells: Vec<&str> = row.iter().map(String::as_str).collect();
            text.push_str(&format!("{}\n", line(&cells)));
        }
        self.print(&text);
    }

    /// Prints the slowest resources.
    pub(crate) fn profile(&mut self) {
        let mut slowest = std::mem::take(&mut self.slowest);
        slowest.sort_by_key(|entry| std::cmp::Reverse(entry.0));
        let mut text = format!("\n{}\n", self.theme.paint(BOLD, "Slowest resources"));
        for (duration, name) in &slowest {
            text.push_str(&format!("  {:>10}  {name}\n", precise(*duration)));
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

impl Ui {
    /// Whether the row of a finished resource is shown. An event that sums up
    /// those of a child manifest says nothing new.
    fn is_shown(&self, event: &Event, row: &Row<'_>) -> bool {
        let is_told = event.aggregate && event.failed;
        let is_bad = (row.outcome == Outcome::Failed || row.is_unmet()) && !is_told;
        let is_of_interest = is_bad || row.has_warning() || !row.deferred.is_empty();
        match (self.show.closing, self.show.amount) {
            (_, Amount::Quiet) => is_bad,
            (Closing::OneResource, _) => true,
            (_, Amount::Verbose) => !event.aggregate || is_of_interest || is_told,
            _ if event.aggregate => is_of_interest,
            (_, Amount::Normal) => match row.outcome {
                Outcome::Stable if event.health_check_only => !row.health_checks.is_empty(),
                Outcome::Stable | Outcome::Skipped => is_of_interest,
                _ => true,
            },
        }
    }

    /// A name that does not come from an event, without what is secret in it.
    fn without_secrets(&self, name: &str) -> String {
        match &self.host {
            Some(host) => host.redactor().text(name).into_owned(),
            None => name.to_owned(),
        }
    }

    /// Follows the run into a child manifest, or out of it.
    fn enter(&mut self, route: &[String]) {
        for (depth, manifest) in route.iter().enumerate() {
            let manifest = match &self.host {
                Some(host) => host.redactor().name(manifest).into_owned(),
                None => manifest.clone(),
            };
            if self.frames.get(depth).is_none_or(|frame| frame.manifest != manifest) {
                self.frames.truncate(depth);
                self.frames.push(Frame { manifest, has_heading: false });
            }
        }
        self.frames.truncate(route.len());
    }

    /// Names the manifests that what follows is in, once each.
    fn write_headings(&mut self, out: &mut String) {
        for (depth, frame) in self.frames.iter_mut().enumerate() {
            if !std::mem::replace(&mut frame.has_heading, true) {
                let label = format!("apply#{}", printable(&frame.manifest));
                summary::heading(out, &label, depth, self.theme);
            }
        }
    }

    /// Counts and shows a finished resource.
    fn row(&mut self, event: &Event, diff: Option<&str>) {
        self.enter(&event.route);
        let row = Row::of_event(event, diff);
        // A manifest fails for its resources, which have been told.
        if event.failed && !event.aggregate {
            let manifest = self.frames.last().map(|frame| &*frame.manifest);
            self.failures.push(summary::failure(event, manifest, self.theme));
        }
        if !self.is_shown(event, &row) {
            return;
        }
        let cuts_errors =
            self.show.closing == Closing::Summary && self.show.amount != Amount::Quiet;
        let column = if self.show.closing == Closing::OneResource { 0 } else { COLUMN };
        let place = RowLayout { depth: self.frames.len(), column, cuts_errors };
        let mut text = String::with_capacity(160);
        self.write_headings(&mut text);
        row.write(&mut text, self.theme, place);
        self.has_rows = true;
        // Flushed: whoever reads it, or a second signal, must not wait for the
        // next resource.
        self.print(&text);
    }
}

impl Observer for Ui {
    fn starting(&mut self, resource: &dyn AnyResource, position: Position<'_>) {
        let Position { route, number, total } = position;
        self.enter(route);
        // Now, as the run holds its redactor while a resource has output.
        self.current = self.without_secrets(&resource.display());
        if let Some(live) = &self.live {
            let manifest = self.frames.last().map(|frame| format!(" {}", frame.manifest));
            let manifest = manifest.unwrap_or_default();
            live.show(|| format!("[{number}/{total}{manifest}] {}", self.current));
        }
    }

    fn output(&mut self, line: &str) {
        self.clear_live();
        if self.show.output != Output::Rows {
            let _ = writeln!(io::stderr(), "{}", printable(line));
            return;
        }
        if self.show.amount == Amount::Quiet {
            return;
        }
        let first = self.first_with_output.get_or_insert_with(|| self.current.clone());
        let is_named = self.show.names_output || *first != self.current;
        let name = if is_named { format!("{}: ", printable(&self.current)) } else { String::new() };
        let mut text = String::new();
        self.write_headings(&mut text);
        let bar = self.theme.paint(DIM, "|");
        let indent = 2 + 2 * self.frames.len();
        text.push_str(&format!("{:indent$}{bar} {name}{}\n", "", printable(line)));
        self.has_rows = true;
        self.print(&text);
    }

    fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        self.diagnosis(diagnosis);
    }

    fn warning(&mut self, warning: &Diagnostic) {
        let resource = warning.resource.as_deref().map(|name| format!("{name}: "));
        let label = paint(self.error_color, YELLOW, "warning:");
        let text = format!("{}{}", resource.unwrap_or_default(), warning.message);
        self.say(&format!("{label} {}\n", printable_lines(&text)));
    }

    fn message(&mut self, text: &str) {
        if self.show.output == Output::Rows && self.show.amount != Amount::Quiet {
            let newline = if text.ends_with('\n') { "" } else { "\n" };
            self.print(&format!("{text}{newline}"));
        }
    }

    fn finished(&mut self, event: &Event, diff: Option<&str>) {
        self.clear_live();
        if self.show.profile {
            self.remember_duration(event);
        }
        match self.show.output {
            Output::Rows => self.row(event, diff),
            Output::Events => {
                let line = serde_json::to_string(event).unwrap_or_default();
                self.print(&format!("{line}\n"));
            }
            Output::Nothing => {}
        }
    }
}
