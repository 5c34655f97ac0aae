//! Every package that ends up in a build has a licence that we can ship and comes
//! from where it should, and the text of its licence is shipped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tools::in_path;
use crate::{Result, metadata, root, run};

/// Checks what `deny.toml` says of licences, banned crates and sources: with
/// `cargo deny` where that is installed, and in any case what needs no tool. The
/// advisories have to be downloaded, which the workflow `advisories` does.
pub(crate) fn check() -> Result {
    match in_path("cargo-deny") {
        Some(tool) => run(Command::new(tool)
            .args(["--offline", "--log-level=error", "check", "--hide-inclusion-graph"])
            .args(["licenses", "bans", "sources"]))?,
        None => println!("cargo-deny is not installed: its lists are checked without it"),
    }
    check_lists()
}

/// The lists of `deny.toml`, read here.
fn check_lists() -> Result {
    let config = std::fs::read_to_string(root().join("deny.toml"))
        .map_err(|error| format!("deny.toml: {error}"))?;
    let (allowed, banned) = (list(&config, "allow")?, list(&config, "deny")?);
    let metadata = metadata(&["--all-features"])?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let mut refused = Vec::new();
    let mut registry: Option<String> = None;
    for package in packages {
        let text = |name: &str| package[name].as_str();
        let name = text("name").unwrap_or_default();
        let licence = text("license").unwrap_or("none");
        if !is_allowed(licence, &allowed) {
            refused.push(format!("{name}: the licence {licence} is not allowed"));
        }
        if banned.contains(&name) {
            refused.push(format!("{name} is banned"));
        }
        // One registry for all, and no repositories or archives.
        if let Some(source) = text("source") {
            let expected = registry.get_or_insert_with(|| source.to_owned());
            if *expected != source || !source.starts_with("registry+") {
                refused.push(format!("{name} comes from {source}"));
            }
        }
    }
    if !refused.is_empty() {
        return Err(format!("\n{}", refused.join("\n")));
    }
    println!(
        "{} packages: licences, bans and sources are fine; advisories are checked by the \
         workflow `advisories`",
        packages.len()
    );
    Ok(())
}

/// The strings of a list in `deny.toml`, one on each line.
fn list<'a>(config: &'a str, name: &str) -> Result<Vec<&'a str>> {
    let begin = format!("\n{name} = [\n");
    let (_, rest) = config.split_once(&begin).ok_or(format!("deny.toml has no list {name}"))?;
    let (lines, _) = rest.split_once("\n]").ok_or(format!("deny.toml: {name} does not end"))?;
    let values = lines.lines().filter_map(|line| line.trim().strip_prefix('"'));
    let values: Vec<&str> = values.filter_map(|line| line.strip_suffix("\",")).collect();
    if values.is_empty() { Err(format!("deny.toml: {name} is empty")) } else { Ok(values) }
}

/// How the files begin that hold the text of a licence, in upper case.
const TEXTS: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Writes the licences of everything that is linked into ccm: first who uses
/// which, then each text once.
pub(crate) fn write(file: &Path) -> Result {
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"])?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in linked(&metadata)? {
        let text = |name: &str| package[name].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        let _ = writeln!(list, "{name}: {} {}", text("license"), text("repository"));
        let found = texts_of(package)?;
        if found.is_empty() {
            return Err(format!("{name} has no text of its licence ({})", text("license")));
        }
        for text in found {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    let line = "=".repeat(78);
    let mut all = format!("ccm contains these libraries:\n\n{list}");
    for (text, users) in &texts {
        let users: Vec<&str> = users.iter().map(String::as_str).collect();
        let _ = write!(all, "\n{line}\n{}\n{line}\n\n{text}", users.join(", "));
    }
    std::fs::write(file, all).map_err(|error| format!("{}: {error}", file.display()))
}

/// The packages of others that become part of the binary, sorted by name.
fn linked(metadata: &Value) -> Result<Vec<&Value>> {
    let list = |value: &'static str| metadata[value].as_array().ok_or(format!("no {value}"));
    let packages = list("packages")?;
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("no resolve graph")?;
    let own = packages.iter().find(|package| package["name"] == "ccm").ok_or("no package ccm")?;
    let mut todo = vec![&own["id"]];
    let mut seen: Vec<&Value> = Vec::new();
    while let Some(id) = todo.pop() {
        if seen.contains(&id) {
            continue;
        }
        seen.push(id);
        let node = nodes.iter().find(|node| node["id"] == *id);
        let dependencies =
            node.and_then(|node| node["deps"].as_array()).ok_or("no dependencies")?;
        let is_linked = |dependency: &&Value| {
            let kinds = dependency["dep_kinds"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        todo.extend(dependencies.iter().filter(is_linked).map(|dependency| &dependency["pkg"]));
    }
    let is_theirs =
        |package: &&Value| !package["source"].is_null() && seen.contains(&&package["id"]);
    let mut linked: Vec<&Value> = packages.iter().filter(is_theirs).collect();
    linked.sort_by_key(|package| (package["name"].as_str(), package["version"].as_str()));
    Ok(linked)
}

/// The texts that a package brings. One under the Apache licence alone may
/// leave it out, as that text is the same for all.
fn texts_of(package: &Value) -> Result<Vec<String>> {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
    let directory = manifest.parent().unwrap_or(Path::new("."));
    let read = |path: &Path| {
        std::fs::read(path)
            .map(|bytes| {
                String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim().to_owned() + "\n"
            })
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    let entries = std::fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut paths: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().to_uppercase();
            TEXTS.iter().any(|text| name.starts_with(text)) && entry.path().is_file()
        })
        .map(|entry| entry.path())
        .collect();
    if paths.is_empty() && package["license"] == "Apache-2.0" {
        paths.push(root().join("LICENSE"));
    }
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

/// One of the alternatives must be allowed, with all of its parts.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let alternatives = expression.replace('/', " OR ").replace(['(', ')'], "");
    alternatives
        .split(" OR ")
        .any(|parts| parts.split(" AND ").all(|part| allowed.contains(&part.trim())))
}

#[cfg(test)]
mod tests {
    use super::{check_lists, is_allowed, list, write};

    #[test]
    fn every_library_is_listed_with_a_text() {
        let file = std::env::temp_dir().join(format!("ccm-licenses-{}", std::process::id()));
        let written = write(&file);
        let text = std::fs::read_to_string(&file);
        let _ = std::fs::remove_file(&file);
        assert_eq!(written, Ok(()));
        let text = text.unwrap();
        let (list, texts) = text.split_once("=====").unwrap();
        let libraries: Vec<&str> =
            list.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
        assert!(libraries.len() > 100, "{libraries:?}");
        for library in libraries {
            assert!(texts.contains(library), "{library}");
        }
        assert!(!list.contains("tempfile "), "a library that only tests use");
        assert!(texts.contains("Apache License") && texts.contains("Permission is hereby granted"));
    }

    #[test]
    fn alternatives_and_parts() {
        let is_allowed = |licence| is_allowed(licence, &["MIT", "Apache-2.0", "Unicode-3.0"]);
        assert!(is_allowed("MIT OR Apache-2.0"));
        assert!(is_allowed("MIT/Apache-2.0"));
        assert!(is_allowed("GPL-3.0 OR MIT"));
        assert!(is_allowed("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_allowed("GPL-3.0"));
        assert!(!is_allowed("MIT AND GPL-3.0"));
        assert!(!is_allowed("none"));
    }

    #[test]
    fn lists_of_the_configuration() {
        let config =
            "[licenses]\nallow = [\n    \"MIT\",\n    # why\n    \"ISC\",\n]\ndeny = [\n]\n";
        assert_eq!(list(config, "allow"), Ok(vec!["MIT", "ISC"]));
        assert!(list(config, "deny").is_err() && list(config, "other").is_err());
        assert_eq!(check_lists(), Ok(()));
    }
}
