//! The reference of functions: complete, and its examples are true.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ccm_template::{Resolver, Scope};
use ccm_testkit::markdown::{Page, pages};
use govalue::{Map, Value};

/// The tables whose rows are examples: an expression, and what comes of it.
pub(crate) const HEADERS: [[&str; 2]; 3] =
    [["Expression", "Result"], ["Jet", "Result"], ["Go template", "Result"]];

fn reference() -> Page {
    pages().into_iter().find(|page| page.name == "docs/functions.md").unwrap()
}

/// The data that examples see.
fn resolver() -> Resolver {
    let users = ["ann", "bob"].map(|name| Value::from(Map::from_iter([("name", name)])));
    let data = Map::from_iter([
        ("name", Value::from("web")),
        ("port", Value::from(8080)),
        ("users", Value::array(users)),
    ]);
    let directory = PathBuf::from("/");
    Resolver::new(Scope { data, directory, ..Scope::new(&ccm_host::Host::new()) })
}

fn bare(cell: &str) -> &str {
    cell.trim_matches('`').trim()
}

#[test]
fn the_examples_are_true() {
    let resolver = resolver();
    let mut count = 0;
    for page in pages() {
        for (at, header) in HEADERS.iter().enumerate() {
            for (line, row) in page.rows(header) {
                let (example, wanted) = (bare(&row[0]), bare(&row[1]));
                let found = match at {
                    0 => resolver
                        .evaluate(example)
                        .map(|value| value.to_string())
                        .map_err(|e| e.to_string()),
                    1 => resolver
                        .jet_text("t", example)
                        .map(|text| text.to_string())
                        .map_err(|e| e.to_string()),
                    _ => {
                        let (go, data) = resolver.go_scope();
                        go.render("t", example, &data).map_err(|e| e.to_string())
                    }
                };
                let found = found.as_deref().map(str::trim);
                assert_eq!(found, Ok(wanted), "{}: {example}", page.at(line));
                count += 1;
            }
        }
    }
    assert!(count > 30, "only {count} examples were found");
}

/// The names in the second column of the tables with that header.
fn listed(page: &Page, header: &str) -> BTreeSet<String> {
    let rows = page.rows(&[header, "Functions"]);
    let cells = rows.iter().map(|(_, row)| row[1].clone());
    let names = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    names.collect()
}

#[test]
fn every_function_is_listed() {
    let page = reference();
    let all = |names: &mut dyn Iterator<Item = &'static str>| -> BTreeSet<String> {
        names.map(str::to_owned).collect()
    };
    assert_eq!(listed(&page, "Expr"), all(&mut expr::function_names()));
    assert_eq!(listed(&page, "Jet"), all(&mut jet::function_names()));
    assert_eq!(listed(&page, "Go and Sprig"), all(&mut gotemplate::function_names()));
}
