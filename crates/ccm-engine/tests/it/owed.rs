//! A subscriber reacts to every change, however the runs end.

use std::fmt::Write as _;

use serde_json::json;

use crate::Bed;

/// A file, and a command that fails unless there is a file `works`.
const RELOAD: &str = r#"ccm: {resources: [
    {file: [{"[DIR]/conf": {content: "{{ Facts.v }}", [ME], mode: "0644"}}]},
    {exec: [{reload: {provider: shell, refresh_only: true, subscribe: ["file#[DIR]/conf"],
        command: "echo x >> [DIR]/log; test -e [DIR]/works"}}]}]}"#;

fn log(bed: &Bed) -> usize {
    std::fs::read_to_string(bed.path("log")).unwrap_or_default().lines().count()
}

/// A reaction that failed is repeated until it works. A preview shows it and
/// leaves it.
#[test]
fn a_reaction_that_failed_is_repeated() {
    let mut bed = Bed::new();
    bed.set_fact("v", "1");
    bed.manifest(RELOAD);
    assert_eq!(bed.owed(), [""; 0]);
    assert!(!bed.apply().is_good());
    let by = format!("file#{}", bed.path("conf").display());
    assert_eq!(bed.owed(), [format!("exec#reload {by}")]);
    let preview = bed.preview();
    let reload = preview.event("reload");
    assert!(preview.is_good() && reload["owed"]["by"] == by.as_str(), "{reload}");
    assert_eq!((&reload["changed"], log(&bed)), (&json!(true), 1));
    assert!(!bed.apply().is_good());
    bed.write("works", "");
    let ended = bed.apply();
    assert_eq!(ended.event("reload")["owed"]["by"], by.as_str());
    assert_eq!((log(&bed), bed.owed().len()), (3, 0));
    let ended = bed.apply();
    assert!(ended.is_good() && ended.event("reload").get("owed").is_none());
    assert_eq!(log(&bed), 3);
    let left = std::fs::read_dir(bed.state().join("owed")).unwrap().count();
    assert_eq!(left, 0, "nothing is kept of what was paid");
}

#[test]
fn what_was_not_reached_or_chosen_stays_owed() {
    let bed = Bed::new();
    bed.manifest(
        r#"ccm: {fail_on_error: true, resources: [
        {file: [{"[DIR]/conf": {content: "x", [ME], mode: "0644"}}]},
        {exec: [{gate: {provider: shell, command: "test -e [DIR]/works"}}]},
        {exec: [{reload: {command: "touch [DIR]/reloaded", refresh_only: true,
            subscribe: ["file#[DIR]/conf"]}}]}]}"#,
    );
    assert!(!bed.apply().is_good());
    assert_eq!(bed.owed().len(), 1);
    bed.write("works", "");
    bed.manifest(
        r#"ccm: {resources: [
        {file: [{"[DIR]/conf": {content: "x", [ME], mode: "0644"}}]},
        {exec: [{gate: {provider: shell, command: "test ! -e [DIR]/works"}}]},
        {exec: [{reload: {command: "touch [DIR]/reloaded", refresh_only: true,
            require: ["exec#gate"], subscribe: ["file#[DIR]/conf"]}}]}]}"#,
    );
    assert!(!bed.apply().is_good(), "the requirement is not met");
    assert_eq!(bed.owed().len(), 1);
    std::fs::remove_file(bed.path("works")).unwrap();
    let look = bed.apply_with(|options| options.mode.health_check_only = true);
    assert!(look.is_good());
    assert_eq!(bed.owed().len(), 1);
    assert!(bed.apply().is_good());
    assert!(bed.path("reloaded").exists());
    assert_eq!(bed.owed(), [""; 0]);
}

#[test]
fn what_a_manifest_no_longer_has_is_reported_once() {
    let mut bed = Bed::new();
    bed.set_fact("v", "1");
    bed.manifest(RELOAD);
    bed.apply();
    bed.manifest("ccm: {resources: [{file: [{\"[DIR]/other\": {ensure: absent}}]}]}");
    let ended = bed.apply();
    let warning = ended.report["warnings"][0]["message"].as_str().unwrap();
    assert!(ended.is_good());
    assert!(warning.contains("exec#reload owes") && warning.contains("forgets"), "{warning}");
    assert_eq!(bed.owed(), [""; 0]);
    assert_eq!(bed.apply().report["warnings"], json!([]));
}

#[test]
fn what_control_keeps_out_owes_nothing() {
    let bed = Bed::new();
    bed.manifest(
        r#"ccm: {resources: [
        {file: [{"[DIR]/conf": {content: "x", [ME], mode: "0644"}}]},
        {exec: [{reload: {command: "false", refresh_only: true, control: {if: "false"},
            subscribe: ["file#[DIR]/conf"]}}]}]}"#,
    );
    assert!(bed.apply().is_good());
    assert_eq!(bed.owed(), [""; 0]);
}

/// A resource that fails in every run is no reason to react in every run.
#[test]
fn nobody_reacts_to_what_keeps_failing() {
    let bed = Bed::new();
    bed.manifest(
        r#"ccm: {resources: [
        {exec: [{change: {provider: shell, command: "test -e [DIR]/works"}}]},
        {exec: [{reload: {provider: shell, command: "echo x >> [DIR]/log", refresh_only: true,
            subscribe: ["exec#change"]}}]}]}"#,
    );
    for _ in 0..3 {
        assert!(!bed.apply().is_good());
    }
    assert_eq!((log(&bed), bed.owed().len()), (0, 1), "it may have changed something");
    bed.write("works", "");
    assert!(bed.apply().is_good());
    assert_eq!((log(&bed), bed.owed().len()), (1, 0));
}

#[test]
fn many_changes_and_one_subscriber_are_one_debt() {
    let bed = Bed::new();
    let mut files = String::new();
    let mut names = String::new();
    for n in 0..200 {
        let _ = write!(files, "{{\"[DIR]/f{n}\": {{content: x, [ME], mode: \"0644\"}}}},");
        let _ = write!(names, "\"file#[DIR]/f{n}\",");
    }
    bed.manifest(&format!(
        "ccm: {{resources: [{{file: [{files}]}}, {{exec: [{{reload: {{command: \"false\", \
         refresh_only: true, subscribe: [{names}]}}}}]}}]}}"
    ));
    assert!(!bed.apply().is_good());
    assert_eq!(bed.owed(), [format!("exec#reload file#{}", bed.path("f0").display())]);
    let file = std::fs::read_dir(bed.state().join("owed")).unwrap().next().unwrap().unwrap();
    let lines = std::fs::read_to_string(file.path()).unwrap().lines().count();
    assert_eq!(lines, 2, "a header and one record");
}

/// A manifest that the run itself writes has subscribers that nobody knows when
/// the change is made. Here the run ends between the two.
#[test]
fn a_manifest_that_comes_later_reacts_to_what_changed_before() {
    let bed = Bed::new();
    bed.write(
        "source.yaml",
        r#"ccm: {resources: [{exec: [{reload: {command: "touch [DIR]/reloaded", refresh_only: true,
            subscribe: ["file#conf"]}}]}]}"#,
    );
    bed.manifest(
        r#"ccm: {fail_on_error: true, resources: [
        {file: [{"[DIR]/conf": {alias: conf, content: "x", [ME], mode: "0644"}}]},
        {exec: [{gate: {provider: shell, command: "test -e [DIR]/works"}}]},
        {file: [{"[DIR]/child.yaml": {source: "[DIR]/source.yaml", [ME], mode: "0644"}}]},
        {apply: [child.yaml]}]}"#,
    );
    assert!(!bed.apply().is_good());
    assert!(bed.path("conf").exists() && !bed.path("child.yaml").exists());
    bed.write("works", "");
    let preview = bed.preview().report;
    assert!(!bed.path("child.yaml").exists(), "{preview}");
    let ended = bed.apply();
    assert!(ended.is_good(), "{}", ended.report);
    assert!(bed.path("reloaded").exists(), "{}", ended.report);
    assert!(ended.event("reload")["owed"]["by"].as_str().unwrap().ends_with("/conf"));
    assert_eq!(std::fs::read_dir(bed.state().join("owed")).unwrap().count(), 0);
    // Once it has reacted, that is that.
    std::fs::remove_file(bed.path("reloaded")).unwrap();
    assert!(bed.apply().is_good());
    assert!(!bed.path("reloaded").exists());
}

/// What acted and made no difference is no reason for a later manifest to react.
#[test]
fn a_change_without_a_difference_is_not_kept_for_later_manifests() {
    let bed = Bed::new();
    bed.manifest(
        r#"ccm: {resources: [
        {file: [{"[DIR]/conf": {alias: conf, content: "x", [ME], mode: "0644"}}]},
        {apply: [child.yaml]}]}"#,
    );
    assert!(!bed.apply().is_good(), "there is no child yet");
    bed.write(
        "child.yaml",
        r#"ccm: {resources: [{exec: [
            {other: {command: "touch [DIR]/other", refresh_only: true, subscribe: ["file#nothing"]}},
            {reload: {command: "touch [DIR]/reloaded", refresh_only: true, subscribe: ["file#conf"]}}]}]}"#,
    );
    let report = bed.apply().report;
    assert!(bed.path("reloaded").exists() && !bed.path("other").exists(), "{report}");
    assert_eq!(bed.owed(), [""; 0]);
}
