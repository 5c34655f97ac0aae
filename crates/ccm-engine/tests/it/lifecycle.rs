//! The steps of a resource, from its conditions to its checks.

use crate::Bed;

#[test]
fn what_failed_or_was_skipped_is_not_checked() {
    let bed = Bed::new();
    bed.manifest(
        r#"
ccm:
  resources:
    - exec:
        - "false": {health_checks: [{command: touch [DIR]/checked}]}
        - "true": {health_checks: [{command: touch [DIR]/checked}], control: {if: "false"}}
        - unmet: {command: "true", require: ["exec#false"], health_checks: [{command: touch [DIR]/checked}]}
"#,
    );
    assert!(!bed.apply().is_good());
    assert!(!bed.path("checked").exists());
}
