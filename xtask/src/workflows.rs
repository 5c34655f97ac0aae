//! The workflows of the code host: their syntax, and what they may do.

use std::path::Path;
use std::process::Command;

use crate::tools::Go;
use crate::{Result, root, run};

/// Checks the syntax, expressions and shell scripts of workflows.
pub(crate) const ACTIONLINT: Go =
    Go { name: "actionlint", module: "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12" };

/// Checks all workflows.
pub(crate) fn check() -> Result {
    let directory = root().join(".github/workflows");
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        problems.extend(doubts(&text).into_iter().map(|doubt| format!("{}: {doubt}", name(&path))));
    }
    if !problems.is_empty() {
        return Err(problems.join("\n"));
    }
    match ACTIONLINT.find()? {
        Some(actionlint) => run(&mut Command::new(actionlint)),
        None => {
            println!("NOT RUN: actionlint is missing, so nothing checks the syntax");
            Ok(())
        }
    }
}

fn name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// Rules that actionlint does not know: actions are pinned to a commit, as a tag
/// can move, and a workflow has no rights unless a job asks for them.
fn doubts(text: &str) -> Vec<String> {
    let mut doubts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((_, action)) = line.split_once("uses: ") else { continue };
        let commit = action.split_once('@').map(|(_, commit)| commit).unwrap_or_default();
        let (commit, version) = commit.split_once(" # v").unwrap_or((commit, ""));
        let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_commit || version.is_empty() {
            doubts.push(format!("line {}: no commit with its version: {action}", number + 1));
        }
    }
    if !text.contains("\npermissions:\n  contents: read\n\n") {
        doubts.push("the rights for all jobs are not `contents: read` alone".to_owned());
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::doubts;

    #[test]
    fn actions_are_pinned_and_rights_are_few() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let workflow = |uses: &str, rights: &str| {
            format!("on: push\n\npermissions:\n  {rights}\n\njobs:\n  a:\n    - uses: {uses}\n")
        };
        let pinned = format!("a/b@{commit} # v1.0.0");
        assert!(doubts(&workflow(&pinned, "contents: read")).is_empty());
        for uses in ["a/b@v1", "a/b", &format!("a/b@{commit}"), "a/b@0123456789 # v1"] {
            assert_eq!(doubts(&workflow(uses, "contents: read")).len(), 1, "{uses}");
        }
        assert_eq!(doubts(&workflow(&pinned, "contents: write")).len(), 1);
        assert_eq!(doubts(&workflow(&pinned, "contents: read\n  pages: write")).len(), 1);
        assert_eq!(doubts("on: push\njobs: {}\n").len(), 1);
    }
}
