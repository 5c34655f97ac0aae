//! The matchers against what Goss itself says.

use std::time::Duration;

use ccm_goss::Rules;
use ccm_host::Host;
use vectors::Vectors;

/// The body of a `matching` rule as a whole set of rules.
fn rules(body: &str) -> String {
    let lines = body.lines().map(|line| format!("    {line}\n"));
    format!("matching:\n  case:\n{}", lines.collect::<String>())
}

#[test]
fn conformance_goss_match() {
    let vectors = Vectors::new("registration.jsonl", env!("CARGO_MANIFEST_DIR"))
        .only(|case| case["op"] == "goss_match");
    let host = Host::new();
    let mut count = 0;
    vectors.run(|case| {
        count += 1;
        let text = rules(case["input"].as_str().unwrap_or_default());
        let source = ccm_yaml::Source::new("vector", &*text);
        let node = ccm_yaml::parse(&source).map_err(|error| format!("{error:?}"))?;
        let is_wrong = case["want_error"] == true;
        let rules = match Rules::read(&node, None) {
            Ok(_) if is_wrong => return Err("no error".to_owned()),
            Ok(rules) => rules,
            Err(_) if is_wrong => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let report =
            rules.run(&host, Duration::from_secs(10)).map_err(|error| error.to_string())?;
        let wanted = case["want"]["pass"] == true;
        if report.summary.count == 1 && report.is_ok() == wanted {
            Ok(())
        } else {
            Err(report.output())
        }
    });
    assert!(count >= 88, "only {count} cases were run");
}
