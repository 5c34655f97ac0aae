//! What a run of ccm reports.

use serde_json::Value;

use crate::Ran;

/// The report of one run.
#[derive(Debug)]
pub struct Report {
    ran: Ran,
    events: Vec<Value>,
    warnings: Vec<String>,
}

/// What became of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was to be done.
    Stable,
    /// It was changed, or in noop would have been.
    Changed,
    /// It was changed because something else was.
    Refreshed,
    /// It failed.
    Failed,
    /// It was not looked at.
    Skipped,
}

impl Report {
    pub(crate) fn new(ran: Ran) -> Self {
        let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        let list = |name: &str| report[name].as_array().cloned().unwrap_or_default();
        let text = |warning: &Value| {
            let part = |name: &str| warning[name].as_str().unwrap_or_default();
            format!("{}: {}", part("resource"), part("message"))
        };
        let warnings = list("warnings").iter().map(text).collect();
        Self { events: list("events"), warnings, ran }
    }

    /// The event of a resource, by its number in the run.
    pub fn event(&self, number: usize) -> &Value {
        self.events.get(number).unwrap_or_else(|| panic!("{:?}", self.ran))
    }

    /// What became of each resource.
    pub fn outcomes(&self) -> Vec<Outcome> {
        let outcome = |event: &Value| {
            let is = |name: &str| event[name] == true;
            match () {
                () if is("failed") => Outcome::Failed,
                () if is("skipped") => Outcome::Skipped,
                () if is("refreshed") => Outcome::Refreshed,
                () if is("changed") => Outcome::Changed,
                () => Outcome::Stable,
            }
        };
        self.events.iter().map(outcome).collect()
    }

    /// The states that were found at the end.
    pub fn states(&self) -> Vec<&str> {
        self.texts("final_ensure")
    }

    /// What noop said of each resource.
    pub fn messages(&self) -> Vec<&str> {
        self.texts("noop_message")
    }

    fn texts(&self, name: &str) -> Vec<&str> {
        self.events.iter().map(|event| event[name].as_str().unwrap_or_default()).collect()
    }

    /// The warnings of the run, each after its resource.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The errors of all resources, in lines.
    pub fn errors(&self) -> String {
        let errors = self.events.iter().filter_map(|event| event["error"].as_array());
        let errors = errors.flatten().filter_map(Value::as_str);
        errors.collect::<Vec<_>>().join("\n")
    }
}
