//! One run, whoever asks for it: command line, agent and studio give the same
//! events, counts and meaning of the end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use ccm_testkit::wait_until;
use serde_json::{Value, json};

use crate::Studio;

/// What is compared of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<Value>,
    summary: Value,
    end: &'static str,
}

impl Seen {
    fn new(dir: &Path, events: &[Value], summary: &Value, end: &'static str) -> Self {
        let events = events.iter().map(|event| of_event(dir, event)).collect();
        let counts = ["outcomes", "total", "changed", "failed", "skipped", "requirements_unmet"];
        let counts = counts.iter().map(|name| summary[name].clone()).collect();
        let summary = json!({"counts": Value::Array(counts), "health": summary["health_checks"]});
        Self { events, summary, end }
    }

    /// `type#name outcome`, with the manifests on the way.
    fn rows(&self) -> Vec<String> {
        let route = |event: &Value| {
            let steps = event["route"].as_array().cloned().unwrap_or_default();
            steps.iter().map(|step| format!("{} / ", step.as_str().unwrap())).collect::<String>()
        };
        let text = |event: &Value, name: &str| event[name].as_str().unwrap_or("?").to_owned();
        self.events
            .iter()
            .map(|event| {
                let (kind, name) = (text(event, "type"), text(event, "name"));
                format!("{}{kind}#{name} {}", route(event), text(event, "outcome"))
            })
            .collect()
    }
}

/// The parts of an event that do not depend on the time or the place.
fn of_event(dir: &Path, event: &Value) -> Value {
    let parts = [
        "type",
        "name",
        "alias",
        "route",
        "outcome",
        "aggregate",
        "location",
        "noop_message",
        "verbs",
        "changes",
        "because",
        "health_check_only",
        "error",
        "changed",
        "refreshed",
        "failed",
        "skipped",
        "noop",
        "unmet_requirements",
    ];
    let parts = parts.iter().map(|name| ((*name).to_owned(), event[name].clone()));
    let mut all: Value = Value::Object(parts.collect());
    // Digests are for those who ask for them.
    for change in all["changes"].as_array_mut().into_iter().flatten() {
        for side in ["from", "to"] {
            if change[side].as_str().is_some_and(|value| value.starts_with("sha256:")) {
                change.as_object_mut().unwrap().remove(side);
            }
        }
    }
    all["is_owed"] = (!event["owed"].is_null()).into();
    let text = all.to_string().replace(dir.to_str().unwrap(), "DIR");
    serde_json::from_str(&text).unwrap()
}

/// A scenario: the files of a site, what happens before the run, and the rows and
/// the end that every face must show.
struct Scenario {
    name: &'static str,
    manifest: &'static str,
    child: &'static str,
    before: fn(&Path),
    rows: &'static [&'static str],
    end: &'static str,
}

const OK: &str = "exit 0";
const FAILED: &str = "exit 1";
const INTERRUPTED: &str = "exit 143";

const SCENARIOS: [Scenario; 7] = [
    Scenario {
        name: "stable",
        manifest: "- file: [{DIR/target: {ensure: directory, owner: ME, group: MINE, mode: '0755'}}]",
        child: "",
        before: |_| {},
        rows: &["file#DIR/target stable"],
        end: OK,
    },
    Scenario {
        name: "changed",
        manifest: "- file: [{DIR/target/a: {content: x, owner: ME, group: MINE, mode: '0644'}}]\n\
                   - exec: [{react: {command: /bin/true, refresh_only: true, subscribe: ['file#DIR/target/a']}}]\n\
                   - exec: [{always: {command: /bin/true}}]",
        child: "",
        before: |_| {},
        rows: &["file#DIR/target/a create", "exec#react refresh", "exec#always run"],
        end: OK,
    },
    Scenario {
        name: "failed",
        manifest: "- exec: [{wrong: {command: /bin/false}}]\n\
                   - exec: [{after: {command: /bin/true, require: ['exec#wrong']}}]\n\
                   - exec: [{never: {command: /bin/true, control: {if: 'false'}}}]",
        child: "",
        before: |_| {},
        rows: &["exec#wrong failed", "exec#after skipped", "exec#never skipped"],
        end: FAILED,
    },
    Scenario {
        name: "owed",
        manifest: "- file: [{DIR/target/a: {content: x, owner: ME, group: MINE, mode: '0644'}}]\n\
                   - exec: [{react: {command: test -e DIR/target/ready, refresh_only: true, subscribe: ['file#DIR/target/a']}}]",
        child: "",
        before: |dir| {
            assert_eq!(cli(dir, &["apply", "site/web.yaml", "--json"]).0, 1);
            std::fs::write(dir.join("target/ready"), "").unwrap();
        },
        rows: &["file#DIR/target/a stable", "exec#react refresh"],
        end: OK,
    },
    Scenario {
        name: "health check critical",
        manifest: "- file: [{DIR/target: {ensure: directory, owner: ME, group: MINE, mode: '0755', \
                   health_checks: [{name: sick, command: sh -c 'exit 2', tries: 1}]}}]",
        child: "",
        before: |_| {},
        rows: &["file#DIR/target failed"],
        end: FAILED,
    },
    Scenario {
        name: "nested",
        manifest: "- apply: [{child.yaml: {}}]\n- exec: [{last: {command: /bin/true}}]",
        child: "- file: [{DIR/target/c: {content: x, owner: ME, group: MINE, mode: '0644'}}]\n\
                - exec: [{wrong: {command: /bin/false}}]",
        before: |_| {},
        rows: &[
            "child.yaml / file#DIR/target/c create",
            "child.yaml / exec#wrong failed",
            "apply#child.yaml failed",
            "exec#last run",
        ],
        end: FAILED,
    },
    Scenario {
        name: "interrupted",
        manifest: "- exec: [{slow: {command: 'touch DIR/target/started; sleep 100', provider: shell}}]\n\
                   - exec: [{last: {command: /bin/true}}]",
        child: "",
        before: |_| {},
        rows: &["exec#slow failed"],
        end: INTERRUPTED,
    },
];

fn id(flag: &str) -> String {
    let output = Command::new("id").arg(flag).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn manifest(resources: &str, dir: &Path) -> String {
    let resources = resources.replace("DIR", dir.to_str().unwrap());
    let resources = resources.replace("MINE", &id("-gn")).replace("ME", &id("-un"));
    format!(
        "ccm:\n  resources:\n{}\n",
        resources.lines().map(|line| format!("    {line}\n")).collect::<String>()
    )
}

/// A directory with the files of a scenario.
fn stage(scenario: &Scenario) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["site", "target"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let write = |name: &str, resources: &str| {
        std::fs::write(dir.path().join("site").join(name), manifest(resources, dir.path()))
            .unwrap();
    };
    write("web.yaml", scenario.manifest);
    write("child.yaml", scenario.child);
    (scenario.before)(dir.path());
    dir
}

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut studio = Studio::command(dir, &[]);
    let mut command = Command::new(studio.get_program());
    command.env_clear().current_dir(dir).args(args);
    command.envs(studio.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    studio.stdin(Stdio::null());
    command
}

/// Exit code and the JSON on standard output.
fn cli(dir: &Path, args: &[&str]) -> (i32, Value) {
    let output = command(dir, args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout);
    (output.status.code().unwrap_or(-1), json.unwrap_or_else(|_| panic!("{args:?}: {said}")))
}

fn meaning(code: i64) -> &'static str {
    match code {
        0 => OK,
        1 => FAILED,
        143 => INTERRUPTED,
        other => panic!("exit {other}"),
    }
}

fn is_interrupted(scenario: &Scenario) -> bool {
    scenario.end == INTERRUPTED
}

/// Waits until the slow command runs, then sends a signal.
fn interrupt(dir: &Path, pid: u32) {
    wait_until("the command", || dir.join("target/started").exists());
    let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
}

fn by_command_line(scenario: &Scenario) -> Seen {
    let dir = stage(scenario);
    let manifest = dir.path().join("site/web.yaml");
    let manifest = manifest.to_str().unwrap();
    let child = command(dir.path(), &["apply", manifest, "--json"]).spawn().unwrap();
    if is_interrupted(scenario) {
        interrupt(dir.path(), child.id());
    }
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let end = meaning(output.status.code().unwrap().into());
    Seen::new(dir.path(), report["events"].as_array().unwrap(), &report["summary"], end)
}

fn by_agent(scenario: &Scenario) -> Seen {
    let dir = stage(scenario);
    let mut child = command(dir.path(), &["agent-run"]).stdin(Stdio::piped()).spawn().unwrap();
    let job = json!({
        "manifest": dir.path().join("site/web.yaml"), "url": null, "last_valid": null,
        "is_known_invalid": false, "facts": [], "data": null, "noop": false,
        "health_check_only": false, "register": null,
    });
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{job}").unwrap();
    if is_interrupted(scenario) {
        interrupt(dir.path(), child.id());
    }
    let (mut events, mut result) = (Vec::new(), Value::Null);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(event) = message.get("Event") {
            events.push(event.clone());
        } else if let Some(finished) = message.get("Finished") {
            result = finished.clone();
        }
    }
    let code = child.wait().unwrap().code().unwrap();
    assert_eq!(result["exit"], code, "{result}");
    Seen::new(dir.path(), &events, &result["summary"], meaning(code.into()))
}

/// Waits for the end of a run of the studio: its state and its report.
fn done(studio: &Studio, id: &str) -> (String, Value) {
    let mut run = Value::Null;
    wait_until("the end of the run", || {
        run = studio.get(&format!("runs/{id}"));
        run["state"] != "running"
    });
    (run["state"].as_str().unwrap().to_owned(), run["report"].clone())
}

fn id_of(answer: &Value) -> String {
    answer["id"].as_str().unwrap().to_owned()
}

fn studio_plan(studio: &Studio) -> String {
    let text = std::fs::read_to_string(studio.site("web.yaml")).unwrap();
    let plan = json!({"mode": "plan", "path": "web.yaml", "text": text, "diffs": "public"});
    let id = id_of(&studio.post("runs", &plan));
    assert_eq!(done(studio, &id).0, "finished");
    id
}

fn by_studio(scenario: &Scenario) -> Seen {
    let studio = Studio::start_in(stage(scenario), &["--allow-apply"]);
    let plan = studio_plan(&studio);
    let id = id_of(&studio.post("runs", &json!({"mode": "apply", "plan": plan})));
    let dir = studio.dir.path();
    if is_interrupted(scenario) {
        wait_until("the command", || dir.join("target/started").exists());
        assert!(studio.request(&format!("DELETE runs/{id}"), &[], b"").status < 300);
    }
    let (state, report) = done(&studio, &id);
    let has_failed = report["summary"]["failed"] != 0;
    let end = match (state.as_str(), has_failed) {
        ("finished", false) => OK,
        ("finished", true) => FAILED,
        ("stopped", _) => INTERRUPTED,
        (other, _) => panic!("{other}: {report}"),
    };
    Seen::new(dir, report["events"].as_array().unwrap(), &report["summary"], end)
}

#[test]
fn every_face_tells_the_same_run() {
    for scenario in &SCENARIOS {
        let name = scenario.name;
        let seen = by_command_line(scenario);
        assert_eq!(seen.rows(), scenario.rows, "{name}");
        assert_eq!(seen.end, scenario.end, "{name}");
        assert_eq!(by_agent(scenario), seen, "{name}: agent and command line");
        assert_eq!(by_studio(scenario), seen, "{name}: studio and command line");
    }
}

/// A manifest with one file, whose plan is saved, then perhaps made stale.
const PLANNED: Scenario = Scenario {
    name: "saved plan",
    manifest: "- file: [{DIR/target/a: {content: x, owner: ME, group: MINE, mode: '0644'}}]",
    child: "",
    before: |_| {},
    rows: &["file#DIR/target/a create"],
    end: OK,
};

#[test]
fn saved_plans_mean_the_same() {
    for is_stale in [false, true] {
        let spoil = |dir: &Path| {
            if is_stale {
                std::fs::write(dir.join("target/a"), "another").unwrap();
            }
        };
        let dir = stage(&PLANNED);
        assert_eq!(cli(dir.path(), &["plan", "site/web.yaml", "--out", "p", "--json"]).0, 0);
        spoil(dir.path());
        let (code, report) = cli(dir.path(), &["apply", "p", "--json"]);
        let studio = Studio::start_in(stage(&PLANNED), &["--allow-apply"]);
        let plan = studio_plan(&studio);
        spoil(studio.dir.path());
        let id = id_of(&studio.post("runs", &json!({"mode": "apply", "plan": plan})));
        let (state, studio_report) = done(&studio, &id);
        if is_stale {
            assert_eq!((code, state.as_str()), (1, "stale"));
            let errors = report["errors"].as_array().unwrap();
            assert!(errors[0]["message"].as_str().unwrap().contains("the plan is stale"));
            assert_eq!(report["events"], json!([]));
            continue;
        }
        assert_eq!((code, state.as_str()), (0, "finished"));
        let seen = |dir: &Path, report: &Value| {
            Seen::new(dir, report["events"].as_array().unwrap(), &report["summary"], OK)
        };
        let by_cli = seen(dir.path(), &report);
        assert_eq!(by_cli.rows(), PLANNED.rows);
        assert_eq!(seen(studio.dir.path(), &studio_report), by_cli);
    }
}

/// A plan with an owed reaction is saved, verified and applied.
#[test]
fn a_saved_plan_contains_what_earlier_runs_owe() {
    let owed = SCENARIOS.iter().find(|scenario| scenario.name == "owed").unwrap();
    let dir = stage(owed);
    let (code, plan) = cli(dir.path(), &["plan", "site/web.yaml", "--out", "p", "--json"]);
    assert_eq!((code, &plan["summary"]["refresh"]), (0, &json!(1)), "{plan}");
    // An explanation says the same.
    let (_, why) = cli(dir.path(), &["why", "site/web.yaml", "exec#react", "--json"]);
    assert_eq!(why["decision"]["outcome"], "refresh", "{why}");
    let (code, report) = cli(dir.path(), &["apply", "p", "--json"]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(report["summary"]["outcomes"]["refresh"], 1, "{report}");
}

#[test]
fn undo_means_the_same() {
    let undone = |dir: &Path, report: &Value| {
        let events = report["events"].as_array().unwrap();
        assert!(!dir.join("target/a").exists());
        Seen::new(dir, events, &report["summary"], OK)
    };
    let dir = stage(&PLANNED);
    assert_eq!(cli(dir.path(), &["apply", "site/web.yaml", "--json"]).0, 0);
    let (code, report) = cli(dir.path(), &["undo", "--json"]);
    assert_eq!(code, 0, "{report}");
    let by_cli = undone(dir.path(), &report);
    assert_eq!(by_cli.rows(), ["file#DIR/target/a remove"]);
    let site = stage(&PLANNED);
    assert_eq!(cli(site.path(), &["apply", "site/web.yaml", "--json"]).0, 0);
    let (_, runs) = cli(site.path(), &["history", "--json"]);
    let studio = Studio::start_in(site, &["--allow-apply"]);
    let run = runs["runs"][0]["id"].as_str().or(runs[0]["id"].as_str()).unwrap();
    let id = id_of(&studio.post(&format!("history/state:{run}/undo"), &json!({})));
    let (state, report) = done(&studio, &id);
    assert_eq!(state, "finished", "{report}");
    assert_eq!(undone(studio.dir.path(), &report), by_cli);
}

/// Scripts get one JSON document, whatever happens.
#[test]
fn an_invalid_manifest_is_a_document_too() {
    let dir = stage(&PLANNED);
    std::fs::write(dir.path().join("site/web.yaml"), "ccm: {resources: [{fil: []}]}\n").unwrap();
    for (args, protocol) in [
        (&["apply", "site/web.yaml", "--json"][..], "io.choria.ccm.v1.report"),
        (&["apply", "site/web.yaml", "--noop", "--json"], "io.choria.ccm.v1.report"),
        (&["plan", "site/web.yaml", "--json"], "io.choria.ccm.v1.plan"),
    ] {
        let (code, document) = cli(dir.path(), args);
        assert_eq!((code, &document["protocol"]), (1, &json!(protocol)), "{document}");
        let error = &document["errors"][0];
        assert!(error["message"].as_str().unwrap().contains("fil"), "{document}");
        assert_eq!(error["line"], 1, "{document}");
    }
}
