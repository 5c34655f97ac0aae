//! `ccm plan`, choosing a part of a manifest, and how much is printed.

use serde_json::{Value, json};

use crate::TestEnv;

/// A file to create, one to change, one to remove, a reaction, a command, and
/// something that only the real run can judge.
fn site() -> TestEnv {
    let env = TestEnv::new();
    env.write("new/same", "same\n");
    env.write("changes", "one\ntwo\n");
    env.write("goes", "");
    env.manifest(
        r#"
ccm:
  resources:
    - file:
        - defaults: {[ME], mode: "0644"}
        - [DIR]/new/same: {content: "same\n"}
        - [DIR]/made: {content: "a\n", tags: [web]}
        - [DIR]/changes: {content: "one\n2\nthree\n", alias: config, tags: [web]}
        - [DIR]/goes: {ensure: absent}
    - exec:
        - reload: {command: touch [DIR]/reloaded, refresh_only: true, subscribe: ["file#config"]}
        - touch [DIR]/ran: {}
        - never: {command: "false", control: {if: "false"}}
    - file:
        - [DIR]/private: {ensure: directory, owner: nobody-made-this-user, group: "0", mode: "0700"}
"#,
    );
    env
}

#[test]
fn a_plan_shows_what_would_change() {
    let env = site();
    let before = env.names();
    insta::assert_snapshot!(env.ccm(["plan", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
    Plan for manifest.yaml on [HOST]

      + file#[DIR]/made  content +1, [ME], mode 0644
            @@ -0,0 +1 @@
            +a
      ~ file#[DIR]/changes (config)  content +2 −1
            @@ -1,2 +1,3 @@
             one
            -two
            +2
            +three
      - file#[DIR]/goes
      ↻ exec#reload  run, because file#config changes
      » exec#touch [DIR]/ran
      ? file#[DIR]/private  directory, owner nobody-made-this-user, group 0, mode 0700, provisional: after exec#touch [DIR]/ran

    1 to create, 1 to change, 1 to remove, 1 to refresh, 1 to run, 1 provisional; 1 stable, 1 skipped
    ");
    let plain = env.ccm(["plan", "manifest.yaml", "--no-diff"]);
    assert!(!plain.contains("@@") && plain.contains("content +2 −1"), "{plain}");
    assert_eq!(env.ccm(["apply", "manifest.yaml", "--noop"]), plain);
    assert_eq!(
        env.ccm(["apply", "manifest.yaml", "--noop", "--diff"]),
        env.ccm(["plan", "manifest.yaml"])
    );
    let verbose = env.ccm(["plan", "manifest.yaml", "-v", "--no-diff"]);
    assert!(verbose.contains("  = file#[DIR]/new/same  stable\n"), "{verbose}");
    assert!(verbose.contains("  · exec#never  skipped by control\n"), "{verbose}");
    assert_eq!(env.names(), before, "a plan changed something");
}

#[test]
fn a_plan_is_data_too() {
    let env = site();
    let output = env.run(["plan", "manifest.yaml", "--json"]);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["protocol"], "io.choria.ccm.v1.plan");
    assert_eq!(
        plan["summary"],
        json!({"create": 1, "change": 1, "remove": 1, "refresh": 1, "run": 1, "provisional": 1,
               "failed": 0, "skipped": 1, "stable": 1, "not_selected": 0})
    );
    // Only `ensure` of something new says what it was.
    for change in plan["resources"][1]["changes"].as_array().unwrap() {
        let from = if change["property"] == "ensure" { json!("absent") } else { json!(null) };
        assert_eq!(change["from"], from, "{change}");
    }
    let change = &plan["resources"][2];
    assert_eq!((&change["alias"], &change["outcome"]), (&json!("config"), &json!("change")));
    assert!(change["diff"].as_str().unwrap().contains("+three"), "{change}");
}

#[test]
fn codes_of_plans_are_those_of_previews() {
    let env = site();
    let code = |args: &[&str]| {
        let args = args.iter().map(|arg| arg.replace("[DIR]", env.dir().to_str().unwrap()));
        env.command(args).output().unwrap().status.code()
    };
    let detailed = ["plan", "manifest.yaml", "--detailed-exitcodes"];
    assert_eq!((code(&["plan", "manifest.yaml"]), code(&detailed)), (Some(0), Some(2)));
    let only = |name: &'static str| [&detailed[..], &["--only", name]].concat();
    assert_eq!(code(&only("file#[DIR]/new/same")), Some(0));
    // Without the command before it, nothing could make the user.
    let user = "file#[DIR]/private";
    assert_eq!(code(&only(user)), Some(4));
    assert_eq!(code(&["plan", "manifest.yaml", "--only", user]), Some(1));
    assert_eq!(code(&[&only(user)[..], &["--only", "web"]].concat()), Some(6));
    assert_eq!(code(&["plan", "missing.yaml"]), Some(1));
    assert_eq!(code(&["plan"]), Some(64));
}

#[test]
fn failures_are_repeated_in_full() {
    let env = site();
    let user = ["plan", "manifest.yaml", "--only", "file#[DIR]/private"];
    insta::assert_snapshot!(env.ccm(user), @"
    exit: 1
    --- stdout ---
    Plan for manifest.yaml on [HOST]

      ✗ file#[DIR]/private
            could not lookup user `nobody-made-this-user`: it does not exist …

    Failures
      ✗ file#[DIR]/private  (at manifest.yaml:15:11)
            could not lookup user `nobody-made-this-user`: it does not exist
            hint: create the user in an earlier resource, or use a numeric ID

    1 failed; 7 not selected
    ");
    insta::assert_snapshot!(env.ccm(["plan", "manifest.yaml", "-q", "--only", "file#[DIR]/private"]), @"
    exit: 1
    --- stdout ---
      ✗ file#[DIR]/private
            could not lookup user `nobody-made-this-user`: it does not exist
            hint: create the user in an earlier resource, or use a numeric ID

    1 failed; 7 not selected
    ");
}

#[test]
fn a_plan_that_ends_early_says_so() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {fail_on_error: true, resources: [{exec: [{no-such-command: {provider: none}}, \
         \"true\"]}]}",
    );
    let plan = env.ccm(["plan", "manifest.yaml"]);
    assert!(plan.starts_with("exit: 1\n"), "{plan}");
    assert!(plan.ends_with("\n\nStopped at the first failure: 1 failed\n"), "{plan}");
}

#[test]
fn a_part_is_chosen_by_name_alias_and_tag() {
    let env = site();
    let applied = |env: &TestEnv, flags: &[&str]| {
        let flags = flags.iter().map(|flag| flag.replace("[DIR]", env.dir().to_str().unwrap()));
        let args = ["apply", "manifest.yaml"].into_iter().map(str::to_owned).chain(flags);
        let output = env.command(args).output().unwrap();
        env.steady(&String::from_utf8(output.stdout).unwrap())
    };
    insta::assert_snapshot!(applied(&env, &["--only", "web", "--skip", "config"]), @"
      + file#[DIR]/made  content +1, [ME], mode 0644

    Applied manifest.yaml in [TIME]: 1 created, 7 not selected
    ");
    assert_eq!((env.path("made").exists(), env.path("ran").exists()), (true, false));
    insta::assert_snapshot!(applied(&env, &["--only", "config", "--only", "exec#re*"]), @"
      ~ file#[DIR]/changes (config)  content +2 −1
      ↻ exec#reload  ran, because file#config changed

    Applied manifest.yaml in [TIME]: 1 changed, 1 refreshed, 6 not selected
    ");
    assert!(env.path("reloaded").exists() && env.path("goes").exists());
    insta::assert_snapshot!(applied(&env, &["--skip", "exec#*", "--skip", "file#[DIR]/p*"]), @"
      - file#[DIR]/goes

    Applied manifest.yaml in [TIME]: 1 removed, 3 stable, 4 not selected
    ");
    for (flag, selector, hint) in [
        ("--only", "wep", "did you mean `web`?"),
        ("--skip", "confg", "did you mean `config`?"),
        ("--only", "nothing-like-it-at-all", "a selector is `type#name`, an alias or a tag"),
    ] {
        let picture = env.ccm(["apply", "manifest.yaml", flag, selector]);
        let message = format!("error: {flag} {selector} matches no resource\nhint: {hint}");
        assert!(picture.starts_with("exit: 1\n--- stderr ---\n"), "{picture}");
        assert!(picture.contains(&message), "{picture}");
    }
    assert!(!env.path("ran").exists(), "a wrong selector ran something");
}

#[test]
fn as_much_is_printed_as_was_asked_for() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  pre_message: hello
  resources:
    - file: [{[DIR]/f: {content: x, [ME], mode: "0644"}}]
    - exec:
        - one: {command: echo 1, logoutput: true}
        - bad: {command: "sh -c 'echo reason >&2; exit 3'"}
        - two: {command: echo 2, logoutput: true, control: {if: "true"}}
        - off: {command: "true", control: {if: "false"}}
"#,
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--quiet"]), @"
    exit: 1
    --- stdout ---
      ✗ exec#bad  sh -c 'echo reason >&2; exit 3'
            desired state not achieved: the command exited with code 3, not 0
            reason

    Applied manifest.yaml in [TIME]: 1 created, 2 ran, 1 failed, 1 skipped
    ");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 1
    --- stdout ---
    hello
      | exec#one: 1
      » exec#one  echo 1
      ✗ exec#bad  sh -c 'echo reason >&2; exit 3'
            desired state not achieved: the command exited with code 3, not 0 …
      | exec#two: 2
      » exec#two  echo 2

    Failures
      ✗ exec#bad  sh -c 'echo reason >&2; exit 3'  (at manifest.yaml:8:11)
            desired state not achieved: the command exited with code 3, not 0
            reason

    Applied manifest.yaml in [TIME]: 2 ran, 1 failed, 1 stable, 1 skipped
    ");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--verbose", "--no-report"]), @"
    exit: 1
    --- stdout ---
    hello
      = file#[DIR]/f  stable
      | exec#one: 1
      » exec#one  echo 1
      ✗ exec#bad  sh -c 'echo reason >&2; exit 3'
            desired state not achieved: the command exited with code 3, not 0
            reason
      | exec#two: 2
      » exec#two  echo 2
      · exec#off  skipped by control
    ");
    let output = env.run(["apply", "manifest.yaml", "--events"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(names, [env.path("f").to_str().unwrap(), "one", "bad", "two", "off"]);
    assert_eq!(events[2]["failed"], true);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "1\n2\n");
    let output = env.run(["ensure", "exec", "true", "--events"]);
    let event: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(event["protocol"], "io.choria.ccm.v1.transaction.event");
    for flags in [["-q", "-v"], ["--json", "--events"]] {
        let output = env.command(["apply", "manifest.yaml"]).args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{flags:?}");
    }
    assert_eq!(env.ccm(["ensure", "exec", "true", "-q"]), "exit: 0\n");
    assert!(env.ccm(["ensure", "exec", "false", "-q"]).contains("✗ exec#false"));
}

#[test]
fn a_quiet_plan_has_only_failures_and_counts() {
    let env = TestEnv::new();
    let file = |path: &str| {
        env.manifest(&format!(
            "ccm: {{resources: [{{file: [{{[DIR]/{path}: {{content: x, [ME], mode: \"0644\"}}}}]}}]}}\n"
        ));
        env.ccm(["plan", "manifest.yaml", "-q"])
    };
    insta::assert_snapshot!(file("f"), @"
    exit: 0
    --- stdout ---
    1 to create
    ");
    insta::assert_snapshot!(file("no/f"), @"
    exit: 1
    --- stdout ---
      ✗ file#[DIR]/no/f
            [DIR]/no is not a directory: it does not exist
            hint: declare it in an earlier resource, with `ensure: directory`

    1 failed
    ");
}

#[test]
fn tags_are_words() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - exec:\n        - \"true\":\n            tags: [web, \"two words\"]\n",
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: exec#true: tags: `two words` is not a single word
     --> manifest.yaml:5:19
      |
    5 |             tags: [web, "two words"]
      |                   ^^^^^^^^^^^^^^^^^^
      |
      = hint: a tag has no blanks, `#` or `*`; write several as a list
    "#);
    for tag in ["", "a#b", "c*", "a\\tb"] {
        env.manifest(&format!("ccm: {{resources: [{{exec: {{name: x, tags: [\"{tag}\"]}}}}]}}\n"));
        let shown = env.ccm(["validate", "manifest.yaml"]);
        assert!(shown.contains("is not a single word"), "{tag}: {shown}");
    }
    env.manifest("ccm: {resources: [{exec: {name: x, tags: [a-b, c_d, 1, é]}}]}\n");
    assert!(env.run(["validate", "manifest.yaml"]).status.success());
}

/// Whether something reacts to what only the run can judge, only the run can
/// judge.
#[test]
fn reactions_to_provisional_resources_are_provisional() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - exec: [{fill: {command: touch [DIR]/f}}]
    - file: [{[DIR]/f: {content: x, [ME], mode: "0644", alias: config}}]
    - exec:
        - reload: {command: "true", refresh_only: true, subscribe: ["file#config"]}
        - again: {command: "true", refresh_only: true, subscribe: ["file#config", "exec#reload"]}
        - always: {command: "true", refresh_only: true, subscribe: ["file#config", "exec#fill"]}
"#,
    );
    let plan = env.ccm(["plan", "manifest.yaml", "--no-diff"]);
    for row in [
        "  ? exec#reload  run if file#config changes, provisional: after exec#fill\n",
        "  ? exec#again  run if file#config, exec#reload change, provisional: after exec#fill\n",
        "  ↻ exec#always  run, because file#config, exec#fill change\n",
        "1 to refresh, 1 to run, 3 provisional\n",
    ] {
        assert!(plan.contains(row), "{row}{plan}");
    }
}

#[test]
fn signs_follow_the_locale() {
    let env = site();
    for (name, value, is_utf8) in [
        ("LANG", "de_DE.UTF-8", true),
        ("LC_CTYPE", "C.utf8", true),
        ("LC_ALL", "C", false),
        ("OTHER", "C.UTF-8", false),
    ] {
        let mut command = env.command(["plan", "manifest.yaml"]);
        let output = command.env_remove("LC_ALL").env(name, value).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(!text.is_ascii(), is_utf8, "{name}={value}: {text}");
        assert_eq!(text.contains("  » exec#touch"), is_utf8, "{text}");
        assert_eq!(text.contains("  > exec#touch"), !is_utf8, "{text}");
    }
}

/// Guards run in previews, whatever comes before them: the row tells what they
/// answer now, and which earlier resource may change that.
#[test]
fn guards_behind_a_command_tell_what_they_answer_now() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - exec:
        - a: {command: touch [DIR]/made}
        - b: {command: touch [DIR]/b, onlyif: test -f [DIR]/made}
        - touch [DIR]/c: {unless: test -f [DIR]/made}
        - d: {command: touch [DIR]/d, refresh_only: true, subscribe: ["exec#b"]}
"#,
    );
    insta::assert_snapshot!(env.ccm(["plan", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
    Plan for manifest.yaml on [HOST]

      » exec#a  touch [DIR]/made
      ? exec#b  would not run now; provisional: after exec#a
      ? exec#touch [DIR]/c  would run now; provisional: after exec#a
      ? exec#d  run if exec#b changes, provisional: after exec#a

    1 to run, 3 provisional
    ");
    let output = env.run(["apply", "manifest.yaml", "--noop", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let fields = |event: &Value| {
        json!([event["changed"], event["provisional"], event["waits_for"], event["noop_message"]])
    };
    let events: Vec<Value> = report["events"].as_array().unwrap().iter().map(fields).collect();
    assert_eq!(
        events,
        [
            json!([true, null, null, "Would have executed"]),
            json!([false, true, ["exec#a"], null]),
            json!([true, true, ["exec#a"], "Would have executed"]),
            json!([false, true, ["exec#a"], null]),
        ]
    );
    assert_eq!(report["summary"]["changed"], 2);
    let plan = env.run(["plan", "manifest.yaml", "--json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    let now: Vec<&Value> = (0..4).map(|at| &plan["resources"][at]["now"]).collect();
    assert_eq!(now, [&json!(null), &json!("stable"), &json!("run"), &json!("stable")]);
}

/// What is not below what an earlier step writes, and stands in no command, is
/// settled: an archive or a file elsewhere does not change it.
#[test]
fn guards_that_nothing_earlier_can_change_are_settled() {
    let env = TestEnv::new();
    env.write("top/f", "x");
    env.write("there", "");
    let mut tar = std::process::Command::new("tar");
    assert!(tar.current_dir(env.dir()).args(["czf", "a.tgz", "top"]).status().unwrap().success());
    env.manifest(
        r#"
ccm:
  resources:
    - archive:
        - [DIR]/b.tgz: {url: "file://[DIR]/a.tgz", extract_parent: [DIR]/out, creates: [DIR]/out/top, [ME]}
    - file:
        - [DIR]/new: {content: x, mode: "0644", [ME]}
    - exec:
        - unless-there: {command: "true", unless: test -f [DIR]/there}
        - blocked: {command: "true", onlyif: "false", unless: test -f [DIR]/new}
        - elsewhere: {command: touch [DIR]/e, creates: [DIR]/e}
        - inside: {command: touch [DIR]/i, creates: [DIR]/out/top/f}
        - onlyif-new: {command: touch [DIR]/n, onlyif: test -f [DIR]/new}
        - here: {command: touch [DIR]/h, cwd: [DIR]/top, unless: test -f ../new}
        - not-yet: {command: touch [DIR]/y, unless: [DIR]/out/top/f}
"#,
    );
    let plan = |name: &str| {
        let only = ["--only", "archive#*", "--only", "file#*"];
        let args = ["plan", "manifest.yaml", "--no-diff", "-v", "--only", name];
        let output = env.command(args.into_iter().chain(only)).output().unwrap();
        let text = env.steady(&String::from_utf8_lossy(&output.stdout));
        let row = text.lines().find(|line| line.contains(name)).map(str::to_owned);
        row.unwrap_or(text)
    };
    let names = ["unless-there", "blocked", "elsewhere", "inside", "onlyif-new", "here", "not-yet"];
    let rows = names.map(|name| plan(&format!("exec#{name}"))).join("\n");
    insta::assert_snapshot!(rows, @"
      = exec#unless-there  stable
      = exec#blocked  stable
      » exec#elsewhere  touch [DIR]/e
      ? exec#inside  would run now: touch [DIR]/i; provisional: after archive#[DIR]/b.tgz
      ? exec#onlyif-new  would not run now; provisional: after file#[DIR]/new
      ? exec#here  would run now: touch [DIR]/h; provisional: after file#[DIR]/new
      ? exec#not-yet  provisional: after archive#[DIR]/b.tgz
    ");
}

/// A saved plan accepts both answers of a provisional guard, and says so.
#[test]
fn saved_plans_accept_both_answers_of_a_guard() {
    for answers in ["would not run now", "would run now"] {
        let env = TestEnv::new();
        let guard = if answers == "would run now" { "unless" } else { "onlyif" };
        env.manifest(&format!(
            "ccm: {{resources: [{{exec: [{{a: {{command: touch [DIR]/made}}}}, \
             {{b: {{command: touch [DIR]/b, {guard}: test -f [DIR]/made}}}}]}}]}}"
        ));
        let plan = env.ccm(["plan", "manifest.yaml", "--out", "p.plan"]);
        assert!(plan.contains(answers), "{plan}");
        let note = "Applying the saved plan accepts either outcome of a provisional resource";
        assert!(plan.contains(note), "{plan}");
        let shown = env.ccm(["plan", "show", "p.plan"]);
        assert!(shown.contains(note), "{shown}");
        let done = env.ccm(["apply", "p.plan"]);
        assert!(done.starts_with("exit: 0\n"), "{done}");
        assert_eq!(env.dir().join("b").exists(), guard == "onlyif", "{done}");
    }
}

/// `post` commands run in a plan, on private copies. Without them, the plan says
/// what only the run can tell.
#[test]
fn plans_run_post_commands_only_if_they_may() {
    let env = TestEnv::new();
    env.write("templates/plain", "p\n");
    env.write("templates/a.conf", "a\n");
    env.write("templates/b.conf", "b\n");
    env.write("out/a.conf", "A\n");
    env.write("out/plain", "p\n");
    env.manifest(
        r#"
ccm:
  resources:
    - scaffold:
        - [DIR]/out:
            source: templates
            post: [{"*.conf": "sh -c 'echo ran >> [DIR]/ran; tr ab AB < $0 > $0.new; mv $0.new $0'"}]
    - file:
        - [DIR]/copy: {source: "[DIR]/out/a.conf", mode: "0644", [ME]}
"#,
    );
    let plan = env.ccm(["plan", "manifest.yaml", "--no-diff"]);
    assert!(plan.contains("added b.conf"), "{plan}");
    assert_eq!(env.read("ran"), "ran\nran\n");
    std::fs::remove_file(env.path("ran")).unwrap();
    let plan = env.ccm(["plan", "manifest.yaml", "--no-post", "--out", "p.plan"]);
    assert!(!env.path("ran").exists(), "{plan}");
    let row =
        "  ? scaffold#[DIR]/out  added b.conf, post a.conf, b.conf, provisional: known at apply\n";
    assert!(plan.contains(row), "{plan}");
    assert!(
        plan.contains("  ? file#[DIR]/copy  provisional: after scaffold#[DIR]/out\n"),
        "{plan}"
    );
    let done = env.ccm(["apply", "p.plan"]);
    assert!(done.starts_with("exit: 0\n"), "{done}");
    assert_eq!((env.read("out/b.conf"), env.read("copy")), ("B\n".into(), "A\n".into()));
    // The verification of the plan runs none either.
    assert_eq!(env.read("ran"), "ran\nran\n");
}
