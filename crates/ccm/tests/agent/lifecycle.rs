//! From the start of an agent to its end.

use ccm_testkit::{is_alive, wait_until};
use nix::sys::signal::Signal;

use crate::bed::{Bed, pid_in, size};

const TOUCH: &str = "exec: [{\"sh -c 'echo x >> [DIR]/ran'\": {alias: mark}}]";

#[test]
fn a_configuration_is_checked() {
    let bed = Bed::new();
    bed.configure("manifests: [[DIR]/m.yaml]\nlog_level: warn\n");
    let (code, said) = bed.run(&["--check"]);
    assert_eq!((code, said.contains("is valid")), (0, true), "{said}");
    bed.configure("manifests: [m.yaml]\nintervall: 5m\n");
    let (code, said) = bed.run(&["--check"]);
    assert_eq!(code, 1, "{said}");
    for wanted in [
        "config.yaml:3:13",
        "must be an absolute path",
        "unknown setting `intervall`",
        "did you mean `interval`?",
    ] {
        assert!(said.contains(wanted), "no {wanted} in {said}");
    }
    std::fs::remove_file(bed.env.path("config.yaml")).unwrap();
    let (code, said) = bed.run(&[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("cannot read the configuration"), "{said}");
}

#[test]
fn everything_is_applied_once_with_the_worst_exit_code() {
    let bed = Bed::new();
    bed.manifest("a.yaml", TOUCH);
    bed.manifest("b.yaml", TOUCH);
    bed.configure("manifests: [[DIR]/a.yaml, [DIR]/b.yaml]\n");
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(bed.env.read("ran"), "x\nx\n");
    assert!(said.contains("exec#mark changed"), "{said}");
    assert!(said.contains("manifest=") && said.contains("a.yaml"), "{said}");
    // One fails, one is invalid, one is not there: the others are applied.
    bed.manifest("b.yaml", "exec: [{\"false\": {}}]");
    bed.env.write("c.yaml", "ccm: {resources: [exec: [{\"true\": {no_such: 1}}]]}\n");
    bed.manifest("d.yaml", TOUCH);
    bed.configure(
        "manifests: [[DIR]/a.yaml, [DIR]/b.yaml, [DIR]/c.yaml, [DIR]/none.yaml, [DIR]/d.yaml]\n",
    );
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 1, "{said}");
    assert_eq!(bed.env.read("ran"), "x\nx\nx\nx\n");
    for wanted in ["exec#false failed", "no_such", "c.yaml:1:", "there is no such file"] {
        assert!(said.contains(wanted), "no {wanted} in {said}");
    }
    assert!(bed.env.path("cache").is_dir());
}

#[test]
fn facts_data_and_environment_reach_the_run() {
    let bed = Bed::new();
    bed.env.write("data.yaml", "data:\n  word: external\n");
    bed.env.write(
        "m.yaml",
        "data: {word: own, other: kept}\nccm:\n  resources:\n    - file:\n        - [DIR]/out:\n            \
         content: \"{{ Data.word }} {{ Data.other }} {{ Facts.host.info.os }} {{ Facts.Host.Info.os }} {{ \
         Environ.HOME }}\"\n            ensure: present\n            owner: \"{{ Facts.site.owner }}\"\n            \
         group: \"{{ Facts.site.owner }}\"\n            mode: \"0600\"\n",
    );
    let me = nix::unistd::geteuid();
    bed.env.write(".config/choria/ccm/facts.yaml", &format!("site: {{owner: '{me}'}}\n"));
    bed.configure("manifests: [[DIR]/m.yaml]\nexternal_data_url: file://[DIR]/data.yaml\n");
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 0, "{said}");
    let home = bed.env.dir().display();
    assert_eq!(bed.env.read("out"), format!("external kept linux linux {home}"));
    // Data that cannot be used: nothing is applied.
    bed.env.write("data.yaml", "data: [\n");
    std::fs::remove_file(bed.env.path("out")).unwrap();
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 1, "{said}");
    assert!(!bed.env.path("out").exists(), "{said}");
}

#[test]
fn a_preview_changes_nothing() {
    let bed = Bed::new();
    bed.manifest("m.yaml", TOUCH);
    bed.configure("manifests: [[DIR]/m.yaml]\nnoop: true\n");
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("noop=\"Would have executed"), "{said}");
    assert!(!bed.env.path("ran").exists());
}

#[test]
fn an_agent_applies_obeys_signals_and_stops() {
    let bed = Bed::new();
    bed.manifest("m.yaml", TOUCH);
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\n");
    let mut agent = bed.start(&[]);
    let line = agent.wait_for(&["applied", "reason=\"schedule\""]);
    assert!(line.contains("WARN") && line.contains("changed=1"), "{line}");
    assert!(line.starts_with("20"), "lines have a time: {line}");
    agent.signal(Signal::SIGUSR1);
    agent.wait_for(&["applied", "reason=\"signal\""]);
    // A second agent on the same cache.
    let (code, said) = bed.run(&[]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("another agent uses"), "{said}");
    let log = agent.stop();
    assert!(log.contains("the agent has stopped"), "{log}");
    assert_eq!(bed.env.read("ran"), "x\nx\n");
}

#[test]
fn a_run_at_work_is_stopped_with_its_command() {
    let bed = Bed::new();
    let resources =
        "exec: [{\"sh -c 'echo $$ > [DIR]/pid; exec sleep 1000'\": {}}, {\"echo second\": {}}]";
    bed.manifest("m.yaml", resources);
    bed.configure("manifests: [[DIR]/m.yaml]\n");
    let agent = bed.start(&[]);
    let command = pid_in(&bed.env.path("pid"));
    let log = agent.stop();
    assert!(!is_alive(command), "{log}");
    assert!(log.contains("the run was interrupted"), "{log}");
    assert!(!log.contains("exec#echo second changed"), "{log}");
}

#[test]
fn a_run_that_does_not_stop_is_killed_with_its_groups() {
    let bed = Bed::new();
    // The command is deaf, and the run gives it five seconds; the agent gives
    // the run one.
    let resources = "exec: [{\"sh -c \\\"trap '' TERM INT; echo $$ > [DIR]/pid; while :; do sleep 1; done\\\"\": {}}]";
    bed.manifest("m.yaml", resources);
    bed.configure("manifests: [[DIR]/m.yaml]\nstop_timeout: 1s\n");
    let agent = bed.start(&[]);
    let command = pid_in(&bed.env.path("pid"));
    let run = agent.run_pid();
    let log = agent.stop();
    assert!(log.contains("has not stopped within 1s"), "{log}");
    assert!(log.contains("killed by signal 9"), "{log}");
    wait_until("the command to end", || !is_alive(command));
    assert!(!is_alive(run));
}

#[test]
fn a_second_signal_ends_everything_at_once() {
    for (signal, code) in [(Signal::SIGTERM, 143), (Signal::SIGINT, 130)] {
        let bed = Bed::new();
        let resources = "exec: [{\"sh -c \\\"trap '' TERM INT; echo $$ > [DIR]/pid; while :; do sleep 1; \
                         done\\\"\": {}}]";
        bed.manifest("m.yaml", resources);
        bed.configure("manifests: [[DIR]/m.yaml]\nstop_timeout: 10m\n");
        let mut agent = bed.start(&[]);
        let command = pid_in(&bed.env.path("pid"));
        agent.signal(signal);
        agent.wait_for(&["stopping: waiting for the current run to end"]);
        agent.signal(signal);
        assert_eq!(agent.ends().code(), Some(code));
        wait_until("the command to end", || !is_alive(command));
    }
}

#[test]
fn once_is_interrupted_like_apply() {
    let bed = Bed::new();
    bed.manifest("m.yaml", "exec: [{\"sh -c 'echo $$ > [DIR]/pid; exec sleep 1000'\": {}}]");
    bed.configure("manifests: [[DIR]/m.yaml]\n");
    let mut agent = bed.start(&["--once"]);
    let command = pid_in(&bed.env.path("pid"));
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ends().code(), Some(143), "{}", agent.log());
    assert!(!is_alive(command));
}

/// A signal for an agent that stays neither changes what is applied nor ends it.
#[test]
fn once_ignores_a_reload() {
    let bed = Bed::new();
    bed.manifest("m.yaml", "exec: [{\"sh -c 'echo $$ > [DIR]/pid; while [ ! -e [DIR]/go ]; do sleep 0.1; done'\": {}}]");
    bed.manifest("n.yaml", TOUCH);
    bed.configure("manifests: [[DIR]/m.yaml, [DIR]/n.yaml]\n");
    let mut agent = bed.start(&["--once"]);
    pid_in(&bed.env.path("pid"));
    bed.configure("manifests: [[DIR]/m.yaml]\n");
    for (times, signal) in [Signal::SIGHUP, Signal::SIGUSR1].into_iter().enumerate() {
        agent.signal(signal);
        agent.wait_for_times(&["ignored a signal"], times + 1);
    }
    std::fs::write(bed.env.path("go"), "").unwrap();
    assert_eq!(agent.ends().code(), Some(0), "{}", agent.log());
    assert_eq!(agent.count(&["applied"]), 2, "{}", agent.log());
}

#[test]
fn an_event_is_one_line_of_the_log() {
    let bed = Bed::new();
    let forged = "2026-01-01T00:00:00Z ERROR forged";
    bed.manifest(
        "m.yaml",
        &format!(
            "exec: [{{\"printf 'out\\\\r{forged}'\": {{alias: \"a\\n{forged}\", logoutput: true}}}}]"
        ),
    );
    bed.configure("manifests: [[DIR]/m.yaml]\n");
    let (code, log) = bed.run(&["--once"]);
    assert_eq!(code, 0, "{log}");
    assert!(log.contains(&format!("exec#a\\n{forged} changed")), "{log}");
    assert!(log.contains(&format!("out\\r{forged}")), "{log}");
    assert!(!log.contains('\r'), "{log}");
    assert!(log.lines().all(|line| !line.starts_with("2026-01-01")), "{log}");
}

#[test]
fn a_cache_that_cannot_be_used_is_named() {
    use std::os::unix::fs::PermissionsExt as _;
    let bed = Bed::new();
    bed.manifest("m.yaml", TOUCH);
    bed.configure("manifests: [[DIR]/m.yaml]\n");
    let cache = bed.env.path("cache");
    std::os::unix::fs::symlink("nowhere", &cache).unwrap();
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("as `cache_dir`: ") && said.contains("hint: choose another `cache_dir`\n"),
        "{said}"
    );
    std::fs::remove_file(&cache).unwrap();
    std::fs::create_dir(&cache).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    let (code, said) = bed.run(&["--once"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("is writable by other users"), "{said}");
    assert!(said.contains("hint: choose another `cache_dir`, or make "), "{said}");
}

/// Why a download failed is one line, also where the source tells it too.
#[test]
fn a_failed_download_is_logged_once() {
    let bed = Bed::new();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    bed.configure(&format!("manifests: ['http://{closed}/a.tar.gz']\n"));
    let (code, log) = bed.run(&["--once"]);
    assert_eq!(code, 1, "{log}");
    assert_eq!(log.matches("cannot download").count(), 1, "{log}");
}

/// Also while it waits for a server that does not answer.
#[test]
fn once_is_interrupted_while_it_fetches() {
    let bed = Bed::new();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    bed.configure(&format!("manifests: ['http://{address}/a.tar.gz']\n"));
    let mut agent = bed.start(&["--once"]);
    let _held = silent.accept().unwrap();
    let began = std::time::Instant::now();
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.ends().code(), Some(143), "{}", agent.log());
    assert!(began.elapsed().as_secs() < 5, "{}", agent.log());
}

#[test]
fn a_run_takes_too_long() {
    let bed = Bed::new();
    bed.manifest("m.yaml", "exec: [{\"sh -c 'echo $$ > [DIR]/pid; exec sleep 1000'\": {}}]");
    bed.manifest("n.yaml", TOUCH);
    bed.configure("manifests: [[DIR]/m.yaml, [DIR]/n.yaml]\nrun_timeout: 1m\n");
    let mut agent = bed.start(&[]);
    let command = pid_in(&bed.env.path("pid"));
    agent.wait_for(&["the run exceeded its timeout of 1m"]);
    agent.wait_for(&["applied", "m.yaml", "ERROR"]);
    assert!(!is_alive(command));
    // The other manifest has waited for its turn.
    agent.wait_for(&["applied", "n.yaml"]);
    agent.stop();
}

#[test]
fn checks_that_are_critical_lead_to_an_apply() {
    let bed = Bed::new();
    let resources = "exec: [{\"sh -c 'echo x >> [DIR]/ran; touch [DIR]/well'\": {health_checks: [{name: \
                     well, command: \"/bin/sh -c 'test -e [DIR]/well || exit 2'\"}]}}, {\"true\": {}}]";
    bed.manifest("m.yaml", resources);
    bed.configure("manifests: [[DIR]/m.yaml]\ninterval: 1000h\nhealth_check_interval: 5s\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["applied"]);
    agent.wait_for(&["checked", "INFO"]);
    std::fs::remove_file(bed.env.path("well")).unwrap();
    agent.wait_for(&["checked", "ERROR"]);
    agent.wait_for(&["applied", "reason=\"remediation\""]);
    let log = agent.stop();
    // The checks of a busy machine may see the file missing once more.
    let applies: Vec<&str> = log.lines().filter(|line| line.contains("applied")).collect();
    let (first, others) = applies.split_first().unwrap();
    assert!(first.contains("reason=\"schedule\""), "{log}");
    assert!(others.iter().all(|line| line.contains("reason=\"remediation\"")), "{log}");
    assert_eq!(bed.env.read("ran"), "x\n".repeat(applies.len()), "{log}");
    let checks: Vec<&str> = log
        .lines()
        .filter(|line| line.contains("healthcheck=true") && line.contains("exec#"))
        .collect();
    assert!(!checks.is_empty(), "{log}");
    assert!(checks.iter().all(|line| !line.contains("exec#true")), "{checks:?}");
}

#[test]
fn logs_are_json_if_the_configuration_says_so() {
    let bed = Bed::new();
    bed.manifest("m.yaml", TOUCH);
    bed.configure("manifests: [[DIR]/m.yaml]\nlog_format: json\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["\"applied\""]);
    let log = agent.stop();
    for line in log.lines() {
        let json: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert!(json["level"].is_string() && json["timestamp"].is_string(), "{line}");
        assert!(json["fields"]["message"].is_string(), "{line}");
    }
    assert!(log.contains("\"manifest\":"), "{log}");
}

#[test]
fn runs_wait_for_the_lock_of_others() {
    let bed = Bed::new();
    bed.env.manifest(
        "ccm: {resources: [exec: [{\"sh -c 'touch [DIR]/holds; while [ ! -e [DIR]/go ]; do sleep 0.1; \
         done; echo first >> [DIR]/order'\": {}}]]}",
    );
    let mut other = bed.env.start();
    wait_until("the lock", || bed.env.path("holds").exists());
    bed.manifest("m.yaml", "exec: [{\"sh -c 'echo second >> [DIR]/order'\": {}}]");
    bed.configure("manifests: [[DIR]/m.yaml]\n");
    let mut agent = bed.start(&[]);
    agent.wait_for(&["waiting for another run", "apply manifest.yaml"]);
    assert_eq!(size(&bed.env.path("order")), 0);
    std::fs::write(bed.env.path("go"), "").unwrap();
    agent.wait_for(&["applied"]);
    assert!(other.wait().unwrap().success());
    assert_eq!(bed.env.read("order"), "first\nsecond\n");
    agent.stop();
}

#[test]
fn the_hidden_command_is_not_for_people() {
    let bed = Bed::new();
    let output =
        bed.env.command(["agent-run"]).stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("only the agent starts this command"), "{said}");
    let help = bed.env.ccm(["--help"]);
    assert!(help.contains("agent ") && !help.contains("agent-run"), "{help}");
}

/// What an HTTP server on the loopback answers: status line, and the rest.
fn get(port: u16, path: &str) -> (String, String) {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (status, rest) = answer.split_once("\r\n").unwrap();
    (status.to_owned(), rest.to_owned())
}

/// One typo must not stop the repair of drift.
#[test]
fn an_invalid_manifest_leaves_the_last_valid_one_in_force() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let archive = |text: &str| ccm_testkit::tarball(&[("manifest.yaml", text.as_bytes())]);
    let good = |word: &str| format!("ccm: {{resources: [exec: [{{\"echo {word}\": {{}}}}]]}}\n");
    let bad = "ccm: {resources: [exec: [{\"echo bad\": {no_such: 1}}]]}\n";
    for is_local in [true, false] {
        let bed = Bed::new();
        let published = std::sync::Arc::new(std::sync::Mutex::new(archive(&good("one"))));
        let body = std::sync::Arc::clone(&published);
        let server = ccm_testkit::Server::start(move |_, stream| {
            let answer = ccm_testkit::answer("200 OK", "", &body.lock().unwrap());
            let _ = stream.write_all(&answer);
        });
        let publish = |text: &str| {
            bed.env.write("m.yaml", text);
            *published.lock().unwrap() = archive(text);
        };
        publish(&good("one"));
        let manifest = if is_local { "[DIR]/m.yaml".to_owned() } else { server.url("/m.tar.gz") };
        bed.configure(&format!(
            "manifests: ['{manifest}']\ninterval: 1000h\nmonitor_port: {port}\nmonitor_address: 127.0.0.1\n"
        ));
        let metric = |name: &str| {
            let (_, text) = get(port, "/metrics");
            let line = text.lines().find(|line| line.starts_with(&format!("choria_ccm_{name}{{")));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).to_owned()
        };
        let mut agent = bed.start(&[]);
        agent.wait_for(&["exec#echo one changed"]);
        agent.wait_for(&["applied"]);
        wait_until("the first digest", || {
            get(port, "/metrics").1.contains("manifest_applied_info").then_some(())
        });
        let applied = metric("agent_manifest_applied_info");
        assert!(metric("agent_manifest_valid").ends_with(" 1"));
        assert!(get(port, "/healthz").0.contains("200"));

        publish(bad);
        agent.signal(Signal::SIGUSR1);
        agent.wait_for(&["ERROR", "the manifest is invalid", "keeps applying the last valid one"]);
        for _ in 0..2 {
            let before = agent.count(&["exec#echo one changed"]);
            agent.signal(Signal::SIGUSR1);
            agent.wait_for_times(&["exec#echo one changed"], before + 1);
        }
        assert_eq!(agent.count(&["exec#echo bad changed"]), 0);
        assert_eq!(
            agent.count(&["ERROR", "no_such"]),
            2,
            "once, and once in short: {}",
            agent.log()
        );
        assert!(metric("agent_manifest_valid").ends_with(" 0"));
        assert_eq!(metric("agent_manifest_applied_info"), applied);
        let (status, rest) = get(port, "/healthz");
        assert!(status.contains("503") && rest.contains("is invalid and not applied"), "{rest}");
        agent.stop();

        // The copy outlives the agent.
        let (code, said) = bed.run(&["--once"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("exec#echo one changed") && said.contains("no_such"), "{said}");

        let mut agent = bed.start(&[]);
        agent.wait_for(&["exec#echo one changed"]);
        publish(&good("two"));
        agent.signal(Signal::SIGUSR1);
        agent.wait_for(&["exec#echo two changed"]);
        agent.wait_for(&["the manifest is valid again"]);
        assert!(metric("agent_manifest_valid").ends_with(" 1"));
        assert_ne!(metric("agent_manifest_applied_info"), applied);
        assert!(get(port, "/healthz").0.contains("200"));
        agent.stop();
    }
}
