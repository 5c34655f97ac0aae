//! Plans and applies: events, stops, what is stale, what is recorded.

use std::os::unix::fs::PermissionsExt;

use ccm_testkit::{is_alive, wait_until};
use serde_json::{Value, json};

use crate::{MANIFEST, Studio, code, read};

/// One event: its id, its name, its data.
type Event = (String, String, Value);

/// All events of a run behind one of them, until the stream ends.
fn events(studio: &Studio, id: &str, after: Option<&str>) -> Vec<Event> {
    let bearer = format!("Bearer {}", studio.key);
    let mut headers = vec![("Host", studio.host.as_str()), ("Authorization", bearer.as_str())];
    if let Some(after) = after {
        headers.push(("Last-Event-ID", after));
    }
    let (status, lines) = studio.target.lines(&format!("GET /api/v1/runs/{id}/events"), &headers);
    assert_eq!(status, 200);
    let (mut found, mut event) = (Vec::new(), Event::default());
    for line in lines {
        match line.split_once(": ") {
            Some(("id", id)) => id.clone_into(&mut event.0),
            Some(("event", name)) => name.clone_into(&mut event.1),
            Some(("data", data)) => event.2 = serde_json::from_str(data).unwrap(),
            _ if line.is_empty() && !event.1.is_empty() => found.push(std::mem::take(&mut event)),
            _ => {}
        }
    }
    found
}

/// The texts that a run has for the page.
fn messages(studio: &Studio, id: &str) -> String {
    let all = events(studio, id, None).into_iter().filter(|event| event.1 == "message");
    all.map(|event| event.2["text"].as_str().unwrap_or_default().to_owned() + "\n").collect()
}

fn plan(studio: &Studio, text: &str) -> String {
    let body = json!({"mode": "plan", "path": "web.yaml", "text": text, "diffs": "public"});
    studio.post("runs", &body)["id"].as_str().unwrap().to_owned()
}

fn apply(studio: &Studio, plan: &str) -> ccm_testkit::Answer {
    studio.try_post("runs", &json!({"mode": "apply", "plan": plan}))
}

fn state(studio: &Studio, id: &str) -> String {
    studio.get(&format!("runs/{id}"))["state"].as_str().unwrap().to_owned()
}

fn wait_until_done(studio: &Studio, id: &str) -> String {
    let mut last = String::new();
    wait_until("the end of the run", || {
        last = state(studio, id);
        last != "running"
    });
    last
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|(_, name, _)| name.as_str()).collect()
}

#[test]
fn a_plan_shows_what_would_be_done_and_changes_nothing() {
    let studio = Studio::start(&[]);
    let id = plan(&studio, MANIFEST);
    let all = events(&studio, &id, None);
    assert_eq!(names(&all), ["started", "resource", "event", "resource", "event", "finished"]);
    assert_eq!(all[0].2["total"], 2);
    let (_, _, first) = &all[2];
    assert_eq!(first["row"]["outcome"], "create", "{first}");
    assert!(first["row"]["diff"].as_str().unwrap().contains("+workers = 4"), "{first}");
    assert_eq!(first["event"]["noop"], true);
    assert_eq!(all[5].2["summary"]["create"], 1, "{}", all[5].2);
    let ids: Vec<String> = (1..=6).map(|id: usize| id.to_string()).collect();
    assert!(all.iter().map(|event| &event.0).eq(&ids));
    // From any place on, as often as the page likes.
    assert_eq!(names(&events(&studio, &id, Some("4"))), ["event", "finished"]);
    assert_eq!(events(&studio, &id, Some("6")).len(), 0);
    assert_eq!(events(&studio, &id, Some("nonsense")).len(), 6);
    let run = studio.get(&format!("runs/{id}"));
    assert_eq!((&run["state"], &run["mode"]), (&json!("finished"), &json!("plan")));
    assert_eq!(run["report"]["protocol"], "io.choria.ccm.v1.plan");
    assert_eq!(studio.get("runs")["runs"][0]["id"], *id);
    assert!(!studio.dir.path().join("target/app.conf").exists());
    assert!(!studio.dir.path().join("state").exists(), "a plan keeps no state");
    let missing = studio.request("GET runs/99", &[], b"");
    assert_eq!(code(&missing), (404, "not_found".into()));
}

/// A scaffold renders what was not there: for the command line, for the events
/// that the page lists, and for the history it is one that was created.
#[test]
fn a_new_scaffold_is_created_for_everybody() {
    let studio = Studio::start(&["--allow-apply"]);
    std::fs::create_dir(studio.site("skeleton")).unwrap();
    std::fs::write(studio.site("skeleton/app.conf"), "workers = 4\n").unwrap();
    let manifest = "ccm: {resources: [{scaffold: [{'{{ Environ.TARGET }}/app': \
                    {source: skeleton}}]}]}\n";
    std::fs::write(studio.site("web.yaml"), manifest).unwrap();
    let planned = plan(&studio, manifest);
    wait_until_done(&studio, &planned);
    let id = read(&apply(&studio, &planned))["id"].as_str().unwrap().to_owned();
    wait_until_done(&studio, &id);
    for run in [&planned, &id] {
        let all = events(&studio, run, None);
        let (_, _, done) = all.iter().find(|(_, name, _)| name == "event").unwrap();
        assert_eq!(done["row"]["outcome"], "create", "{done}");
        assert_eq!(done["row"]["verbs"], json!(["rendered"]));
        assert_eq!((&done["counts"]["create"], &done["counts"]["change"]), (&json!(1), &json!(0)));
    }
    let shown = studio.get(&format!("history/run:{id}"));
    assert_eq!(shown["rows"][0]["outcome"], "create", "{shown}");
    assert_eq!(shown["counts"]["create"], 1);
    std::fs::remove_dir_all(studio.dir.path().join("target/app")).unwrap();
    let output = studio.ccm(&["apply", "site/web.yaml"]);
    assert!(output.contains("1 created"), "{output}");
}

#[test]
fn a_plan_of_unsaved_text_is_of_that_text() {
    let studio = Studio::start(&["--allow-apply"]);
    let changed = MANIFEST.replace("workers: 4", "workers: 5");
    let id = plan(&studio, &changed);
    let all = events(&studio, &id, None);
    assert!(all[2].2["row"]["diff"].as_str().unwrap().contains("+workers = 5"));
    // It cannot be applied before it is saved.
    assert_eq!(code(&apply(&studio, &id)), (409, "plan_stale".into()));
    std::fs::write(studio.site("web.yaml"), &changed).unwrap();
    let answer = apply(&studio, &id);
    assert_eq!(answer.status, 202, "{}", answer.text());
    let applied = read(&answer)["id"].as_str().unwrap().to_owned();
    assert_eq!(wait_until_done(&studio, &applied), "finished");
    let written = std::fs::read_to_string(studio.dir.path().join("target/app.conf")).unwrap();
    assert_eq!(written, "workers = 5\n");
}

#[test]
fn applying_needs_permission_and_the_plan_that_was_shown() {
    let studio = Studio::start(&[]);
    let id = plan(&studio, MANIFEST);
    wait_until_done(&studio, &id);
    assert_eq!(code(&apply(&studio, &id)), (403, "apply_not_allowed".into()));
    let studio = Studio::start(&["--allow-apply"]);
    assert_eq!(studio.get("studio")["apply_allowed"], true);
    assert_eq!(code(&apply(&studio, "99")), (404, "not_found".into()));
    let id = plan(&studio, "ccm: 1\n");
    assert_eq!(wait_until_done(&studio, &id), "invalid");
    let all = events(&studio, &id, None);
    assert_eq!(names(&all), ["diagnosis"]);
    assert!(all[0].2["findings"][0]["frame"].as_str().unwrap().contains("error"));
    assert_eq!(code(&apply(&studio, &id)), (409, "not_valid".into()));
    // Something is changed after the plan: the machine, or the text.
    let id = plan(&studio, MANIFEST);
    wait_until_done(&studio, &id);
    let target = studio.dir.path().join("target/app.conf");
    std::fs::write(&target, "someone was here\n").unwrap();
    let applied = read(&apply(&studio, &id))["id"].as_str().unwrap().to_owned();
    assert_eq!(wait_until_done(&studio, &applied), "stale");
    let all = events(&studio, &applied, None);
    assert_eq!(names(&all), ["stale"]);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "someone was here\n");
    std::fs::remove_file(&target).unwrap();
    let id = plan(&studio, MANIFEST);
    wait_until_done(&studio, &id);
    std::fs::write(studio.site("web.yaml"), format!("{MANIFEST}# more\n")).unwrap();
    assert_eq!(code(&apply(&studio, &id)), (409, "plan_stale".into()));
    std::fs::write(studio.site("web.yaml"), MANIFEST).unwrap();
    let applied = read(&apply(&studio, &id))["id"].as_str().unwrap().to_owned();
    let all = events(&studio, &applied, None);
    assert_eq!(all.last().unwrap().1, "finished");
    assert_eq!(state(&studio, &applied), "finished");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "workers = 4\n");
    // What was applied has made the plan old.
    assert_eq!(code(&apply(&studio, &id)), (409, "plan_stale".into()));
    assert_eq!(studio.get(&format!("runs/{id}"))["stale"], true);
}

#[test]
fn a_change_of_a_child_or_a_template_makes_a_plan_stale() {
    let studio = Studio::start(&["--allow-apply"]);
    let template = studio.site("app.jet");
    std::fs::write(&template, "workers = [[ data.workers ]]\n").unwrap();
    let manifest =
        MANIFEST.replace("\"workers = {{ Data.workers }}\\n\"", "\"{{ jet('app.jet') }}\"");
    assert_ne!(manifest, MANIFEST);
    std::fs::write(studio.site("web.yaml"), &manifest).unwrap();
    let id = plan(&studio, &manifest);
    assert_eq!(wait_until_done(&studio, &id), "finished");
    std::fs::write(&template, "workers = many\n").unwrap();
    assert_eq!(code(&apply(&studio, &id)), (409, "plan_stale".into()));
    assert!(!studio.dir.path().join("target/app.conf").exists());
}

#[test]
fn one_run_at_a_time_and_it_can_be_stopped() {
    let studio = Studio::start(&["--allow-apply"]);
    let mark = studio.dir.path().join("target/began");
    let manifest = format!(
        "ccm:\n  resources:\n    - exec:\n        - long:\n            command: sh -c 'touch {}; \
         exec sleep 1000'\n        - never: {{command: /bin/true}}\n",
        mark.display()
    );
    std::fs::write(studio.site("web.yaml"), &manifest).unwrap();
    let planned = plan(&studio, &manifest);
    assert_eq!(wait_until_done(&studio, &planned), "finished");
    let id = read(&apply(&studio, &planned))["id"].as_str().unwrap().to_owned();
    wait_until("the command", || mark.exists());
    let body = json!({"mode": "plan", "path": "web.yaml", "text": MANIFEST});
    assert_eq!(code(&studio.try_post("runs", &body)), (409, "running".into()));
    let answer = studio.request(&format!("DELETE runs/{id}"), &[], b"");
    assert_eq!(answer.status, 202);
    let all = events(&studio, &id, None);
    assert_eq!(all.last().unwrap().2["stop"], "cancelled");
    assert_eq!(state(&studio, &id), "stopped");
    assert!(!all.iter().any(|(_, name, data)| name == "resource" && data["name"] == "never"));
}

/// Applies a command that does not end by SIGTERM, and waits until it runs; gives
/// the id of the run, and the id of the command's process.
fn apply_stubborn(studio: &Studio) -> (String, i32) {
    let mark = studio.dir.path().join("target/pid");
    let manifest = format!(
        "ccm:\n  resources:\n    - exec:\n        - long:\n            command: >-\n              sh \
         -c 'trap \"\" TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 1; done'\n",
        mark.display()
    );
    std::fs::write(studio.site("web.yaml"), &manifest).unwrap();
    let planned = plan(studio, &manifest);
    assert_eq!(wait_until_done(studio, &planned), "finished");
    let id = read(&apply(studio, &planned))["id"].as_str().unwrap().to_owned();
    wait_until("the command", || mark.exists());
    let pid = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
    (id, pid)
}

#[test]
fn a_second_stop_kills_the_command() {
    let [once, twice] = [1, 2].map(|stops| {
        let studio = Studio::start(&["--allow-apply"]);
        let (id, pid) = apply_stubborn(&studio);
        let stop = || studio.request(&format!("DELETE runs/{id}"), &[], b"").status;
        let begin = std::time::Instant::now();
        for _ in 0..stops {
            assert_eq!(stop(), 202);
        }
        assert_eq!(wait_until_done(&studio, &id), "stopped");
        let took = begin.elapsed();
        assert!(!is_alive(pid));
        assert_eq!(stop(), 202, "nothing is left to be stopped");
        took
    });
    // The first stop alone gives a command five seconds.
    assert!(twice < once / 2, "{twice:?} with two stops, {once:?} with one");
}

#[test]
fn a_second_signal_leaves_no_command_behind() {
    let mut studio = Studio::start(&["--allow-apply"]);
    let (id, pid) = apply_stubborn(&studio);
    nix::sys::signal::kill(studio.pid(), nix::sys::signal::Signal::SIGTERM).unwrap();
    // The first one was taken when nothing is answered any more.
    wait_until("the end to begin", || {
        let answer = studio.request("GET studio", &[], b"");
        answer.status == 503 || !is_alive(pid)
    });
    let (code, said) = studio.end(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(code, Some(143), "run {id}: {said}");
    wait_until("the end of the command", || !is_alive(pid));
}

#[test]
fn ten_thousand_lines_arrive_in_order_and_slow_readers_hold_nothing_up() {
    let studio = Studio::start(&["--allow-apply"]);
    let manifest = "ccm:\n  resources:\n    - exec:\n        - count:\n            command: seq 1 10000\n            logoutput: true\n";
    std::fs::write(studio.site("web.yaml"), manifest).unwrap();
    let planned = plan(&studio, manifest);
    wait_until_done(&studio, &planned);
    let id = read(&apply(&studio, &planned))["id"].as_str().unwrap().to_owned();
    // This one asks and never reads.
    let mut slow = studio.target.connect();
    let request = format!(
        "GET /api/v1/runs/{id}/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        studio.host, studio.key
    );
    slow.write_all(request.as_bytes()).unwrap();
    let all = events(&studio, &id, None);
    let lines: Vec<usize> = all
        .iter()
        .filter(|(_, name, _)| name == "output")
        .map(|(_, _, data)| data["line"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(lines.iter().copied().eq(1..=10_000), "{} lines", lines.len());
    assert_eq!(state(&studio, &id), "finished");
    drop(slow);
}

#[test]
fn secrets_and_hidden_contents_are_not_in_events() {
    let studio = Studio::start(&["--allow-apply"]);
    let manifest = MANIFEST
        .replace("workers: 4", "# @secret\n  workers: hunter22")
        .replace("\"0644\"", "\"0600\"");
    std::fs::write(studio.site("web.yaml"), &manifest).unwrap();
    let planned = plan(&studio, &manifest);
    let mut all = events(&studio, &planned, None);
    let id = read(&apply(&studio, &planned))["id"].as_str().unwrap().to_owned();
    all.extend(events(&studio, &id, None));
    let shown = format!("{all:?}{}", studio.get(&format!("runs/{id}")));
    assert!(!shown.contains("hunter22"), "{shown}");
    // Not a secret, but hidden from others by its mode.
    let manifest = MANIFEST.replace("\"0644\"", "\"0600\"").replace("workers = ", "hidden words ");
    std::fs::write(studio.site("web.yaml"), &manifest).unwrap();
    let planned = plan(&studio, &manifest);
    let all = events(&studio, &planned, None);
    let diff = all.iter().find_map(|(_, _, data)| data["row"]["diff"].as_str()).unwrap();
    assert!(diff.contains("2 lines not shown, not world-readable"), "{diff}");
    assert!(!format!("{all:?}").contains("hidden words 4"), "{all:?}");
    let body = json!({"mode": "plan", "path": "web.yaml", "text": manifest, "diffs": "all"});
    let id = studio.post("runs", &body)["id"].as_str().unwrap().to_owned();
    let all = events(&studio, &id, None);
    assert!(format!("{all:?}").contains("+hidden words 4"), "{all:?}");
}

#[test]
fn the_history_has_runs_sessions_and_reports_and_runs_can_be_undone() {
    let studio = Studio::start(&["--allow-apply"]);
    let session = studio.dir.path().join("ccm-session-mine");
    std::fs::create_dir(&session).unwrap();
    std::fs::set_permissions(&session, PermissionsExt::from_mode(0o700)).unwrap();
    let planned = plan(&studio, MANIFEST);
    wait_until_done(&studio, &planned);
    let id = read(&apply(&studio, &planned))["id"].as_str().unwrap().to_owned();
    wait_until_done(&studio, &id);
    let report = studio.get(&format!("runs/{id}"))["report"].clone();
    std::fs::write(studio.site("report.json"), report.to_string()).unwrap();
    std::fs::write(studio.site("torn.json"), &report.to_string()[..200]).unwrap();
    std::fs::write(studio.site("other.json"), "{}").unwrap();
    let history = studio.get("history");
    let find = |kind: &str| {
        let all = history["history"].as_array().unwrap();
        all.iter().filter(|entry| entry["kind"] == kind).cloned().collect::<Vec<_>>()
    };
    assert_eq!(find("run").len(), 2);
    let state = find("state");
    assert_eq!((state.len(), &state[0]["undo"]), (1, &json!("partly")), "{history}");
    assert_eq!(find("session").len(), 1);
    let reports = find("report");
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(
        reports.iter().any(|entry| entry["error"].is_string() && entry["title"] == "torn.json")
    );
    for entry in history["history"].as_array().unwrap() {
        if let Some(id) = entry["id"].as_str() {
            let id = id.replace('/', "%2F");
            assert!(studio.get(&format!("history/{id}")).is_object(), "{id}");
        }
    }
    let id = state[0]["id"].as_str().unwrap();
    let shown = studio.get(&format!("history/{id}"));
    assert_eq!(
        (&shown["rows"][0]["outcome"], &shown["counts"]["create"]),
        (&json!("create"), &json!(1))
    );
    let resource = &shown["record"]["resources"][0];
    assert!(resource["paths"][0].as_str().unwrap().ends_with("target/app.conf"), "{shown}");
    assert_eq!(resource["event"]["verbs"], json!(["created"]));
    // Undo, first only in words.
    let target = studio.dir.path().join("target/app.conf");
    let run = studio.post(&format!("history/{id}/undo"), &json!({"noop": true}));
    let run = run["id"].as_str().unwrap();
    assert_eq!(wait_until_done(&studio, run), "finished");
    let reason = "cannot undo all of the run";
    assert!(messages(&studio, run).contains(reason), "a preview says so too");
    assert!(target.exists());
    // A command that cannot be undone came after the file.
    let run = studio.post(&format!("history/{id}/undo"), &json!({}));
    let run = run["id"].as_str().unwrap();
    assert_eq!(wait_until_done(&studio, run), "failed");
    let said = messages(&studio, run);
    assert!(said.contains(reason) && said.contains("--partial"), "{said}");
    assert!(target.exists());
    let options = json!({"partial": true, "refresh": true});
    let run = studio.post(&format!("history/{id}/undo"), &options);
    assert_eq!(wait_until_done(&studio, run["id"].as_str().unwrap()), "finished");
    assert!(!target.exists());
    let missing = studio.try_post("history/state:none/undo", &json!({}));
    assert_eq!(code(&missing).0, 404);
    for id in ["session:%2Fetc", "report:..%2Fx", "nonsense", "state:..%2F..%2Fetc"] {
        let answer = studio.request(&format!("GET history/{id}"), &[], b"");
        assert!(answer.status == 404 || answer.status == 403, "{id}: {}", answer.status);
    }
}

/// A name that is not part of an event goes through the redactor too.
#[test]
fn no_event_names_a_secret() {
    let studio = Studio::start(&[]);
    let text = "data:\n  # @secret\n  token: hunter2-s3cret\nccm:\n  resources:\n    - exec:\n        \
                - run {{ Data.token }}: {command: 'true', environment: [X=an0ther-one], \
                logoutput: true}\n        - echo an0ther-one: {environment: [X=an0ther-one]}\n";
    let id = plan(&studio, text);
    let all = events(&studio, &id, None);
    assert!(names(&all).contains(&"resource"), "{all:?}");
    let shown = format!("{all:?}");
    assert!(shown.contains("run [redacted]") && !shown.contains("hunter2"), "{shown}");
}
