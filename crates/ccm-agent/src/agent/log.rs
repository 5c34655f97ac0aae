//! Log messages about runs.

use ccm_model::{Diagnostic, Event, Health, Outcome, Severity, Summary};

use super::perform::RunReport;
use crate::metrics::{RunMode, RunResult};
use crate::problems::{Entry, Severity as ProblemSeverity};
use crate::registrar::shown;

/// Logs at a level that is known only now.
macro_rules! log_at {
    ($level:expr, $($rest:tt)*) => {
        match $level {
            tracing::Level::ERROR => tracing::error!($($rest)*),
            tracing::Level::WARN => tracing::warn!($($rest)*),
            tracing::Level::INFO => tracing::info!($($rest)*),
            _ => tracing::debug!($($rest)*),
        }
    };
}

/// Logs what became of a resource.
pub(super) fn event(manifest: &str, event: &Event) {
    if event.health_check_only && event.health_check.is_empty() && event.error.is_empty() {
        return;
    }
    let word = event.log_words();
    let level = match event.outcome() {
        Outcome::Failed => tracing::Level::ERROR,
        Outcome::Skipped if event.is_unmet() => tracing::Level::ERROR,
        Outcome::Stable if event.deferred.is_empty() => tracing::Level::INFO,
        _ => tracing::Level::WARN,
    };
    let (kind, provider) = (&*event.kind, &*event.provider);
    let name = event.alias.as_deref().unwrap_or(&event.name);
    let alias = event.alias.as_ref().map(|_| true);
    let ensure = &*event.requested_ensure;
    let runtime = format!("{}ms", event.duration.as_millis());
    let noop = event.noop_message.as_deref();
    let provisional = event.provisional.then(|| event.waits_for.join(", "));
    let provisional = provisional.as_deref();
    let healthcheck = event.health_check_only.then_some(true);
    let errors = (!event.error.is_empty()).then(|| event.error.join("; ").replace('\n', " | "));
    let errors = errors.as_deref();
    log_at!(
        level,
        manifest,
        ensure,
        runtime,
        provider,
        alias,
        noop,
        provisional,
        healthcheck,
        errors,
        "{kind}#{name} {word}"
    );
    // Those that fail the resource are among its errors.
    for check in event.health_check.iter().filter(|check| check.status == Health::Warning) {
        let text = check.to_string().replace('\n', " | ");
        tracing::warn!(manifest, healthcheck, "{kind}#{name}: {text}");
    }
}

/// Logs a warning, or what is wrong with a manifest; with the configuration if
/// none is named.
pub(super) fn diagnostic(manifest: &str, diagnostic: &Diagnostic) {
    let Diagnostic { severity, message, file, line, column, resource, hint } = diagnostic;
    let level = match severity {
        Severity::Error => tracing::Level::ERROR,
        Severity::Warning => tracing::Level::WARN,
    };
    let place = match (line, column) {
        (Some(line), Some(column)) => Some(format!("{file}:{line}:{column}")),
        _ if file.is_empty() || file == manifest => None,
        _ => Some(file.clone()),
    };
    let (place, resource, hint) = (place.as_deref(), resource.as_deref(), hint.as_deref());
    let message = message.replace('\n', " | ");
    let manifest = (!manifest.is_empty()).then_some(manifest);
    log_at!(level, manifest, place, resource, hint, "{message}");
}

/// Logs a line of output of a command.
pub(super) fn line(manifest: &str, line: &str) {
    for line in line.lines() {
        tracing::info!(manifest, "{line}");
    }
}

/// Logs the summary of a run.
pub(super) fn summary(manifest: &str, report: &RunReport) {
    let (mode, reason) = (report.request.mode, report.request.reason.name());
    let runtime = shown(report.took);
    let result = &report.result;
    for error in &report.errors {
        tracing::error!(manifest, "{error}");
    }
    let Summary { total, changed, skipped, .. } = report.counts.summary;
    let failed = report.counts.summary.failed + report.counts.summary.requirements_unmet;
    let level = match (result, changed) {
        (RunResult::Ok, 0) => tracing::Level::INFO,
        (RunResult::Ok, _) => tracing::Level::WARN,
        _ => tracing::Level::ERROR,
    };
    let word = match (result, mode) {
        (RunResult::Killed, _) => "killed",
        (RunResult::Crashed, _) => "crashed",
        (RunResult::Failed, RunMode::Apply) if total == 0 => "not applied",
        (RunResult::Failed, RunMode::Health) if total == 0 => "not checked",
        (_, RunMode::Apply) => "applied",
        (_, RunMode::Health) => "checked",
    };
    let healthcheck = (mode == RunMode::Health).then_some(true);
    log_at!(
        level,
        manifest,
        reason,
        runtime,
        total,
        changed,
        failed,
        skipped,
        healthcheck,
        "{word}"
    );
}

/// Logs a state that lasts, or its end.
pub(super) fn problems(entry: Option<Entry>) {
    let Some(Entry { subject, severity, message }) = entry else { return };
    let level = match severity {
        Some(ProblemSeverity::Error) => tracing::Level::ERROR,
        Some(ProblemSeverity::Warning) => tracing::Level::WARN,
        None => tracing::Level::INFO,
    };
    if subject.is_empty() {
        log_at!(level, "{message}");
    } else {
        log_at!(level, manifest = subject, "{message}");
    }
}
