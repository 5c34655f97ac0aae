//! Results of rules, for people and for programs.

use std::fmt::Write as _;
use std::time::Duration;

use ccm_host::Host;
use ccm_model::redact_credentials;
use govalue::escape;
use serde::Serialize;

use crate::matcher::shorten;

/// As many failed tests are told of in the output of a health check.
const MAX_FAILED_LINES: usize = 10;

/// Results of all tests.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How many there were of each outcome.
    pub summary: Summary,
    /// Every test, in the order in which they were run.
    pub results: Vec<TestResult>,
}

/// How many tests there were.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Summary {
    /// All of them, those that were skipped included.
    pub count: usize,
    /// Those that did not hold.
    pub failed: usize,
    /// Those that were not run.
    pub skipped: usize,
    /// How long all of them took together, in nanoseconds.
    #[serde(serialize_with = "nanoseconds")]
    pub duration: Duration,
}

/// Result of one test.
#[derive(Clone, Debug, Serialize)]
pub struct TestResult {
    /// The kind of the rule, as in the rules.
    pub kind: &'static str,
    /// The thing.
    pub name: String,
    /// The `title` of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The attribute that was compared.
    pub property: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// The expected value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<serde_json::Value>,
    /// The actual value; `None` if it could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<serde_json::Value>,
    /// Why nothing was found, or could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long it took, in nanoseconds.
    #[serde(serialize_with = "nanoseconds")]
    pub duration: Duration,
    #[serde(skip)]
    pub(crate) label: &'static str,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The rule holds.
    Passed,
    /// The test failed, or the value could not be read.
    Failed,
    /// It was not asked for.
    Skipped,
}

/// Nanoseconds, as in events.
fn nanoseconds<S: serde::Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

impl Report {
    pub(crate) fn new(mut results: Vec<TestResult>, duration: Duration, host: &Host) -> Self {
        for result in &mut results {
            result.redact(host);
        }
        let count = |outcome| results.iter().filter(|result| result.outcome == outcome).count();
        let summary = Summary {
            count: results.len(),
            failed: count(Outcome::Failed),
            skipped: count(Outcome::Skipped),
            duration,
        };
        Self { summary, results }
    }

    /// Whether no test failed.
    pub fn is_ok(&self) -> bool {
        self.summary.failed == 0
    }

    /// The result in short: the counts, and the first tests that failed.
    pub fn output(&self) -> String {
        let Summary { count, failed, duration, .. } = self.summary;
        let seconds = duration.as_secs_f64();
        let mut text = format!("Count: {count}, Failed: {failed}, Duration: {seconds:.3}s");
        let lines = self.results.iter().filter(|result| result.outcome == Outcome::Failed);
        for result in lines.take(MAX_FAILED_LINES) {
            let _ = write!(text, "\n{}", result.line());
        }
        text
    }

    /// The results as `JUnit` writes them: a test case for each.
    pub fn junit(&self) -> String {
        let Summary { count, failed, skipped, duration } = self.summary;
        let seconds = duration.as_secs_f64();
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"ccm check\" \
             tests=\"{count}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" \
             time=\"{seconds:.3}\">\n"
        );
        for result in &self.results {
            let name = escape::xml_attribute(&format!("{}: {}", result.title(), result.property));
            let (class, time) = (result.label, result.duration.as_secs_f64());
            let _ =
                write!(xml, "  <testcase classname=\"{class}\" name=\"{name}\" time=\"{time:.3}\"");
            xml += &match result.outcome {
                Outcome::Passed => "/>\n".to_owned(),
                Outcome::Skipped => "><skipped/></testcase>\n".to_owned(),
                Outcome::Failed => {
                    let message = escape::xml_attribute(&result.difference());
                    format!("><failure message=\"{message}\"/></testcase>\n")
                }
            };
        }
        xml + "</testsuite>\n"
    }
}

impl TestResult {
    /// The test in one line, and what was expected and found if it failed.
    pub fn line(&self) -> String {
        let about = format!("{}: {}: {}", self.label, self.title(), self.property);
        match self.outcome {
            Outcome::Passed => about,
            Outcome::Skipped => format!("{about}: skipped"),
            Outcome::Failed => format!("{about}: {}", self.difference()),
        }
    }

    /// The thing and what its author calls it.
    fn title(&self) -> String {
        let name = self.name.replace(['\n', '\r'], " ");
        match &self.title {
            Some(title) => format!("{} ({title})", shorten(&name)),
            None => shorten(&name),
        }
    }

    fn difference(&self) -> String {
        let json = |value: &serde_json::Value| shorten(&value.to_string());
        let mut text = "expected ".to_owned();
        text += &self.expected.as_ref().map(json).unwrap_or_default();
        if let Some(found) = &self.found {
            let _ = write!(text, ", found {}", json(found));
        }
        if let Some(reason) = &self.reason {
            let _ = write!(text, ": {reason}");
        }
        text
    }

    /// Removes what must not leave the run.
    fn redact(&mut self, host: &Host) {
        let redactor = host.redactor();
        let clean = |text: &mut String| {
            let shown = redact_credentials(text).into_owned();
            *text = redactor.text(&shown).into_owned();
        };
        clean(&mut self.name);
        self.title.iter_mut().chain(&mut self.reason).for_each(clean);
        self.expected.iter_mut().chain(&mut self.found).for_each(|value| each_text(value, &clean));
    }
}

/// Changes every text in a value.
fn each_text(value: &mut serde_json::Value, change: &impl Fn(&mut String)) {
    match value {
        serde_json::Value::String(text) => change(text),
        serde_json::Value::Array(items) => {
            for item in items {
                each_text(item, change);
            }
        }
        serde_json::Value::Object(map) => {
            for value in map.values_mut() {
                each_text(value, change);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(outcome: Outcome, title: Option<&str>) -> TestResult {
        TestResult {
            kind: "port",
            label: "Port",
            name: "tcp:80".into(),
            title: title.map(str::to_owned),
            property: "listening",
            outcome,
            expected: Some(true.into()),
            found: Some(false.into()),
            reason: None,
            duration: Duration::from_millis(2),
        }
    }

    fn report(results: Vec<TestResult>) -> Report {
        Report::new(results, Duration::from_millis(12), &Host::new())
    }

    #[test]
    fn output_counts_and_tells_the_first_failures() {
        let failed = result(Outcome::Failed, None);
        let mut results = vec![result(Outcome::Passed, None), result(Outcome::Skipped, None)];
        results.push(failed.clone());
        let report_of_three = report(results);
        assert_eq!(
            report_of_three.output(),
            "Count: 3, Failed: 1, Duration: 0.012s\n\
             Port: tcp:80: listening: expected true, found false"
        );
        assert_eq!(report_of_three.summary.skipped, 1);
        assert!(!report_of_three.is_ok());
        assert_eq!(report(vec![failed; 30]).output().lines().count(), 11);
    }

    #[test]
    fn titles_reasons_and_secrets() {
        let host = Host::new();
        host.add_secrets(["s3cret".to_owned()]);
        let mut one = result(Outcome::Failed, Some("the web"));
        one.name = "http://u:pw@h/".into();
        one.found = None;
        one.reason = Some("said s3cret".into());
        let report = Report::new(vec![one], Duration::ZERO, &host);
        assert_eq!(
            report.results[0].line(),
            "Port: http://[redacted]@h/ (the web): listening: expected true: said [redacted]"
        );
    }

    #[test]
    fn junit_is_xml() {
        let mut one = result(Outcome::Failed, Some("a < \"b\" & c\n\u{1}"));
        one.found = Some("<x>".into());
        let xml = report(vec![one, result(Outcome::Skipped, None), result(Outcome::Passed, None)])
            .junit();
        assert_eq!(
            xml,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuite name=\"ccm check\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" \
             time=\"0.012\">\n\
             \x20 <testcase classname=\"Port\" name=\"tcp:80 (a &lt; &quot;b&quot; &amp; \
             c&#10;\u{fffd}): listening\" time=\"0.002\"><failure message=\"expected true, found \
             &quot;&lt;x&gt;&quot;\"/></testcase>\n\
             \x20 <testcase classname=\"Port\" name=\"tcp:80: listening\" \
             time=\"0.002\"><skipped/></testcase>\n\
             \x20 <testcase classname=\"Port\" name=\"tcp:80: listening\" time=\"0.002\"/>\n\
             </testsuite>\n"
        );
    }
}
