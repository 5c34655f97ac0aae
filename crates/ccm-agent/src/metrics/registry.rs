//! Time series, their values, and their text format.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::table::{METRICS, Metric, MetricType, PREFIX};

/// The values of a series' labels, in the order of the metric's.
type Labels = Box<[Box<str>]>;

/// All series of an agent.
#[derive(Debug, Default)]
pub(super) struct Registry {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the metric's name.
    families: BTreeMap<&'static str, BTreeMap<Labels, Series>>,
    has_no_resources: bool,
}

#[derive(Debug, Default)]
struct Series {
    /// Value of a counter or gauge, sum of a summary.
    value: f64,
    /// Count of a summary.
    count: u64,
    /// For series per resource: when a run last contained the resource.
    seen: Option<Timestamp>,
}

impl Registry {
    fn hold(&self) -> MutexGuard<'_, Inner> {
        // Every change is one assignment, so there is no half of one.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_resource_series(&self, enabled: bool) {
        let mut inner = self.hold();
        inner.has_no_resources = !enabled;
        if !enabled {
            let per_resource = METRICS.iter().filter(|metric| metric.is_per_resource);
            per_resource.for_each(|metric| drop(inner.families.remove(metric.name)));
        }
    }

    pub(super) fn add(&self, metric: &'static Metric, labels: &[impl AsRef<str>], by: u64) {
        self.hold().series(metric, labels).value += by as f64;
    }

    pub(super) fn set(&self, metric: &'static Metric, labels: &[impl AsRef<str>], value: f64) {
        self.hold().series(metric, labels).value = value;
    }

    pub(super) fn observe(
        &self,
        metric: &'static Metric,
        labels: &[impl AsRef<str>],
        took: Duration,
    ) {
        self.hold().series(metric, labels).observe(took);
    }

    pub(super) fn add_for_resource(
        &self,
        metric: &'static Metric,
        labels: &[&str],
        by: u64,
        now: Timestamp,
    ) {
        if let Some(series) = self.hold().resource_series(metric, labels, now) {
            series.value += by as f64;
        }
    }

    pub(super) fn observe_for_resource(
        &self,
        metric: &'static Metric,
        labels: &[&str],
        took: Duration,
        now: Timestamp,
    ) {
        if let Some(series) = self.hold().resource_series(metric, labels, now) {
            series.observe(took);
        }
    }

    pub(super) fn remove(&self, metric: &'static Metric, labels: &[&str]) {
        if let Some(family) = self.hold().families.get_mut(metric.name) {
            family.remove(&owned(labels));
        }
    }

    /// Removes the series that have this value of a label.
    pub(super) fn forget(&self, label: &str, value: &str) {
        for metric in METRICS {
            self.remove_all(metric, label, value);
        }
    }

    /// Removes the series of a metric that have this value of a label.
    pub(super) fn remove_all(&self, metric: &Metric, label: &str, value: &str) {
        let Some(at) = metric.labels.iter().position(|&name| name == label) else { return };
        if let Some(family) = self.hold().families.get_mut(metric.name) {
            family.retain(|labels, _| labels.get(at).is_none_or(|found| **found != *value));
        }
    }

    pub(super) fn render(&self, now: Timestamp, life: Duration) -> String {
        let mut inner = self.hold();
        let is_alive = |series: &Series| {
            let age = series.seen.map(|seen| now.duration_since(seen));
            // A clock that was set back ends nothing.
            age.is_none_or(|age| age.is_negative() || age.unsigned_abs() <= life)
        };
        let mut text = String::new();
        for metric in METRICS {
            let Some(family) = inner.families.get_mut(metric.name) else { continue };
            family.retain(|_, series| is_alive(series));
            if !family.is_empty() {
                write_family(&mut text, metric, family);
            }
        }
        text
    }
}

impl Inner {
    fn series(&mut self, metric: &'static Metric, labels: &[impl AsRef<str>]) -> &mut Series {
        let family = self.families.entry(metric.name).or_default();
        family.entry(owned(labels)).or_default()
    }

    fn resource_series(
        &mut self,
        metric: &'static Metric,
        labels: &[&str],
        now: Timestamp,
    ) -> Option<&mut Series> {
        if self.has_no_resources {
            return None;
        }
        let series = self.series(metric, labels);
        series.seen = Some(now);
        Some(series)
    }
}

impl Series {
    fn observe(&mut self, took: Duration) {
        self.value += took.as_secs_f64();
        self.count += 1;
    }
}

fn owned(labels: &[impl AsRef<str>]) -> Labels {
    labels.iter().map(|label| label.as_ref().into()).collect()
}

fn write_family(text: &mut String, metric: &Metric, family: &BTreeMap<Labels, Series>) {
    let name = metric.name;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {PREFIX}{name} {}", escape(metric.help, false));
    let _ = writeln!(text, "# TYPE {PREFIX}{name} {}", metric.kind.name());
    for (labels, series) in family {
        let labels = labels_text(metric.labels, labels);
        let value = series.value;
        let _ = match metric.kind {
            MetricType::Summary => writeln!(
                text,
                "{PREFIX}{name}_sum{labels} {value}\n{PREFIX}{name}_count{labels} {}",
                series.count
            ),
            MetricType::Counter | MetricType::Gauge => {
                writeln!(text, "{PREFIX}{name}{labels} {value}")
            }
        };
    }
}

fn labels_text(names: &[&str], values: &[Box<str>]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let pairs = names.iter().zip(values);
    let pairs: Vec<String> =
        pairs.map(|(name, value)| format!("{name}=\"{}\"", escape(value, true))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// A help text or the value of a label, which is in quotes.
fn escape(text: &str, is_quoted: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if is_quoted => escaped.push_str("\\\""),
            c => escaped.push(c),
        }
    }
    escaped
}
