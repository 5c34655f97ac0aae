//! The documentation's table of metrics, and what `examples/monitoring` makes
//! of them.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use ccm_agent::metrics::{METRICS, Metric, MetricType, PREFIX};
use ccm_testkit::not_run;
use serde_json::Value;

/// Labels that Prometheus adds to all metrics.
const OF_PROMETHEUS: [&str; 2] = ["instance", "job"];

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(name: &str) -> String {
    std::fs::read_to_string(project().join(name)).unwrap()
}

/// The queries of all panels, as Prometheus gets them.
fn queries() -> Vec<String> {
    let dashboard: Value =
        serde_json::from_str(&read("examples/monitoring/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "an id is there twice");
    panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| {
            let query = target["expr"].as_str().unwrap();
            query
                .replace("$__rate_interval", "5m")
                .replace("$__range", "6h")
                .replace("$instance", ".*")
        })
        .collect()
}

/// The names of our metrics in a text.
fn names(text: &str) -> BTreeSet<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(PREFIX)
        .map(|(at, _)| {
            let rest = &text[at + PREFIX.len()..];
            &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]
        })
        .collect()
}

fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| match metric.kind {
        MetricType::Summary => {
            ["_sum", "_count"].iter().any(|part| name.strip_suffix(part) == Some(metric.name))
        }
        MetricType::Counter | MetricType::Gauge => name == metric.name,
    })
}

#[test]
fn examples_use_metrics_that_there_are_and_leave_out_none() {
    let alerts = read("examples/monitoring/alerts.yaml");
    let queries = queries().join("\n");
    let used: BTreeSet<&str> = names(&alerts).union(&names(&queries)).copied().collect();
    let unknown: Vec<_> = used.iter().filter(|name| metric(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for known in METRICS {
        let is_used = used.iter().any(|name| metric(name).is_some_and(|m| m.name == known.name));
        assert!(is_used, "nobody looks at {}", known.name);
    }
}

/// Everything between braces or behind `by` must be a label of the query's
/// metrics.
#[test]
fn queries_use_labels_that_the_metrics_have() {
    for query in queries() {
        let metrics: Vec<&Metric> = names(&query).into_iter().filter_map(metric).collect();
        let has = |label: &str| {
            OF_PROMETHEUS.contains(&label) || metrics.iter().any(|m| m.labels.contains(&label))
        };
        let grouped = query.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
        for label in grouped.flat_map(|(labels, _)| labels.split(", ")) {
            assert!(has(label), "{label} in {query}");
        }
        let matched = query.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
        for matcher in matched.flat_map(|(matchers, _)| matchers.split(',')) {
            let label = matcher.split(['=', '!']).next().unwrap();
            assert!(has(label), "{label} in {query}");
        }
    }
}

#[test]
fn prometheus_accepts_rules_and_queries() {
    let promtool = promtool();
    if Command::new(&promtool).arg("--version").output().is_err() {
        return not_run("promtool is missing");
    }
    let directory = tempfile::tempdir().unwrap();
    let panels = directory.path().join("panels.yaml");
    let rules: String = queries()
        .iter()
        .enumerate()
        .map(|(number, query)| {
            format!("      - record: panel_{number}\n        expr: {}\n", serde_json::json!(query))
        })
        .collect();
    std::fs::write(&panels, format!("groups:\n  - name: panels\n    rules:\n{rules}")).unwrap();
    for file in [project().join("examples/monitoring/alerts.yaml"), panels] {
        let checked = Command::new(&promtool).args(["check", "rules"]).arg(&file).output().unwrap();
        assert!(checked.status.success(), "{checked:?}");
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(said.contains(" rules found"), "{said}");
    }
}

/// Where `cargo xtask test` puts it, or what the search path has.
fn promtool() -> PathBuf {
    let me = std::env::current_exe().unwrap();
    let target = me.ancestors().nth(3).unwrap();
    let own = target.join("tools/promtool");
    if own.exists() { own } else { "promtool".into() }
}

#[test]
fn the_documentation_lists_every_metric() {
    let path = project().join("docs/metrics.md");
    let page = read("docs/metrics.md");
    let (begin, end) = ("<!-- metrics -->\n", "<!-- end of metrics -->");
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let rows: String = METRICS
        .iter()
        .map(|metric| {
            let labels: Vec<String> =
                metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let (name, kind) = (metric.name, metric.kind.name());
            format!("| `{PREFIX}{name}` | {kind} | {} | {} |\n", labels.join(", "), metric.help)
        })
        .collect();
    let table = format!("\n| Name | Type | Labels | Meaning |\n|---|---|---|---|\n{rows}\n");
    let current = format!("{before}{begin}{table}{end}{after}");
    if std::env::var_os("CCM_WRITE_DOCS").is_some() {
        std::fs::write(path, current).unwrap();
    } else {
        assert!(page == current, "CCM_WRITE_DOCS=1 cargo test -p ccm-agent --test monitoring");
    }
}
