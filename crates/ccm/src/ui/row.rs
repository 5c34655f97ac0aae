//! Prints one resource as a row, in plans, runs and reports.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use anstyle::Style;
use ccm_model::{
    Change, Event, Health, HealthCheckResult, Outcome, OwedReaction, PlannedResource, Verb,
};

use super::change::Description;
use super::text::{columns, cut_end, cut_middle, printable, rough, wrap};
use super::theme::{CYAN, DIM, GREEN, RED, Theme, YELLOW};

/// What takes longer is worth telling.
const SLOW: Duration = Duration::from_millis(100);

/// What is shown of a resource.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) alias: Option<&'a str>,
    pub(super) outcome: Outcome,
    /// What a provisional one would be now.
    pub(super) now: Option<Outcome>,
    pub(super) verbs: &'a [Verb],
    pub(super) changes: &'a [Change],
    pub(super) waits_for: &'a [String],
    /// The changes that it reacts to, or the requirements that are not met.
    pub(super) because: Vec<String>,
    /// Steps that are left to the first boot.
    pub(super) deferred: &'a [String],
    pub(super) error: Cow<'a, str>,
    /// Where a failed one is declared.
    pub(super) location: Option<&'a str>,
    pub(super) diff: Option<&'a str>,
    pub(super) health_checks: &'a [HealthCheckResult],
    pub(super) duration: Duration,
    /// It tells what would be done.
    pub(super) is_preview: bool,
    /// A word behind everything else: where it stands, or that nothing was done.
    pub(super) remark: Option<String>,
}

/// Where a row goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RowLayout {
    /// How many manifests are around it.
    pub(super) depth: usize,
    /// The columns that names are padded to, from the left edge.
    pub(super) column: usize,
    /// Of an error only the first line, as all of it follows later.
    pub(super) cuts_errors: bool,
}

impl<'a> Row<'a> {
    /// The row of something that was done, or in noop would have been.
    pub(super) fn of_event(event: &'a Event, diff: Option<&'a str>) -> Self {
        let reasons = if event.skipped { &event.unmet_requirements } else { &event.because };
        Self {
            kind: &event.kind,
            name: &event.name,
            alias: event.alias.as_deref(),
            outcome: event.outcome(),
            now: event.outcome_now(),
            verbs: &event.verbs,
            changes: &event.changes,
            waits_for: &event.waits_for,
            because: reasons.iter().map(ToString::to_string).collect(),
            deferred: &event.deferred,
            error: match &event.error[..] {
                [] => Cow::Borrowed(""),
                [only] => Cow::Borrowed(only),
                several => Cow::Owned(several.join("\n")),
            },
            location: event.location.as_deref(),
            diff,
            health_checks: &event.health_check,
            duration: event.duration,
            is_preview: event.noop,
            remark: remark(event),
        }
    }

    /// The row of something that would be done.
    pub(super) fn of_plan(planned: &'a PlannedResource) -> Self {
        Self {
            kind: &planned.kind,
            name: &planned.name,
            alias: planned.alias.as_deref(),
            outcome: planned.outcome,
            now: planned.now,
            verbs: &planned.verbs,
            changes: &planned.changes,
            waits_for: &planned.waits_for,
            because: planned.because.clone(),
            deferred: &planned.deferred,
            error: Cow::Borrowed(planned.error.as_deref().unwrap_or_default()),
            location: planned.location.as_deref(),
            diff: planned.diff.as_deref(),
            health_checks: &[],
            duration: Duration::ZERO,
            is_preview: true,
            remark: planned.owed.as_ref().map(owed_remark),
        }
    }

    /// Whether it was skipped because something it requires failed.
    pub(super) fn is_unmet(&self) -> bool {
        self.outcome == Outcome::Skipped && !self.because.is_empty()
    }

    /// Whether a health check gave anything but OK.
    pub(super) fn has_warning(&self) -> bool {
        self.health_checks.iter().any(|result| result.status != Health::Ok)
    }

    /// `type#name (alias)`, in one line.
    pub(super) fn label(&self) -> String {
        let mut label = format!("{}#{}", self.kind, printable(self.name));
        if let Some(alias) = self.alias {
            let _ = write!(label, " ({})", printable(alias));
        }
        label
    }

    /// The row in the list of failures: only the name and the error.
    pub(super) fn again(mut self, manifest: Option<&str>) -> Self {
        let command = self.changes.iter().position(|change| change.property == "command");
        self.changes = command.map_or(&[], |at| &self.changes[at..=at]);
        self.verbs = &[];
        self.diff = None;
        self.duration = Duration::ZERO;
        let manifest = manifest.map(|manifest| format!("in {}", printable(manifest)));
        let location = self.location.map(|location| format!("at {}", printable(location)));
        self.remark = location.or(manifest);
        self
    }

    /// Writes the row, and below it what does not fit or needs more lines.
    pub(super) fn write(&self, out: &mut String, theme: Theme, place: RowLayout) {
        let indent = 2 + 2 * place.depth;
        let Description { text, details } = Description::of(self, theme);
        let label = self.label();
        let label = match theme.width {
            Some(width) => {
                cut_middle(&label, width.saturating_sub(indent + 2).max(16), theme.ellipsis())
            }
            None => Cow::Borrowed(&*label),
        };
        let (sign, style) = theme.marker(self.outcome);
        let style = if self.is_unmet() { YELLOW } else { style };
        let _ = write!(out, "{:indent$}", "");
        paint(out, theme, style, sign);
        let _ = write!(out, " {label}");

        let remark = self.remarks();
        let used = indent + 2 + columns(&label);
        let gap = place.column.saturating_sub(used) + 2;
        let taken = columns(&text) + if remark.is_empty() { 0 } else { columns(&remark) + 2 };
        let fits = |start: usize| theme.width.is_none_or(|width| start + taken <= width);
        let gap = if fits(used + gap) { gap } else { 2 };
        if text.is_empty() && remark.is_empty() {
            out.push('\n');
        } else if fits(used + gap) {
            let _ = write!(out, "{:gap$}{text}", "");
            if !remark.is_empty() {
                let gap = if text.is_empty() { "" } else { "  " };
                out.push_str(gap);
                paint(out, theme, DIM, &remark);
            }
            out.push('\n');
        } else {
            out.push('\n');
            let all = match (text.is_empty(), remark.is_empty()) {
                (false, false) => format!("{text}  {remark}"),
                _ => format!("{text}{remark}"),
            };
            let room = theme.width.map(|width| width.saturating_sub(indent + 6).max(16));
            for line in wrap(&all, room) {
                let _ = writeln!(out, "{:1$}{line}", "", indent + 6);
            }
        }
        self.write_details(out, theme, indent + 6, &details);
        self.write_health_checks(out, theme, indent + 6);
        self.write_error(out, theme, indent + 6, place.cuts_errors);
        // What is not done does not differ.
        if let Some(diff) = self.diff.filter(|_| self.outcome != Outcome::Failed) {
            write_diff(out, self.hunks(diff), theme, indent + 6);
        }
    }

    /// A diff without its first two lines where they only repeat the name.
    fn hunks<'d>(&self, diff: &'d str) -> &'d str {
        let mut lines = diff.splitn(3, '\n');
        let (Some(old), Some(new), Some(rest)) = (lines.next(), lines.next(), lines.next()) else {
            return diff;
        };
        let names = |line: &str, sign: &str| line.strip_prefix(sign) == Some(self.name);
        let is_own = names(new, "+++ ") && (names(old, "--- ") || old == "--- /dev/null");
        if is_own && !rest.contains("\n--- ") { rest } else { diff }
    }

    fn remarks(&self) -> String {
        let time = (self.duration > SLOW && !self.is_preview).then(|| rough(self.duration));
        let is_also = !self.deferred.is_empty() && self.outcome != Outcome::Stable;
        let deferred = is_also.then(|| left_for_boot(self.deferred));
        let remarks = deferred.into_iter().chain(self.remark.clone());
        let all: Vec<String> = remarks.chain(time).collect();
        if all.is_empty() { String::new() } else { format!("({})", all.join(", ")) }
    }

    fn write_details(
        &self,
        out: &mut String,
        theme: Theme,
        indent: usize,
        details: &[(String, String)],
    ) {
        let width = details.iter().map(|(property, _)| columns(property)).max().unwrap_or(0);
        for (property, text) in details {
            let room = theme.width.map(|all| all.saturating_sub(indent + width + 2).max(16));
            let text = match room {
                Some(room) => cut_end(text, room, theme.ellipsis()),
                None => Cow::Borrowed(&**text),
            };
            let _ = writeln!(out, "{:indent$}{property:<width$}  {text}", "");
        }
    }

    /// The checks that failed are among the errors.
    fn write_health_checks(&self, out: &mut String, theme: Theme, indent: usize) {
        for result in self.health_checks.iter().filter(|result| !result.status.is_failure()) {
            let style = if result.status == Health::Ok { GREEN } else { YELLOW };
            let _ = write!(out, "{:indent$}", "");
            paint(out, theme, style, &printable(&result.to_string()));
            out.push('\n');
        }
    }

    fn write_error(&self, out: &mut String, theme: Theme, indent: usize, cuts: bool) {
        let mut lines = self.error.lines();
        let room = theme.width.map(|width| width.saturating_sub(indent).max(16));
        if cuts {
            let Some(first) = lines.next() else { return };
            let mut text = printable(first).into_owned();
            if lines.next().is_some() {
                let _ = write!(text, " {}", theme.ellipsis());
            }
            let text = match room {
                Some(room) => cut_end(&text, room, theme.ellipsis()),
                None => Cow::Borrowed(&*text),
            };
            let _ = writeln!(out, "{:indent$}{text}", "");
            return;
        }
        for line in lines {
            // Carets point at what stands above them: lines with leading
            // blanks are left as they are.
            let room = room.filter(|_| !line.starts_with(' '));
            for part in wrap(&printable(line), room) {
                let _ = writeln!(out, "{:indent$}{part}", "");
            }
        }
    }
}

/// What is to be said of an event beside what it changed.
fn remark(event: &Event) -> Option<String> {
    let owed = event.owed.as_ref().map(owed_remark);
    let all: Vec<String> = owed.into_iter().chain(event.noop.then(|| "noop".to_owned())).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// What a row says of steps that are left to the first boot.
pub(super) fn left_for_boot(steps: &[String]) -> String {
    format!("{} left for the first boot", steps.join(", "))
}

fn owed_remark(owed: &OwedReaction) -> String {
    format!("owed since {:.0} to {}", owed.since, owed.by)
}

fn paint(out: &mut String, theme: Theme, style: Style, text: &str) {
    if theme.has_color {
        let _ = write!(out, "{style}{text}{style:#}");
    } else {
        out.push_str(text);
    }
}

/// Writes a unified diff below its row.
fn write_diff(out: &mut String, diff: &str, theme: Theme, indent: usize) {
    let margin = " ".repeat(indent);
    for line in diff.lines() {
        let style = match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++") => GREEN,
            Some(b'-') if !line.starts_with("---") => RED,
            Some(b'@') => CYAN,
            _ => Style::new(),
        };
        out.push_str(&margin);
        paint(out, theme, style, &printable(line));
        out.push('\n');
    }
}

#[cfg(test)]
mod tests;
