//! The end of a run: failures in full, then one line.

use std::fmt::Write as _;

use ccm_model::{Event, Report};

use super::counts::{self, listed};
use super::row::{Row, RowLayout};
use super::text::{printable, rough, wrap_list};
use super::theme::{BOLD, Theme};

/// How a run ended, and what is to be said about it.
pub(super) struct Ending<'a> {
    pub(super) report: &'a Report,
    pub(super) counts: String,
    pub(super) failures: &'a [String],
    pub(super) is_interrupted: bool,
    /// Nothing stands above it.
    pub(super) is_first: bool,
}

/// The failures, and the line that ends the output.
pub(super) fn render(ending: &Ending<'_>, theme: Theme) -> String {
    let Report { summary, manifest, .. } = ending.report;
    let mut out = failures(ending.failures, theme);
    if ending.is_first && !out.is_empty() {
        out.remove(0);
    }
    if !ending.is_first || !out.is_empty() {
        out.push('\n');
    }
    let verb = match (ending.report.noop, ending.report.health_check_only) {
        _ if ending.is_interrupted => "Interrupted",
        (true, _) => "Previewed",
        (false, true) => "Checked",
        (false, false) => "Applied",
    };
    let title = format!("{verb} {} in {}", printable(manifest), rough(summary.duration));
    let mut text = format!("{title}: {}", ending.counts);
    let checks = &summary.health_checks;
    let checks = listed(&[
        (checks.ok, "ok"),
        (checks.warning, "warning"),
        (checks.critical, "critical"),
        (checks.unknown, "unknown"),
    ]);
    if !checks.is_empty() {
        let _ = write!(text, "; health checks: {checks}");
    }
    match ending.report.warnings.len() {
        0 => {}
        1 => text.push_str("; 1 warning"),
        more => {
            let _ = write!(text, "; {more} warnings");
        }
    }
    for line in wrap_list(&text, theme.width) {
        match line.strip_prefix(&*title) {
            Some(rest) => out.push_str(&format!("{}{rest}", theme.paint(BOLD, &title))),
            None => out.push_str(&line),
        }
        out.push('\n');
    }
    out
}

/// All failures under a heading; nothing where nothing failed.
pub(super) fn failures(all: &[String], theme: Theme) -> String {
    if all.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", theme.paint(BOLD, "Failures"), all.concat())
}

/// The line above the resources of a manifest that a resource applies.
pub(super) fn heading(out: &mut String, label: &str, depth: usize, theme: Theme) {
    let _ = writeln!(out, "{:1$}{2}", "", 4 + 2 * depth, theme.paint(BOLD, label));
}

/// A failure in full, with the manifest that it is in.
pub(super) fn failure(event: &Event, manifest: Option<&str>, theme: Theme) -> String {
    let mut text = String::new();
    Row::of_event(event, None).again(manifest).write(&mut text, theme, RowLayout::default());
    text
}

/// Prints the summary of a session.
pub(super) fn of_events(report: &Report, theme: Theme) -> String {
    let is_told = |event: &&Event| event.failed && !event.aggregate;
    let failed = report.events.iter().filter(is_told);
    let all: Vec<String> = failed.map(|event| failure(event, None, theme)).collect();
    let outcomes = &report.summary.outcomes;
    let is_preview = !report.events.is_empty() && report.events.iter().all(|event| event.noop);
    let counts = if is_preview { counts::planned(outcomes) } else { counts::done(outcomes) };
    let ending = Ending { report, counts, failures: &all, is_interrupted: false, is_first: true };
    render(&ending, theme)
}
