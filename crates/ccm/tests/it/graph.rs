//! `ccm graph`.

use serde_json::Value;

use crate::TestEnv;
use crate::schema::validator;

/// A manifest with a child, and one that refers into the child.
fn site() -> TestEnv {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - file: {name: [DIR]/out, ensure: directory, [ME], mode: "0755"}
    - file: {name: [DIR]/out/a, alias: config, content: "a\n", [ME], mode: "0644", require: ["file#[DIR]/out"]}
    - apply: {name: sub/child.yaml, require: ["file#config"]}
    - exec:
        - reload: {command: "true", subscribe: ["file#config", "file#[DIR]/out/b"]}
        - check: {command: "true", control: {if: "false"}, require: ["apply#sub/child.yaml"]}
"#,
    );
    env.write(
        "sub/child.yaml",
        r#"
ccm:
  resources:
    - file: {name: [DIR]/out/b, content: "b\n", [ME], mode: "0644", require: ["file#[DIR]/out"]}
    - file: {name: [DIR]/out/c, content: "c\n", [ME], mode: "0644", require: ["file#[DIR]/out/b"]}
"#,
    );
    env
}

fn json<const N: usize>(env: &TestEnv, args: [&str; N]) -> Value {
    let output = env.run(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let graph = serde_json::from_slice(&output.stdout).unwrap();
    if let Err(error) = validator("graph").validate(&graph) {
        panic!("{error}: {graph:#}");
    }
    graph
}

/// `type#name`, without the directory of the test.
fn names(env: &TestEnv, graph: &Value) -> Vec<String> {
    let name = |node: &Value| {
        let name = node["name"].as_str().unwrap().replace(env.dir().to_str().unwrap(), "");
        format!("{}#{name}", node["type"].as_str().unwrap())
    };
    graph["nodes"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn resources_references_and_child_manifests() {
    let env = site();
    let graph = json(&env, ["graph", "manifest.yaml", "--format", "json"]);
    let names = names(&env, &graph);
    assert_eq!(
        names,
        [
            "file#/out",
            "file#/out/a",
            "apply#sub/child.yaml",
            "file#/out/b",
            "file#/out/c",
            "exec#reload",
            "exec#check"
        ]
    );
    let edges: Vec<String> = graph["edges"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edge| {
            let name = |end: &str| &names[edge[end].as_u64().unwrap() as usize];
            format!("{} {} {}", name("to"), edge["kind"].as_str().unwrap(), name("from"))
        })
        .collect();
    assert_eq!(
        edges,
        [
            "file#/out/a require file#/out",
            "apply#sub/child.yaml require file#/out/a",
            "file#/out/b require file#/out",
            "file#/out/c require file#/out/b",
            "file#/out/b apply apply#sub/child.yaml",
            "exec#reload subscribe file#/out/a",
            "exec#reload subscribe file#/out/b",
            "exec#check require apply#sub/child.yaml",
        ]
    );
    let clusters: Vec<&Value> =
        graph["nodes"].as_array().unwrap().iter().map(|node| &node["cluster"]).collect();
    assert_eq!(
        clusters,
        [
            &Value::Null,
            &Value::Null,
            &Value::Null,
            &0.into(),
            &0.into(),
            &Value::Null,
            &Value::Null
        ]
    );
    assert_eq!(graph["clusters"][0]["manifest"], "sub/child.yaml");
    assert_eq!(graph["nodes"][1]["alias"], "config");
    assert_eq!(graph["nodes"][1]["line"], 5);
    assert_eq!(graph["nodes"][5]["column"], 3);
    assert!(graph["nodes"][0].get("decision").is_none());
}

#[test]
fn a_plan_is_shown_and_nothing_is_changed() {
    let env = site();
    env.write("out/a", "old\n");
    let graph = json(&env, ["graph", "manifest.yaml", "--plan", "--format", "json"]);
    let outcomes: Vec<&Value> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| &node["decision"]["outcome"])
        .collect();
    assert_eq!(
        outcomes,
        ["stable", "change", "change", "create", "create", "refresh", "skipped"],
        "{graph:#}"
    );
    assert_eq!(graph["nodes"][1]["decision"]["changes"][0]["property"], "content");
    assert_eq!(env.read("out/a"), "old\n");
    assert!(!env.path("out/b").exists());
    let svg = env.ccm(["graph", "manifest.yaml", "--plan"]);
    assert!(svg.contains(">+ create</text>") && svg.contains(">↻ refresh</text>"), "{svg}");
    assert!(svg.contains("7 resources, 1 child manifest: 2 create, 2 change"), "{svg}");
}

#[test]
fn a_child_that_cannot_be_shown_is_a_node_with_a_note() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - apply:
        - missing.yaml: {}
        - wrong.yaml: {}
        - skipped.yaml: {control: {if: "false"}}
    - exec:
        - "true": {require: ["file#/of/another/run"]}
"#,
    );
    env.write("wrong.yaml", "ccm:\n  resources:\n    - fiel: {name: x}\n");
    env.write("skipped.yaml", "ccm:\n  resources:\n    - exec: {name: \"true\"}\n");
    let graph = json(&env, ["graph", "manifest.yaml", "--format", "json"]);
    let notes: Vec<String> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| env.steady(node["note"].as_str().unwrap()))
        .collect();
    assert_eq!(
        notes,
        [
            "[DIR]/missing.yaml does not exist yet",
            "cannot be read: [DIR]/wrong.yaml:3:7: unknown resource type `fiel` (did you mean `file`?)",
            "skipped by control",
            "file#/of/another/run is in none of these manifests",
        ]
    );
    for format in ["svg", "dot", "mermaid"] {
        let shown = env.ccm(["graph", "manifest.yaml", "--format", format]);
        assert!(shown.starts_with("exit: 0\n") && shown.contains("skipped by control"), "{shown}");
    }
}

#[test]
fn a_manifest_that_applies_itself_is_drawn_as_deep_as_it_would_run() {
    let env = TestEnv::new();
    env.manifest("ccm:\n  resources:\n    - apply: {name: manifest.yaml}\n    - apply: {name: ./manifest.yaml}\n");
    let graph = json(&env, ["graph", "manifest.yaml", "--format", "json"]);
    assert_eq!(graph["clusters"].as_array().unwrap().len(), 1000);
    let graph = graph.to_string();
    assert!(graph.contains("manifests are nested deeper than 10"));
    assert!(graph.contains("there are more than 1000 child manifests"));
}

#[test]
fn the_graph_goes_to_a_file() {
    let env = site();
    insta::assert_snapshot!(env.ccm(["graph", "manifest.yaml", "--output", "graph.svg"]), @"exit: 0");
    let svg = env.read("graph.svg");
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"));
    let printed = env.run(["graph", "manifest.yaml", "-o", "-"]);
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), svg);
    insta::assert_snapshot!(env.ccm(["graph", "manifest.yaml", "-o", "no/graph.svg"]), @"
    exit: 1
    --- stderr ---
    error: cannot write [DIR]/no/graph.svg
    caused by: [DIR]/no is not a directory: it does not exist
    hint: create the directory first
    ");
    // What it is drawn from stays.
    let child = env.read("sub/child.yaml");
    for (out, name) in [("manifest.yaml", "manifest.yaml"), ("sub/child.yaml", "sub/child.yaml")] {
        let shown = env.ccm(["graph", "manifest.yaml", "-o", out]);
        let wanted = format!(
            "exit: 64\n--- stderr ---\nerror: [DIR]/{name} is a source of this graph\n\
             hint: write to another file\n"
        );
        assert_eq!(shown, wanted);
    }
    assert_eq!(env.read("sub/child.yaml"), child);
    insta::assert_snapshot!(env.ccm(["graph", "nothing.yaml"]), @r"
    exit: 1
    --- stderr ---
    error: cannot read manifest nothing.yaml
    caused by: cannot open nothing.yaml
    caused by: No such file or directory (os error 2)
    ");
    insta::assert_snapshot!(env.ccm(["graph", "manifest.yaml", "--format", "png"]), @r"
    exit: 64
    --- stderr ---
    error: invalid value 'png' for '--format <FORMAT>'
      [possible values: svg, dot, mermaid, json]

    For more information, try '--help'.
    ");
}

#[test]
fn secrets_are_in_no_picture() {
    let env = TestEnv::new();
    env.manifest(
        r#"
data:
  # @secret
  token: sesame-opens
ccm:
  resources:
    - exec:
        - "echo {{ Data.token }}": {alias: "say {{ Data.token }}"}
        - "curl https://me:hunter2@host/": {require: ["exec#echo {{ Data.token }}"]}
    - archive:
        - [DIR]/x.tgz: {url: "http://127.0.0.1:1/x.tgz", username: me, password: swordfish, [ME]}
"#,
    );
    for format in ["svg", "dot", "mermaid", "json"] {
        let shown = env.ccm(["graph", "manifest.yaml", "--plan", "--format", format]);
        assert!(shown.starts_with("exit: 0\n"), "{shown}");
        for secret in ["sesame-opens", "hunter2", "swordfish"] {
            assert!(!shown.contains(secret), "{format} shows {secret}: {shown}");
        }
    }
}

/// A manifest that does not run leaves the decisions of others where they are.
#[test]
fn decisions_belong_to_the_manifest_that_they_are_about() {
    let env = TestEnv::new();
    env.write(
        "manifest.yaml",
        "ccm:\n  resources:\n    - exec: [{wrong: {command: /nowhere}}]\n    \
         - apply: [{a.yaml: {require: ['exec#wrong']}}]\n    - apply: [{b.yaml: {}}]\n",
    );
    env.write("a.yaml", "ccm: {resources: [{exec: [{same: {command: /bin/true}}]}]}\n");
    env.write("b.yaml", "ccm: {resources: [{exec: [{same: {command: /bin/true}}]}]}\n");
    let graph = json(&env, ["graph", "manifest.yaml", "--plan", "--format", "json"]);
    let nodes = graph["nodes"].as_array().unwrap().iter();
    let same: Vec<_> = nodes.filter(|node| node["name"] == "same").collect();
    assert_eq!(same[0]["decision"], Value::Null, "{graph}");
    assert_eq!(same[1]["decision"]["outcome"], "run", "{graph}");
}
