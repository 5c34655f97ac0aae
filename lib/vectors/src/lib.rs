//! Runs conformance vectors: inputs paired with what a reference
//! implementation returned for them. A test says how one case is evaluated and
//! hands the rest to [`Vectors::run`].

#![expect(clippy::expect_used, reason = "a test that cannot read its vectors has to fail")]

pub mod typed;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// One file of vectors.
pub struct Vectors {
    file: String,
    directory: PathBuf,
    listed: HashMap<String, String>,
    concerns: fn(&Value) -> bool,
}

impl Vectors {
    /// The vectors in `file`, with the deviations that the crate at
    /// `manifest_dir` lists in `tests/deviations.txt` (`id reason` per line).
    ///
    /// They are in `conformance/` at the root of the project, or where
    /// `CONFORMANCE_VECTORS` says.
    ///
    /// # Panics
    ///
    /// When the directory of vectors is missing.
    pub fn new(file: &str, manifest_dir: &str) -> Self {
        let root = Path::new(manifest_dir).join("../..");
        let directory = std::env::var_os("CONFORMANCE_VECTORS")
            .map_or_else(|| root.join("conformance"), PathBuf::from);
        assert!(directory.is_dir(), "there are no conformance vectors in {}", directory.display());
        let deviations = Path::new(manifest_dir).join("tests/deviations.txt");
        let listed = std::fs::read_to_string(deviations).unwrap_or_default();
        let listed = listed
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(' '))
            .map(|(id, reason)| (id.to_owned(), reason.to_owned()))
            .collect();
        Self { file: file.to_owned(), directory, listed, concerns: |_| true }
    }

    /// Runs only the cases that concern the crate; the others are counted as
    /// not run.
    #[must_use]
    pub fn only(mut self, concerns: fn(&Value) -> bool) -> Self {
        self.concerns = concerns;
        self
    }

    /// Another file beside the vectors: an environment.
    ///
    /// # Panics
    ///
    /// When there is no such file.
    pub fn environment(&self, file: &str) -> Value {
        let path = self.directory.join(file);
        let text = std::fs::read_to_string(path).expect("the environment is there");
        serde_json::from_str(&text).expect("the environment is JSON")
    }

    /// Evaluates every case; `evaluate` says `Err(got)` where a case fails.
    ///
    /// # Panics
    ///
    /// When a case fails that is not listed, or one that is listed passes.
    pub fn run(&self, evaluate: impl FnMut(&Value) -> Result<(), String>) {
        if let Some(message) = self.outcome(evaluate) {
            panic!("{message}");
        }
    }

    #[expect(clippy::print_stdout, reason = "the line is what the tests are read for")]
    fn outcome(&self, mut evaluate: impl FnMut(&Value) -> Result<(), String>) -> Option<String> {
        let path = self.directory.join(&self.file);
        let text = std::fs::read_to_string(path).expect("readable vectors");
        let (mut passed, mut total, mut listed, mut elsewhere) = (0, 0, 0, 0);
        let (mut failures, mut stale) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let case: Value = serde_json::from_str(line).expect("a vector is JSON");
            let id = case["id"].as_str().unwrap_or_default();
            total += 1;
            if !(self.concerns)(&case) {
                elsewhere += 1;
                continue;
            }
            match evaluate(&case) {
                Ok(()) if self.listed.contains_key(id) => stale.push(id.to_owned()),
                Ok(()) => passed += 1,
                Err(_) if self.listed.contains_key(id) => listed += 1,
                Err(got) => failures.push(format!(
                    "{id}\n  input:  {}\n  wanted: {}\n  got:    {got}",
                    case["input"],
                    case.get("want").map_or_else(|| "an error".into(), ToString::to_string),
                )),
            }
        }
        let note =
            if elsewhere > 0 { format!(", {elsewhere} not run here") } else { String::new() };
        println!("conformance {}: {passed} of {total} passed, {listed} listed{note}", self.file);
        let mut message = String::new();
        if !failures.is_empty() {
            let shown = failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
            message = format!("{} cases fail:\n{shown}\n", failures.len());
        }
        if !stale.is_empty() {
            message += "these cases pass, remove them from tests/deviations.txt: ";
            message += &stale.join(", ");
        }
        (!message.is_empty()).then_some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run says of the cases `good` and `bad`, which do as their names
    /// say, with these deviations listed.
    fn outcome(listed: &[&str]) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let lines = "{\"id\": \"good\", \"want\": 1}\n{\"id\": \"bad\", \"want\": 1}\n";
        std::fs::write(directory.path().join("v.jsonl"), lines).unwrap();
        let listed = listed.iter().map(|id| ((*id).to_owned(), "a reason".to_owned())).collect();
        let file = "v.jsonl".to_owned();
        let directory_path = directory.path().to_owned();
        let vectors = Vectors { file, directory: directory_path, listed, concerns: |_| true };
        vectors.outcome(|case| if case["id"] == "good" { Ok(()) } else { Err("2".to_owned()) })
    }

    #[test]
    fn a_case_fails_unless_it_is_listed() {
        assert_eq!(outcome(&["bad"]), None);
        let message = outcome(&[]).unwrap();
        assert!(message.starts_with("1 cases fail:\nbad\n"), "{message}");
        assert!(!message.contains("good"), "{message}");
    }

    #[test]
    fn a_listed_case_that_passes_is_a_failure() {
        let wanted = "these cases pass, remove them from tests/deviations.txt: good";
        assert_eq!(outcome(&["bad", "good"]).unwrap(), wanted);
        let both = outcome(&["good"]).unwrap();
        assert!(both.contains("1 cases fail:\nbad\n") && both.ends_with(wanted), "{both}");
    }

    #[test]
    #[should_panic(expected = "remove them from tests/deviations.txt: good")]
    fn a_stale_list_fails_the_test_that_runs_the_vectors() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("v.jsonl"), "{\"id\": \"good\"}\n").unwrap();
        let listed = HashMap::from([("good".to_owned(), "a reason".to_owned())]);
        let directory = directory.path().to_owned();
        Vectors { file: "v.jsonl".to_owned(), directory, listed, concerns: |_| true }
            .run(|_| Ok(()));
    }
}
