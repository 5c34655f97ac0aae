//! What `ccm validate` finds before anything runs.

use serde_json::Value;

use crate::TestEnv;

/// The findings of a manifest: severity, line and column, message, hint.
fn findings(env: &TestEnv) -> Vec<String> {
    let output = env.run(["validate", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let has_errors = findings.iter().any(|finding| finding["severity"] == "error");
    assert_eq!(report["valid"], !has_errors);
    assert_eq!(output.status.code(), Some(i32::from(has_errors)));
    let shown = findings.iter().map(|finding| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        let hint = finding["hint"].as_str().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let place = format!("{}:{}", finding["line"], finding["column"]);
        env.steady(&format!("{} {place} {}{hint}", text("severity"), text("message")))
    });
    shown.collect()
}

#[test]
fn control_that_cannot_be_evaluated_is_found_and_fails_only_its_resource() {
    let env = TestEnv::new();
    env.manifest(
        r#"
data: {port: 80}
ccm:
  resources:
    - exec:
        - defaults: {control: {if: "Data.port >"}}
        - echo a: {}
        - echo b: {}
    - exec:
        - echo c:
            control:
              if: |
                Data.port == 80 and
                  nope(1)
              unless: "'te' + 'xt'"
        - echo d: {control: {if: "{{ Data.port }}", unless: "1 + 1"}}
        - echo fine: {control: {if: "Data.port == 80", unless: "Data.off ?? false"}}
        - echo late: {control: {if: "Data.port"}}
"#,
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: exec#echo a: control.if: unexpected end of the expression
     --> manifest.yaml:6:48
      |
    6 |         - defaults: {control: {if: "Data.port >"}}
      |                                                ^

    error: exec#echo c: control.if: unknown name nope
      --> manifest.yaml:14:19
       |
    14 |                   nope(1)
       |                   ^^^^^^^

    error: exec#echo c: control.unless: `'te' + 'xt'` must be true or false, but is of type string
      --> manifest.yaml:15:24
       |
    15 |               unless: "'te' + 'xt'"
       |                        ^^^^^^^^^^^

    error: exec#echo d: control.if: a map key must be a name, a string, a number or an expression in parentheses
      --> manifest.yaml:16:36
       |
    16 |         - echo d: {control: {if: "{{ Data.port }}", unless: "1 + 1"}}
       |                                    ^
       |
       = hint: write the expression without `{{ }}` or `${ }` around it

    error: exec#echo d: control.unless: `1 + 1` must be true or false, but is of type int
      --> manifest.yaml:16:62
       |
    16 |         - echo d: {control: {if: "{{ Data.port }}", unless: "1 + 1"}}
       |                                                              ^^^^^
    "#);
    assert_eq!(findings(&env).len(), 5);
    let output = env.run(["apply", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let events = report["events"].as_array().unwrap();
    let failed: Vec<bool> = events.iter().map(|e| e["failed"].as_bool().unwrap()).collect();
    assert_eq!(failed, [true, true, true, true, false, true], "the run goes on");
    assert_eq!(events[4]["changed"], true);
}

#[test]
fn overrides_that_no_entry_of_the_hierarchy_matches_are_warned_of() {
    let env = TestEnv::new();
    let hierarchy = "hierarchy:\n  order: [\"os:${ lookup('facts.host.info.os') }\", common]\n\
                     data: {a: 0}\noverrides:\n  os:linux: {a: 1}\n  so:debian: {a: 2}\n  \
                     comon: {a: 3}\n  common: {a: 4}\n  elsewhere: {a: 5}\n";
    let resources = "ccm: {resources: [{exec: [\"true\"]}]}\n";
    env.manifest(&format!("{hierarchy}{resources}"));
    let wanted = [
        "warning 6:3 no entry of `hierarchy.order` can match the override `so:debian` (did you \
         mean the entry `os:${ lookup('facts.host.info.os') }`?)",
        "warning 7:3 no entry of `hierarchy.order` can match the override `comon` (did you mean \
         the entry `common`?)",
        "warning 9:3 no entry of `hierarchy.order` can match the override `elsewhere`",
    ];
    assert_eq!(findings(&env), wanted);
    let text = env.ccm(["apply", "manifest.yaml", "--noop"]);
    assert!(text.starts_with("exit: 0") && text.contains("override `comon`"), "{text}");
    // A document of its own.
    env.manifest(resources);
    env.write("data.yaml", hierarchy);
    for text in [
        env.ccm(["validate", "manifest.yaml", "--hiera", "data.yaml"]),
        env.ccm(["hiera", "parse", "data.yaml"]),
    ] {
        assert!(text.starts_with("exit: 0"), "{text}");
        let wanted = "warning: data.yaml:7:3: no entry of `hierarchy.order` can match the \
                      override `comon` (did you mean the entry `common`?)\n";
        assert_eq!(text.matches(wanted).count(), 1, "{text}");
    }
}

#[test]
fn unknown_members_that_templates_print_are_warned_of_once() {
    let env = TestEnv::new();
    env.write(
        "r.jet",
        "- exec:\n    - \"echo [[ data.port ]] [[ data.prot ]] [[ data.prot ]]\":\n",
    );
    env.manifest("data: {port: 80}\nccm: {resources_jet_file: r.jet}\n");
    let wanted = "[DIR]/r.jet:2:32: `Data.prot` has no value; did you mean `Data.port`?";
    assert_eq!(findings(&env), [format!("warning null:null {wanted}")]);
    for command in ["validate", "apply"] {
        let text = env.ccm([command, "manifest.yaml"]);
        assert!(text.starts_with("exit: 0"), "{text}");
        assert_eq!(text.matches("Data.prot").count(), 1, "{text}");
        assert!(text.contains(wanted), "{text}");
    }

    // Inside of a property, and in the files of scaffolds.
    env.write("x.jet", "[[ facts.hots ]][[ if data.opt ]]x[[ end ]]");
    env.write("jet/a.conf", "[[ data.port ]][[ data.prot ]]\n");
    env.write("go/b.conf", "{{ .Data.port }}{{ .Data.prot }}{{ .Data.opt | default 1 }}\n");
    env.manifest(
        r#"
data: {port: 80}
ccm:
  resources:
    - exec: [{"echo a": {environment: ["A=a{{ jet('x.jet') }}", "B=b{{ template('x.jet') }}"]}}]
    - scaffold:
        - [DIR]/out/jet: {source: jet, engine: jet}
        - [DIR]/out/go: {source: go, engine: go}
"#,
    );
    let output = env.run(["apply", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["summary"]["failed"], 0, "{report}");
    let warnings = report["warnings"].as_array().unwrap().iter();
    let warnings: Vec<String> = warnings
        .map(|warning| {
            let text = |key: &str| warning[key].as_str().unwrap_or_default();
            env.steady(&format!("{} {}", text("resource"), text("message")))
        })
        .collect();
    assert_eq!(
        warnings,
        [
            "exec#echo a x.jet:1:4: `Facts.hots` has no value; did you mean `Facts.host`?",
            "scaffold#[DIR]/out/jet a.conf:1:19: `Data.prot` has no value; did you mean `Data.port`?",
            "scaffold#[DIR]/out/go b.conf:1:20: `Data.prot` has no value; did you mean `Data.port`?",
        ]
    );
    assert_eq!(env.read("out/go/b.conf"), "80<no value>1\n", "the language is as it was");
}

#[test]
fn facts_have_the_names_of_go_fields_in_all_languages() {
    let env = TestEnv::new();
    env.write(
        "jet/a",
        "[[ facts.host.info.Os ]] [[ facts.Host.Info.Os ]] [[ .Facts.Host.info.Os ]]\n",
    );
    // The maps are looked into twice: the first look makes them the template's own.
    let go = "{{ .facts.host.info.os }} {{ .Facts.Host.Info.Os }} {{ .Facts.host.info.Os }} \
              {{ get .facts.host.info \"Os\" }} {{ hasKey .facts.Host.info \"Os\" }} \
              {{ range .facts.Network.Interfaces }}{{ if not .Name }}nameless{{ end }}{{ end }}\n";
    env.write("go/b", go);
    env.manifest(
        r#"
ccm:
  resources:
    - exec:
        - "echo {{ Facts.host.info.Os }} {{ Facts.Host.Info.Os }} {{ Facts.Host?.info['Os'] }}": {logoutput: true}
        - "echo {{ jet('[[ facts.Host.info.Os ]] [[ Facts.host.Info.os ]]') }}": {logoutput: true}
    - scaffold:
        - [DIR]/out/jet: {source: jet, engine: jet}
        - [DIR]/out/go: {source: go, engine: go}
"#,
    );
    // Facts of one's own go on top without hiding the others.
    let text = env.ccm(["apply", "manifest.yaml", "--fact", "host.info.own=1"]);
    assert!(text.starts_with("exit: 0") && !text.contains("warning"), "{text}");
    assert!(text.contains("linux linux linux\n") && text.contains(": linux linux\n"), "{text}");
    assert_eq!(env.read("out/jet/a"), "linux linux linux\n");
    assert_eq!(env.read("out/go/b"), "linux linux linux linux true \n");
}

#[test]
fn manifests_that_apply_themselves_without_end_are_errors() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{apply: {name: sub/a.yaml}}]}\n");
    env.write("sub/a.yaml", "ccm: {resources: [{apply: {name: ../manifest.yaml}}]}\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: apply#../manifest.yaml: the manifest applies itself without end, through [DIR]/sub/a.yaml
     --> [DIR]/sub/a.yaml:1:34
      |
    1 | ccm: {resources: [{apply: {name: ../manifest.yaml}}]}
      |                                  ^^^^^^^^^^^^^^^^
      |
      = hint: stop the recursion with `control`
    ");
    env.manifest("ccm: {resources: [{apply: {name: manifest.yaml}}]}\n");
    assert!(
        env.ccm(["validate", "manifest.yaml"])
            .contains("the manifest applies itself without end\n")
    );
    // A condition may stop it.
    for stopped in [
        "ccm: {resources: [{apply: {name: manifest.yaml, control: {if: 'true'}}}]}\n",
        "ccm: {resources: [{apply: {name: sub/a.yaml, control: {if: 'true'}}}]}\n",
    ] {
        env.manifest(stopped);
        assert!(env.ccm(["validate", "manifest.yaml"]).starts_with("exit: 0"), "{stopped}");
    }
}

#[test]
fn sources_that_do_not_exist_are_found() {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - file:\n        - defaults: {[ME], mode: \"0644\"}\n        \
         - /a: {source: nope.conf}\n        - /b: {source: /no/such/file}\n        - /c: {source: \
         there.conf}\n        - /d: {source: nope.conf, control: {if: 'false'}}\n        - /e: \
         {source: '{{ Data.f }}'}\n        - \"[DIR]/made\": {content: x}\n        - /f: {source: \
         made}\n    - scaffold: {/g: {source: trees}}\n    - exec: [\"true\"]\n    - file: \
         {name: /h, source: later, [ME], mode: \"0644\"}\n",
    );
    env.write("there.conf", "");
    env.write("d.yaml", "data: {f: there.conf}\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml", "--hiera", "d.yaml"]), @"
    exit: 1
    --- stderr ---
    error: file#/a: source: `nope.conf` does not exist
     --> manifest.yaml:5:24
      |
    5 |         - /a: {source: nope.conf}
      |                        ^^^^^^^^^
      |
      = hint: the path is relative to the directory of this manifest: [DIR]/nope.conf

    warning: file#/b: source: `/no/such/file` does not exist
     --> manifest.yaml:6:24
      |
    6 |         - /b: {source: /no/such/file}
      |                        ^^^^^^^^^^^^^

    error: scaffold#/g: source: `trees` does not exist
      --> manifest.yaml:12:31
       |
    12 |     - scaffold: {/g: {source: trees}}
       |                               ^^^^^
       |
       = hint: the path is relative to the directory of this manifest: [DIR]/trees
    ");
}

#[test]
fn entries_of_the_hierarchy_whose_fact_does_not_exist_are_warned_of() {
    let env = TestEnv::new();
    env.manifest(
        "hierarchy:\n  order:\n    - \"role:{{ Facts.role }}\"\n    - \"os:{{ \
         Facts.host.info.platfromFamily }}\"\ndata: {a: 1}\noverrides: {}\nccm: {resources: \
         [{exec: [\"true\"]}]}\n",
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml", "--fact", "site=x"]), @r#"
    exit: 0
    --- stdout ---
    manifest.yaml is valid: 1 resource
    --- stderr ---
    warning: this entry matches nothing on this machine: `Facts.role` has no value
     --> manifest.yaml:3:7
      |
    3 |     - "role:{{ Facts.role }}"
      |       ^^^^^^^^^^^^^^^^^^^^^^^

    warning: this entry matches nothing on this machine: `Facts.host.info.platfromFamily` has no value; did you mean `Facts.host.info.platformFamily`?
     --> manifest.yaml:4:7
      |
    4 |     - "os:{{ Facts.host.info.platfromFamily }}"
      |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    "#);
    assert!(!env.ccm(["apply", "manifest.yaml"]).contains("warning"));
}

#[test]
fn templates_that_cannot_be_parsed_are_found() {
    let env = TestEnv::new();
    env.write("good/a.conf", "port = [[ data.port ]]\n");
    env.write("bad/a.conf", "port = [[ if data.port ]]\n");
    env.write("bad/_partials/p.conf", "[[ end ]]\n");
    env.write("go/a.conf", "{{ if .data.port }}\n");
    env.write("page.jet", "[[ range ]]\n");
    env.write("page.templ", "{{ Data.port + }}\n");
    env.manifest(
        "
        data: {port: 80}
        ccm:
          resources:
            - scaffold:
                - [DIR]/made: {source: good}
                - [DIR]/b: {source: bad}
                - [DIR]/c: {source: go, engine: go}
                - [DIR]/later: {source: '[DIR]/made'}
            - file:
                - defaults: {owner: '0', group: '0', mode: '0644'}
                - [DIR]/d: {content: \"{{ jet('page.jet') }}\"}
                - [DIR]/e: {content: \"{{ template('page.templ') }}\"}
                - [DIR]/f: {content: \"{{ jet('made-later.jet') }}\"}
        ",
    );
    let found = env.ccm(["validate", "manifest.yaml"]);
    for words in ["scaffold#[DIR]/b: source: ", "a.conf", "p.conf", "scaffold#[DIR]/c", "page.jet"]
    {
        assert!(found.contains(words), "{words}: {found}");
    }
    assert!(found.contains("page.templ"), "{found}");
    for words in ["scaffold#[DIR]/made", "scaffold#[DIR]/later", "file#[DIR]/f"] {
        assert!(!found.contains(words), "{words}: {found}");
    }
}
