//! The block at the end of a run.

use std::fmt::Write as _;

use ccm_model::Report;

use super::{BOLD, GREEN, RED, Ui, YELLOW, outcome};

pub(super) fn render(ui: &Ui, report: &Report) -> String {
    let summary = &report.summary;
    let verb = match (report.noop, report.health_check_only) {
        (true, _) => "Previewed",
        (false, true) => "Checked",
        (false, false) => "Applied",
    };
    let title = format!("{verb} {} in {}", report.manifest, outcome::brief(summary.duration));
    let mut text = format!("\n{}\n", ui.paint(BOLD, &title));
    let always = [
        ("total", summary.total, None),
        ("stable", summary.stable, Some(GREEN)),
        ("changed", summary.changed, Some(YELLOW)),
        ("skipped", summary.skipped, Some(YELLOW)),
        ("failed", summary.failed, Some(RED)),
    ];
    let sometimes = [
        ("unique", if summary.unique == summary.total { 0 } else { summary.unique }, None),
        ("refreshed", summary.refreshed, Some(YELLOW)),
        ("requirements unmet", summary.requirements_unmet, Some(RED)),
        ("errors", summary.errors, Some(RED)),
        ("checks ok", summary.health_checks.ok, Some(GREEN)),
        ("checks warning", summary.health_checks.warning, Some(YELLOW)),
        ("checks critical", summary.health_checks.critical, Some(RED)),
        ("checks unknown", summary.health_checks.unknown, Some(RED)),
    ];
    let rows = always.into_iter().chain(sometimes.into_iter().filter(|row| row.1 > 0));
    let rows: Vec<_> = rows.collect();
    let name_width = rows.iter().map(|row| row.0.len()).max().unwrap_or_default();
    let largest = rows.iter().map(|row| row.1).max().unwrap_or_default();
    let count_width = largest.to_string().len();
    for (name, count, style) in rows {
        let number = format!("{count:>count_width$}");
        let number = match style {
            Some(style) if count > 0 => ui.paint(style, &number),
            _ => number,
        };
        let _ = writeln!(text, "  {name:<name_width$}  {number}");
    }
    text
}
