use std::collections::HashSet;

use ccm_model::{Health, HealthCheckResult, ResourceRef};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn metrics() -> Metrics {
    Metrics::new("1.2.3", "abc")
}

fn event() -> Event {
    Event {
        kind: "file".into(),
        provider: "posix".into(),
        name: "/etc/motd".to_owned(),
        duration: Duration::from_millis(250),
        ..Event::default()
    }
}

/// The lines with values whose names contain a word.
fn lines(text: &str, word: &str) -> Vec<String> {
    let mut found: Vec<String> = text
        .lines()
        .filter(|line| !line.starts_with('#') && line.contains(word))
        .map(|line| line.strip_prefix(PREFIX).unwrap().to_owned())
        .collect();
    found.sort();
    found
}

#[test]
fn names_labels_and_types_are_what_prometheus_allows() {
    let mut names = HashSet::new();
    for metric in METRICS {
        assert!(names.insert(metric.name), "{} is there twice", metric.name);
        let is_name = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_lowercase())
                && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        assert!(is_name(metric.name) && metric.labels.iter().all(|label| is_name(label)));
        assert!(!metric.help.is_empty());
        match metric.kind {
            MetricType::Counter => assert!(metric.name.ends_with("_count"), "{}", metric.name),
            MetricType::Summary => assert!(metric.name.ends_with("_seconds"), "{}", metric.name),
            MetricType::Gauge => assert!(!metric.name.ends_with("_count"), "{}", metric.name),
        }
    }
}

/// A name of a summary's series must not be that of another metric.
#[test]
fn no_metric_is_a_part_of_a_summary() {
    for summary in METRICS.iter().filter(|metric| metric.kind == MetricType::Summary) {
        for part in ["_sum", "_count"] {
            let name = format!("{}{part}", summary.name);
            assert!(METRICS.iter().all(|metric| metric.name != name), "{name}");
        }
    }
}

#[test]
fn every_metric_has_a_method_that_records_it() {
    let metrics = metrics();
    let (took, now) = (Duration::from_secs(1), at(1000));
    for (noop, failed, skipped, changed, error) in [
        (true, false, false, false, false),
        (false, true, false, false, false),
        (false, false, true, false, false),
        (false, false, false, true, false),
        (false, false, false, false, true),
        (false, false, false, false, false),
    ] {
        let mut event = Event { noop, failed, skipped, changed, refreshed: changed, ..event() };
        event.error.extend(error.then(|| "oops".to_owned()));
        event.health_check =
            vec![HealthCheckResult { name: "up".to_owned(), ..Default::default() }];
        metrics.event(&event, now);
    }
    metrics.manifest_apply_duration("m", took);
    metrics.facts_gather_duration(took);
    metrics.apply_duration("m", took);
    metrics.health_run_duration("m", took);
    metrics.remediation("m");
    metrics.data_resolve_duration(took);
    metrics.data_resolve_error("kv://B/k");
    metrics.facts_resolve_duration(took);
    metrics.facts_resolve_error();
    metrics.manifest_fetched("m");
    metrics.manifest_fetch_error("m");
    metrics.nats_connected(true);
    metrics.nats_reconnected();
    metrics.registrations_published("nats", 2);
    metrics.registrations_failed("jetstream", 3);
    metrics.manifest_available("m", true);
    metrics.manifest_valid("m", false);
    metrics.manifest_applied("m", "before");
    metrics.manifest_applied("m", "now");
    metrics.manifest_fetched_at("m", now);
    metrics.data_fetched_at("kv://B/k", now);
    metrics.run("m", RunMode::Apply, RunReason::Schedule, RunResult::Ok, now);
    metrics.config_reload(true);
    let text = metrics.render(now);
    assert!(!text.contains("before"), "only the last digest counts: {text}");
    for metric in METRICS {
        let help = format!("# HELP {PREFIX}{} {}\n", metric.name, metric.help);
        let kind = format!("# TYPE {PREFIX}{} {}\n", metric.name, metric.kind.name());
        assert!(text.contains(&format!("{help}{kind}{PREFIX}{}", metric.name)), "{help}\n{text}");
        let mut values = text.lines().filter_map(|line| line.strip_prefix(PREFIX));
        let first = values.find(|line| line.starts_with(metric.name)).unwrap();
        for label in metric.labels {
            assert!(first.contains(&format!("{label}=\"")), "{first}");
        }
        assert_eq!(first.matches("=\"").count(), metric.labels.len(), "{first}");
    }
}

#[test]
fn of_each_event_total_and_one_outcome_are_counted() {
    // Bit by bit: noop, failed, skipped, changed, refreshed, with an error,
    // with an unmet requirement.
    for bits in 0..128_u8 {
        let is_set = |bit: u8| bits >> bit & 1 == 1;
        let mut event = Event {
            noop: is_set(0),
            failed: is_set(1),
            skipped: is_set(2),
            changed: is_set(3),
            refreshed: is_set(4),
            ..event()
        };
        event.error.extend(is_set(5).then(|| "oops".to_owned()));
        event.unmet_requirements.extend(is_set(6).then(|| ResourceRef::new("file", "/x")));
        let wanted = if is_set(0) {
            "noop"
        } else if is_set(1) {
            "failed"
        } else if is_set(2) || is_set(6) {
            "skipped"
        } else if is_set(3) {
            "changed"
        } else if is_set(5) {
            "error"
        } else {
            "stable"
        };
        let metrics = metrics();
        metrics.event(&event, at(0));
        let mut all = vec![
            format!("resource_state_{wanted}_count{{type=\"file\",name=\"/etc/motd\"}} 1"),
            "resource_state_total_count{type=\"file\",name=\"/etc/motd\"} 1".to_owned(),
        ];
        if is_set(4) {
            let refreshed = "resource_state_refreshed_count{type=\"file\",name=\"/etc/motd\"} 1";
            all.push(refreshed.to_owned());
        }
        all.sort();
        assert_eq!(lines(&metrics.render(at(0)), "resource_state_"), all, "{bits:b}");
    }
}

#[test]
fn an_alias_is_the_name() {
    let metrics = metrics();
    let aliased = Event { alias: Some("motd".to_owned()), ..event() };
    metrics.event(&aliased, at(0));
    metrics.event(&aliased, at(1));
    let text = metrics.render(at(1));
    assert!(!text.contains("/etc/motd"), "{text}");
    let labels = "{type=\"file\",provider=\"posix\",name=\"motd\"}";
    assert_eq!(
        lines(&text, "resource_apply_duration"),
        [
            format!("resource_apply_duration_seconds_count{labels} 2"),
            format!("resource_apply_duration_seconds_sum{labels} 0.5"),
        ]
    );
}

#[test]
fn health_checks_are_counted_by_status_and_are_no_apply() {
    let metrics = metrics();
    let statuses = [Health::Ok, Health::Warning, Health::Critical, Health::Unknown, Health::Ok];
    let health_check = statuses.map(|status| HealthCheckResult {
        status,
        name: "up".to_owned(),
        duration: Duration::from_millis(125),
        ..HealthCheckResult::default()
    });
    let checked = Event { health_check: health_check.to_vec(), health_check_only: true, ..event() };
    metrics.event(&checked, at(0));
    let text = metrics.render(at(0));
    let wanted = [("CRITICAL", 1), ("OK", 2), ("UNKNOWN", 1), ("WARNING", 1)].map(|(status, n)| {
        format!(
            "healthcheck_status_count{{type=\"file\",name=\"/etc/motd\",status=\"{status}\",check=\"up\"}} {n}"
        )
    });
    assert_eq!(lines(&text, "healthcheck_status"), wanted);
    let labels = "{type=\"file\",name=\"/etc/motd\",check=\"up\"}";
    assert_eq!(
        lines(&text, "healthcheck_duration"),
        [
            format!("healthcheck_duration_seconds_count{labels} 5"),
            format!("healthcheck_duration_seconds_sum{labels} 0.625"),
        ]
    );
    assert_eq!(lines(&text, "resource_apply_duration"), [""; 0]);
}

#[test]
fn series_of_a_resource_end_a_day_after_it_was_seen() {
    const DAY: i64 = 86_400;
    let metrics = metrics();
    let other = Event { name: "/etc/issue".to_owned(), ..event() };
    metrics.event(&event(), at(0));
    metrics.event(&other, at(10));
    assert_eq!(lines(&metrics.render(at(DAY)), "total").len(), 2);
    let text = metrics.render(at(DAY + 1));
    assert!(text.contains("/etc/issue") && !text.contains("/etc/motd"), "{text}");
    // A clock that was set back ends nothing.
    assert!(metrics.render(at(-10 * DAY)).contains("/etc/issue"));
    // Neither HELP nor TYPE stay behind, nor do others go.
    let text = metrics.render(at(3 * DAY));
    assert!(!text.contains("resource_state"), "{text}");
    assert_eq!(lines(&text, "build_info"), ["build_info{version=\"1.2.3\",commit=\"abc\"} 1"]);
    // It begins anew.
    metrics.event(&event(), at(3 * DAY));
    assert_eq!(lines(&metrics.render(at(3 * DAY)), "total").len(), 1);
}

#[test]
fn without_resource_metrics_there_are_none() {
    let metrics = metrics();
    let mut checked = event();
    checked.health_check = vec![HealthCheckResult::default()];
    metrics.event(&checked, at(0));
    metrics.set_resource_metrics(false);
    metrics.event(&checked, at(0));
    metrics.remediation("m");
    let text = metrics.render(at(0));
    for metric in METRICS.iter().filter(|metric| metric.is_per_resource) {
        assert!(!text.contains(metric.name), "{text}");
    }
    assert_eq!(lines(&text, "remediations").len(), 1);
    metrics.set_resource_metrics(true);
    metrics.event(&checked, at(0));
    assert_eq!(
        lines(&metrics.render(at(0)), "total"),
        ["resource_state_total_count{type=\"file\",name=\"/etc/motd\"} 1"]
    );
}

#[test]
fn labels_are_escaped_and_redacted() {
    let metrics = metrics();
    metrics.remediation("a\\b\"c\nd{}");
    assert!(metrics.render(at(0)).contains(r#"{manifest="a\\b\"c\nd{}"} 1"#));
    let url = "https://me:hunter2@example.net/m.tar.gz?token=hunter2";
    metrics.run(url, RunMode::Health, RunReason::Signal, RunResult::Crashed, at(7));
    metrics.manifest_apply_duration(url, Duration::ZERO);
    metrics.data_resolve_error(url);
    metrics.data_fetched_at(url, at(7));
    let named = Event { name: url.to_owned(), ..event() };
    metrics.event(&named, at(0));
    let text = metrics.render(at(0));
    assert!(!text.contains("hunter2"), "{text}");
    let shown = "https://[redacted]@example.net/m.tar.gz?token=[redacted]";
    assert_eq!(
        lines(&text, "agent_runs_count"),
        [format!(
            "agent_runs_count{{manifest=\"{shown}\",mode=\"health\",reason=\"signal\",result=\"crashed\"}} 1"
        )]
    );
    metrics.forget_manifest(url);
    metrics.forget_data(url);
    let text = metrics.render(at(0));
    assert!(!text.contains("url=") && !text.contains("manifest=\"https"), "{text}");
    assert!(!text.contains("source="), "{text}");
}

#[test]
fn the_connection_has_series_only_where_the_network_is_used() {
    let metrics = metrics();
    assert_eq!(lines(&metrics.render(at(0)), "nats"), [""; 0]);
    metrics.set_network(true);
    let none = ["agent_nats_connected 0", "agent_nats_reconnects_count 0"];
    assert_eq!(lines(&metrics.render(at(0)), "nats"), none);
    metrics.nats_connected(true);
    metrics.nats_reconnected();
    metrics.set_network(true);
    let some = ["agent_nats_connected 1", "agent_nats_reconnects_count 1"];
    assert_eq!(lines(&metrics.render(at(0)), "nats"), some);
    metrics.set_network(false);
    assert_eq!(lines(&metrics.render(at(0)), "nats"), [""; 0]);
}

#[test]
fn the_last_run_of_each_mode_is_known() {
    let metrics = metrics();
    let now = Timestamp::from_millisecond(1_500_000_000_250).unwrap();
    metrics.run("m", RunMode::Apply, RunReason::Data, RunResult::Ok, at(5));
    metrics.run("m", RunMode::Apply, RunReason::Source, RunResult::Killed, now);
    metrics.run("m", RunMode::Health, RunReason::Remediation, RunResult::Failed, at(6));
    assert_eq!(
        lines(&metrics.render(now), "last_run"),
        [
            "agent_last_run_success{manifest=\"m\",mode=\"apply\"} 0",
            "agent_last_run_success{manifest=\"m\",mode=\"health\"} 0",
            "agent_last_run_timestamp_seconds{manifest=\"m\",mode=\"apply\"} 1500000000.25",
            "agent_last_run_timestamp_seconds{manifest=\"m\",mode=\"health\"} 6",
        ]
    );
}

#[test]
fn many_threads_lose_nothing() {
    let metrics = metrics();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    metrics.event(&event(), at(0));
                }
            });
        }
    });
    assert!(metrics.render(at(0)).contains("total_count{type=\"file\",name=\"/etc/motd\"} 8000"));
}
