//! Manifests within manifests.

use ccm_engine::Stop;
use serde_json::json;

use crate::Bed;

#[test]
fn data_goes_down_and_external_data_wins() {
    let bed = Bed::new();
    let show = "ccm: {resources: [{exec: [{show: {command: \"echo [NAME] {{ Data.own ?? '-' }} {{ Data.shared ?? '-' }} {{ Data.given ?? '-' }} {{ Data.outer ?? '-' }}\", logoutput: true}}]}]}\n";
    let child = |name: &str| {
        format!("data: {{own: {name}, shared: {name}}}\n{}", show.replace("[NAME]", name))
    };
    bed.write("inherits.yaml", &child("inherits"));
    bed.write("handed.yaml", &child("handed"));
    bed.write("empty.yaml", &child("empty"));
    bed.manifest(
        r#"
data: {shared: top, outer: top, number: 7}
ccm:
  resources:
    - apply:
        - inherits.yaml: {}
        - handed.yaml: {data: {shared: parent, given: "{{ Data.number + 1 }}"}}
        - empty.yaml: {data: {}}
    - exec: [{after: {command: "echo after {{ Data.own ?? '-' }} {{ Data.shared }} {{ Data.given ?? '-' }}", logoutput: true}}]
"#,
    );
    bed.write("outside.yaml", "data: {shared: outside}\n");
    assert_eq!(
        bed.apply().lines,
        [
            "inherits inherits top - top",
            "handed handed parent 8 -",
            "empty empty empty - -",
            "after - top -",
        ]
    );
    assert_eq!(
        bed.apply_with_data("outside.yaml").lines,
        [
            "inherits inherits outside - top",
            "handed handed outside 8 -",
            "empty empty outside - -",
            "after - outside -",
        ]
    );
}

#[test]
fn data_is_merged_at_every_depth_and_the_parent_keeps_its_own() {
    let bed = Bed::new();
    let show = |name: &str| {
        format!(
            "exec: [{{{name}: {{command: \"echo {name} {{{{ Data.web }}}} {{{{ Data.list }}}}\", \
             logoutput: true}}}}]"
        )
    };
    let below = |own: &str, rest: &str, name: &str| {
        format!("data: {own}\nccm:\n  resources:\n{rest}    - {}\n", show(name))
    };
    bed.manifest(&below(
        "{web: {port: 1, top: {a: 1}}, list: [m]}",
        "    - apply: {name: inherits.yaml}\n    - apply: {name: passed.yaml, data: {web: {port: 2, top: {b: 2}}, list: [p]}}\n",
        "parent",
    ));
    let own = "{web: {port: 80, root: /srv, top: {a: 0, c: 3}}, list: [c]}";
    bed.write("inherits.yaml", &below(own, "    - apply: {name: deep.yaml}\n", "inherits"));
    bed.write("passed.yaml", &below(own, "    - apply: {name: deep.yaml}\n", "passed"));
    bed.write("deep.yaml", &below("{web: {deep: yes}, list: [d]}", "", "deep"));
    assert_eq!(
        bed.apply().lines,
        [
            "deep map[deep:yes port:1 root:/srv top:map[a:1 c:3]] [d c m]",
            "inherits map[port:1 root:/srv top:map[a:1 c:3]] [c m]",
            "deep map[deep:yes port:2 root:/srv top:map[a:0 b:2 c:3]] [d c p]",
            "passed map[port:2 root:/srv top:map[a:0 b:2 c:3]] [c p]",
            "parent map[port:1 top:map[a:1]] [m]",
        ]
    );
    bed.write("outside.yaml", "data: {web: {port: 9}, list: [x]}\n");
    assert_eq!(
        bed.apply_with_data("outside.yaml").lines,
        [
            "deep map[deep:yes port:9 root:/srv top:map[a:1 c:3]] [d c m x]",
            "inherits map[port:9 root:/srv top:map[a:1 c:3]] [c m x]",
            "deep map[deep:yes port:9 root:/srv top:map[a:0 b:2 c:3]] [d c p x]",
            "passed map[port:9 root:/srv top:map[a:0 b:2 c:3]] [c p x]",
            "parent map[port:9 top:map[a:1]] [m x]",
        ]
    );
}

#[test]
fn lists_of_external_data_are_not_appended_twice() {
    let bed = Bed::new();
    bed.write("outside.yaml", "data: {list: [x, y], web: {tags: [t]}}\n");
    bed.write("a.yaml", "ccm: {resources: [{apply: {name: b.yaml}}]}\n");
    let show = "ccm: {resources: [{exec: [{show: {command: \"echo {{ Data.list }} {{ Data.web.tags }}\", logoutput: true}}]}]}\n";
    bed.write("b.yaml", &format!("data: {{list: [b]}}\n{show}"));
    bed.write("c.yaml", show);
    bed.manifest(
        "data: {list: [m], web: {tags: [w]}}\nccm:\n  resources:\n    - apply: {name: a.yaml}\n    \
         - apply: {name: c.yaml, data: {list: '{{ Data.list }}', web: '{{ Data.web }}'}}\n    \
         - apply: {name: b.yaml, data: {list: \"{{ concat(Data.list, ['z']) }}\", web: {tags: [t, t]}}}\n",
    );
    assert_eq!(
        bed.apply_with_data("outside.yaml").lines,
        ["[b m x y] [w t]", "[m x y] [w t]", "[b m z x y] [t t]"]
    );
}

#[test]
fn a_manifest_that_applies_itself_ends() {
    let bed = Bed::new();
    bed.manifest(
        "ccm:\n  resources:\n    - exec: [{count: {command: \"sh -c 'echo x >> [DIR]/count'\"}}]\n    - apply: {name: manifest.yaml}\n    - exec: [{after: {command: \"sh -c 'echo x >> [DIR]/after'\"}}]\n",
    );
    let ended = bed.apply();
    assert!(!ended.is_good());
    assert_eq!(bed.read("count").lines().count(), 11);
    assert_eq!(bed.read("after").lines().count(), 11, "each level goes on after its failed child");
    let text = ended.report["events"].to_string();
    let path = bed.path("manifest.yaml").display().to_string();
    assert!(text.contains(&format!("11 {path}\\n")), "{text}");
    // With a `control` that ends it, the same is fine.
    bed.manifest(
        "data: {depth: 0}\nccm:\n  resources:\n    - apply: {name: manifest.yaml, data: {depth: '{{ Data.depth + 1 }}'}, control: {if: Data.depth < 3}}\n    - exec: [{\"touch [DIR]/{{ Data.depth }}\": {}}]\n",
    );
    assert!(bed.apply().is_good());
    assert!((0..=3).all(|depth| bed.path(&depth.to_string()).exists()));
    assert!(!bed.path("4").exists());
}

#[test]
fn manifests_that_multiply_come_to_an_end() {
    let bed = Bed::new();
    for name in ["a.yaml", "b.yaml", "c.yaml"] {
        std::os::unix::fs::symlink("manifest.yaml", bed.path(name)).unwrap();
    }
    bed.manifest("ccm: {resources: [{apply: [a.yaml: {}, b.yaml: {}, c.yaml: {}]}]}\n");
    let ended = bed.apply();
    assert!(!ended.is_good());
    let events = ended.report["events"].as_array().unwrap();
    assert!(events.len() <= 3 * 1001, "{}", events.len());
    let words = "a run applies at most 1000 child manifests";
    assert!(events.iter().any(|event| event["error"].to_string().contains(words)));
}

#[test]
fn a_child_may_stop_at_its_first_failure() {
    let bed = Bed::new();
    bed.write(
        "child.yaml",
        "ccm: {fail_on_error: true, resources: [{exec: [\"false\", touch [DIR]/child]}]}\n",
    );
    bed.manifest("ccm: {resources: [{apply: {name: child.yaml}}, {exec: [touch [DIR]/parent]}]}\n");
    let ended = bed.apply();
    assert_eq!((ended.is_good(), ended.stop), (false, None));
    let failed = ended.event("false");
    let words = "desired state not achieved: the command exited with code 1, not 0";
    assert_eq!((&failed["failed"], &failed["error"]), (&json!(true), &json!([words])));
    assert!(!bed.path("child").exists() && bed.path("parent").exists());
    std::fs::remove_file(bed.path("parent")).unwrap();
    bed.manifest(
        "ccm: {fail_on_error: true, resources: [{apply: {name: child.yaml}}, {exec: [touch [DIR]/parent]}]}\n",
    );
    assert_eq!(bed.apply().stop, Some(Stop::Failed));
    assert!(!bed.path("parent").exists());
}
