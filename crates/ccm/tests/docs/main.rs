//! The documentation holds what it shows: every example is validated or run,
//! every link leads somewhere, every function is listed.
//!
//! | block | check |
//! |---|---|
//! | `yaml` | a manifest, a list of resources, data or a request, by its shape |
//! | `json` | a request, a response, or quoted with `from=` |
//! | `nohighlight` | command lines, parsed by the tests of the binary |
//! | `console` | run in order in a fresh directory, output compared |
//! | `jet`, `gotemplate` | parsed |
//! | `ini` | a file, with `file=NAME` |
//! | `rust`, `lua`, `python`, `sh`, `toml` | quoted with `from=FILE`, compared |
//! | `text` | nothing: a diagram, or what a program says |
//!
//! `file=NAME` makes a block a file for the other blocks of its page.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod blocks;
mod follow;
mod functions;
mod links;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ccm_testkit::markdown::{Page, pages};

/// The binary under test, called `ccm`: of another build, if `CCM_BINARY` names it.
fn binary() -> PathBuf {
    let given = std::env::var_os("CCM_BINARY").map(PathBuf::from);
    given.unwrap_or_else(|| env!("CARGO_BIN_EXE_ccm").into())
}

/// ccm, with nothing in its environment that is not ours.
fn ccm(directory: &Path) -> Command {
    let mut command = Command::new(binary());
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .env("CCM_STATE_DIR", directory.join(".state"))
        .env("RUST_BACKTRACE", "0");
    command
}

/// How often a page shows something of each kind.
fn shown(page: &Page) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for block in page.blocks() {
        let is_used = block.language != "ini" || block.attribute("file").is_some();
        assert!(is_used, "{}: a block of `ini` without `file=NAME`", page.name);
        *counts.entry(block.language).or_default() += 1;
    }
    let examples = functions::HEADERS.iter().map(|header| page.rows(header).len()).sum();
    if examples > 0 {
        counts.insert("expressions".into(), examples);
    }
    counts
}

#[test]
fn every_page_with_examples_has_one_that_is_checked() {
    const CHECKED: [&str; 14] = [
        "console",
        "expressions",
        "gotemplate",
        "ini",
        "jet",
        "json",
        "lua",
        "nohighlight",
        "python",
        "rust",
        "sh",
        "toml",
        "yaml",
        "jsonc",
    ];
    let mut unchecked = Vec::new();
    let mut total: BTreeMap<String, usize> = BTreeMap::new();
    for page in pages() {
        let counts = shown(&page);
        println!("{}: {counts:?}", page.name);
        for (language, count) in &counts {
            let is_known = language == "text" || CHECKED.contains(&language.as_str());
            assert!(is_known, "{}: who checks blocks of `{language}`?", page.name);
            *total.entry(language.clone()).or_default() += count;
        }
        if !counts.is_empty() && counts.keys().all(|language| language == "text") {
            unchecked.push(page.name);
        }
    }
    println!("together: {total:?}");
    assert!(unchecked.is_empty(), "pages whose examples nothing checks: {unchecked:?}");
}
