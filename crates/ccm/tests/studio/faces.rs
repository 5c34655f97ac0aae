//! One run, whoever asks for it: command line, agent and studio give the same
//! events, counts and meaning of the end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use ccm_testkit::wait_until;
use serde_json::{Value, json};

use crate::Studio;

/// What is compared of a run.
#[derive(Debug, PartialEq)]
struct Seen {
    events: Vec<Value>,
    summary: Value,
    end: &'static str,
    /// What is owed afterwards.
    owed: Vec<String>,
}

impl Seen {
    fn new(dir: &Path, events: &[Value], summary: &Value, end: &'static str) -> Self {
        let events: Vec<Value> = events.iter().map(|event| of_event(dir, event)).collect();
        let counts = ["outcomes", "total", "changed", "failed", "skipped", "requirements_unmet"];
        let counts = counts.iter().map(|name| summary[name].clone()).collect();
        let summary = if events.is_empty() {
            Value::Null
        } else {
            json!({"counts": Value::Array(counts), "health": summary["health_checks"]})
        };
        Self { events, summary, end, owed: owed(dir) }
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
    source: Source,
    manifest: &'static str,
    /// `child.yaml` and `grandchild.yaml`.
    children: [&'static str; 2],
    before: fn(&Path),
    rows: &'static [&'static str],
    end: &'static str,
    owed: &'static [&'static str],
}

/// What is run. An agent applies manifests and nothing else: nobody looks at a
/// plan of its, and it undoes nothing. So it has no part in the other two.
#[derive(Clone, Copy)]
enum Source {
    Manifest,
    /// A plan that is saved, then something happens, then it is applied.
    SavedPlan(fn(&Path)),
    /// The manifest is applied, then something happens, then that is undone.
    Undo(fn(&Path)),
}

/// The words of `RunExit`.
const OK: &str = "done";
const FAILED: &str = "failed";
const INTERRUPTED: &str = "stopped";

const FILE: &str = "- file: [{DIR/target/a: {content: x, owner: ME, group: MINE, mode: '0644'}}]";

const SCENARIOS: [Scenario; 12] = [
    Scenario {
        name: "stable",
        source: Source::Manifest,
        manifest: "- file: [{DIR/target: {ensure: directory, owner: ME, group: MINE, mode: '0755'}}]",
        children: ["", ""],
        before: |_| {},
        rows: &["file#DIR/target stable"],
        end: OK,
        owed: &[],
    },
    Scenario {
        name: "changed",
        source: Source::Manifest,
        manifest: "- file: [{DIR/target/a: {content: x, owner: ME, group: MINE, mode: '0644'}}]\n\
                   - exec: [{react: {command: /bin/true, refresh_only: true, subscribe: ['file#DIR/target/a']}}]\n\
                   - exec: [{always: {command: /bin/true}}]",
        children: ["", ""],
        before: |_| {},
        rows: &["file#DIR/target/a create", "exec#react refresh", "exec#always run"],
        end: OK,
        owed: &[],
    },
    Scenario {
        name: "failed",
        source: Source::Manifest,
        manifest: "- exec: [{wrong: {command: /bin/false}}]\n\
                   - exec: [{after: {command: /bin/true, require: ['exec#wrong']}}]\n\
                   - exec: [{never: {command: /bin/true, control: {if: 'false'}}}]",
        children: ["", ""],
        before: |_| {},
        rows: &["exec#wrong failed", "exec#after skipped", "exec#never skipped"],
        end: FAILED,
        owed: &[],
    },
    Scenario {
        name: "owed",
        source: Source::Manifest,
        manifest: "- file: [{DIR/target/a: {content: x, owner: ME, group: MINE, mode: '0644'}}]\n\
                   - exec: [{react: {command: test -e DIR/target/ready, refresh_only: true, subscribe: ['file#DIR/target/a']}}]",
        children: ["", ""],
        before: |dir| {
            assert_eq!(cli(dir, &["apply", "site/web.yaml", "--json"]).0, 1);
            std::fs::write(dir.join("target/ready"), "").unwrap();
        },
        rows: &["file#DIR/target/a stable", "exec#react refresh"],
        end: OK,
        owed: &[],
    },
    Scenario {
        name: "left owed",
        source: Source::Manifest,
        manifest: "- file: [{DIR/target/a: {content: x, owner: ME, group: MINE, mode: '0644'}}]\n\
                   - exec: [{react: {command: /bin/false, refresh_only: true, subscribe: ['file#DIR/target/a']}}]",
        children: ["", ""],
        before: |_| {},
        rows: &["file#DIR/target/a create", "exec#react failed"],
        end: FAILED,
        owed: &["exec#react"],
    },
    Scenario {
        name: "health check critical",
        source: Source::Manifest,
        manifest: "- file: [{DIR/target: {ensure: directory, owner: ME, group: MINE, mode: '0755', \
                   health_checks: [{name: sick, command: sh -c 'exit 2', tries: 1}]}}]",
        children: ["", ""],
        before: |_| {},
        rows: &["file#DIR/target failed"],
        end: FAILED,
        owed: &[],
    },
    Scenario {
        name: "nested",
        source: Source::Manifest,
        manifest: "- apply: [{child.yaml: {}}]\n- exec: [{last: {command: /bin/true}}]",
        children: [
            "- apply: [{grandchild.yaml: {}}]\n- exec: [{inner: {command: /bin/true}}]",
            "- file: [{DIR/target/c: {content: x, owner: ME, group: MINE, mode: '0644'}}]\n\
             - exec: [{wrong: {command: /bin/false}}]",
        ],
        before: |_| {},
        rows: &[
            "child.yaml / grandchild.yaml / file#DIR/target/c create",
            "child.yaml / grandchild.yaml / exec#wrong failed",
            "child.yaml / apply#grandchild.yaml failed",
            "child.yaml / exec#inner run",
            "apply#child.yaml failed",
            "exec#last run",
        ],
        end: FAILED,
        owed: &[],
    },
    Scenario {
        name: "interrupted",
        source: Source::Manifest,
        manifest: "- exec: [{slow: {command: 'touch DIR/target/started; sleep 100', provider: shell}}]\n\
                   - exec: [{last: {command: /bin/true}}]",
        children: ["", ""],
        before: |_| {},
        rows: &["exec#slow failed"],
        end: INTERRUPTED,
        owed: &[],
    },
    Scenario {
        name: "saved plan",
        source: Source::SavedPlan(|_| {}),
        manifest: FILE,
        children: ["", ""],
        before: |_| {},
        rows: &["file#DIR/target/a create"],
        end: OK,
        owed: &[],
    },
    Scenario {
        name: "stale plan",
        source: Source::SavedPlan(|dir| std::fs::write(dir.join("target/a"), "another").unwrap()),
        manifest: FILE,
        children: ["", ""],
        before: |_| {},
        rows: &[],
        end: FAILED,
        owed: &[],
    },
    Scenario {
        name: "undo",
        source: Source::Undo(|_| {}),
        manifest: FILE,
        children: ["", ""],
        before: |_| {},
        rows: &["file#DIR/target/a remove"],
        end: OK,
        owed: &[],
    },
    Scenario {
        name: "undo of what was changed since",
        source: Source::Undo(|dir| std::fs::write(dir.join("target/a"), "another").unwrap()),
        manifest: FILE,
        children: ["", ""],
        before: |_| {},
        rows: &["file#DIR/target/a failed"],
        end: FAILED,
        owed: &[],
    },
];

fn id(flag: &str) -> String {
    let output = Command::new("id").arg(flag).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn manifest(resources: &str, dir: &Path) -> String {
    let resources = resources.replace("MINE", &id("-gn")).replace("ME", &id("-un"));
    // Last, as its name is random and may contain the other words.
    let resources = resources.replace("DIR", dir.to_str().unwrap());
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
    write("child.yaml", scenario.children[0]);
    write("grandchild.yaml", scenario.children[1]);
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

/// The subscribers that owe a reaction.
fn owed(dir: &Path) -> Vec<String> {
    let (_, listed) = cli(dir, &["owed", "--json"]);
    let owed = listed["owed"].as_array().unwrap();
    owed.iter().map(|owed| owed["subscriber"].as_str().unwrap().to_owned()).collect()
}

fn meaning(code: i64) -> &'static str {
    // The signal of the interrupted one is SIGTERM.
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
    let stage = stage(scenario);
    let dir = stage.path();
    let manifest = dir.join("site/web.yaml");
    let manifest = manifest.to_str().unwrap();
    let args: &[&str] = match scenario.source {
        Source::Manifest => &["apply", manifest, "--json"],
        Source::SavedPlan(between) => {
            assert_eq!(cli(dir, &["plan", manifest, "--out", "p", "--json"]).0, 0);
            between(dir);
            &["apply", "p", "--json"]
        }
        Source::Undo(between) => {
            assert_eq!(cli(dir, &["apply", manifest, "--json"]).0, 0);
            between(dir);
            &["undo", "--json"]
        }
    };
    let child = command(dir, args).spawn().unwrap();
    if is_interrupted(scenario) {
        interrupt(dir, child.id());
    }
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let end = meaning(output.status.code().unwrap().into());
    Seen::new(dir, report["events"].as_array().unwrap(), &report["summary"], end)
}

/// A run of the agent, and the pipe that keeps it going.
fn agent_run(dir: &Path, noop: bool) -> (Child, ChildStdin) {
    let mut child = command(dir, &["agent-run"]).stdin(Stdio::piped()).spawn().unwrap();
    let job = json!({
        "manifest": dir.join("site/web.yaml"), "url": null, "last_valid": null,
        "is_known_invalid": false, "facts": [], "data": null, "noop": noop,
        "health_check_only": false, "register": null,
    });
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{job}").unwrap();
    (child, input)
}

fn by_agent(scenario: &Scenario) -> Seen {
    let dir = stage(scenario);
    let (mut child, _input) = agent_run(dir.path(), false);
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

/// Waits for the end of a run of the studio.
fn done(studio: &Studio, id: &str) -> Value {
    let mut run = Value::Null;
    wait_until("the end of the run", || {
        run = studio.get(&format!("runs/{id}"));
        run["state"] != "running"
    });
    run
}

fn id_of(answer: &Value) -> String {
    answer["id"].as_str().unwrap().to_owned()
}

/// Starts the run of a scenario.
fn start(studio: &Studio, scenario: &Scenario) -> Value {
    let dir = studio.dir.path();
    if let Source::Undo(between) = scenario.source {
        assert_eq!(cli(dir, &["apply", "site/web.yaml", "--json"]).0, 0);
        between(dir);
        let (_, history) = cli(dir, &["history", "--json"]);
        let run = history["runs"][0]["id"].as_str().unwrap();
        return studio.post(&format!("history/state:{run}/undo"), &json!({}));
    }
    // The studio applies nothing but plans.
    let text = std::fs::read_to_string(studio.site("web.yaml")).unwrap();
    let plan = json!({"mode": "plan", "path": "web.yaml", "text": text, "diffs": "public"});
    let plan = id_of(&studio.post("runs", &plan));
    assert_eq!(done(studio, &plan)["state"], "finished");
    if let Source::SavedPlan(between) = scenario.source {
        between(dir);
    }
    studio.post("runs", &json!({"mode": "apply", "plan": plan}))
}

fn by_studio(scenario: &Scenario) -> Seen {
    let studio = Studio::start_in(stage(scenario), &["--allow-apply"]);
    let id = id_of(&start(&studio, scenario));
    let dir = studio.dir.path();
    if is_interrupted(scenario) {
        wait_until("the command", || dir.join("target/started").exists());
        assert!(studio.request(&format!("DELETE runs/{id}"), &[], b"").status < 300);
    }
    let run = done(&studio, &id);
    let exit = run["exit"].as_str().unwrap();
    let end = [OK, FAILED, INTERRUPTED].into_iter().find(|end| *end == exit).unwrap();
    // A run that did not begin has no report.
    let events = run["report"]["events"].as_array().cloned().unwrap_or_default();
    Seen::new(dir, &events, &run["report"]["summary"], end)
}

#[test]
fn every_face_tells_the_same_run() {
    for scenario in &SCENARIOS {
        let name = scenario.name;
        let seen = by_command_line(scenario);
        assert_eq!(seen.rows(), scenario.rows, "{name}");
        assert_eq!(seen.end, scenario.end, "{name}");
        assert_eq!(seen.owed, scenario.owed, "{name}");
        if matches!(scenario.source, Source::Manifest) {
            assert_eq!(by_agent(scenario), seen, "{name}: agent and command line");
        }
        assert_eq!(by_studio(scenario), seen, "{name}: studio and command line");
    }
}

/// Who waits for another run says for which.
#[test]
fn every_face_says_which_run_it_waits_for() {
    const HOLDS: &str = "- exec: [{hold: {provider: shell, command: 'touch DIR/target/held; \
                         while [ ! -e DIR/target/go ]; do sleep 0.05; done'}}]";
    let dir = tempfile::tempdir().unwrap();
    for name in ["site", "target"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let write = |name: &str, resources: &str| {
        let text = manifest(resources, dir.path());
        std::fs::write(dir.path().join("site").join(name), text).unwrap();
    };
    write("holds.yaml", HOLDS);
    write("web.yaml", FILE);
    let studio = Studio::start_in(dir, &["--allow-apply"]);
    let dir = studio.dir.path();
    let text = std::fs::read_to_string(studio.site("web.yaml")).unwrap();
    let plan = json!({"mode": "plan", "path": "web.yaml", "text": text, "diffs": "public"});
    let plan = id_of(&studio.post("runs", &plan));
    assert_eq!(done(&studio, &plan)["state"], "finished");
    let mut holder = command(dir, &["apply", "site/holds.yaml"]).spawn().unwrap();
    wait_until("the lock", || dir.join("target/held").exists());
    let said = format!("waiting for another run: process {}", holder.id());
    let check = |line: Option<String>| {
        let line = line.unwrap_or_default();
        assert!(line.contains(&said), "{line:?} says {said:?}");
    };
    let is_wait = |line: &String| line.contains("waiting");
    let mut by_command_line = command(dir, &["apply", "site/web.yaml"]).spawn().unwrap();
    let text = BufReader::new(by_command_line.stderr.take().unwrap());
    let mut printed = text.lines().map_while(Result::ok);
    check(printed.find(is_wait));
    let (mut by_agent, _input) = agent_run(dir, false);
    let text = BufReader::new(by_agent.stdout.take().unwrap());
    let mut told = text.lines().map_while(Result::ok);
    check(told.find(is_wait));
    let applied = id_of(&studio.post("runs", &json!({"mode": "apply", "plan": plan})));
    let bearer = format!("Bearer {}", studio.key);
    let headers = [("Host", studio.host.as_str()), ("Authorization", bearer.as_str())];
    let events = format!("GET /api/v1/runs/{applied}/events");
    let (status, mut streamed) = studio.target.lines(&events, &headers);
    assert_eq!(status, 200);
    check(streamed.find(is_wait));
    std::fs::write(dir.join("target/go"), "").unwrap();
    assert!(holder.wait().unwrap().success());
    // What else they say is read, so that they can say it.
    told.for_each(drop);
    printed.for_each(drop);
    assert_eq!(by_agent.wait().unwrap().code(), Some(0));
    assert_eq!(by_command_line.wait().unwrap().code(), Some(0));
    done(&studio, &applied);
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

/// Scripts get one JSON document, whatever happens.
#[test]
fn an_error_is_a_document_too() {
    const REPORT: &str = "io.choria.ccm.v1.report";
    const PLAN: &str = "io.choria.ccm.v1.plan";
    let dir = stage(&SCENARIOS[0]);
    std::fs::write(dir.path().join("site/bad.yaml"), "ccm: {resources: [{fil: []}]}\n").unwrap();
    std::fs::write(dir.path().join("cut"), "ccm-plan 1\n").unwrap();
    assert_eq!(cli(dir.path(), &["plan", "site/web.yaml", "--out", "p", "--json"]).0, 0);
    let cut = std::fs::read(dir.path().join("p")).unwrap();
    std::fs::write(dir.path().join("cut"), &cut[..cut.len() / 2]).unwrap();
    for (args, protocol, says) in [
        (&["apply", "site/bad.yaml", "--json"][..], REPORT, "fil"),
        (&["apply", "site/bad.yaml", "--noop", "--json"], REPORT, "fil"),
        (&["apply", "missing.yaml", "--json"], REPORT, "cannot open"),
        (&["apply", "cut", "--json"], REPORT, "plan"),
        (&["apply", "p", "--only", "x", "--json"], REPORT, "saved plan"),
        (&["apply", "site/web.yaml", "--report-file", "no/r", "--json"], REPORT, "no/r"),
        (&["apply", "site/web.yaml", "--hiera", "no.yaml", "--json"], REPORT, "no.yaml"),
        (&["undo", "--json"], REPORT, "undo"),
        (&["undo", "nothing", "--json"], REPORT, "nothing"),
        (&["plan", "site/bad.yaml", "--json"], PLAN, "fil"),
        (&["plan", "site/web.yaml", "--out", "no/p", "--json"], PLAN, "no/p"),
        (&["plan", "site/web.yaml", "--only", "x#y", "--json"], PLAN, "x#y"),
        (&["plan", "show", "site/web.yaml", "--json"], "", "plan"),
        (&["check", "none.yaml", "--json"], "", "none.yaml"),
        (&["why", "site/web.yaml", "exec#none", "--json"], "", "exec#none"),
        (&["ensure", "file", "relative", "--json"], "", "relative"),
        (&["status", "file", "relative", "--json"], "", "relative"),
    ] {
        let (code, document) = cli(dir.path(), args);
        assert_ne!(code, 0, "{args:?}: {document}");
        let known = document["protocol"].as_str().unwrap_or_default();
        assert_eq!(known, protocol, "{args:?}: {document}");
        let error = &document["errors"][0];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains(says), "{args:?}: {document}");
        if says == "fil" {
            assert_eq!(error["line"], 1, "{args:?}: {document}");
        }
    }
}

/// A source scheme is known to every face, or to none: each accepts a URL of the
/// network and lists the same schemes for one that there is not.
#[test]
fn every_face_knows_the_same_schemes() {
    const ARCHIVE: &str = "- archive: [{DIR/target/a.tgz: {url: 'URL', owner: ME, group: MINE}}]";
    const KNOWN: &str = "available schemes: file, http, https, kv, obj";
    for (url, is_known) in [("obj://B/a.tgz", true), ("kv://B/a.tgz", true), ("s3://B/a", false)] {
        let dir = tempfile::tempdir().unwrap();
        for name in ["site", "target"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let write = |name: &str, url: &str| {
            let path = dir.path().join("site").join(name);
            std::fs::write(path, manifest(&ARCHIVE.replace("URL", url), dir.path())).unwrap();
        };
        write("web.yaml", url);
        write("http.yaml", "https://h/a.tgz");
        let resource = format!("archive#{}/target/a.tgz", dir.path().display());
        let path = dir.path().join("site/web.yaml").display().to_string();
        let run = |args: &[&str]| {
            let output = command(dir.path(), args).output().unwrap();
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
        };
        let config = dir.path().join("agent.yaml");
        let text = format!(
            "manifests: ['{path}']\ncache_dir: {0}/cache\nexternal_data_url: {url}\n",
            dir.path().display()
        );
        std::fs::write(&config, text).unwrap();
        let (child, input) = agent_run(dir.path(), true);
        let by_agent = child.wait_with_output().unwrap();
        drop(input);
        let text = std::fs::read_to_string(&path).unwrap();
        let mut faces = vec![
            ("validate", run(&["validate", &path])),
            ("plan", run(&["apply", &path, "--noop"])),
            ("edit", run(&["edit", "site/http.yaml", "set", &resource, "url", url])),
            ("agent", run(&["agent", "--check", "--config", config.to_str().unwrap()])),
            ("agent-run", String::from_utf8(by_agent.stdout).unwrap()),
        ];
        let studio = Studio::start_in(dir, &[]);
        let check = studio.post("check", &json!({"path": "web.yaml", "text": text}));
        faces.push(("studio", check.to_string()));
        for (face, said) in faces {
            assert_eq!(said.contains("not available"), !is_known, "{face}: {url}: {said}");
            assert_eq!(said.contains(KNOWN), !is_known, "{face}: {url}: {said}");
        }
    }
}
