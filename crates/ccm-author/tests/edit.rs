//! Edits of manifests by resource, checks of their text, and forms.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;

use ccm_author::check::{Check, check_text};
use ccm_author::edit::{EditOperation, edit, property_value};
use ccm_engine::Engine;
use ccm_host::{Cancel, System};
use ccm_resources::TYPES;
use ccm_yaml::Source;
use ccm_yaml::edit::{Change, Document, EditError, EditErrorKind};
use serde_json::{Value, json};

const SITE: &str = "\
ccm:
  resources:
    - package:
        zsh:
        # the editor
        vim: {ensure: latest}
    - file:
        - defaults: {owner: root, group: root, mode: \"0644\"}
        - /etc/motd:
            contents: hello  # greets
            alias: motd
        - /etc/issue
        # read by the unit
        - /etc/app.conf: {content: a, require: [\"package#zsh\", \"file#motd\"]}
    - exec:
        name: reload
        command: systemctl reload app
        subscribe: [\"file#/etc/app.conf\"]
";

fn edited(text: &str, operations: &Value) -> Result<(String, Vec<Change>), EditError> {
    let mut document = Document::parse(Source::new("m.yaml", text)).unwrap();
    let operations: Vec<EditOperation> = serde_json::from_value(operations.clone()).unwrap();
    let changes = edit(&mut document, TYPES, &operations);
    if changes.is_err() {
        assert_eq!(document.text(), text, "a refused edit changes nothing");
    }
    changes.map(|changes| (document.text().to_owned(), changes))
}

/// The text after an operation, of which only these lines differ.
#[expect(clippy::needless_pass_by_value, reason = "operations are written where they are used")]
fn lines(operation: Value) -> Vec<String> {
    let (after, changes) = edited(SITE, &json!([operation])).unwrap();
    let mut text = SITE.to_owned();
    for change in changes.iter().rev() {
        text.replace_range(change.span.start as usize..change.span.end as usize, &change.text);
    }
    assert_eq!(text, after, "the changes make the text");
    let (old, new): (Vec<_>, Vec<_>) = (SITE.lines().collect(), after.lines().collect());
    let gone = old.iter().filter(|line| !new.contains(line)).map(|line| format!("-{line}"));
    let come = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+{line}"));
    gone.chain(come).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "operations are written where they are used")]
fn refused(operation: Value) -> (EditErrorKind, String, Option<String>) {
    let error = edited(SITE, &json!([operation])).unwrap_err();
    (error.kind, error.message, error.hint)
}

#[test]
fn properties_are_set_in_every_shape() {
    let set = |resource: Value, property: &str, value: Value| {
        lines(
            json!({"op": "set_property", "resource": resource, "property": property, "value": value}),
        )
    };
    // By its other name, as it is written.
    let changed = set(json!("file#/etc/motd"), "content", json!("bye"));
    assert_eq!(
        changed,
        ["-            contents: hello  # greets", "+            contents: bye  # greets"]
    );
    assert_eq!(set(json!("file#motd"), "mode", json!("0600")), ["+            mode: \"0600\""]);
    assert_eq!(
        set(json!("file#/etc/issue"), "content", json!("x")),
        ["-        - /etc/issue", "+        - /etc/issue:", "+            content: x"]
    );
    assert_eq!(
        set(json!("package#zsh"), "ensure", json!("5.9")),
        ["-        zsh:", "+        zsh:", "+          ensure: \"5.9\""][1..]
            .iter()
            .copied()
            .filter(|line| line.contains("ensure"))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        set(json!(6), "command", json!("true; false")),
        ["-        command: systemctl reload app", "+        command: true; false"]
    );
}

#[test]
fn properties_are_unset() {
    let changed =
        lines(json!({"op": "unset_property", "resource": "package#vim", "property": "ensure"}));
    assert_eq!(changed, ["-        vim: {ensure: latest}", "+        vim: {}"]);
    let (kind, message, hint) =
        refused(json!({"op": "unset_property", "resource": "file#motd", "property": "owner"}));
    assert_eq!(kind, EditErrorKind::Missing);
    assert_eq!(message, "file#/etc/motd does not set `owner`");
    assert_eq!(hint.unwrap(), "it comes from the `defaults` of its block");
}

#[test]
fn resources_are_added_where_they_belong() {
    let add = |operation: Value| lines(operation);
    assert_eq!(
        add(json!({"op": "add", "type": "package", "name": "git", "after": "package#zsh"})),
        ["+        git: {}"]
    );
    assert_eq!(
        add(
            json!({"op": "add", "type": "file", "name": "/x", "properties": {"mode": "0600"}, "after": "file#motd"})
        ),
        ["+        - /x:", "+            mode: \"0600\""]
    );
    assert_eq!(
        add(json!({"op": "add", "type": "service", "name": "app", "properties": {"enable": true}})),
        ["+    - service:", "+        - app:", "+            enable: true"]
    );
    let empty = "ccm:\n  resources:\n";
    let operation = json!([{"op": "add", "type": "package", "name": "zsh"}]);
    let (after, _) = edited(empty, &operation).unwrap();
    assert_eq!(after, "ccm:\n  resources:\n    - package:\n        - zsh: {}\n");
}

#[test]
fn resources_are_removed_with_their_comments_and_empty_blocks() {
    let remove = |resource: &str| lines(json!({"op": "remove", "resource": resource}));
    assert_eq!(remove("package#vim"), ["-        # the editor", "-        vim: {ensure: latest}"]);
    let gone = remove("file#/etc/app.conf");
    assert_eq!(gone.len(), 2, "{gone:?}");
    assert_eq!(remove("exec#reload").len(), 4);
}

#[test]
fn resources_move_and_references_are_looked_after() {
    let order = |operation: Value| {
        let (after, _) = edited(SITE, &json!([operation])).unwrap();
        let found = ccm_author::outline::outline(&Source::new("m", after.clone())).unwrap();
        assert_eq!(after.matches('#').count(), SITE.matches('#').count(), "comments stay");
        found.iter().map(ccm_author::outline::OutlineEntry::reference).collect::<Vec<_>>()
    };
    let moved =
        order(json!({"op": "move_before", "resource": "package#vim", "before": "package#zsh"}));
    assert_eq!(moved[..2], ["package#vim", "package#zsh"]);
    let moved =
        order(json!({"op": "move_before", "resource": "file#/etc/issue", "before": "file#motd"}));
    assert_eq!(moved[2..4], ["file#/etc/issue", "file#/etc/motd"]);
    let moved = order(
        json!({"op": "move_before", "resource": "exec#reload", "before": "package#zsh", "force": true}),
    );
    assert_eq!(moved[0], "exec#reload");
    // Out of its block, with what the defaults gave it.
    let (after, _) = edited(
        SITE,
        &json!([{"op": "move_before", "resource": "file#/etc/issue", "before": null}]),
    )
    .unwrap();
    assert!(after.ends_with("    - file:\n        - /etc/issue:\n            owner: root\n            group: root\n            mode: \"0644\"\n"), "{after}");
    let (kind, message, _) =
        refused(json!({"op": "move_before", "resource": "exec#reload", "before": "package#zsh"}));
    assert_eq!(kind, EditErrorKind::Unsupported);
    assert_eq!(message, "exec#reload refers to file#/etc/app.conf");
    let (_, message, _) =
        refused(json!({"op": "move_before", "resource": "file#motd", "before": null}));
    assert_eq!(message, "file#/etc/app.conf refers to file#/etc/motd");
}

#[test]
fn resources_are_repeated_under_another_name() {
    let (after, _) =
        edited(SITE, &json!([{"op": "duplicate", "resource": "file#motd", "name": "/etc/other"}]))
            .unwrap();
    let copy =
        "        - /etc/other:\n            contents: hello  # greets\n        - /etc/issue\n";
    assert!(after.contains(copy), "{after}");
    for (resource, name) in
        [("package#vim", "emacs"), ("exec#reload", "again"), ("file#/etc/issue", "/i")]
    {
        let operation = json!([{"op": "duplicate", "resource": resource, "name": name}]);
        let (after, _) = edited(SITE, &operation).unwrap();
        let found = ccm_author::outline::outline(&Source::new("m", after)).unwrap();
        assert!(found.iter().any(|entry| entry.name == name), "{resource}");
        assert_eq!(found.len(), 7);
    }
}

#[test]
fn references_are_renamed_with_their_resource() {
    let changed = lines(
        json!({"op": "rename", "resource": "file#/etc/app.conf", "name": "/etc/app/app.conf"}),
    );
    assert_eq!(
        changed,
        [
            "-        - /etc/app.conf: {content: a, require: [\"package#zsh\", \"file#motd\"]}",
            "-        subscribe: [\"file#/etc/app.conf\"]",
            "+        - /etc/app/app.conf: {content: a, require: [\"package#zsh\", \"file#motd\"]}",
            "+        subscribe: [\"file#/etc/app/app.conf\"]",
        ]
    );
    let changed = lines(json!({"op": "rename", "resource": "package#zsh", "name": "fish"}));
    assert_eq!(changed.len(), 4, "{changed:?}");
    let (kind, ..) = refused(json!({"op": "rename", "resource": "package#zsh", "name": "vim"}));
    assert_eq!(kind, EditErrorKind::Duplicate);
}

#[test]
fn mistakes_are_named_with_a_suggestion() {
    for (operation, message, hint) in [
        (
            json!({"op": "remove", "resource": "file#/etc/mot"}),
            "file#/etc/mot is not in this manifest",
            Some("did you mean `file#/etc/motd`?"),
        ),
        (
            json!({"op": "remove", "resource": "motd"}),
            "`motd` is not a resource",
            Some("name the resource as `type#name`"),
        ),
        (json!({"op": "remove", "resource": 9}), "there is no resource number 9", None),
        (
            json!({"op": "set_property", "resource": "file#motd", "property": "contnet", "value": 1}),
            "file has no property `contnet`",
            Some("did you mean `content`?"),
        ),
        (
            json!({"op": "set_property", "resource": "file#motd", "property": "name", "value": 1}),
            "`name` cannot be edited as a property",
            Some("rename the resource instead"),
        ),
        (
            json!({"op": "add", "type": "flie", "name": "x"}),
            "unknown resource type `flie`",
            Some("did you mean `file`?"),
        ),
        (json!({"op": "add", "type": "file", "name": ""}), "a resource needs a name", None),
    ] {
        let (kind, found, found_hint) = refused(operation);
        assert_eq!((kind, &*found, found_hint.as_deref()), (EditErrorKind::Missing, message, hint));
    }
    let both = json!([{"op": "remove", "resource": "package#zsh"}, {"op": "remove", "resource": "package#zsh"}]);
    assert!(edited(SITE, &both).is_err(), "all or none");
}

#[test]
fn values_are_read_as_a_manifest_reads_them() {
    let value = |property: &str, text: &str| property_value(TYPES, "file", property, text).unwrap();
    assert_eq!(value("mode", "0644"), json!("0644"));
    assert_eq!(value("content", "{{ Data.x }}"), json!("{{ Data.x }}"));
    assert_eq!(value("content", "'it''s'"), json!("it's"));
    assert_eq!(value("force", "true"), json!(true));
    assert_eq!(value("require", "[a#1, b#2]"), json!(["a#1", "b#2"]));
    let value = |property: &str, text: &str| property_value(TYPES, "exec", property, text).unwrap();
    assert_eq!(value("returns", "[0, 3]"), json!([0, 3]));
    assert_eq!(value("control", "{if: true}"), json!({"if": "true"}));
    assert!(property_value(TYPES, "exec", "returns", "[0").is_err());
}

fn check(text: &str) -> Check {
    let engine = Engine::new(System::default(), TYPES);
    let options = engine.options(Cancel::default());
    check_text(&engine, Path::new("/nonexistent/m.yaml"), text.to_owned(), &options)
}

#[test]
fn findings_have_ranges_frames_and_fixes_that_work() {
    let text = SITE
        .replace("contents: hello", "contnet: hello")
        .replace("latest}", "latest, alias: v, ensur: x}")
        .replace("package#zsh\", \"file#motd", "package#zhs\", \"flie#motd");
    let found = check(&text);
    assert!(!found.valid);
    let json = serde_json::to_value(&found).unwrap();
    let finding = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["message"].as_str().unwrap().contains("contnet"))
        .unwrap();
    assert_eq!(finding["range"], json!([9, 12, 9, 19]));
    assert_eq!(finding["line"], 10);
    assert!(finding["frame"].as_str().unwrap().contains("^^^^^^^"));
    assert_eq!(finding["fixes"][0]["title"], "Rename to content");
    let entry = json["outline"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["name"] == "/etc/motd")
        .unwrap();
    assert_eq!(entry["findings"], 1);
    assert_eq!(entry["range"][0], 8);
    // All fixes together make the text right.
    let operations: Vec<EditOperation> = found
        .findings
        .iter()
        .flat_map(|finding| finding.fixes.iter().flat_map(|fix| fix.operations.clone()))
        .map(EditOperation::Path)
        .collect();
    assert_eq!(operations.len(), 4, "{:#?}", found.findings);
    let mut document = Document::parse(Source::new("m", text)).unwrap();
    for operation in operations {
        // `ensur` is meant to be a key that is there already.
        let result = edit(&mut document, TYPES, &[operation]);
        assert!(
            result.is_ok() || result.is_err_and(|error| error.kind == EditErrorKind::Duplicate)
        );
    }
    assert!(document.text().contains("content: hello  # greets"));
    assert!(document.text().contains("[\"package#zsh\", \"file#motd\"]"));
}

#[test]
fn a_text_that_is_not_yaml_has_a_finding_and_no_outline() {
    let found = check("ccm: [\n");
    assert!(!found.valid && found.outline.is_empty());
    assert_eq!(found.findings.len(), 1);
    assert!(found.findings[0].range.is_some());
}

#[test]
fn forms_know_every_property_of_every_type() {
    let forms = serde_json::to_value(ccm_author::form::types(TYPES)).unwrap();
    let types = forms["types"].as_array().unwrap();
    assert_eq!(types.len(), TYPES.len());
    for (entry, kind) in types.iter().zip(TYPES) {
        assert_eq!(entry["name"], kind.name());
        let names: Vec<_> = entry["fields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|field| field["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, kind.fields().iter().map(|field| field.name).collect::<Vec<_>>());
    }
    let file = types.iter().find(|entry| entry["name"] == "file").unwrap();
    let field = |name: &str| {
        let fields = file["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).unwrap().clone()
    };
    assert_eq!(field("mode")["format"], "mode");
    assert_eq!(field("mode")["group"], "Permissions");
    assert_eq!(field("owner")["format"], "user");
    assert_eq!(field("owner")["required"], true);
    assert_eq!(field("require")["items"]["shape"], "reference");
    assert_eq!(field("control")["fields"][0]["format"], "expression");
    assert_eq!(field("content")["conflicts"], json!(["source"]));
    assert_eq!(file["ensure"]["words"][0], "present");
    assert!(forms["common"].as_array().unwrap().contains(&json!("require")));
}
