//! Dependencies between the crates of the project point downwards only.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

/// The heading of the table that says which crate is in which layer, the top one
/// first.
const HEADING: &str = "| Layer | Crates |";

/// Compares what crates depend on with the table in `ARCHITECTURE.md`. Tests may
/// use any crate.
pub(super) fn check(root: &Path, packages: &[Value], problems: &mut String) {
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let crates = packages.iter().filter_map(|package| {
        let of = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of =
            of.iter().filter(|one| one["kind"] != "dev").filter_map(|one| one["name"].as_str());
        Some((package["name"].as_str()?, of.collect()))
    });
    compare(&layers(&text), &crates.collect(), problems);
}

/// The layer of each crate, counted from the top.
fn layers(architecture: &str) -> BTreeMap<&str, usize> {
    let rows = architecture.lines().skip_while(|line| *line != HEADING).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).enumerate();
    let crates = rows.flat_map(|(layer, row)| {
        let names = row.rsplit('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2);
        names.map(move |name| (name, layer))
    });
    crates.collect()
}

fn compare(
    layers: &BTreeMap<&str, usize>,
    crates: &BTreeMap<&str, Vec<&str>>,
    problems: &mut String,
) {
    for (name, dependencies) in crates {
        let Some(layer) = layers.get(name) else {
            let _ = writeln!(problems, "ARCHITECTURE.md: `{name}` is in no layer");
            continue;
        };
        for lower in dependencies.iter().filter(|lower| crates.contains_key(**lower)) {
            if layers.get(lower).is_some_and(|below| below <= layer) {
                let _ = writeln!(problems, "{name}: depends on {lower}, which is not below it");
            }
        }
    }
    for name in layers.keys().filter(|name| !crates.contains_key(**name)) {
        let _ = writeln!(problems, "ARCHITECTURE.md: there is no crate `{name}`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_that_do_not_point_downwards_are_found() {
        let text =
            "text\n| Layer | Crates |\n|---|---|\n| top | `a` |\n| low | `b`, `c` |\n\n`d`\n";
        let layers = layers(text);
        assert_eq!(layers, BTreeMap::from([("a", 0), ("b", 1), ("c", 1)]));
        let problems = |crates: &[(&'static str, &[&'static str])]| {
            let crates = crates.iter().map(|(name, of)| (*name, of.to_vec())).collect();
            let mut problems = String::new();
            compare(&layers, &crates, &mut problems);
            problems
        };
        assert_eq!(problems(&[("a", &["b", "c", "serde"]), ("b", &[]), ("c", &[])]), "");
        let found = problems(&[("a", &[]), ("b", &["a", "c"]), ("d", &[])]);
        assert!(found.contains("b: depends on a, which is not below it"), "{found}");
        assert!(found.contains("`d` is in no layer"), "{found}");
        assert!(found.contains("there is no crate `c`"), "{found}");
    }
}
