//! The documentation: what is generated in it, and the book.

use std::path::Path;
use std::process::Command;

use crate::{Result, run, target_directory};

/// Makes the generated parts current, and the book if `mdbook` is installed.
pub(crate) fn write(root: &Path) -> Result {
    // The tests that compare also write: there is one place that renders, and
    // one that follows pages.
    for test in [
        ["ccm", "--bin", "ccm", "generated_parts"],
        ["ccm", "--test", "docs", "what_pages_show"],
        ["ccm-agent", "--test", "monitoring", "the_documentation"],
        ["ccm-studio", "--lib", "--", "types_of_all_answers"],
    ] {
        run(Command::new("cargo")
            .args(["test", "--quiet", "--package"])
            .args(test)
            .env("CCM_WRITE_DOCS", "1"))?;
    }
    if Command::new("mdbook").arg("--version").output().is_err() {
        println!("xtask: mdbook is not installed, the book is not built");
        return Ok(());
    }
    let book = target_directory()?.join("book");
    run(Command::new("mdbook").arg("build").arg(root.join("docs")).arg("--dest-dir").arg(&book))?;
    println!("xtask: the book is {}", book.join("index.html").display());
    Ok(())
}
