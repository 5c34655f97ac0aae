//! `ccm why`.

use serde_json::{Value, json};

use crate::TestEnv;
use crate::schema::validator;

/// A manifest whose data comes from several places.
fn site() -> TestEnv {
    let env = TestEnv::new();
    env.manifest(
        r#"hierarchy:
  order: ["role:{{ Facts.role }}", "os:{{ Facts.os }}", "site:{{ Facts.site }}"]
  merge: deep
data:
  port: 80
  greeting: "hello {{ Facts.os }}"
  web: {host: a, tags: [x]}
  # @secret
  token: sesame-opens
overrides:
  role:web: {port: 8000}
  os:debian:
    port: 8080
    web: {host: b, tags: [y]}
ccm:
  resources:
    - file:
        - defaults: {[ME], mode: "0644"}
        - "[DIR]/app.v1.conf":
            alias: config
            content: "port = {{ Data.port }}, {{ lookup('data.web.host') }}, {{ Environ.HOME }}\n"
        - "[DIR]/app.v1.conf.mode":
            content: x
            mode: "0600"
            require: ["file#config"]
    - exec:
        - reload:
            command: "true"
            environment: ["TOKEN={{ Data.token }}"]
            control: {if: "Facts.os == 'debian'"}
            subscribe: ["file#[DIR]/app.v1.conf"]
"#,
    );
    env
}

const FACTS: [&str; 4] = ["--fact", "os=debian", "--fact", "role=web"];

fn why(env: &TestEnv, target: &str) -> String {
    let [a, b, c, d] = FACTS;
    env.ccm(["why", "manifest.yaml", target, a, b, c, d])
}

fn explained(env: &TestEnv, target: &str) -> Value {
    let [a, b, c, d] = FACTS;
    let output = env.run(["why", "manifest.yaml", target, "--json", a, b, c, d]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let json = env.steady(&String::from_utf8(output.stdout).unwrap());
    let json = serde_json::from_str(&json).unwrap();
    if let Err(error) = validator("why").validate(&json) {
        panic!("{error}: {json:#}");
    }
    json
}

#[test]
fn a_resource_as_a_tree() {
    let env = site();
    insta::assert_snapshot!(why(&env, "exec#reload"), @r#"
    exit: 0
    --- stdout ---
    exec#reload
      name: reload
        set by manifest.yaml:27
      ensure: present
        default of the type
      control: {"if":"Facts.os == 'debian'"}
        set by manifest.yaml:30
        reads, in `Facts.os == 'debian'`
          fact os: debian
            from --fact
      command: "true"
        set by manifest.yaml:28
      environment: ["TOKEN=[redacted]"]
        set by manifest.yaml:29
        reads
          data token: [redacted]
            from manifest.yaml:9 (data)
      subscribe: ["file#[DIR]/app.v1.conf"]
        set by manifest.yaml:31
      now: a run refreshes it
        command: to true
      subscribe
        file#[DIR]/app.v1.conf: create
    "#);
}

#[test]
fn a_property_as_json() {
    let env = site();
    let json = explained(&env, "file#config.content");
    let place =
        |line: u32, level: &str| json!({"file": "manifest.yaml", "line": line, "level": level});
    assert_eq!(
        json,
        json!({
            "resource": "file#[DIR]/app.v1.conf",
            "properties": {
                "content": {
                    "value": "port = 8080, b, [DIR]\n",
                    "set_by": {"file": "manifest.yaml", "line": 21, "kind": "own"},
                    "reads": [
                        {
                            "kind": "data",
                            "key": "port",
                            "value": 8080,
                            "origin": place(13, "os:debian"),
                            "overrode": [place(11, "role:web"), place(5, "data")],
                        },
                        {
                            "kind": "data",
                            "key": "web.host",
                            "value": "b",
                            "origin": place(14, "os:debian"),
                            "overrode": [place(7, "data")],
                        },
                        {
                            "kind": "environment",
                            "key": "HOME",
                            "value": "[DIR]",
                            "origin": null,
                            "overrode": [],
                        },
                    ],
                },
            },
            "decision": {
                "outcome": "create",
                "changes": [{"property": "content", "added": 1, "removed": 0}],
            },
            "require": [],
            "subscribe": [],
        })
    );
    let json = explained(&env, "file#config.mode");
    assert_eq!(
        json["properties"]["mode"]["set_by"],
        json!({"file": "manifest.yaml", "line": 18, "kind": "default"})
    );
}

#[test]
fn the_longest_name_that_exists_is_the_name() {
    let env = site();
    for (target, resource, properties) in [
        ("file#[DIR]/app.v1.conf", "file#[DIR]/app.v1.conf", None),
        ("file#[DIR]/app.v1.conf.mode", "file#[DIR]/app.v1.conf.mode", None),
        ("file#[DIR]/app.v1.conf.mode.mode", "file#[DIR]/app.v1.conf.mode", Some("mode")),
        ("file#[DIR]/app.v1.conf.owner", "file#[DIR]/app.v1.conf", Some("owner")),
        ("file#config", "file#[DIR]/app.v1.conf", None),
        ("file#config.contents", "file#[DIR]/app.v1.conf", Some("content")),
        ("file#config.provider", "file#[DIR]/app.v1.conf", Some("provider")),
    ] {
        let json = explained(&env, target);
        assert_eq!(json["resource"], resource, "{target}");
        let names: Vec<&String> = json["properties"].as_object().unwrap().keys().collect();
        match properties {
            Some(only) => assert_eq!(names, [only], "{target}"),
            None => assert!(names.len() > 4, "{target}: {names:?}"),
        }
    }
    let provider = explained(&env, "file#config.provider");
    assert_eq!(
        provider["properties"]["provider"],
        json!({"value": null, "set_by": null, "reads": []})
    );
    let required = explained(&env, "file#[DIR]/app.v1.conf.mode");
    assert_eq!(required["require"], json!([{"resource": "file#config", "outcome": "create"}]));
}

#[test]
fn data_keys() {
    let env = site();
    insta::assert_snapshot!(why(&env, "data:web"), @r#"
    exit: 0
    --- stdout ---
    data:web
      data web.host: b
        from manifest.yaml:14 (os:debian)
        overrides manifest.yaml:7 (data)
      data web.tags: ["x","y"]
        from manifest.yaml:14 (os:debian)
        merged with manifest.yaml:7 (data)
      fact os: debian
        from --fact
      hierarchy
        role:{{ Facts.role }} = role:web: applies
        os:{{ Facts.os }} = os:debian: applies
        site:{{ Facts.site }}: `Facts.site` has no value
    "#);
    let json = explained(&env, "data:greeting");
    assert_eq!(json["data"], "greeting");
    let property = &json["properties"]["greeting"];
    assert_eq!(property["value"], "hello debian");
    assert_eq!(property["set_by"], json!({"file": "manifest.yaml", "line": 6, "kind": "own"}));
    let kinds: Vec<&Value> =
        property["reads"].as_array().unwrap().iter().map(|read| &read["kind"]).collect();
    assert_eq!(kinds, ["data", "fact"]);
    assert_eq!(json["hierarchy"][2]["state"], "`Facts.site` has no value");
    assert!(json.get("decision").is_none());
}

#[test]
fn external_data_overrides_the_manifest() {
    let env = site();
    env.write("outer.yaml", "data:\n  port: 9999\n");
    let [a, b, c, d] = FACTS;
    let args = ["why", "manifest.yaml", "data:port", "--hiera", "outer.yaml", a, b, c, d];
    let shown = env.ccm(args);
    assert!(
        shown.contains(
            "data port: 9999\n    from outer.yaml:2 (data)\n    overrides manifest.yaml:13 (os:debian)\n"
        ),
        "{shown}"
    );
}

#[test]
fn what_is_not_there_is_an_error_with_a_suggestion() {
    let env = site();
    let error = |target: &str| {
        let shown = why(&env, target);
        assert!(shown.starts_with("exit: 1\n--- stderr ---\nerror: "), "{shown}");
        shown["exit: 1\n--- stderr ---\n".len()..].to_owned()
    };
    let all: String = [
        "file#confg",
        "file#confg.mode",
        "file#config.mod",
        "fiel#x",
        "data:prt",
        "data:web.hots",
        "nothing",
        "file#",
        "exec#entirely different",
    ]
    .map(error)
    .concat();
    insta::assert_snapshot!(all, @r#"
    error: file#confg is not in manifest.yaml
    hint: did you mean `file#config`?
    error: file#confg.mode is not in manifest.yaml
    hint: did you mean `file#config`?
    error: file#[DIR]/app.v1.conf has no property `mod`
    hint: did you mean `mode`?
    error: unknown resource type `fiel`
    hint: did you mean `file`?
    error: there is no data key `prt`
    hint: did you mean `port`?
    error: there is no data key `web.hots`
    hint: did you mean `web.host`?
    error: `nothing` is not a resource, a property or a data key
    hint: write `type#name`, `type#name.property` or `data:KEY`
    error: `file#` is not a resource, a property or a data key
    hint: write `type#name`, `type#name.property` or `data:KEY`
    error: exec#entirely different is not in manifest.yaml
    "#);
}

#[test]
fn resources_of_a_template() {
    let env = TestEnv::new();
    env.manifest("data: {names: [a, b]}\nccm:\n  resources_jet_file: resources.jet\n");
    env.write(
        "resources.jet",
        "[[ range data.names ]]- exec:\n    - \"[[ . ]]\": {command: \"true {{ Data.names | len() }}\"}\n[[ end ]]",
    );
    let json = explained(&env, "exec#b.command");
    let property = &json["properties"]["command"];
    assert_eq!(property["value"], "true 2");
    assert_eq!(
        property["set_by"],
        json!({"file": "[DIR]/resources.jet (rendered)", "line": 4, "kind": "template"})
    );
    assert_eq!(property["reads"][0]["key"], "names");
}

#[test]
fn files_that_templates_read_are_named() {
    let env = TestEnv::new();
    env.write("motd.jet", "[[ data.name ]]");
    env.manifest(
        r#"
data: {name: Ann}
ccm:
  resources:
    - file: {name: "[DIR]/motd", content: "{{ jet('motd.jet') }}", [ME], mode: "0644"}
    - file: {name: "[DIR]/bad", content: "{{ file('missing') }}", [ME], mode: "0644"}
"#,
    );
    let json = explained(&env, "file#[DIR]/motd.content");
    let content = &json["properties"]["content"];
    assert_eq!(content["value"], "Ann");
    assert_eq!(
        (&content["reads"][0]["kind"], &content["reads"][0]["key"]),
        (&"file".into(), &"motd.jet".into())
    );
    let json = explained(&env, "file#[DIR]/bad");
    let error = json["properties"]["content"]["error"].as_str().unwrap();
    assert!(error.contains("missing"), "{error}");
    assert_eq!(json["decision"]["outcome"], "failed");
}

#[test]
fn secrets_are_redacted() {
    let env = site();
    for target in ["exec#reload", "data:token", "exec#reload.environment"] {
        let [a, b, c, d] = FACTS;
        let json = env.ccm(["why", "manifest.yaml", target, "--json", a, b, c, d]);
        for shown in [why(&env, target), json] {
            assert!(shown.starts_with("exit: 0\n") && shown.contains("[redacted]"), "{shown}");
            assert!(!shown.contains("sesame"), "{shown}");
        }
    }
    env.manifest(
        r#"
data: {pin: 12, word: swordfish, key: k}
ccm:
  resources:
    - archive:
        - "[DIR]/x.tgz":
            url: "http://127.0.0.1:1/x.tgz"
            username: me
            password: "{{ Data.pin }}-{{ Data.word }}"
            [ME]
    - file: {name: "[DIR]/x", content: "{{ Data.word }}", [ME], mode: "0600"}
    - exec: {name: "true", alias: "{{ Environ.API_TOKEN ?? 'none' }}"}
"#
        .replace("            [ME]\n", &env_ids())
        .as_str(),
    );
    let shown = why(&env, "archive#[DIR]/x.tgz.password");
    assert!(shown.contains("data pin: [redacted]"), "{shown}");
    assert!(!shown.contains("swordfish") && !shown.contains("Data.pin"), "{shown}");
    let shown = why(&env, "file#[DIR]/x");
    assert!(!shown.contains("swordfish") && shown.contains("data word: [redacted]"), "{shown}");
    let output = env
        .command(["why", "manifest.yaml", "exec#true"])
        .env("API_TOKEN", "xyz")
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("environment API_TOKEN: [redacted]"), "{shown}");
    env.manifest("ccm:\n  resources:\n    - exec: {name: \"true\", alias: \"{{ len(Environ) }}-{{ Environ[WorkingDir] ?? 'none' }}\"}\n");
    let mut command = env.command(["why", "manifest.yaml", "exec#true.alias"]);
    let output = command.env("API_TOKEN", "xyz").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("environment *: {\"API_TOKEN\":\"[redacted]\""), "{shown}");
    assert!(shown.contains("environment […]: ") && !shown.contains("xyz"), "{shown}");
}

fn env_ids() -> String {
    format!(
        "            owner: \"{}\"\n            group: \"{}\"\n",
        nix::unistd::geteuid(),
        nix::unistd::getegid()
    )
}

#[test]
fn nothing_is_changed() {
    let env = site();
    why(&env, "file#config");
    assert!(!env.path("app.v1.conf").exists());
}

#[test]
fn merged_data_of_a_child_manifest_is_followed_key_by_key() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - apply: {name: child.yaml, data: {web: {port: 1, tls: no}}}\n",
    );
    env.write("child.yaml", "data:\n  web: {port: 80, root: /srv}\nccm: {resources: [{exec: [{show: {command: \"echo {{ Data.web.root }} {{ Data.web.port }} {{ Data.web.tls }}\"}}]}]}\n");
    env.write("outside.yaml", "data:\n  web: {port: 9}\n");
    let args = ["why", "manifest.yaml", "exec#show.command", "--hiera", "outside.yaml"];
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
    exec#show, in [DIR]/child.yaml
      command: echo /srv 9 no
        set by [DIR]/child.yaml:3
        reads, in `Data.web.root`
          data web.root: /srv
            from [DIR]/child.yaml:2 (data)
        reads, in `Data.web.port`
          data web.port: 9
            from outside.yaml:2 (data)
            overrides inherited
            overrides [DIR]/child.yaml:2 (data)
        reads, in `Data.web.tls`
          data web.tls: no
            from inherited
      now: a run executes it
        command: to echo /srv 9 no
    ");
}

/// A resource of a child manifest is explained with the data that the child sees.
#[test]
fn resources_of_child_manifests() {
    let env = TestEnv::new();
    env.manifest(
        r#"
data: {port: 80, name: top}
ccm:
  resources:
    - file: {name: "[DIR]/f", content: x, [ME], mode: "0644"}
    - apply: {name: sub/child.yaml, data: {port: "{{ Data.port }}"}}
    - apply: {name: sub/other.yaml}
"#,
    );
    env.write(
        "sub/child.yaml",
        r#"data: {port: 1, own: mine}
ccm:
  resources:
    - file: {name: "[DIR]/g", alias: inner, content: "{{ Data.port }} {{ Data.own }}", [ME], mode: "0644", require: ["file#[DIR]/f"]}
    - apply: {name: deep.yaml}
"#,
    );
    let deep = r#"ccm: {resources: [{file: {name: "[DIR]/h", content: x, [ME], mode: "0644"}}]}"#;
    env.write("sub/deep.yaml", deep);
    env.write("sub/other.yaml", deep);
    insta::assert_snapshot!(env.ccm(["why", "manifest.yaml", "file#inner.content"]), @"
    exit: 0
    --- stdout ---
    file#[DIR]/g (inner), in [DIR]/sub/child.yaml
      content: 80 mine
        set by [DIR]/sub/child.yaml:4
        reads, in `Data.port`
          data port: 80
            from inherited
            overrides [DIR]/sub/child.yaml:1 (data)
        reads, in `Data.own`
          data own: mine
            from [DIR]/sub/child.yaml:1 (data)
      now: a run creates it
        content: +1 -0 lines
    ");
    let json = explained(&env, "file#[DIR]/h");
    assert_eq!(json["manifest"], "[DIR]/sub/deep.yaml");
    assert_eq!(json["decision"]["outcome"], "create");
    let json = explained(&env, "file#inner");
    assert_eq!(json["require"][0]["outcome"], "create");
    insta::assert_snapshot!(env.ccm(["why", "manifest.yaml", "file#inner.mod"]), @"
    exit: 1
    --- stderr ---
    error: file#[DIR]/g has no property `mod`
    hint: did you mean `mode`?
    ");
    insta::assert_snapshot!(env.ccm(["why", "manifest.yaml", "file#[DIR]/nowhere-at-all"]), @"
    exit: 1
    --- stderr ---
    error: file#[DIR]/nowhere-at-all is not in manifest.yaml
    ");
}

#[test]
fn facts_say_where_they_come_from() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: {name: \"echo {{ Facts.host.info.os }} {{ Facts.site.room }} \
         {{ Facts.site.rack }}\"}}]}\n",
    );
    env.write("facts.yaml", "site: {room: a, rack: b}\n");
    let flags = ["--facts", "facts.yaml", "--fact", "site.room=c"];
    let mut command = env.command(["why", "manifest.yaml", "exec#echo linux c b"]);
    let output = command.args(flags).output().unwrap();
    let shown = env.steady(&String::from_utf8(output.stdout).unwrap());
    for wanted in [
        "fact host.info.os: linux\n        from built-in\n",
        "fact site.room: c\n        from --fact\n        overrides [DIR]/facts.yaml (facts file)\n",
        "fact site.rack: b\n        from [DIR]/facts.yaml (facts file)\n",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
}
