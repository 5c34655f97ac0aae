//! Checks, forms, edits, data, templates, graphs: what is known about a text.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{MANIFEST, Studio, code, read};

fn text(text: &str) -> Value {
    json!({"path": "web.yaml", "text": text})
}

fn with(mut body: Value, more: &Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn checks_say_what_is_wrong_where_and_how_to_fix_it() {
    let studio = Studio::start(&[]);
    let good = studio.post("check", &with(text(MANIFEST), &json!({"revision": 7})));
    assert_eq!((&good["valid"], &good["revision"]), (&json!(true), &json!(7)));
    assert!(good["micros"].as_u64().unwrap() > 0);
    assert_eq!(good["outline"][1]["subscribe"], json!(["file#config"]));
    let bad = studio.post("check", &text(&MANIFEST.replace("content", "contnet")));
    assert_eq!(bad["valid"], false);
    let finding = &bad["findings"][0];
    assert_eq!(finding["hint"], "did you mean `content`?");
    assert_eq!((&finding["file"], &finding["range"]), (&json!("web.yaml"), &json!([8, 12, 8, 19])));
    assert!(finding["frame"].as_str().unwrap().contains("^^^^^^^"));
    assert_eq!(bad["outline"][0]["findings"], 1);
    // The fix is an operation that the server takes.
    let operations = &finding["fixes"][0]["operations"];
    let wrong = MANIFEST.replace("content", "contnet");
    let edited = studio.post("edit", &json!({"text": wrong, "operations": operations}));
    assert_eq!(edited["changes"], json!([{"range": [8, 12, 8, 19], "text": "content"}]));
    assert_eq!((&good["is_yaml"], &bad["is_yaml"]), (&json!(true), &json!(true)));
    let other = studio.post("check", &text("ccm: 5\n"));
    assert_eq!((&other["valid"], &other["is_yaml"]), (&json!(false), &json!(true)));
    let syntax = studio.post("check", &text("ccm: [\n"));
    assert_eq!(syntax["is_yaml"], false);
    assert_eq!((&syntax["valid"], &syntax["outline"]), (&json!(false), &json!([])));
    let facts = json!({"facts": {"source": "none", "set": ["role=web"]}});
    let role = "ccm:\n  resources:\n    - exec:\n        - \"echo {{ Facts.role }}\": {}\n";
    assert_eq!(studio.post("check", &with(text(role), &facts))["valid"], true);
    assert_eq!(studio.post("check", &text(role))["valid"], false);
    let posts = "ccm:\n  resources:\n    - scaffold:\n        - /srv/x: {source: templates, post: \
                 [{'*.sh': chmod +x}]}\n";
    let guards = &studio.post("check", &text(posts))["guards"];
    assert_eq!(
        (&guards[0]["resource"], &guards[0]["property"], &guards[0]["command"]),
        (&json!("scaffold#/srv/x"), &json!("post *.sh"), &json!("chmod +x"))
    );
    let guarded = "ccm:\n  resources:\n    - exec:\n        - /bin/true: {onlyif: /bin/false}\n";
    let guards = &studio.post("check", &text(guarded))["guards"];
    assert_eq!(
        (&guards[0]["property"], &guards[0]["command"]),
        (&json!("onlyif"), &json!("/bin/false"))
    );
}

#[test]
fn checks_know_what_stands_in_child_manifests_and_templates() {
    let studio = Studio::start(&[]);
    let child = "ccm:\n  resources:\n    - exec:\n        - /bin/true: {unless: test -e /child}\n";
    std::fs::write(studio.site("child.yaml"), child).unwrap();
    std::fs::create_dir(studio.site("deep")).unwrap();
    let deep = "ccm:\n  resources:\n    - apply: [../child.yaml, later.yaml]\n";
    std::fs::write(studio.site("deep/all.yaml"), deep).unwrap();
    let manifest = "\
ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: \"0644\"}
        - /etc/motd: {content: hi}
    - apply:
        - deep/all.yaml: {}
        - child.yaml: {control: {if: \"false\"}}
";
    let answer = studio.post("check", &text(manifest));
    assert_eq!(
        answer["blocks"][0]["defaults"],
        json!({"owner": "root", "group": "root", "mode": "0644"})
    );
    let inner = answer["inner"].as_array().unwrap();
    let shown = |entry: &Value| {
        json!([
            entry["parent"],
            entry["depth"],
            entry["type"],
            entry["name"],
            entry["file"],
            entry["line"]
        ])
    };
    let wanted = [
        json!([2, 1, "apply", "../child.yaml", "deep/all.yaml", 3]),
        json!([2, 2, "exec", "/bin/true", "child.yaml", 4]),
        json!([2, 1, "apply", "later.yaml", "deep/all.yaml", 3]),
    ];
    assert_eq!(inner[..3].iter().map(shown).collect::<Vec<_>>(), wanted);
    assert!(inner[3]["note"].as_str().unwrap().contains("does not exist yet"), "{}", inner[3]);
    assert_eq!((&inner[4]["parent"], &inner[4]["note"]), (&json!(3), &json!("skipped by control")));
    let guards = answer["guards"].as_array().unwrap();
    assert_eq!(guards.len(), 2, "{guards:?}");
    assert_eq!(
        guards[0],
        json!({"resource": "exec#/bin/true", "file": "child.yaml",
        "property": "unless", "command": "test -e /child", "user": guards[0]["user"]})
    );
    assert_eq!(guards[1]["resource"], "apply#later.yaml");
    let template =
        "- exec:\n    - made: {command: /bin/true, onlyif: \"test -e [[ data.dir ]]\"}\n";
    std::fs::write(studio.site("made.jet"), template).unwrap();
    let by_template = "data: {dir: /srv}\nccm:\n  resources_jet_file: made.jet\n";
    let answer = studio.post("check", &text(by_template));
    assert_eq!((&answer["valid"], &answer["outline"]), (&json!(true), &json!([])));
    let made = &answer["inner"][0];
    assert_eq!(shown(made), json!([null, 0, "exec", "made", "made.jet", null]));
    assert_eq!((&made["rendered"], &made["ensure"]), (&json!(true), &json!("present")));
    assert_eq!(answer["guards"][0]["command"], "test -e /srv");
    // A resource whose condition is wrong fails alone: the others run, and so do their guards.
    let wrong = "ccm:\n  resources:\n    - exec:\n        - a: {command: /bin/true, control: {if: \"1 +\"}}\n        - b: {command: /bin/true, onlyif: /bin/false}\n";
    let answer = studio.post("check", &text(wrong));
    assert_eq!(
        (&answer["valid"], &answer["guards"][0]["command"]),
        (&json!(false), &json!("/bin/false"))
    );
}

#[test]
fn a_resource_can_be_asked_for_alone() {
    let studio = Studio::start(&[]);
    let manifest = "\
data: {port: 80}
ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: \"0644\"}
        - /etc/app.conf:
            alias: config
            content: \"port = {{ Data.port }}\\n\"
    - exec:
        - -v:
            command: /bin/true
            environment: [\"A=b c\"]
            subscribe: [\"file#config\"]
            refresh_only: true
    - archive:
        - /tmp/a.tgz:
            url: https://example.net/a.tgz
            username: me
            password: hunter22
            owner: root
            group: root
    - scaffold:
        - /srv/x: {source: templates, data: {a: 1}}
";
    let ask = |resource: Value| {
        studio.post("ensure", &with(text(manifest), &json!({"resource": resource})))
    };
    let file = ask(json!("file#config"));
    let command = file["command"].as_str().unwrap();
    assert!(command.starts_with("ccm ensure file /etc/app.conf present "), "{command}");
    assert!(command.contains("--content 'port = 80\n'"), "{command}");
    assert!(command.contains("--alias config"), "{command}");
    assert_eq!(file["request"]["properties"]["mode"], "0644");
    let exec = ask(json!(2));
    let command = exec["command"].as_str().unwrap();
    assert!(
        command.ends_with(" -- -v") && command.contains("--subscribe file#config"),
        "{command}"
    );
    let archive = ask(json!("archive#/tmp/a.tgz"));
    assert!(!archive.to_string().contains("hunter22"), "{archive}");
    assert_eq!(archive["redacted"], true);
    assert_eq!(ask(json!("scaffold#/srv/x"))["left_out"], json!(["data"]));
    assert_eq!(
        code(&studio.try_post("ensure", &with(text(manifest), &json!({"resource": "file#x"})))),
        (404, "not_found".into())
    );
    assert_eq!(code(&studio.try_post("ensure", &text(manifest))), (400, "malformed".into()));
}

#[test]
fn values_are_read_as_yaml_and_names_are_listed() {
    let studio = Studio::start(&[]);
    let value = studio.post("yaml", &json!({"text": "- a: 1 # one\n- [x, \"0644\"]\n"}));
    assert_eq!(value["value"], json!([{"a": 1}, ["x", "0644"]]));
    let wrong = studio.try_post("yaml", &json!({"text": "a: ["}));
    assert_eq!(code(&wrong), (422, "edit".into()));
    assert!(read(&wrong)["error"]["range"].is_array());
    let names = studio.get("names");
    assert!(names["users"].as_array().unwrap().contains(&json!("root")), "{names}");
    assert!(names["groups"].as_array().unwrap().contains(&json!("root")), "{names}");
}

#[test]
fn scaffolds_list_what_they_would_make() {
    let studio = Studio::start(&[]);
    std::fs::create_dir_all(studio.site("scaffold/conf")).unwrap();
    std::fs::write(studio.site("scaffold/conf/a.conf"), "workers = [[ data.workers ]]\n").unwrap();
    let body = |more: Value| {
        with(
            json!({"path": "web.yaml", "language": "jet", "scaffold": "scaffold", "text": ""}),
            &more,
        )
    };
    let all = studio.post("template", &body(json!({})));
    assert_eq!(
        all["files"],
        json!([{"path": "conf/a.conf", "bytes": 12, "text": "workers = 4\n"}])
    );
    let one = studio.post("template", &body(json!({"text": "[[ write(\"conf/b\", \"x\") ]]made"})));
    assert_eq!((&one["text"], &one["files"][0]["path"]), (&json!("made"), &json!("conf/b")));
    assert!(!studio.site("scaffold/conf/b").exists());
    let wrong = studio.try_post("template", &body(json!({"text": "[[ write(\"../b\", \"x\") ]]"})));
    assert_eq!(code(&wrong), (422, "template".into()));
    std::os::unix::fs::symlink("/etc", studio.site("out")).unwrap();
    let outside = studio.try_post("template", &body(json!({"scaffold": "out"})));
    assert_eq!(code(&outside), (403, "outside".into()));
}

#[test]
fn forms_have_own_values_defaults_and_reasons() {
    let studio = Studio::start(&[]);
    let form = studio.post("form", &with(text(MANIFEST), &json!({"resource": "file#config"})));
    assert_eq!(
        (&form["type"], &form["number"], &form["total"]),
        (&json!("file"), &json!(1), &json!(2))
    );
    let properties = &form["properties"];
    assert_eq!(properties["alias"]["own"], "config");
    assert_eq!(properties["mode"]["default"]["value"], "0644");
    assert_eq!(properties["mode"]["shown"], "0644");
    assert_eq!(properties["content"]["resolved"], "workers = 4\n");
    assert_eq!(form["used_by"], json!([{"resource": "exec#reload", "relation": "subscribe"}]));
    assert_eq!(
        (&properties["owner"]["required"], &properties["alias"]["required"]),
        (&json!(true), &json!(false))
    );
    // Also if a block of defaults says `absent`.
    let absent = MANIFEST.replace("defaults: {", "defaults: {ensure: absent, ");
    let form = studio.post("form", &with(text(&absent), &json!({"resource": "file#config"})));
    assert_eq!(form["properties"]["owner"]["required"], false);
    let wrong = MANIFEST.replace("content", "contnet");
    let form = studio.post("form", &with(text(&wrong), &json!({"resource": 1})));
    assert_eq!(form["properties"]["contnet"]["suggestion"], "content");
    let alias = "\
shared: &mode \"0600\"
ccm:
  resources:
    - file:
        - /a: {mode: *mode, owner: !!str root, content: hi}
";
    let form = studio.post("form", &with(text(alias), &json!({"resource": "file#/a"})));
    assert_eq!(form["properties"]["mode"]["editable"], false);
    assert!(form["properties"]["mode"]["reason"].as_str().unwrap().contains("alias"));
    assert_eq!(form["properties"]["content"]["editable"], true);
    assert_eq!(form["properties"]["content"].get("aliases"), None);
    let shared = "\
ccm:
  resources:
    - file:
        - /a: {mode: &mode \"0600\", owner: root, group: root, content: hi}
        - /b: {mode: *mode, owner: root, group: root, content: hi}
        - /c: {mode: *mode, owner: root, group: root, content: hi}
";
    let form = studio.post("form", &with(text(shared), &json!({"resource": "file#/a"})));
    assert_eq!(form["properties"]["mode"]["aliases"], 2);
    let missing = studio.try_post("form", &with(text(MANIFEST), &json!({"resource": "file#x"})));
    assert_eq!(code(&missing), (404, "not_found".into()));
    let broken = studio.try_post("form", &with(text("a: ["), &json!({"resource": "file#x"})));
    assert_eq!(code(&broken), (409, "not_valid".into()));
    let none = studio.try_post("form", &text(MANIFEST));
    assert_eq!(code(&none), (400, "malformed".into()));
}

#[test]
fn every_type_has_a_form_made_of_the_table_alone() {
    let studio = Studio::start(&[]);
    let answer = studio.request("GET types", &[], b"");
    let tag = answer.header("etag").to_owned();
    assert_eq!(studio.request("GET types", &[("If-None-Match", &tag)], b"").status, 304);
    let types = read(&answer);
    let names: Vec<&str> = types["types"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["name"].as_str().unwrap())
        .collect();
    assert!(names.len() >= 7, "{names:?}");
    for kind in types["types"].as_array().unwrap() {
        let name = kind["name"].as_str().unwrap();
        let manifest = format!("ccm:\n  resources:\n    - {name}:\n        - some name: {{}}\n");
        let resource = json!({"resource": format!("{name}#some name")});
        let form = studio.post("form", &with(text(&manifest), &resource));
        for field in kind["fields"].as_array().unwrap() {
            let field = field["name"].as_str().unwrap();
            assert_eq!(form["properties"].get(field).is_some(), field != "name", "{name} {field}");
        }
    }
}

#[test]
fn edits_work_by_path_and_by_resource_and_say_why_not() {
    let studio = Studio::start(&[]);
    let edit = |operation: Value| {
        studio
            .try_post("edit", &json!({"text": MANIFEST, "operations": [operation], "revision": 3}))
    };
    let path = json!(["ccm", "resources", 1, "exec", 0, "reload", "refresh_only"]);
    let answer = read(&edit(json!({"op": "set", "path": path, "value": false})));
    assert_eq!(answer["changes"][0]["text"], "false");
    assert_eq!(answer["revision"], 3);
    let answer = read(&edit(json!({"op": "set_property", "resource": "file#config",
                                   "property": "mode", "value": "0600"})));
    assert_eq!(answer["changes"][0]["text"], "            mode: \"0600\"\n");
    for (operation, kind) in [
        (json!({"op": "remove", "path": ["none"]}), "missing"),
        (json!({"op": "unset_property", "resource": "file#none", "property": "mode"}), "missing"),
        (json!({"op": "insert", "path": ["data"], "index": 0, "value": 1}), "kind"),
        (json!({"op": "rename", "path": ["data"], "key": "ccm"}), "duplicate"),
    ] {
        let answer = edit(operation.clone());
        assert_eq!(code(&answer), (422, "edit".into()), "{operation}");
        assert_eq!(read(&answer)["error"]["kind"], kind, "{operation}");
    }
    let broken = studio.try_post("edit", &json!({"text": "a: [", "operations": []}));
    assert_eq!(read(&broken)["error"]["kind"], "syntax");
    let answer = edit(json!({"op": "explode"}));
    assert_eq!(code(&answer), (400, "malformed".into()));
}

#[test]
fn data_says_where_it_comes_from_and_why_entries_do_not_match() {
    let studio = Studio::start(&[]);
    let hiera = "\
hierarchy:
  order: [\"role:{{ Facts.role }}\", \"site:{{ Facts.site }}\"]
  merge: deep
data:
  port: 80
  # @secret
  password: hunter22
  nested: {a: 1, greeting: \"hi {{ Facts.role }}\"}
  login:
    name: web
    # @secret
    password: hunter23
overrides:
  role:web: {port: 8080, login: none}
";
    let facts = json!({"facts": {"source": "none", "set": ["role=web"]}});
    let answer = studio.post("data", &with(text(hiera), &facts));
    assert_eq!((&answer["merge"], &answer["data"]["port"]), (&json!("deep"), &json!(8080)));
    let order = answer["order"].as_array().unwrap();
    assert_eq!((&order[0]["entry"], &order[0]["matched"]), (&json!("role:web"), &json!(true)));
    assert_eq!(order[1]["matched"], false);
    assert!(order[1]["why"].as_str().unwrap().contains("Facts.site"), "{}", order[1]);
    assert_eq!(order[1]["range"][0], 1);
    let origin = |key: &str| {
        let all = answer["origins"].as_array().unwrap();
        all.iter().find(|origin| origin["key"] == key).cloned().unwrap()
    };
    assert_eq!(
        (&origin("port")["layer"], &origin("port")["line"]),
        (&json!("role:web"), &json!(14))
    );
    let replaced = &origin("port")["replaced"][0];
    assert_eq!((&replaced["line"], &replaced["value"]), (&json!(5), &json!(80)));
    let replaced = &origin("login")["replaced"][0]["value"];
    assert_eq!(replaced, &json!({"name": "web", "password": "[redacted]"}));
    assert_eq!(origin("nested.greeting")["value"], "hi web");
    assert_eq!(origin("password")["secret"], true);
    assert!(!answer.to_string().contains("hunter2"), "{answer}");
    let used = answer["facts_used"].as_array().unwrap();
    assert!(used.iter().any(|fact| fact["name"] == "role" && fact["is_set"] == true), "{used:?}");
    let ruled = "data:\n  # @require\n  name: \"\"\n";
    let answer = studio.post("data", &with(text(ruled), &facts));
    assert_eq!(answer["rules"][0]["holds"], false);
    assert_eq!(answer["findings"][0]["severity"], "error");
    let broken = studio.try_post("data", &text("data: ["));
    assert_eq!(code(&broken), (409, "not_valid".into()));
    // Facts of a file below the directory.
    std::fs::write(studio.site("facts.yaml"), "role: db\n").unwrap();
    let file = json!({"facts": {"source": "file", "path": "facts.yaml"}});
    let answer = studio.post("data", &with(text(hiera), &file));
    assert_eq!(
        (&answer["data"]["port"], &answer["data"]["nested"]["greeting"]),
        (&json!(80), &json!("hi db"))
    );
    let outside = json!({"facts": {"source": "file", "path": "../facts.yaml"}});
    assert_eq!(
        code(&studio.try_post("data", &with(text(hiera), &outside))),
        (403, "outside".into())
    );
}

#[test]
fn facts_and_the_environment_are_shown_one_by_one() {
    let studio = Studio::start(&["--fact", "role=web", "--fact", "a.b=1"]);
    let all = studio.get("facts");
    assert_eq!(all["facts"]["role"], "web");
    assert_eq!(studio.get("facts?query=a.b")["facts"], "1");
    let names = all["environ"].as_array().unwrap();
    assert!(names.contains(&json!("ME")), "{names:?}");
    let target = studio.dir.path().join("target").display().to_string();
    assert!(!all["environ"].to_string().contains(&target), "values are not there");
    assert_eq!(studio.get("facts?environ=TARGET")["environ"]["TARGET"], target);
    let missing = studio.request("GET facts?environ=NONE", &[], b"");
    assert_eq!(code(&missing), (404, "not_found".into()));
}

#[test]
fn templates_are_tried_out() {
    let studio = Studio::start(&[]);
    let expr = studio.post(
        "template",
        &json!({"language": "expr", "text": "n = {{ Data.workers + 1 }} {{ 'é' }}", "path": "web.yaml"}),
    );
    assert_eq!((&expr["text"], &expr["type"]), (&json!("n = 5 é"), &json!("string")));
    assert_eq!(expr["placeholders"][0]["value"], 5);
    let typed = json!({"language": "expr", "mode": "typed", "text": "{{ Data.list }}", "data": {"list": [1, 2]}});
    let typed = studio.post("template", &typed);
    assert_eq!((&typed["value"], &typed["type"]), (&json!([1, 2]), &json!("list")));
    let jet = json!({"language": "jet", "text": "<% data.name %>", "left": "<%", "right": "%>", "data": {"name": "Ann"}});
    assert_eq!(studio.post("template", &jet)["text"], "Ann");
    let go = json!({"language": "go", "text": "{{ .data.name | upper }}", "data": {"name": "ann"}});
    assert_eq!(studio.post("template", &go)["text"], "ANN");
    for (language, bad, line) in [
        ("expr", "a\n{{ 1 + }}", 1),
        ("expr", "{{ Data.none }}", 0),
        ("jet", "a\n[[ nope( ]]", 1),
        ("go", "a\n{{ nope }}", 1),
    ] {
        let answer = studio.try_post("template", &json!({"language": language, "text": bad}));
        assert_eq!(code(&answer), (422, "template".into()), "{language} {bad}");
        let error = &read(&answer)["error"];
        assert_eq!(error["range"][0], line, "{error}");
        assert!(error["frame"].as_str().unwrap().contains('^'), "{error}");
    }
    let half = json!({"language": "jet", "text": "x", "left": "<%"});
    assert_eq!(code(&studio.try_post("template", &half)), (400, "malformed".into()));
}

#[test]
fn work_that_never_ends_is_given_up() {
    let studio = Studio::start(&[]);
    let loops =
        "{{ len(filter(1..9000, len(filter(1..9000, len(filter(1..9000, true)) > 0)) > 0)) }}";
    let answer = studio.try_post("template", &json!({"language": "expr", "text": loops}));
    let (status, code) = code(&answer);
    assert!(
        (status == 503 && code == "timeout") || (status == 422 && code == "template"),
        "{status} {code}"
    );
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(9);
        let _ = writeln!(laughs, "a{level}: &a{level} [{}]", below.trim_end_matches(", "));
    }
    let answer = studio.try_post("check", &text(&laughs));
    assert!(answer.status == 200 || answer.status == 503, "{}", answer.status);
    if answer.status == 200 {
        assert_eq!(read(&answer)["valid"], false);
    }
    // The studio goes on.
    assert_eq!(studio.post("check", &text(MANIFEST))["valid"], true);
}

#[test]
fn graphs_have_positions_and_other_formats() {
    let studio = Studio::start(&[]);
    let graph = studio.post("graph", &text(MANIFEST));
    assert_eq!(graph["nodes"].as_array().unwrap().len(), 2);
    assert_eq!(graph["edges"][0]["kind"], "subscribe");
    assert!(graph["nodes"][0]["width"].as_i64().unwrap() > 0);
    let svg = studio.post("graph", &with(text(MANIFEST), &json!({"format": "svg"})));
    assert!(svg["svg"].as_str().unwrap().starts_with("<svg"));
    let dot = studio.post("graph", &with(text(MANIFEST), &json!({"format": "dot"})));
    assert!(dot["dot"].as_str().unwrap().contains("digraph"));
    let bad = studio.try_post("graph", &with(text(MANIFEST), &json!({"format": "png"})));
    assert_eq!(code(&bad), (400, "malformed".into()));
    let invalid = studio.try_post("graph", &text("ccm: 1\n"));
    assert_eq!(code(&invalid), (409, "not_valid".into()));
    assert!(!read(&invalid)["error"]["findings"].as_array().unwrap().is_empty());
}

#[test]
fn secrets_are_not_in_what_the_server_makes() {
    let studio = Studio::start(&[]);
    let manifest = "\
data:
  # @secret
  password: hunter22
ccm:
  resources:
    - archive:
        - /tmp/none.tar.gz:
            url: https://user:hunter22@127.0.0.1:1/a.tar.gz
            headers: {Authorization: Bearer hunter22}
            owner: root
            group: root
    - exec:
        - echo:
            command: \"echo {{ Data.password }} {{ nope( }}\"
            environment: [\"PASSWORD=hunter22\"]
";
    for (path, more) in [
        ("check", json!({})),
        ("data", json!({})),
        ("form", json!({"resource": 1})),
        ("graph", json!({})),
    ] {
        let answer = studio.try_post(path, &with(text(manifest), &more)).text();
        if path == "form" {
            // The address is no secret field: it is what the page has sent.
            let headers = &serde_json::from_str::<Value>(&answer).unwrap()["properties"]["headers"];
            assert_eq!(headers["hidden"], true);
            assert!(!headers.to_string().contains("hunter22"), "{headers}");
        } else {
            assert!(!answer.contains("hunter22"), "{path}: {answer}");
        }
    }
    let good = manifest.replace(" {{ nope( }}", "");
    let form = studio.post("form", &with(text(&good), &json!({"resource": 2})));
    let resolved = &form["properties"]["command"]["resolved"];
    assert!(resolved.is_string() && !resolved.to_string().contains("hunter22"), "{resolved}");
}

/// A manifest of a megabyte. A debug build on a busy machine needs most of ten
/// seconds for 5,000 resources, so these are fewer and larger.
fn large() -> String {
    let mut text = String::from(
        "ccm:\n  resources:\n    - file:\n        - defaults: {owner: root, group: root, mode: \"0644\"}\n",
    );
    let line = format!("              {}\n", "x".repeat(80));
    for number in 0..500 {
        let _ = write!(
            text,
            "        # file number {number}\n        - /srv/app/config/file-{number:05}.conf:\n            \
             alias: f{number}\n            content: |\n{}",
            line.repeat(22)
        );
        if number > 0 {
            let _ = writeln!(text, "            require: [\"file#f{}\"]", number / 2);
        }
    }
    text
}

#[test]
fn a_megabyte_is_no_problem() {
    let studio = Studio::start(&[]);
    let manifest = large();
    assert!(manifest.len() > 1_000_000, "{}", manifest.len());
    let checked = studio.post("check", &text(&manifest));
    assert_eq!(checked["outline"].as_array().unwrap().len(), 500);
    assert_eq!(checked["valid"], true, "{}", checked["findings"]);
    let operation =
        json!({"op": "set_property", "resource": "file#f400", "property": "mode", "value": "0600"});
    let edited = studio.post("edit", &json!({"text": manifest, "operations": [operation]}));
    assert_eq!(edited["changes"].as_array().unwrap().len(), 1);
    let form = studio.post("form", &with(text(&manifest), &json!({"resource": "file#f499"})));
    assert_eq!((&form["number"], &form["total"]), (&json!(500), &json!(500)));
    let graph = studio.post("graph", &text(&manifest));
    assert_eq!(graph["edges"].as_array().unwrap().len(), 499);
}

#[test]
fn the_last_text_can_be_named_by_its_digest() {
    let studio = Studio::start(&[]);
    let named = |digest: &Value| json!({"path": "web.yaml", "digest": digest, "resource": 1});
    let first = studio.post("check", &text(MANIFEST))["digest"].clone();
    let form = studio.post("form", &named(&first));
    assert_eq!(form["properties"]["alias"]["own"], "config");
    let set = json!({"op": "set_property", "resource": 1, "property": "alias", "value": "other"});
    let edited = studio.post("edit", &json!({"digest": first, "operations": [set]}));
    let second = edited["digest"].clone();
    let form = studio.post("form", &named(&second));
    assert_eq!(form["properties"]["alias"]["own"], "other");
    let checked = studio.post("check", &named(&second));
    assert_eq!((&checked["digest"], &checked["valid"]), (&second, &json!(false)), "{checked}");
    // What changes nothing leaves the text what it is.
    let same = studio.post("edit", &json!({"digest": second, "operations": []}));
    assert_eq!(same["digest"], second);
    let gone = studio.try_post("form", &named(&first));
    assert_eq!(code(&gone), (409, "text_unknown".into()));
    let again = studio.post("form", &with(text(MANIFEST), &json!({"resource": 1})));
    assert_eq!(again["properties"]["alias"]["own"], "config");
    let none = studio.try_post("form", &json!({"path": "web.yaml", "resource": 1}));
    assert_eq!(code(&none), (400, "malformed".into()));
}

#[test]
fn work_for_clients_that_are_gone_holds_nobody_up() {
    let studio = Studio::start(&[]);
    let body = text(&large()).to_string();
    let head = format!(
        "POST /api/v1/check HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: \
         application/json\r\nContent-Length: {}\r\n\r\n",
        studio.host,
        studio.key,
        body.len()
    );
    for _ in 0..16 {
        let mut connection = studio.target.connect();
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(body.as_bytes()).unwrap();
    }
    let answer = studio.try_post("check", &text(MANIFEST));
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn forms_resolve_as_the_check_did_until_something_else_changes() {
    let studio = Studio::start(&[]);
    let manifest = "\
data:
  # @secret
  password: hunter22
ccm:
  resources:
    - exec:
        - say:
            command: \"echo {{ Facts.site }} {{ Data.password }}\"
";
    let facts = |site: &str| json!({"facts": {"source": "none", "set": [format!("site={site}")]}});
    let resolved = |text: &Value, facts: &Value| {
        let body = with(with(text.clone(), facts), &json!({"resource": 1}));
        studio.post("form", &body)["properties"]["command"]["resolved"].clone()
    };
    let checked = studio.post("check", &with(text(manifest), &facts("one")));
    assert_eq!(checked["valid"], true, "{checked}");
    let named = json!({"path": "web.yaml", "digest": checked["digest"]});
    for site in ["one", "two", "one"] {
        let command = resolved(&named, &facts(site));
        let command = command.as_str().unwrap();
        assert!(command.starts_with(&format!("echo {site} ")), "{command}");
        assert!(!command.contains("hunter22"), "{command}");
    }
    // A plan takes the text by its digest, too.
    let plan = |digest: &Value| json!({"mode": "plan", "path": "web.yaml", "digest": digest});
    assert!(studio.post("runs", &plan(&checked["digest"]))["id"].is_string());
    let unknown = studio.try_post("runs", &plan(&json!("none")));
    assert_eq!(code(&unknown), (409, "text_unknown".into()));

    // A file that the check has read may be another one by now.
    let reading = manifest.replace("Facts.site", "readFile('site.txt')");
    for site in ["one", "two"] {
        std::fs::write(studio.site("site.txt"), site).unwrap();
        if site == "one" {
            studio.post("check", &text(&reading));
        }
        let command = resolved(&text(&reading), &json!({}));
        assert!(command.to_string().contains(&format!("echo {site} ")), "{command}");
    }
}
