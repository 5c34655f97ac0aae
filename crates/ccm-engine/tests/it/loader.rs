//! What the loader finds before anything runs.

use crate::Bed;

#[test]
fn control_is_checked_where_other_things_are_wrong_too() {
    let bed = Bed::new();
    // Data that cannot be resolved, resources out of a template, child manifests.
    bed.manifest(
        "hierarchy: {merge: deep}\nccm:\n  resources:\n    - exec: [{a: {control: {if: \"1 +\"}}}]\n",
    );
    assert_eq!(
        bed.findings(),
        [
            "error 1:12 `hierarchy.order` must be a list of strings",
            "error 4:37 control.if: unexpected end of the expression",
        ]
    );
    bed.manifest("ccm: {resources_jet_file: r.jet}\n");
    bed.write("r.jet", "- exec:\n    - a: {control: {unless: \"[[ 1 + 1 ]]\"}}\n");
    assert_eq!(
        bed.findings(),
        ["error 2:30 control.unless: `2` must be true or false, but is of type int"]
    );
    bed.manifest("ccm: {resources: [{apply: {name: child.yaml}}]}\n");
    bed.write("child.yaml", "ccm: {resources: [{exec: [{a: {control: {if: nope}}}]}]}\n");
    assert_eq!(bed.findings(), ["error 1:46 control.if: unknown name nope"]);
}

#[test]
fn child_manifests_that_do_not_exist_are_errors() {
    let bed = Bed::new();
    bed.write("sub/child.yaml", "ccm: {resources: [{apply: {name: gone.yaml}}]}\n");
    bed.manifest(
        "ccm:\n  resources:\n    - apply:\n        - sub/chld.yaml: {}\n        - sub/child: {}\n        \
         - sub/child.yaml: {}\n        - skipped.yaml: {control: {if: \"false\"}}\n    - apply: {name: nowhere/x.yaml}\n",
    );
    assert_eq!(
        bed.findings(),
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
    let bed = Bed::new();
    bed.write("tree/.keep", "");
    let missing = |resources: &str| {
        bed.manifest(&format!("ccm:\n  resources:\n{resources}"));
        !bed.findings().is_empty()
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
    bed.write("bring.yaml", "ccm: {resources: [{exec: [\"true\"]}]}\n");
    bed.write("idle.yaml", "ccm: {resources: [{service: {name: cron}}]}\n");
    bed.write("nested.yaml", "ccm: {resources: [{apply: {name: new/child.yaml}}]}\n");
    assert!(!missing(&format!("    - apply: {{name: bring.yaml}}\n{child}")));
    assert!(missing(&format!("    - apply: {{name: idle.yaml}}\n{child}")));
    let nested = "    - apply: {name: nested.yaml}\n";
    assert!(missing(nested));
    assert!(!missing(&format!("    - exec: [\"true\"]\n{nested}")));
}

#[test]
fn wrong_merge_words_are_errors_on_every_machine() {
    let bed = Bed::new();
    bed.manifest(
        "hierarchy: {order: [nowhere], merge: dep}\nccm: {resources: [{exec: [\"true\"]}]}\n",
    );
    assert_eq!(
        bed.findings(),
        [
            "error 1:38 `hierarchy.merge` must be `first` or `deep`, not `dep` (did you mean `deep`?)"
        ]
    );
}

#[test]
fn placeholders_without_a_value_are_found_everywhere() {
    let bed = Bed::new();
    bed.manifest(
        "data: {port: 80}\nccm:\n  pre_message: \"on {{ Data.prot }}\"\n  resources:\n    - file:\n        \
         - /f: {content: x, [ME], mode: \"{{ Data.prot }}\"}\n    - exec:\n        \
         - a: {timeout: \"${ Facts.nowhere }\"}\n    - scaffold:\n        \
         - /s: {source: t, data: {a: [\"x {{ Data.port }} {{ Data.none }}\"]}}\n",
    );
    assert_eq!(
        bed.findings(),
        [
            "error 3:23 pre_message: `Data.prot` has no value; did you mean `Data.port`?",
            &*format!(
                "error 6:{} mode: `Data.prot` has no value; did you mean `Data.port`?",
                bed.read("manifest.yaml").lines().nth(5).unwrap().find("Data").unwrap() + 1
            ),
            "error 8:28 timeout: `Facts.nowhere` has no value (for an optional value, write \
             `Facts.nowhere ?? \"default\"`)",
            "error 10:60 data: `Data.none` has no value (for an optional value, write `Data.none \
             ?? \"default\"`)",
        ]
    );
    let resources = "ccm: {resources: [{exec: [\"true\"]}]}\n";
    bed.manifest(&format!("data:\n  a: \"x{{{{ Facts.hots }}}}\"\n{resources}"));
    assert_eq!(
        bed.findings(),
        ["error 2:11 `Facts.hots` has no value; did you mean `Facts.host`?"]
    );
    // An entry of the hierarchy without a value matches nothing, which is no error.
    bed.manifest(&format!("hierarchy: {{order: [\"a:{{{{ Facts.nowhere }}}}\"]}}\n{resources}"));
    assert_eq!(
        bed.findings(),
        ["warning 1:21 this entry matches nothing on this machine: `Facts.nowhere` has no value"]
    );
    bed.manifest("data: {port: 80}\nccm: {resources_jet_file: r.jet}\n");
    bed.write("r.jet", "- exec:\n    - \"echo {{ Data.[[ \"prot\" ]] }}\":\n");
    assert_eq!(
        bed.findings(),
        ["error 2:16 name: `Data.prot` has no value; did you mean `Data.port`?"]
    );
}

#[test]
fn placeholders_that_are_never_closed_are_found_everywhere() {
    let bed = Bed::new();
    let hint = |opener: &str, end: &str| {
        let literal = format!("{opener} \"{opener}\" {end}");
        format!("(close it with `{end}`, or write `{literal}` for a literal `{opener}`)")
    };
    let (braces, dollar) = (hint("{{", "}}"), hint("${", "}"));
    bed.manifest(
        "ccm:\n  post_message: \"{{ 1\"\n  resources:\n    - exec:\n        \
         - a: {timeout: \"${ 1\"}\n        - \"echo {{ 1\": {}\n",
    );
    assert_eq!(
        bed.findings(),
        [
            format!("error 2:18 post_message: `{{{{` is never closed {braces}"),
            format!("error 5:25 timeout: `${{` is never closed {dollar}"),
            format!("error 6:17 name: `{{{{` is never closed {braces}"),
        ]
    );
    let resources = "ccm: {resources: [{exec: [\"true\"]}]}\n";
    bed.manifest(&format!("data:\n  a: \"x {{{{ 1\"\n{resources}"));
    assert_eq!(bed.findings(), [format!("error 2:6 `{{{{` is never closed {braces}")]);
    bed.manifest(&format!("hierarchy: {{order: [a, \"b:${{ 1\"]}}\n{resources}"));
    assert_eq!(bed.findings(), [format!("error 1:24 `${{` is never closed {dollar}")]);
    bed.manifest("ccm: {resources_jet_file: r.jet}\n");
    bed.write("r.jet", "- exec:\n    - \"echo [[ \"{{\" ]] 1\":\n");
    assert_eq!(bed.findings(), [format!("error 2:13 name: `{{{{` is never closed {braces}")]);
}

/// Properties that are resolved only when their resource is applied.
#[test]
fn deferred_properties_are_checked_as_far_as_they_can_be() {
    let bed = Bed::new();
    bed.manifest(
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
    let found: Vec<String> = bed
        .findings()
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
    let child = bed.read("manifest.yaml");
    bed.write("child.yaml", &child);
    bed.manifest("ccm: {resources: [{apply: {name: child.yaml}}]}\n");
    assert_eq!(bed.findings().len(), found.len());
    assert!(!bed.preview().is_good());
}
