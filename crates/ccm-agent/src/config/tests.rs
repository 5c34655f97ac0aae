use ccm_host::{Cancel, Fetch, System};
use ccm_nats::ContextChoice;

use super::*;

/// The schemes that the binary knows.
fn system() -> System {
    System::default().with_fetch(Arc::new(Nats::new(ContextChoice::default(), "agent")))
}

fn parse(text: &str) -> (Option<Config>, Vec<Finding>) {
    let host = system().begin(Cancel::default());
    Config::parse(&Source::new("config.yaml", text), host.fetchers())
}

fn messages(text: &str) -> Vec<String> {
    let source = Source::new("config.yaml", text);
    let (config, findings) = parse(text);
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
        "6:5 manifests: archive type not supported: https://host/a.zip (supported: .tar.gz, .tgz,",
        "8:5 manifests: /a.yaml is listed twice",
        "9:5 manifests: expected a string, found a list",
        "10:5 manifests: cannot download s3://b/c: `s3` is not available in this version \
         (available schemes: file, http, https, kv, obj)",
        "11:7 noop: expected `true` or `false`, found `yes` (write it as unquoted",
        "12:24 health_check_interval: must be 0, or at least 5s, not 1s",
        "13:12 log_level: must be one of debug, info, warn, error, not `warning`",
        "14:15 registration: must be one of nats, jetstream, not `kafka`",
        "15:15 monitor_port: must be 0 to 65535, not `99999`",
        "16:18 monitor_address: must be an IP address, not `localhost`",
        "17:8 splay: must not be longer than `interval`",
        "18:14 run_timeout: must be 0, or at least 1m, not 5s",
        "19:15 stop_timeout: `soon` is not a duration",
        "20:22 registration_stream: ",
        "21:12 cache_dir: must be an absolute path",
        "22:20 external_data_url: cannot download ftp://x/y: `ftp` is not available in this \
         version (available schemes: file, http, https, kv, obj)",
        "23:13 log_format: must be one of text, json, not `xml`",
        "24:19 resource_metrics: expected `true` or `false`",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found} should begin with {start}");
    }
}

#[test]
fn every_setting_is_read_and_its_default_is_valid() {
    for field in Config::FIELDS {
        let found = messages(&format!("{}: {{}}\n", field.name));
        let wrong = format!("{}: expected a ", field.name);
        let is_wrong = |found: &&String| {
            found.contains(&wrong) || found.contains("expected `true` or `false`")
        };
        assert_eq!(found.iter().filter(is_wrong).count(), 1, "{found:?}");
    }
    // A default that cannot be read would be no default.
    let mut reader = Reader::default();
    reader.set_defaults(&mut Config::default());
    assert!(reader.findings.is_empty(), "{:?}", reader.findings);
    // What the documentation says of defaults is what they are.
    let given = Config::FIELDS.iter().filter_map(|field| Some((field.name, field.default?)));
    let lines: String = given.map(|(name, default)| format!("{name}: {default}\n")).collect();
    let explicit = parse(&format!("manifests: [/m]\n{lines}")).0.unwrap();
    assert_eq!(explicit, parse("manifests: [/m]").0.unwrap());
    assert_eq!(explicit.interval, Duration::from_mins(5));
    assert_eq!((explicit.monitor_port, explicit.resource_metrics), (0, true));
    assert_eq!(explicit.registration_stream, "REGISTRATION");
    assert_eq!(explicit.cache_dir, Path::new("/var/lib/ccm/source"));
}

/// No list of schemes but that of the system: a new one works at once.
#[test]
fn the_system_decides_which_schemes_sources_may_have() {
    #[derive(Debug)]
    struct Memory;
    impl Fetch for Memory {
        fn schemes(&self) -> &'static [&'static str] {
            &["mem"]
        }
        fn check(&self, url: &str) -> Result<(), String> {
            if url.ends_with("//") { Err("it has no name".to_owned()) } else { Ok(()) }
        }
        fn open(
            &self,
            request: &ccm_host::Request<'_>,
            _: &Host,
        ) -> ccm_host::Result<ccm_host::Body> {
            Err(request.failed("this test fetches nothing"))
        }
    }
    let host = system().with_fetch(Arc::new(Memory)).begin(Cancel::default());
    let found = |text: &str| {
        let source = Source::new("config.yaml", text);
        let (config, findings) = Config::parse(&source, host.fetchers());
        assert_eq!(config.is_none(), !findings.is_empty());
        findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>()
    };
    let urls = ["mem://a/m.tar.gz", "obj://B/m.tgz", "https://h/m.tgz", "file:///etc/m.yaml"];
    for url in urls {
        assert_eq!(found(&format!("manifests: [\"{url}\"]")), [""; 0]);
    }
    for url in ["mem://a/d.yaml", "kv://B/k", "http://h/d", "file:///d.yaml", "/d.yaml"] {
        assert_eq!(found(&format!("manifests: [/m]\nexternal_data_url: {url}")), [""; 0]);
    }
    for (text, wanted) in [
        ("manifests: [mem://]", "manifests: it has no name"),
        ("manifests: [mem://a/m.yaml]", "manifests: archive type not supported: mem://a/m.yaml"),
        ("manifests: [kv://B/k]", "manifests: archive type not supported: kv://B/k"),
        ("manifests: [file://m.yaml]", "manifests: its path is not absolute"),
        ("manifests: [https://]", "manifests: "),
        (
            "manifests: [/m]\nexternal_data_url: obj://B/d.tgz",
            "external_data_url: obj://B/d.tgz is an archive, and data is a document",
        ),
    ] {
        let found = found(text);
        assert!(found.len() == 1 && found[0].starts_with(wanted), "{text}: {found:?}");
    }
}

#[test]
fn the_splay_follows_the_interval() {
    let splay =
        |text: &str| parse(&format!("manifests: [/m]\n{text}")).0.unwrap().splay().as_secs();
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
    assert_eq!(parse("manifests: [/m]\nrun_timeout: 0").0.unwrap().run_timeout, Duration::ZERO);
    assert_eq!(parse("manifests: [/m]\ninterval:\n").0.unwrap().interval, Duration::from_mins(5));
}
