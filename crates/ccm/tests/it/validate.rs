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
       = help: write the expression without `{{ }}` or `${ }` around it

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
            "error 1:34 the manifest `gone.yaml` does not exist (the path starts at the directory \
             of this manifest: [DIR]/sub/gone.yaml)",
            "error 8:21 the manifest `nowhere/x.yaml` does not exist (the path starts at the \
             directory of this manifest: [DIR]/nowhere/x.yaml)",
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
