use super::*;

fn parse(text: &str) -> (Option<Config>, Vec<Finding>) {
    Config::parse(&Source::new("config.yaml", text))
}

fn messages(text: &str) -> Vec<String> {
    let source = Source::new("config.yaml", text);
    let (config, findings) = Config::parse(&source);
    assert_eq!(config.is_none(), !findings.is_empty(), "{findings:?}");
    let shown = findings.iter().map(|finding| {
        let place = finding.span.map(|span| source.position(span.start));
        let place = place.map_or("-".to_owned(), |at| format!("{}:{}", at.line, at.column));
        let hint = finding.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{place} {}{hint}", finding.message)
    });
    shown.collect()
}

#[test]
fn everything_wrong_is_found_at_once() {
    let found = messages(
        "intervall: 5m\ninterval: 10s\nmanifests:\n  - relative.yaml\n  - obj://B\n  - \
         https://user:secret@host/a.zip\n  - /a.yaml\n  - /a.yaml\n  - [x]\n  - s3://b/c\nnoop: \
         yes\nhealth_check_interval: 1s\nlog_level: warning\nregistration: kafka\nmonitor_port: \
         99999\nmonitor_address: localhost\nsplay: 10m\nrun_timeout: 5s\nstop_timeout: \
         soon\nregistration_stream: a.b\ncache_dir: var\nexternal_data_url: ftp://x/y\nlog_format: \
         xml\nresource_metrics: 1\n",
    );
    let starts = [
        "1:1 unknown setting `intervall` (did you mean `interval`?)",
        "2:11 interval: must be at least 30s, not 10s",
        "4:5 manifests: `relative.yaml` must be an absolute path or a URL",
        "5:5 manifests: ",
        "6:5 manifests: https://[redacted]@host/a.zip must end in `.tar.gz` or `.tgz`",
        "8:5 manifests: /a.yaml is named twice",
        "9:5 manifests: expected a string, found a list",
        "10:5 manifests: `s3` is not a scheme for manifests",
        "11:7 noop: expected `true` or `false`",
        "12:24 health_check_interval: must be 0, or at least 5s, not 1s",
        "13:12 log_level: must be one of debug, info, warn, error, not `warning`",
        "14:15 registration: must be one of nats, jetstream, not `kafka`",
        "15:15 monitor_port: must be 0 to 65535",
        "16:18 monitor_address: must be an IP address",
        "17:8 splay: must not be longer than `interval`",
        "18:14 run_timeout: must be 0, or at least 1m, not 5s",
        "19:15 stop_timeout: `soon` is not a duration",
        "20:22 registration_stream: ",
        "21:12 cache_dir: must be an absolute path",
        "22:20 external_data_url: `ftp` is not a scheme for data",
        "23:13 log_format: must be one of text, json, not `xml`",
        "24:19 resource_metrics: expected `true` or `false`",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found} should begin with {start}");
    }
}

#[test]
fn every_key_is_read_and_has_a_default() {
    for key in KEYS {
        let text = format!("{}: {{}}\n", key.name);
        let found = messages(&text);
        assert!(!found.iter().any(|found| found.contains("cannot read")), "{found:?}");
        assert!(!found.iter().any(|found| found.contains("unknown")), "{found:?}");
    }
    // What the documentation says of defaults is what they are.
    let given = KEYS.iter().filter(|key| !matches!(key.name, "manifests" | "splay"));
    let given = given.filter(|key| !matches!(key.default, "none" | "all"));
    let lines: String = given.map(|key| format!("{}: {}\n", key.name, key.default)).collect();
    let explicit = parse(&format!("manifests: [/m]\n{lines}")).0.unwrap();
    assert_eq!(explicit, parse("manifests: [/m]").0.unwrap());
}

#[test]
fn the_splay_follows_the_interval() {
    let splay = |text: &str| parse(&format!("manifests: [/m]\n{text}")).0.unwrap().splay.as_secs();
    assert_eq!(splay("interval: 1h"), 30);
    assert_eq!(splay("interval: 60s"), 6);
    assert_eq!(splay("interval: 60s\nsplay: 0"), 0);
    assert_eq!(splay("interval: 60s\nsplay: 60s"), 60);
}

#[test]
fn health_checks_and_previews_exclude_each_other() {
    let found = messages("manifests: [/m]\nnoop: true\nhealth_check_interval: 10s\n");
    assert!(found[0].starts_with("3:24 health_check_interval: must be 0 with"), "{found:?}");
    assert!(parse("manifests: [/m]\nnoop: true\n").0.unwrap().noop);
}

#[test]
fn the_network_is_used_by_what_names_it() {
    for (text, wanted) in [
        ("manifests: [/m]", false),
        ("manifests: [https://h/a.tgz]\nexternal_data_url: http://h/d", false),
        ("manifests: [obj://B/a.tgz]", true),
        ("manifests: [/m]\nexternal_data_url: kv://B/k", true),
        ("manifests: [/m]\nregistration: nats", true),
    ] {
        assert_eq!(parse(text).0.unwrap().needs_network(), wanted, "{text}");
    }
}

#[test]
fn odd_texts_are_errors_without_panics() {
    for text in
        ["", "~", "x", "[]", "manifests: [\n", "a: b: c", "manifests: {a: b}", "\u{0}", "&a [*a]"]
    {
        assert!(!parse(text).1.is_empty(), "{text:?}");
    }
    assert_eq!(parse("manifests: [/m]\nnats_context: ''").0.unwrap().nats_context, "");
    assert_eq!(parse("manifests: [/m]\nrun_timeout: 0").0.unwrap().run_timeout, None);
    assert_eq!(parse("manifests: [/m]\ninterval:\n").0.unwrap().interval, 5 * MINUTE);
}
