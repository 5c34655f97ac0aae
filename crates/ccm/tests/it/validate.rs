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
fn control_is_checked_where_other_things_are_wrong_too() {
    let env = TestEnv::new();
    // Data that cannot be resolved, resources out of a template, child manifests.
    env.manifest(
        "hierarchy: {merge: deep}\nccm:\n  resources:\n    - exec: [{a: {control: {if: \"1 +\"}}}]\n",
    );
    assert_eq!(
        findings(&env),
        [
            "error 1:12 `hierarchy.order` must be a list of strings",
            "error 4:37 control.if: unexpected end of the expression",
        ]
    );
    env.manifest("ccm: {resources_jet_file: r.jet}\n");
    env.write("r.jet", "- exec:\n    - a: {control: {unless: \"[[ 1 + 1 ]]\"}}\n");
    assert_eq!(
        findings(&env),
        ["error 2:30 control.unless: `2` must be true or false, but is of type int"]
    );
    env.manifest("ccm: {resources: [{apply: {name: child.yaml}}]}\n");
    env.write("child.yaml", "ccm: {resources: [{exec: [{a: {control: {if: nope}}}]}]}\n");
    assert_eq!(findings(&env), ["error 1:46 control.if: unknown name nope"]);
}

#[test]
fn child_manifests_that_do_not_exist_are_errors() {
    let env = TestEnv::new();
    env.write("sub/child.yaml", "ccm: {resources: [{apply: {name: gone.yaml}}]}\n");
    env.manifest(
        "ccm:\n  resources:\n    - apply:\n        - sub/chld.yaml: {}\n        - sub/child: {}\n        \
         - sub/child.yaml: {}\n        - skipped.yaml: {control: {if: \"false\"}}\n    - apply: {name: nowhere/x.yaml}\n",
    );
    assert_eq!(
        findings(&env),
        [
            "error 4:11 the manifest `sub/chld.yaml` does not exist (did you mean `sub/child.yaml`?)",
            "error 5:11 the manifest `sub/child` does not exist (did you mean `sub/child.yaml`?)",
            "error 1:34 the manifest `gone.yaml` does not exist (the path is relative to the \
             directory of this manifest: [DIR]/sub/gone.yaml)",
            "error 8:21 the manifest `nowhere/x.yaml` does not exist (the path is relative to \
             the directory of this manifest: [DIR]/nowhere/x.yaml)",
        ]
    );
}

#[test]
fn child_manifests_that_an_earlier_resource_can_create_are_not_missing() {
    let env = TestEnv::new();
    env.write("tree/.keep", "");
    let missing = |resources: &str| {
        env.manifest(&format!("ccm:\n  resources:\n{resources}"));
        !findings(&env).is_empty()
    };
    let child = "    - apply: {name: ./new/../new/child.yaml}\n";
    let file =
        |path: &str| format!("    - file: {{name: {path}, content: x, [ME], mode: \"0644\"}}\n");
    let scaffold = |path: &str| format!("    - scaffold: {{name: {path}, source: tree}}\n");
    let archive = |path: &str| {
        format!(
            "    - archive: {{name: /tmp/a.tar.gz, url: \"http://localhost/a.tar.gz\", [ME], \
             extract_parent: {path}}}\n"
        )
    };
    for creator in [
        file("[DIR]/new/child.yaml"),
        scaffold("[DIR]/new"),
        archive("[DIR]"),
        "    - exec: [\"true\"]\n".to_owned(),
        "    - package: {name: zsh}\n".to_owned(),
    ] {
        assert!(!missing(&format!("{creator}{child}")), "{creator}");
        assert!(missing(&format!("{child}{creator}")), "{creator} comes too late");
    }
    for bystander in [
        file("[DIR]/new/other.yaml"),
        scaffold("[DIR]/ne"),
        archive("[DIR]/new/child"),
        "    - service: {name: cron}\n".to_owned(),
    ] {
        assert!(missing(&format!("{bystander}{child}")), "{bystander}");
    }
    // A child manifest can create it, or has parents that can.
    env.write("bring.yaml", "ccm: {resources: [{exec: [\"true\"]}]}\n");
    env.write("idle.yaml", "ccm: {resources: [{service: {name: cron}}]}\n");
    env.write("nested.yaml", "ccm: {resources: [{apply: {name: new/child.yaml}}]}\n");
    assert!(!missing(&format!("    - apply: {{name: bring.yaml}}\n{child}")));
    assert!(missing(&format!("    - apply: {{name: idle.yaml}}\n{child}")));
    let nested = "    - apply: {name: nested.yaml}\n";
    assert!(missing(nested));
    assert!(!missing(&format!("    - exec: [\"true\"]\n{nested}")));
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
fn wrong_merge_words_are_errors_on_every_machine() {
    let env = TestEnv::new();
    env.manifest(
        "hierarchy: {order: [nowhere], merge: dep}\nccm: {resources: [{exec: [\"true\"]}]}\n",
    );
    assert_eq!(
        findings(&env),
        [
            "error 1:38 `hierarchy.merge` must be `first` or `deep`, not `dep` (did you mean `deep`?)"
        ]
    );
}

#[test]
fn placeholders_without_a_value_are_found_everywhere() {
    let env = TestEnv::new();
    env.manifest(
        "data: {port: 80}\nccm:\n  pre_message: \"on {{ Data.prot }}\"\n  resources:\n    - file:\n        \
         - /f: {content: x, [ME], mode: \"{{ Data.prot }}\"}\n    - exec:\n        \
         - a: {timeout: \"${ Facts.nowhere }\"}\n    - scaffold:\n        \
         - /s: {source: t, data: {a: [\"x {{ Data.port }} {{ Data.none }}\"]}}\n",
    );
    assert_eq!(
        findings(&env),
        [
            "error 3:23 pre_message: `Data.prot` has no value; did you mean `Data.port`?",
            &*format!(
                "error 6:{} mode: `Data.prot` has no value; did you mean `Data.port`?",
                env.read("manifest.yaml").lines().nth(5).unwrap().find("Data").unwrap() + 1
            ),
            "error 8:28 timeout: `Facts.nowhere` has no value (for an optional value, write \
             `Facts.nowhere ?? \"default\"`)",
            "error 10:60 data: `Data.none` has no value (for an optional value, write `Data.none \
             ?? \"default\"`)",
        ]
    );
    let resources = "ccm: {resources: [{exec: [\"true\"]}]}\n";
    env.manifest(&format!("data:\n  a: \"x{{{{ Facts.hots }}}}\"\n{resources}"));
    assert_eq!(
        findings(&env),
        ["error 2:11 `Facts.hots` has no value; did you mean `Facts.host`?"]
    );
    // An entry of the hierarchy without a value matches nothing: no error.
    env.manifest(&format!("hierarchy: {{order: [\"a:{{{{ Facts.nowhere }}}}\"]}}\n{resources}"));
    assert_eq!(findings(&env), [""; 0]);
    env.manifest("data: {port: 80}\nccm: {resources_jet_file: r.jet}\n");
    env.write("r.jet", "- exec:\n    - \"echo {{ Data.[[ \"prot\" ]] }}\":\n");
    assert_eq!(
        findings(&env),
        ["error 2:16 name: `Data.prot` has no value; did you mean `Data.port`?"]
    );
}

#[test]
fn placeholders_that_are_never_closed_are_found_everywhere() {
    let env = TestEnv::new();
    let hint = |opener: &str, end: &str| {
        let literal = format!("{opener} \"{opener}\" {end}");
        format!("(close it with `{end}`, or write `{literal}` for a literal `{opener}`)")
    };
    let (braces, dollar) = (hint("{{", "}}"), hint("${", "}"));
    env.manifest(
        "ccm:\n  post_message: \"{{ 1\"\n  resources:\n    - exec:\n        \
         - a: {timeout: \"${ 1\"}\n        - \"echo {{ 1\": {}\n",
    );
    assert_eq!(
        findings(&env),
        [
            format!("error 2:18 post_message: `{{{{` is never closed {braces}"),
            format!("error 5:25 timeout: `${{` is never closed {dollar}"),
            format!("error 6:17 name: `{{{{` is never closed {braces}"),
        ]
    );
    let resources = "ccm: {resources: [{exec: [\"true\"]}]}\n";
    env.manifest(&format!("data:\n  a: \"x {{{{ 1\"\n{resources}"));
    assert_eq!(findings(&env), [format!("error 2:6 `{{{{` is never closed {braces}")]);
    env.manifest(&format!("hierarchy: {{order: [a, \"b:${{ 1\"]}}\n{resources}"));
    assert_eq!(findings(&env), [format!("error 1:24 `${{` is never closed {dollar}")]);
    env.manifest("ccm: {resources_jet_file: r.jet}\n");
    env.write("r.jet", "- exec:\n    - \"echo [[ \"{{\" ]] 1\":\n");
    assert_eq!(findings(&env), [format!("error 2:13 name: `{{{{` is never closed {braces}")]);
}

#[test]
fn unknown_members_that_templates_print_are_warned_of_once() {
    let env = TestEnv::new();
    env.write(
        "r.jet",
        "- exec:\n    - \"echo [[ data.port ]] [[ data.prot ]] [[ data.prot ]]\":\n",
    );
    env.manifest("data: {port: 80}\nccm: {resources_jet_file: r.jet}\n");
    let wanted = "[DIR]/r.jet: `Data.prot` has no value; did you mean `Data.port`?";
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
            "exec#echo a x.jet: `Facts.hots` has no value; did you mean `Facts.host`?",
            "scaffold#[DIR]/out/jet a.conf: `Data.prot` has no value; did you mean `Data.port`?",
            "scaffold#[DIR]/out/go b.conf: `Data.prot` has no value; did you mean `Data.port`?",
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

/// Properties that are resolved only when their resource is applied.
#[test]
fn deferred_properties_are_checked_as_far_as_they_can_be() {
    let env = TestEnv::new();
    env.manifest(
        r#"data: {port: 80}
ccm:
  resources:
    - file:
        - defaults: {[ME], mode: "0644"}
        - /a: {content: "{{ Data.prot }}"}
        - /b: {content: "x {{ Data.port"}
        - /c: {content: "{{ nope(1) }}"}
        - /d: {content: "{{ readFile('/made/later') }} {{ Facts.hots }}"}
        - /e: {content: "{{ readFile('/made/later' }}"}
        - /f: {content: "{{ readFile('/made/later') }} {{ Data.prot ?? 1 }}"}
        - /g: {content: "{{ Data.prot }}", control: {if: "false"}}
    - exec:
        - run: {provider: shell, command: "echo ${HOME} {{ Data.prot }}"}
"#,
    );
    let found: Vec<String> = findings(&env)
        .iter()
        .map(|finding| finding.split_once(' ').unwrap().1.split(" (").next().unwrap().to_owned())
        .collect();
    insta::assert_snapshot!(found.join("\n"), @"
    6:29 content: `Data.prot` has no value; did you mean `Data.port`?
    7:28 content: `{{` is never closed
    8:29 content: unknown name nope
    9:59 content: `Facts.hots` has no value; did you mean `Facts.host`?
    10:51 content: unexpected end of the expression
    14:60 command: `Data.prot` has no value; did you mean `Data.port`?
    ");
    // A child manifest too, and none of it stops a run before its resource.
    let child = env.read("manifest.yaml");
    env.write("child.yaml", &child);
    env.manifest("ccm: {resources: [{apply: {name: child.yaml}}]}\n");
    assert_eq!(findings(&env).len(), found.len());
    assert_eq!(env.run(["apply", "manifest.yaml", "--noop"]).status.code(), Some(1));
}
