//! Templates, hierarchical data, facts and the environment.

use crate::TestEnv;

const MANIFEST: &str = r#"
data:
  # @require
  name: httpd
  # @validate isInt(value)
  port: 8080
hierarchy:
  order: ["role:{{ lookup('facts.role') }}", "os:${ lookup('facts.os') }"]
  merge: deep
overrides:
  os:debian: {name: apache2}
  role:web: {port: 80}
ccm:
  pre_message: "Installing {{ Data.name }}"
  resources:
    - file:
        - defaults: {[ME], mode: "0644"}
        - "[DIR]/{{ Data.name }}.conf":
            alias: "{{ Data.name }}"
            content: |
              port = ${ Data.port + 1 }
              who = {{ Environ.WHO ?? "nobody" }}
    - exec:
        - reload:
            command: echo ${HOME:-none} ${ Data.name }
            provider: shell
            logoutput: true
            refresh_only: true
            subscribe: ["file#{{ Data.name }}"]
        - skipped:
            command: "{{ nothing.like.this }}"
            control: {unless: Facts.os == "debian"}
"#;

#[test]
fn data_is_resolved_by_facts_and_reaches_every_property() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    env.write(".env", "export WHO='me'\n");
    let args = ["apply", "manifest.yaml", "--fact", "os=debian", "--fact", "role=web"];
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
    Installing apache2
      + file#[DIR]/apache2.conf (apache2)  content +2, [ME], mode 0644
      | [DIR] apache2
      ↻ exec#reload  ran, because file#apache2 changed

    Applied manifest.yaml in [TIME]: 1 created, 1 refreshed, 1 skipped
    ");
    assert_eq!(env.read("apache2.conf"), "port = 81\nwho = me\n");
    let again = env.run(["apply", "manifest.yaml", "--fact", "os=debian", "--no-read-env"]);
    assert!(again.status.success());
    assert_eq!(env.read("apache2.conf"), "port = 8081\nwho = nobody\n");
}

#[test]
fn external_data_wins() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    env.write("external.yaml", "data: {name: external}\n");
    let args = ["apply", "manifest.yaml", "--fact", "os=debian", "--hiera", "external.yaml"];
    assert!(env.run(args).status.success());
    assert!(env.path("external.conf").exists());
    let missing = env.run(["apply", "manifest.yaml", "--hiera", "missing.yaml"]);
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn the_resolved_manifest_shows_its_data() {
    let env = TestEnv::new();
    env.manifest(MANIFEST);
    let rendered = env.run(["apply", "manifest.yaml", "--render", "--fact", "os=debian"]);
    let rendered = String::from_utf8(rendered.stdout).unwrap();
    assert!(rendered.starts_with("data:\n  name: apache2\n  port: 8080\n"), "{rendered}");
    assert!(rendered.contains("alias: apache2"), "{rendered}");
    assert!(rendered.contains("port = ${ Data.port + 1 }"), "deferred: {rendered}");
}

#[test]
fn broken_rules_are_all_told_with_their_place() {
    let env = TestEnv::new();
    env.manifest(
        "data:\n  # @require\n  name: \"\"\n  port: x # @validate isInt(value)\n  # @requird\n  \
         other: 1\nccm:\n  resources:\n    - exec: [\"true\"]\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: key `name` is required but has no value
     --> manifest.yaml:3:3
      |
    3 |   name: ""
      |   ^^^^

    error: key `port` fails its validation `isInt(value)`
     --> manifest.yaml:4:3
      |
    4 |   port: x # @validate isInt(value)
      |   ^^^^
    "#);
}

#[test]
fn wrong_expressions_are_shown_with_a_caret() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - exec:\n        - \"echo {{ Data.x + nope }}\":\n        - later:\n            \
         command: echo {{ 1 / }}\n        - control: {command: \"true\", control: {if: \"1 + 1\"}}\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: exec#echo {{ Data.x + nope }}: name: unknown name nope
     --> manifest.yaml:4:29
      |
    4 |         - "echo {{ Data.x + nope }}":
      |                             ^^^^

    error: exec#control: control.if: `1 + 1` must be true or false, but is of type int
     --> manifest.yaml:7:53
      |
    7 |         - control: {command: "true", control: {if: "1 + 1"}}
      |                                                     ^^^^^
    "#);
    env.manifest(
        "ccm:\n  resources:\n    - exec:\n        - later:\n            \
         command: echo {{ lookup('data.missing') }}\n        - control: {command: \"true\", control: {if: \"1 + 1\"}}\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report"]), @r#"
    exit: 1
    --- stdout ---
      ✗ exec#later
            cannot resolve property `command` at manifest.yaml:5:22: lookup: the key `data.missing` does not exist
             --> template:1:9
              |
            1 | echo {{ lookup('data.missing') }}
              |         ^^^^^^^^^^^^^^^^^^^^^^
      ✗ exec#control
            cannot evaluate control `if` at manifest.yaml:6:52: `1 + 1` must be true or false, but is "2"
    "#);
}

#[test]
fn nil_and_unclosed_placeholders_are_errors_of_the_manifest() {
    let env = TestEnv::new();
    env.manifest(
        "data: {port: 80, none: null}\nccm:\n  pre_message: \"{{ Data.nothing }}\"\n  resources:\n    - \
         file:\n        - /a:\n            ensure: absent\n            alias: |\n              one\n              \
         on {{ Data.prot }}\n    - exec:\n        - echo ${ Data.none }: {provider: posix}\n        - echo \
         {{ Data.port }: {}\n        - \"echo {{ Data.port + 'x }}\": {}\n        - echo ${ Data.port: {}\n        - echo \
         ${HOME: {provider: shell}\n",
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: pre_message: `Data.nothing` has no value
     --> manifest.yaml:3:20
      |
    3 |   pre_message: "{{ Data.nothing }}"
      |                    ^^^^^^^^^^^^
      |
      = hint: for an optional value, write `Data.nothing ?? "default"`

    error: file#/a: alias: `Data.prot` has no value; did you mean `Data.port`?
      --> manifest.yaml:10:21
       |
    10 |               on {{ Data.prot }}
       |                     ^^^^^^^^^

    error: exec#echo ${ Data.none }: name: `Data.none` has no value
      --> manifest.yaml:12:19
       |
    12 |         - echo ${ Data.none }: {provider: posix}
       |                   ^^^^^^^^^
       |
       = hint: for an optional value, write `Data.none ?? "default"`

    error: exec#echo {{ Data.port }: name: `{{` is never closed
      --> manifest.yaml:13:16
       |
    13 |         - echo {{ Data.port }: {}
       |                ^^^^^^^^^^^^^^
       |
       = hint: close it with `}}`, or write `{{ "{{" }}` for a literal `{{`

    error: exec#echo {{ Data.port + 'x }}: name: `{{` is never closed, because a quote after it is never closed
      --> manifest.yaml:14:17
       |
    14 |         - "echo {{ Data.port + 'x }}": {}
       |                 ^^^^^^^^^^^^^^^^^^^^

    error: exec#echo ${ Data.port: name: `${` is never closed
      --> manifest.yaml:15:16
       |
    15 |         - echo ${ Data.port: {}
       |                ^^^^^^^^^^^^
       |
       = hint: close it with `}`, or write `${ "${" }` for a literal `${`
    "#);
    let json = env.run(["validate", "--json", "manifest.yaml"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 6);
}

#[test]
fn errors_in_the_data_section_have_a_place() {
    let env = TestEnv::new();
    let resources = "ccm:\n  resources:\n    - exec:\n        - \"true\":\n";
    let shown = |data: &str| {
        env.manifest(&format!("{data}{resources}"));
        env.ccm(["validate", "manifest.yaml"])
    };
    insta::assert_snapshot!(shown("hierarchy:\n  order: [a]\n  merge: deap\ndata: {x: 1}\n"), @"
    exit: 1
    --- stderr ---
    error: `hierarchy.merge` must be `first` or `deep`, not `deap`
     --> manifest.yaml:3:10
      |
    3 |   merge: deap
      |          ^^^^
      |
      = hint: did you mean `deep`?
    ");
    insta::assert_snapshot!(shown("hierarchy:\n  order: [a]\n  merges: deep\n"), @"
    exit: 1
    --- stderr ---
    error: unknown key `merges` in `hierarchy`
     --> manifest.yaml:3:3
      |
    3 |   merges: deep
      |   ^^^^^^
      |
      = hint: did you mean `merge`?
    ");
    insta::assert_snapshot!(shown("data:\n  a:\n    b: \"x {{ Facts.hostt }}\"\n"), @r#"
    exit: 1
    --- stderr ---
    error: `Facts.hostt` has no value; did you mean `Facts.host`?
     --> manifest.yaml:3:14
      |
    3 |     b: "x {{ Facts.hostt }}"
      |              ^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(shown("data:\n  a: \"x {{ Facts.host\"\n"), @r#"
    exit: 1
    --- stderr ---
    error: `{{` is never closed
     --> manifest.yaml:2:6
      |
    2 |   a: "x {{ Facts.host"
      |      ^^^^^^^^^^^^^^^^^
      |
      = hint: close it with `}}`, or write `{{ "{{" }}` for a literal `{{`
    "#);
}

#[test]
fn a_failed_name_brings_no_other_errors() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - file:\n        - \"{{ Data.path }}/a\": {ensure: absent}\n        - \
         \"{{ Data.path }}/a\": {ensure: absent}\n        - /b: {ensure: \"{{ nope }}\", require: [file#/x/a]}\n",
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: file#{{ Data.path }}/a: name: `Data.path` has no value
     --> manifest.yaml:4:15
      |
    4 |         - "{{ Data.path }}/a": {ensure: absent}
      |               ^^^^^^^^^
      |
      = hint: for an optional value, write `Data.path ?? "default"`

    error: file#{{ Data.path }}/a: name: `Data.path` has no value
     --> manifest.yaml:5:15
      |
    5 |         - "{{ Data.path }}/a": {ensure: absent}
      |               ^^^^^^^^^
      |
      = hint: for an optional value, write `Data.path ?? "default"`

    error: file#/b: ensure: unknown name nope
     --> manifest.yaml:6:28
      |
    6 |         - /b: {ensure: "{{ nope }}", require: [file#/x/a]}
      |                            ^^^^
    "#);
}

#[test]
fn expressions_of_secrets_are_not_shown() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - archive:\n        - [DIR]/a.tgz:\n            url: http://127.0.0.1:1/a.tgz\n            \
         owner: root\n            group: root\n            username: me\n            \
         password: \"{{ 'hunter2' + 1 }}\"\n            headers: {X-Token: \"{{ hunter2 }}\"}\n    - exec:\n        - \
         deferred: {command: \"true\", environment: [\"A={{ 'hunter2' + 1 }}\"]}\n",
    );
    let output = env.ccm(["validate", "manifest.yaml"]);
    assert!(!output.contains("hunter2"), "{output}");
    insta::assert_snapshot!(output, @"
    exit: 1
    --- stderr ---
    error: archive#[DIR]/a.tgz: password: the template cannot be resolved
     --> manifest.yaml:9:27
      |
    9 |             password: *********************
      |                           ^^^^^^^^^^^^^
      |
      = hint: ccm does not show expressions of secret properties; test the expression in another property

    error: archive#[DIR]/a.tgz: headers: the template cannot be resolved
      --> manifest.yaml:10:36
       |
    10 |             headers: {X-Token: ***************}
       |                                    ^^^^^^^
       |
       = hint: ccm does not show expressions of secret properties; test the expression in another property
    ");
    env.manifest(
        "ccm:\n  resources:\n    - exec:\n        - deferred: {command: \"true\", environment: \
         [\"A={{ 'hunter2' + 1 }}\"]}\n",
    );
    let output = env.ccm(["apply", "manifest.yaml", "--no-report"]);
    assert!(!output.contains("hunter2"), "{output}");
    insta::assert_snapshot!(output, @"
    exit: 1
    --- stdout ---
      ✗ exec#deferred
            cannot resolve property `environment` at manifest.yaml:4:52: the template cannot be resolved
            hint: ccm does not show expressions of secret properties; test the expression in another property
    ");
}

#[test]
fn nil_in_deferred_placeholders_fails_the_resource() {
    let env = TestEnv::new();
    env.manifest(
        "data: {port: 80}\nccm:\n  resources:\n    - file:\n        - defaults: {[ME], mode: \"0644\"}\n        \
         - [DIR]/a: {content: \"a\\n  port {{ Data.prot }}\\n\"}\n        - [DIR]/b: {content: \"{{ Data.missing }}\"}\n        \
         - [DIR]/c: {content: \"{{ Data.prot ?? 'none' }} ${ lookup('data.prot', 'x') }\"}\n    - exec:\n        - \
         shell: {provider: shell, command: \"echo ${HOME#/} ${ Data.port } > [DIR]/d\"}\n        - unclosed: {provider: shell, command: \"echo {{ x\"}\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--no-report"]), @r#"
    exit: 1
    --- stdout ---
      ✗ file#[DIR]/a
            cannot resolve property `content` at manifest.yaml:6:40: `Data.prot` has no value; did you mean `Data.port`?
             --> template:2:9
              |
            2 | port {{ Data.prot }}
              |         ^^^^^^^^^
      ✗ file#[DIR]/b
            cannot resolve property `content` at manifest.yaml:7:40: `Data.missing` has no value
             --> template:1:4
              |
            1 | {{ Data.missing }}
              |    ^^^^^^^^^^^^
            hint: for an optional value, write `Data.missing ?? "default"`
      + file#[DIR]/c  content +1, [ME], mode 0644
      » exec#shell  echo ${HOME#/} 80 > [DIR]/d
      ✗ exec#unclosed
            cannot resolve property `command` at manifest.yaml:11:48: `{{` is never closed
             --> template:1:6
              |
            1 | echo {{ x
              |      ^^^^
            hint: close it with `}}`, or write `{{ "{{" }}` for a literal `{{`
    "#);
    assert!(!env.path("a").exists() && !env.path("b").exists());
    assert_eq!(env.read("c"), "none x");
    assert!(env.read("d").ends_with(" 80\n"));
}

#[test]
fn files_made_earlier_are_read_later() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - file:\n        - defaults: {[ME], mode: \"0644\"}\n        - \
         [DIR]/a: {content: one}\n        - [DIR]/b: {content: \"{{ file('a') | upper() }} {{ \
         template('t.templ') }}\"}\n",
    );
    env.write("t.templ", "from {{ 1 + 1 }} templates");
    assert!(env.run(["apply", "manifest.yaml"]).status.success());
    assert_eq!(env.read("b"), "ONE from 2 templates");
}

#[test]
fn ensure_reads_data_from_the_directory() {
    let env = TestEnv::new();
    env.write(".hiera", "data: {name: here}\n");
    let output = env.run(["ensure", "file", "[DIR]/{{ Data.name }}", "--content", "{{ 6 * 7 }}"]);
    assert!(output.status.success());
    assert_eq!(env.read("here"), "42");
    let skipped = env.run(["ensure", "exec", "touch [DIR]/x", "--if", "Data.name == 'there'"]);
    assert!(skipped.status.success() && !env.path("x").exists());
    insta::assert_snapshot!(env.ccm(["ensure", "exec", "echo {{ Data. }}"]), @"
    exit: 1
    --- stderr ---
    error: exec#echo {{ Data. }}: name: unexpected end of the expression
     --> template:1:14
      |
    1 | echo {{ Data. }}
      |              ^
    ");
}

#[test]
fn built_in_facts_have_the_names_of_go_fields_too() {
    let env = TestEnv::new();
    env.write("t.jet", "[[ facts.host.info.Os ]]");
    for text in [
        "{{ Facts.host.info.Os }}",
        "{{ Facts.Host.Info.Os }}",
        "{{ Facts['host']['info']['Os'] }}",
        "{{ lookup('facts.host.info.Os') }}",
        "{{ 'Os' in Facts.host.info ? Facts.host.info.Os : 'no' }}",
        "{{ jet('t.jet') }}",
        "{{ Facts.host.info.os }}",
    ] {
        let output = env.run(["ensure", "file", "[DIR]/os", "--content", text]);
        assert!(output.status.success(), "{text}: {}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(env.read("os"), "linux", "{text}");
    }
    let unknown = env.run(["ensure", "exec", "echo {{ Facts.host.info.oS }}"]);
    assert!(!unknown.status.success());
}

#[test]
fn facts_are_printed_and_queried() {
    let env = TestEnv::new();
    let all = env.run(["facts"]);
    let all: serde_json::Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!(all["host"]["info"]["os"], "linux");
    insta::assert_snapshot!(env.ccm(["facts", "host.info.os"]), @r#"
    exit: 0
    --- stdout ---
    "linux"
    "#);
    insta::assert_snapshot!(env.ccm(["facts", "site", "--yaml", "--fact", "site.name=berlin"]), @"
    exit: 0
    --- stdout ---
    name: berlin
    ");
    insta::assert_snapshot!(env.ccm(["facts", "no.such.fact"]), @"
    exit: 1
    --- stdout ---
    null
    ");
    env.write("facts.yaml", "site: {name: paris, rack: 4}\n");
    insta::assert_snapshot!(
        env.ccm(["facts", "site", "--facts", "facts.yaml", "--fact", "site.name=berlin"]), @r#"
    exit: 0
    --- stdout ---
    {
      "name": "berlin",
      "rack": 4
    }
    "#);
    assert_eq!(env.run(["facts", "--fact", "novalue"]).status.code(), Some(64));
    assert_eq!(env.run(["facts", "--facts", "missing.yaml"]).status.code(), Some(1));
}

#[test]
fn hiera_documents_are_resolved() {
    let env = TestEnv::new();
    env.write(
        "data.yaml",
        "hierarchy: {order: [\"role:{{ Facts.role }}\"], merge: deep}\ndata: {list: [1], log-level: \
         info, text: it's}\noverrides:\n  role:web: {list: [2], nested: {a: 1}}\n",
    );
    insta::assert_snapshot!(env.ccm(["hiera", "parse", "data.yaml", "role=web"]), @r#"
    exit: 0
    --- stdout ---
    {
      "list": [
        1,
        2
      ],
      "log-level": "info",
      "nested": {
        "a": 1
      },
      "text": "it's"
    }
    "#);
    insta::assert_snapshot!(env.ccm(["hiera", "parse", "data.yaml", "role=web", "--yaml", "--query", "nested"]), @"
    exit: 0
    --- stdout ---
    a: 1
    ");
    insta::assert_snapshot!(
        env.ccm(["hiera", "parse", "data.yaml", "role=web", "--env", "--env-prefix", "APP", "-D", "text=x y"]), @r#"
    exit: 0
    --- stdout ---
    APP_LIST='[1,2]'
    APP_LOG_LEVEL=info
    APP_NESTED='{"a":1}'
    APP_TEXT='x y'
    "#);
    insta::assert_snapshot!(env.ccm(["hiera", "facts", "a.b=c", "--yaml", "--no-system-facts"]), @"
    exit: 0
    --- stdout ---
    a:
      b: c
    ");
    env.write("facts.json", "{\"role\": \"web\"}");
    let found =
        env.run(["hiera", "parse", "data.yaml", "--facts", "facts.json", "--query", "list.#"]);
    assert_eq!(found.stdout, b"2\n");
    assert_eq!(env.run(["hiera", "parse", "missing.yaml"]).status.code(), Some(1));
}

#[test]
fn errors_in_data_and_fact_files_are_shown_once_with_their_place() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{exec: [\"true\"]}]}\n");
    env.write("member.yaml", "data:\n  a: \"x{{ Facts.os.family }}\"\n");
    env.write("syntax.yaml", "data:\n  a: 1\n a: 2\n");
    env.write("syntax.json", "{\"data\": {\"a\": }}");
    env.write("rules.yaml", "data:\n  # @require\n  a: \"\"\n  # @validate isInt(value)\n  b: x\n");
    env.write("facts.yaml", "a: 1\n\tb: 2\n");
    let pictures = |files: [&str; 4]| {
        let apply = files.map(|file| env.ccm(["apply", "manifest.yaml", "--hiera", file]));
        let parse = files.map(|file| env.ccm(["hiera", "parse", file]));
        assert_eq!(apply, parse);
        apply.join("")
    };
    let files = ["member.yaml", "syntax.yaml", "syntax.json", "rules.yaml"];
    insta::assert_snapshot!(pictures(files), @r#"
    exit: 1
    --- stderr ---
    error: `Facts.os` has no value
     --> member.yaml:2:11
      |
    2 |   a: "x{{ Facts.os.family }}"
      |           ^^^^^^^^^^^^^^^
      |
      = hint: `Facts` has the keys cpu, host, memory, network, partition, user; for an optional value, write `Facts.os?.family ?? "default"`

    exit: 1
    --- stderr ---
    error: while parsing a block mapping, did not find expected key
     --> syntax.yaml:3:2
      |
    3 |  a: 2
      |  ^

    exit: 1
    --- stderr ---
    error: unexpected character
     --> syntax.json:1:16
      |
    1 | {"data": {"a": }}
      |                ^

    exit: 1
    --- stderr ---
    error: key `a` is required but has no value
     --> rules.yaml:3:3
      |
    3 |   a: ""
      |   ^

    error: key `b` fails its validation `isInt(value)`
     --> rules.yaml:5:3
      |
    5 |   b: x
      |   ^
    "#);
    insta::assert_snapshot!(env.ccm(["facts", "a", "--facts", "facts.yaml"]), @"
    exit: 1
    --- stderr ---
    error: a tab in the indentation
     --> facts.yaml:1:4
      |
    1 | a: 1
      |    ^
      |
      = hint: indent with spaces
    ");
}
