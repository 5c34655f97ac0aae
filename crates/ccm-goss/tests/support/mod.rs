//! What the tests of this crate share.

#![allow(dead_code, clippy::allow_attributes, reason = "each test uses a part of it")]

use std::time::Duration;

use ccm_goss::{Outcome, Report, Rules};
use ccm_host::Host;
use ccm_yaml::Source;

/// Reads rules, placeholders taken as they are.
pub(crate) fn read(text: &str) -> Result<Rules, String> {
    let source = Source::new("rules.yaml", text);
    let node = ccm_yaml::parse(&source).map_err(|error| error.message)?;
    Rules::read(&node, None).map_err(|error| error.to_string())
}

/// Runs rules that must be right.
pub(crate) fn run(text: &str) -> Report {
    run_within(text, Duration::from_secs(30))
}

pub(crate) fn run_within(text: &str, timeout: Duration) -> Report {
    let rules = read(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let host = Host::new();
    host.add_secrets(rules.secrets());
    rules.run(&host, timeout).unwrap()
}

/// All rules hold, and none was skipped.
pub(crate) fn holds(text: &str) {
    let report = run(text);
    assert!(report.is_ok() && report.summary.skipped == 0, "{text}\n{}", report.output());
}

/// Every test fails, but for those that are skipped for it; the lines of the
/// failed ones.
pub(crate) fn fails(text: &str) -> String {
    let report = run(text);
    let passed = report.results.iter().filter(|result| result.outcome == Outcome::Passed);
    assert_eq!(passed.count(), 0, "{text}\n{report:#?}");
    assert!(!report.is_ok(), "{text}");
    report.output().lines().skip(1).collect::<Vec<_>>().join("\n")
}
