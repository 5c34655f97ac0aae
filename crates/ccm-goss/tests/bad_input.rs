//! Rules that are wrong, and machines that are.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use ccm_host::{Cancel, CancelReason, System};
use ccm_model::{TemplateError, Templates};
use ccm_testkit::wait_until;
use ccm_yaml::Source;
use proptest::prelude::*;
use support::{fails, holds, read, run, run_within};

/// What is wrong, as `line:column: message (hint)`.
fn problems(text: &str) -> Vec<String> {
    let source = Source::new("rules.yaml", text);
    let findings = ccm_goss::check(&ccm_yaml::parse(&source).unwrap());
    let line = |finding: ccm_model::Finding| {
        let place = source.position(finding.span.unwrap().start);
        let hint = finding.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
        format!("{}:{}: {}{hint}", place.line, place.column, finding.message)
    };
    findings.into_iter().map(line).collect()
}

#[test]
fn everything_wrong_has_its_place() {
    for (text, wanted) in [
        ("files: {/a: {exists: true}}", "1:1: unknown kind `files` (did you mean `file`?)"),
        ("file: [a]", "1:7: file: expected a map of names to tests, found a list"),
        ("file: {/a: true}", "1:12: file: /a: expected a map of attributes, found a boolean"),
        ("[a]", "1:1: expected a map of rules, found a list"),
        ("", "1:1: expected a map of rules, found null"),
        ("{}", "1:1: there is no test in these rules"),
        ("file: {}", "1:1: there is no test in these rules"),
        ("file:\n", "1:1: there is no test in these rules"),
        (
            "file: {/a: {exists: true, moed: '0644'}}",
            "1:27: file: /a: unknown attribute `moed` (did you mean `mode`?)",
        ),
        ("file: {/a: {mode: '0644'}}", "1:12: file: /a: `exists` is required"),
        ("file: {/a: {}}", "1:12: file: /a: `exists` is required"),
        ("file: {/a: {exists: ~}}", "1:12: file: /a: `exists` is required"),
        (
            "file: {/a: {exists: [true]}}",
            "1:21: file: /a: exists: expected a single value, found a list (to allow several \
             values, write `or: […]`)",
        ),
        (
            "file: {/a: {exists: true, size: {gt: 1, lt: 5}}}",
            "1:41: file: /a: size: only one matcher is allowed in a map, found `gt` and `lt` \
             (combine matchers with `and: […]` or `or: […]`)",
        ),
        (
            "file: {/a: {exists: true, size: {more: 1}}}",
            "1:34: file: /a: size: more: unknown matcher `more`",
        ),
        (
            "file: {/a: {exists: true, size: {gt: [1]}}}",
            "1:38: file: /a: size: gt: expected a number, found a list",
        ),
        (
            "file: {/a: {exists: true, contents: {have-prefix: 5}}}",
            "1:51: file: /a: contents: have-prefix: expected a string, found a number",
        ),
        (
            "file: {/a: {exists: true, contents: {and: [{have-len: x}]}}}",
            "1:55: file: /a: contents: and: have-len: expected a number, found a string",
        ),
        (
            "file: {/a: {exists: true, contents: [{have-prefix: x}]}}",
            "1:38: file: /a: contents: expected a pattern, which is a string, found a map",
        ),
        ("file: {/a: {exists: true, size: {}}}", "1:33: file: /a: size: a matcher is missing"),
        (
            "file: {/a: {exists: true, contents: [a], contains: [b]}}",
            "1:42: file: /a: contains: is the same as `contents`; set only one of them",
        ),
        (
            "user: {ann: {exists: true, groups: {not: {consist-of: a}}}}",
            "1:55: user: ann: groups: not: consist-of: expected a list, found a string",
        ),
        (
            "matching: {x: {content: 1, matches: {gjson: [a]}}}",
            "1:45: matching: x: matches: gjson: expected a map of paths to matchers, found a list",
        ),
        ("matching: {x: {matches: 1}}", "1:15: matching: x: `content` is required"),
        ("service: {ssh: {skip: true}}", "1:16: service: ssh: `enabled` or `running` is required"),
        (
            "service: {ssh: {running: true, runlevels: [3]}}",
            "1:32: service: ssh: unknown attribute `runlevels` (use `enabled`: systemd has no \
             runlevels)",
        ),
        (
            "gossfile: {a.yaml: {}}",
            "1:1: `gossfile` is not supported (put shared rules into a template, and use it as \
             `goss_rules`)",
        ),
        (
            "port: {80x: {listening: true}}",
            "1:8: port: 80x: `80x` is not a port: it is a number from 1 to 65535",
        ),
        (
            "port: {'sctp:80': {listening: true}}",
            "1:8: port: sctp:80: unknown protocol `sctp`: it is tcp, tcp6, udp or udp6",
        ),
        (
            "port: {'0': {listening: true}}",
            "1:8: port: 0: `0` is not a port: it is a number from 1 to 65535",
        ),
        (
            "addr: {'host:80': {reachable: true}}",
            "1:8: addr: host:80: expected `tcp://HOST:PORT` or `udp://HOST:PORT`",
        ),
        (
            "dns: {MX:a.test: {resolvable: true}}",
            "1:7: dns: MX:a.test: a record of a.test is asked of a `server`, which is missing",
        ),
        (
            "dns: {a.test: {resolvable: true, server: ns}}",
            "1:42: dns: a.test: server: `ns` is not an IP address, with or without a port",
        ),
        (
            "dns: {a.test: {resolvable: true, timeout: 1s}}",
            "1:43: dns: a.test: timeout: expected a number of milliseconds, found a string",
        ),
        (
            "command: {a: {exit-status: 0, timeout: 0}}",
            "1:40: command: a: timeout: must be from 1 to 86400000 milliseconds",
        ),
        (
            "http: {example: {status: 200}}",
            "1:8: http: example: expected a URL with `http://` or `https://`",
        ),
        (
            "http: {'http://a/': {status: 200, method: FETCH}}",
            "1:43: http: http://a/: method: unknown method `FETCH`: allowed: GET, HEAD, POST, \
             PUT, PATCH, DELETE, OPTIONS, TRACE",
        ),
        (
            "http: {'http://u:s3cret@a/': {status: 200, request-headers: [s3cret]}}",
            "1:61: http: http://[redacted]@a/: request-headers: header number 1 is not `Name: \
             value`",
        ),
        (
            "http: {'http://a/': {status: 200, cert-file: /a}}",
            "1:8: http: http://a/: `cert-file` and `key-file` belong together",
        ),
        (
            "http: {'http://a/': {status: 200, allow-insecure: 'yes'}}",
            "1:51: http: http://a/: allow-insecure: expected `true` or `false`, found a string",
        ),
        (
            "kernel-param: {net..x: {value: 1}}",
            "1:16: kernel-param: net..x: `net..x` is not the name of a kernel parameter",
        ),
        (
            "kernel-param: {'..': {value: 1}}",
            "1:16: kernel-param: ..: `..` is not the name of a kernel parameter",
        ),
        ("file: {'': {exists: true}}", "1:8: file: : the name is empty"),
    ] {
        assert_eq!(problems(text), [wanted], "{text}");
    }
    let many = problems("{a: 1, file: {/a: {b: 1}}, port: {x: {listening: true}}}");
    assert_eq!(many.len(), 3, "{many:#?}");
}

#[test]
fn placeholders_are_left_alone_until_the_check_runs() {
    for text in [
        "'{{ template(\"rules.yaml\") }}'",
        "file: {'{{ Data.path }}': {exists: true}}",
        "file: {/a: {exists: '{{ Data.is_there }}', size: {gt: '{{ Data.size }}'}}}",
        "file: {/a: {'{{ Data.attribute }}': true}}",
        "'{{ Data.kind }}': {/a: {exists: true}}",
        "file: '{{ Data.files }}'",
        "file: {/a: '{{ Data.file }}'}",
        "port: {'tcp:{{ Data.port }}': {listening: true}}",
        "file: {/a: {exists: true, size: {'{{ Data.matcher }}': 5}}}",
        "file: {/a: {exists: true, contents: ['{{ Data.pattern }}']}}",
        "http: {'{{ Data.url }}': {status: 200, request-headers: ['{{ Data.header }}']}}",
    ] {
        assert_eq!(problems(text), [""; 0], "{text}");
    }
    // What has none is checked all the same.
    assert_eq!(problems("{file: {'{{ Data.path }}': {exits: true}}}").len(), 1);
}

/// Knows two placeholders.
struct Two;

impl Templates for Two {
    fn text(&self, text: &str) -> Result<String, TemplateError> {
        Ok(text
            .replace("{{ name }}", "/")
            .replace("{{ rules }}", "file: {'{{ x }}': {exists: false}}"))
    }

    fn script(&self, text: &str) -> Result<String, TemplateError> {
        self.text(text)
    }

    fn value(&self, text: &str) -> Result<govalue::Value, TemplateError> {
        match text {
            "{{ yes }}" => Ok(true.into()),
            "{{ wrong }}" => Err(TemplateError::new("unknown name wrong")),
            "{{ map }}" => {
                let entry = govalue::Map::from_iter([("exists", govalue::Value::from(true))]);
                Ok(govalue::Map::from_iter([("/", govalue::Value::from(entry))]).into())
            }
            text => self.text(text).map(Into::into),
        }
    }
}

#[test]
fn placeholders_become_values_keys_texts_and_whole_rules() {
    let resolved = |text: &str| {
        let source = Source::new("rules.yaml", text);
        let node = ccm_yaml::parse(&source).unwrap();
        ccm_goss::Rules::read(&node, Some(&Two)).map_err(|error| error.to_string())
    };
    for text in [
        "file: {'{{ name }}': {exists: '{{ yes }}'}}",
        "file: '{{ map }}'",
        // Its own placeholder is not resolved again.
        "'{{ rules }}'",
        "'file: {/: {exists: true}}'",
    ] {
        let rules = resolved(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let report = rules.run(&ccm_host::Host::new(), Duration::from_secs(10)).unwrap();
        assert!(report.is_ok() && report.summary.count == 1, "{text}: {}", report.output());
    }
    assert_eq!(resolved("file: {/a: {exists: '{{ wrong }}'}}").unwrap_err(), "unknown name wrong");
    assert_eq!(
        resolved("file: {/a: {'{{ name }}': 1, exists: true}}").unwrap_err(),
        "file: /a: unknown attribute `/`"
    );
    assert_eq!(problems("x: 1\ny: 2\n").len(), 2, "all problems are found at once");
    assert_eq!(
        problems("\"file:\\n  /a: {exist: true, exists: true}\""),
        ["1:1: file: /a: unknown attribute `exist` (line 2, column 8 of the text) (did you mean \
          `exists`?)"]
    );
    let broken = problems("'a: [b'");
    assert!(broken[0].starts_with("1:1: the text is not YAML: "), "{broken:?}");
    assert_eq!(problems("5"), ["1:1: expected a map of rules, found a number"]);
}

#[test]
fn output_that_is_not_text_or_too_much() {
    holds("command: {'printf \"\\377\\000a\\n\"': {exit-status: 0, stdout: [a]}}");
    let report = run_within(
        "command: {'head -c 1073741824 /dev/zero': {exit-status: 0, stdout: [x], timeout: 600000}}",
        Duration::from_mins(10),
    );
    let output = report.output();
    assert_eq!((report.summary.count, report.summary.failed), (2, 1), "{output}");
    assert!(output.contains("the output is larger than 16 MiB"), "{output}");
    let peak = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 512 << 10, "{peak} KiB were used");
}

#[test]
fn commands_that_do_not_end() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("alive");
    let begin = Instant::now();
    let script = format!("(sleep 60; touch {0}) & echo $! > {0}.pid; sleep 60", mark.display());
    let report =
        run(&format!("command: {{'{script}': {{exit-status: 0, stdout: [x], timeout: 200}}}}"));
    let output = report.output();
    assert_eq!(report.summary.failed, 2, "{output}");
    assert!(output.contains("did not finish within 200ms and was terminated"), "{output}");
    assert!(begin.elapsed() < Duration::from_secs(3));
    let pid = std::fs::read_to_string(dir.path().join("alive.pid")).unwrap();
    let pid = pid.trim().parse().unwrap();
    ccm_testkit::wait_until("the end of what it started", || !ccm_testkit::is_alive(pid));
    assert!(!mark.exists(), "what it started was ended with it");
}

#[test]
fn commands_that_leave_children_are_not_waited_for() {
    let begin = Instant::now();
    holds("command: {'sleep 20 & echo done': {exit-status: 0, stdout: [done]}}");
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn the_time_for_all_tests_is_limited() {
    let begin = Instant::now();
    let report = run_within(
        "{command: {sleep 20: {exit-status: 0, timeout: 30000}}, file: {/: {exists: true}, /x: \
         {exists: true, skip: true}}}",
        Duration::from_millis(300),
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    let output = report.output();
    assert_eq!((report.summary.count, report.summary.failed, report.summary.skipped), (3, 2, 1));
    assert!(
        output.contains("sleep 20: exit-status: expected 0: the command did not finish"),
        "{output}"
    );
    assert!(
        output.contains("File: /: exists: expected true: it did not finish within 300ms"),
        "{output}"
    );
}

#[test]
fn an_interrupt_ends_the_tests() {
    let cancel = Cancel::new().unwrap();
    let host = System::default().begin(cancel.clone());
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("marker");
    let command = format!("touch {}; exec sleep 60", marker.display());
    let rules =
        read(&format!("command: {{'{command}': {{exit-status: 0, timeout: 60000}}}}")).unwrap();
    let thread = std::thread::spawn(move || {
        wait_until("the command", || marker.exists());
        cancel.cancel(CancelReason::Requested);
    });
    let begin = Instant::now();
    assert!(rules.run(&host, Duration::from_mins(1)).is_err());
    assert!(begin.elapsed() < Duration::from_secs(20));
    thread.join().unwrap();
}

#[test]
fn files_that_are_not_files() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let begin = Instant::now();
    for path in [fifo.to_str().unwrap(), "/dev/zero", "/", "/dev/null"] {
        let report =
            run(&format!("file: {{{path}: {{exists: true, contents: [x], md5: x, sha256: x}}}}"));
        let output = report.output();
        assert_eq!(report.summary.failed, 3, "{output}");
        assert!(output.contains("not a regular file"), "{output}");
    }
    holds(&format!("file: {{{}: {{exists: true, filetype: pipe}}}}", fifo.display()));
    holds("file: {/dev/null: {exists: true, filetype: character-device, size: 0}}");
    assert!(begin.elapsed() < Duration::from_secs(10));
    // A path that cannot be one.
    let lines = fails(&format!("file: {{x: {{path: /{}, exists: true}}}}", "x".repeat(5000)));
    assert!(lines.contains("ame too long"), "{lines}");
    let lines = fails("file: {\"/a\\0b\": {exists: true}}");
    assert!(lines.contains("expected true"), "{lines}");
}

#[test]
fn large_files_are_read_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large");
    let mut text = "some line of text\n".repeat(64 << 20 >> 4);
    text.push_str("the last line\n");
    std::fs::write(&path, text).unwrap();
    let at = path.display();
    holds(&format!(
        "file: {{{at}: {{exists: true, contents: {{and: [['/^the last/'], {{not: [nowhere]}}]}}}}}}"
    ));
    let report = run(&format!("file: {{{at}: {{exists: true, contents: {{have-prefix: some}}}}}}"));
    assert!(
        report.output().contains("larger than 64 MiB: use a list of patterns"),
        "{}",
        report.output()
    );
}

#[test]
fn expressions_that_are_wrong_fail_the_test() {
    for matches in ["{match-regexp: '('}", "{not: {match-regexp: '('}}", "{have-patterns: ['/(/']}"]
    {
        let lines = fails(&format!("matching: {{x: {{content: a, matches: {matches}}}}}"));
        assert!(lines.contains("error parsing regexp"), "{lines}");
    }
    for matches in [
        "{gt: 4}",
        "{not: {gt: 4}}",
        "{not: 4}",
        "{not: {gt: '4'}}",
        "{not: {semver-constraint: '>1.0.0'}}",
        "{not: {gjson: {a: 1}}}",
        "{not: {have-key: a}}",
        "{or: [{gt: 1}, x]}",
    ] {
        fails(&format!("matching: {{x: {{content: x, matches: {matches}}}}}"));
    }
    holds("matching: {x: {content: [x, 5], matches: {contain-element: {gt: 4}}}}");
    fails("matching: {x: {content: [x, y], matches: {not: {contain-element: {gt: 4}}}}}");
}

#[test]
fn elements_are_paired_the_best_way() {
    holds(
        "matching: {x: {content: [ab, a, b], matches: [{have-prefix: a}, {have-suffix: b}, ab]}}",
    );
    fails("matching: {x: {content: [a], matches: [a, a]}}");
    fails("matching: {x: {content: [a, b, c], matches: {consist-of: [a, b]}}}");
    holds("matching: {x: {content: [a, b, c], matches: {consist-of: [c, {not: c}, {not: c}]}}}");
}

/// Where the test that runs again in a name space of its own finds its stage.
const STAGE: &str = "CCM_TEST_HANGING_STAGE";

/// Mounts a FUSE file system whose server never reads a request, then runs the
/// test again beside it. Leaving the name space unmounts it.
const MOUNT: &str = r#"
    exec 3<>/dev/fuse || exit
    mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none "$1/hangs" || exit
    exec timeout 60 "$2" --exact mounts_that_hang_are_left_behind
"#;

#[test]
fn mounts_that_hang_are_left_behind() {
    if let Some(stage) = std::env::var_os(STAGE) {
        return beside(&PathBuf::from(stage));
    }
    let stage = tempfile::tempdir().unwrap();
    std::fs::create_dir(stage.path().join("hangs")).unwrap();
    let ran = Command::new("unshare")
        .args(["--mount", "sh", "-c", MOUNT, "sh"])
        .arg(stage.path())
        .arg(std::env::current_exe().unwrap())
        .env(STAGE, stage.path())
        .output();
    let said = ran.as_ref().map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned());
    let said = said.unwrap_or_default();
    if !said.contains("running 1 test") {
        return ccm_testkit::not_run("no file system of FUSE can be mounted here");
    }
    assert!(ran.is_ok_and(|ran| ran.status.success()), "{said}");
}

fn beside(stage: &Path) {
    let at = stage.join("hangs").display().to_string();
    let system = System::default();
    let rules = read(&format!(
        "{{file: {{/: {{exists: true}}, {at}/x: {{exists: true}}, /etc: {{exists: true}}}}}}"
    ));
    let rules = rules.unwrap();
    // As an agent does: each time a new run.
    for failed in [2, 1, 1] {
        let begin = Instant::now();
        let host = system.begin(Cancel::default());
        let report = rules.run(&host, Duration::from_millis(500)).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert_eq!(
            (report.summary.count, report.summary.failed),
            (3, failed),
            "{}",
            report.output()
        );
    }
    // Those that are done end in their own time.
    let threads = std::fmt::from_fn(|f| write!(f, "1 thread, not {}", waiting_threads()));
    ccm_testkit::wait_until(threads, || waiting_threads() == 1);
    let begin = Instant::now();
    let usage =
        read(&format!("mount: {{{at}: {{exists: true, usage: 5, timeout: 300}}}}")).unwrap();
    let report = usage.run(&system.begin(Cancel::default()), Duration::from_secs(20)).unwrap();
    assert!(report.output().contains("did not answer within 300ms"), "{}", report.output());
    assert!(begin.elapsed() < Duration::from_secs(10));
}

/// How many threads of this process run rules, or wait for some.
fn waiting_threads() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = threads.map(|thread| std::fs::read_to_string(thread.path().join("comm")));
    names.flatten().filter(|name| name.trim() == "work").count()
}

/// Compiling expressions counts as part of the tests.
#[test]
fn expressions_are_compiled_within_the_time_limit() {
    // Many of them, so that even a fast machine needs longer.
    let slow: String = (0..8000)
        .map(|n| {
            format!("  x{n}: {{content: a, matches: {{match-regexp: '(\\pL{{20}}x{n}){{20}}'}}}}\n")
        })
        .collect();
    let rules = format!("matching:\n{slow}");
    let begin = std::time::Instant::now();
    let report = run_within(&rules, Duration::from_millis(300));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    // The output shows the first failures only, which a fast machine has tried.
    let last = report.results.last().and_then(|result| result.reason.clone()).unwrap_or_default();
    assert!(last.contains("timeout for all tests"), "{last}: {}", report.output());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Whatever is written, reading it ends, and so does comparing.
    #[test]
    fn nothing_that_is_written_breaks_it(
        content in any_yaml(), matches in any_yaml(), reader in any::<bool>(),
    ) {
        let text = format!("matching: {{x: {{content: {content}, matches: {matches}, as-reader: {reader}}}}}");
        let source = Source::new("rules.yaml", &*text);
        if let Ok(node) = ccm_yaml::parse(&source) {
            let findings = ccm_goss::check(&node);
            for finding in &findings {
                prop_assert!(finding.span.is_some(), "{}", finding.message);
            }
            if let Ok(rules) = ccm_goss::Rules::read(&node, None) {
                let report = rules.run(&ccm_host::Host::new(), Duration::from_secs(20)).unwrap();
                let _ = (report.output(), report.junit());
            }
        }
    }
}

fn any_yaml() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("true".to_owned()),
        Just("null".to_owned()),
        "-?[0-9]{1,20}(\\.[0-9]{1,3})?",
        "'[a-z!/\\\\.*<>= 0-9|-]{0,12}'",
        Just("'{{ x }}'".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let names: Vec<&'static str> = ccm_goss::MATCHERS.iter().map(|known| known.name).collect();
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            (proptest::sample::select(names), inner.clone())
                .prop_map(|(name, value)| format!("{{{name}: {value}}}")),
            proptest::collection::btree_map("[a-z]{1,3}", inner, 0..3).prop_map(|map| {
                let entries: Vec<_> =
                    map.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
                format!("{{{}}}", entries.join(", "))
            }),
        ]
    })
}
