//! Rules that no compiler knows.

mod invariants;
mod layers;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::Result;

/// Files longer than this do not fit in the head.
const MAX_LINES: usize = 1000;

/// The page of the studio is written by hand; its lines must fit beside a diff.
const PAGE: &str = "crates/ccm-studio/";
const MAX_COLUMNS: usize = 120;

/// Words that have no place in the project, and why.
const FORBIDDEN: [(&str, &str); 6] = [
    ("#[ignore", "a skipped test hides a failure"),
    ("todo!(", "finish it or leave it out"),
    ("unimplemented!(", "finish it or leave it out"),
    ("FIXME", "fix it"),
    ("dbg!(", "a leftover"),
    ("unsafe {", "forbidden in this workspace"),
];

pub(crate) fn check(root: &Path) -> Result {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut problems = String::new();
    let types = invariants::type_names(root);
    for name in listed.lines().filter(|name| !name.starts_with("xtask/src/tidy")) {
        // Deleted but not yet committed, or not text: neither is ours to judge.
        let Ok(text) = std::fs::read_to_string(root.join(name)) else { continue };
        check_file(name, &text, &mut problems);
        invariants::check(name, &text, &types, &mut problems);
    }
    let metadata = crate::metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    check_dependencies(root, packages, &mut problems)?;
    layers::check(root, packages, &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(format!("\n{problems}")) }
}

fn check_file(name: &str, text: &str, problems: &mut String) {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    let is_rust = extension == Some("rs");
    if is_rust && text.lines().count() > MAX_LINES {
        let _ = writeln!(problems, "{name}: longer than {MAX_LINES} lines");
    }
    if is_page(name) {
        check_columns(name, text, problems);
    }
    if is_rust {
        check_sleeps(name, text, problems);
    }
    if !matches!(extension, Some("rs" | "md" | "toml")) {
        return;
    }
    for (number, line) in text.lines().enumerate() {
        if line.ends_with([' ', '\t']) {
            let _ = writeln!(problems, "{name}:{}: blanks at the end", number + 1);
        }
        if !is_rust {
            continue;
        }
        for (word, reason) in FORBIDDEN {
            if line.contains(word) {
                let _ = writeln!(problems, "{name}:{}: `{word}`: {reason}", number + 1);
            }
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let _ = writeln!(problems, "{name}: no newline at the end");
    }
}

/// Whether a file is a hand-written part of the studio's page, or of its tests.
fn is_page(name: &str) -> bool {
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    let is_written = matches!(extension, Some("js" | "mjs" | "ts" | "css" | "html"));
    name.strip_prefix(PAGE).is_some_and(|name| is_written && !name.starts_with("web/vendor/"))
}

fn check_columns(name: &str, text: &str, problems: &mut String) {
    for (number, line) in text.lines().enumerate() {
        if line.chars().count() > MAX_COLUMNS {
            let (number, limit) = (number + 1, MAX_COLUMNS);
            let _ = writeln!(problems, "{name}:{number}: longer than {limit} characters");
        }
    }
}

/// Tests wait for what happens, with `wait_until`. Where a time itself is meant, the
/// comment above says which.
fn check_sleeps(name: &str, text: &str, problems: &mut String) {
    let mut is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
    let mut above = "";
    for (number, line) in text.lines().enumerate() {
        is_test |= line == "#[cfg(test)]";
        let line = line.trim_start();
        let is_sleep = line.contains("::sleep(") && !line.starts_with("//");
        if is_test && is_sleep && !above.starts_with("//") {
            let number = number + 1;
            let _ = writeln!(problems, "{name}:{number}: a sleep without its reason above");
        }
        above = line;
    }
}

/// Every crate that is not ours has its reason written down.
fn check_dependencies(root: &Path, packages: &[Value], problems: &mut String) -> Result {
    let reasons = std::fs::read_to_string(root.join("docs/dependencies.md")).unwrap_or_default();
    let is_ours = |name: &str| packages.iter().any(|package| package["name"] == name);
    let mut names: Vec<&str> = packages
        .iter()
        .filter_map(|package| package["dependencies"].as_array())
        .flatten()
        .filter_map(|dependency| dependency["name"].as_str())
        .filter(|name| !is_ours(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names.iter().filter(|name| !reasons.contains(&format!("| `{name}` |"))) {
        let _ = writeln!(problems, "docs/dependencies.md: `{name}` has no reason there");
    }
    if names.is_empty() { Err("cargo metadata names no dependency".into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_in_tests_have_reasons() {
        let found = |name: &str, text: &str| {
            let mut problems = String::new();
            check_sleeps(name, text, &mut problems);
            problems.lines().count()
        };
        let sleep = "    std::thread::sleep(PAUSE);\n";
        let reason = "    // The pace of the server.\n";
        let (product, test) = ("crates/ccm/src/run.rs", "crates/ccm/tests/it/run.rs");
        assert_eq!(found(test, sleep), 1);
        assert_eq!(found(test, &format!("{reason}{sleep}")), 0);
        assert_eq!(found(test, &format!("{reason}{sleep}{sleep}")), 1);
        assert_eq!(found(product, sleep), 0);
        assert_eq!(found(product, &format!("{sleep}#[cfg(test)]\n{sleep}")), 1);
    }

    #[test]
    fn the_page_has_no_long_lines() {
        let found = |name: &str, width: usize| {
            let mut problems = String::new();
            check_file(name, &format!("short\n{}\n", "é".repeat(width)), &mut problems);
            problems
        };
        let name = "crates/ccm-studio/web/core/runs.js";
        assert_eq!(found(name, 121), format!("{name}:2: longer than 120 characters\n"));
        assert_eq!(found(name, 120), "");
        assert_eq!(found("crates/ccm-studio/web/vendor/preact.js", 121), "");
    }
}
