//! Links and the table of contents.

use std::collections::BTreeSet;

use ccm_testkit::markdown::{pages, root};

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let root = root();
    let mut problems = String::new();
    for page in &pages {
        for link in page.links() {
            if link.target.contains("://") {
                continue;
            }
            let (path, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
            let target = match path {
                "" => page.path.clone(),
                path => page.path.parent().unwrap().join(path),
            };
            let Ok(target) = target.canonicalize() else {
                problems += &format!("{}: no {path}\n", page.at(link.line));
                continue;
            };
            // The book has only what is below docs.
            if page.name.starts_with("docs/") && !target.starts_with(root.join("docs")) {
                problems += &format!("{}: {path} is not in the book\n", page.at(link.line));
            }
            let found = pages.iter().find(|page| page.path.canonicalize().unwrap() == target);
            if !anchor.is_empty()
                && !found.is_some_and(|page| page.anchors().iter().any(|known| known == anchor))
            {
                problems += &format!("{}: no #{anchor} in {path}\n", page.at(link.line));
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn the_table_of_contents_has_every_page_once() {
    let pages = pages();
    let summary = pages.iter().find(|page| page.name == "docs/SUMMARY.md").unwrap();
    let listed: Vec<String> =
        summary.links().into_iter().map(|link| format!("docs/{}", link.target)).collect();
    let distinct: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
    assert_eq!(listed.len(), distinct.len(), "something is listed twice");
    let is_page = |name: &&str| name.starts_with("docs/") && *name != "docs/SUMMARY.md";
    let all: BTreeSet<&str> = pages.iter().map(|page| page.name.as_str()).filter(is_page).collect();
    assert_eq!(distinct, all);
}

#[test]
fn files_of_the_project_that_are_named_exist() {
    const PLACES: [&str; 8] =
        ["bench/", "crates/", "docs/", "examples/", "fuzz/", "lib/", "schemas/", "system-tests/"];
    let mut count = 0;
    for page in pages() {
        for (line, code) in page.inline_code() {
            // Names in capitals stand for others.
            let is_pattern = code.contains("TYPE") || code.contains('*');
            if PLACES.iter().any(|place| code.starts_with(place)) && !is_pattern {
                count += 1;
                assert!(root().join(code).exists(), "{}: there is no {code}", page.at(line));
            }
        }
    }
    assert!(count > 5, "only {count} were found");
}

/// Figures are kept in one place; the page about them has copies.
#[test]
fn figures_are_those_that_were_measured() {
    let measured = std::fs::read_to_string(root().join("bench/README.md")).unwrap();
    let page = pages().into_iter().find(|page| page.name == "docs/performance.md").unwrap();
    let rows = page.rows(&["What", "CPU", "Floor", "Ratio", "Memory"]);
    assert!(rows.len() > 5, "the table is not found");
    for (line, row) in rows {
        for figure in [&row[1], &row[2], &row[4]] {
            assert!(measured.contains(figure.as_str()), "{}: {figure}", page.at(line));
        }
    }
}

#[test]
fn pages_keep_to_the_style() {
    for page in pages() {
        for (line, text) in page.prose() {
            assert!(!text.contains('\u{2014}'), "{}: an em dash", page.at(line));
            assert!(!text.contains("Note that"), "{}: filler", page.at(line));
        }
        let titles = page.prose().iter().filter(|(_, line)| line.starts_with("# ")).count();
        // The table of contents has titles for its parts.
        assert!(titles == 1 || page.name == "docs/SUMMARY.md", "{}: one title", page.name);
    }
}

/// A test that a page tells to run exists.
#[test]
fn tests_that_pages_name_exist() {
    let mut count = 0;
    for page in pages() {
        for (line, code) in page.inline_code() {
            let Some(rest) = code.strip_prefix("cargo test -p ") else { continue };
            let words: Vec<&str> = rest.split_whitespace().collect();
            let package = root().join("crates").join(words[0]);
            assert!(package.join("Cargo.toml").exists(), "{}: `{code}`", page.at(line));
            if let ["--test", name, ..] = words[1..] {
                let tests = package.join("tests");
                let exists = tests.join(name).join("main.rs").exists()
                    || tests.join(name).with_extension("rs").exists();
                assert!(exists, "{}: `{code}`", page.at(line));
                count += 1;
            }
        }
    }
    assert!(count >= 3, "only {count} tests were found");
}
