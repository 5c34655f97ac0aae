//! A place of its own for each test, and an engine.

use std::path::{Path, PathBuf};

use ccm_engine::{Detail, Engine, Observer, RunOptions, SourceRef, Stop};
use ccm_hiera::DataSource;
use ccm_host::{Cancel, Host, System};
use ccm_model::Diagnostic;
use ccm_resources::TYPES;
use ccm_template::Facts;
use govalue::Map;
use serde_json::Value;

/// A directory, a state directory and an engine. Facts are `host` and those that
/// the test sets, whatever the machine is.
pub(crate) struct Bed {
    directory: tempfile::TempDir,
    state: tempfile::TempDir,
    engine: Engine,
    facts: Map,
}

/// How a run ended.
pub(crate) struct Ended {
    /// The report as programs get it.
    pub(crate) report: Value,
    pub(crate) stop: Option<Stop>,
    /// What commands printed.
    pub(crate) lines: Vec<String>,
    failed: usize,
}

impl Ended {
    /// Whether nothing failed.
    pub(crate) fn is_good(&self) -> bool {
        self.failed == 0 && self.stop.is_none()
    }

    pub(crate) fn event(&self, name: &str) -> &Value {
        let mut events = self.report["events"].as_array().unwrap().iter();
        events.find(|event| event["name"] == name).unwrap()
    }
}

#[derive(Default)]
struct Lines(Vec<String>);

impl Observer for Lines {
    fn output(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
}

impl Bed {
    pub(crate) fn new() -> Self {
        let [directory, state] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let host = govalue::Value::from(Map::from_iter([("hostname", "here")]));
        let facts = Map::from_iter([("host", host)]);
        Self { directory, state, engine: Engine::new(System::default(), TYPES), facts }
    }

    /// The same with one more fact.
    pub(crate) fn set_fact(&mut self, name: &str, value: &str) {
        self.facts.insert(name, value);
    }

    pub(crate) fn dir(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn state(&self) -> &Path {
        self.state.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Writes a file; `[DIR]` in it is the directory of the test, `[ME]` the
    /// numeric owner and group that the test may use.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let (uid, gid) = Host::new().whoami();
        let text = text.replace("[DIR]", self.dir().to_str().unwrap());
        let text = text.replace("[ME]", &format!("owner: \"{uid}\", group: \"{gid}\""));
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes the manifest that the tests apply.
    pub(crate) fn manifest(&self, text: &str) {
        self.write("manifest.yaml", text);
    }

    pub(crate) fn options(&self) -> RunOptions {
        let mut options = self.engine.options(Cancel::default());
        options.host.skip_sync();
        options.detail = Detail::Report;
        options.inputs.facts = Facts::known(self.facts.clone());
        options.state.directory = options.host.state_dir(self.state(), true).unwrap();
        options
    }

    pub(crate) fn apply(&self) -> Ended {
        self.apply_with(|_| {})
    }

    pub(crate) fn preview(&self) -> Ended {
        self.apply_with(|options| options.mode.noop = true)
    }

    /// Applies with external data from a file.
    pub(crate) fn apply_with_data(&self, name: &str) -> Ended {
        let path = self.path(name);
        let source = DataSource::new(path.to_str().unwrap());
        self.apply_with(|options| {
            options.inputs.external = Some(source.load(&options.host).unwrap());
        })
    }

    /// Applies the manifest with other options.
    pub(crate) fn apply_with(&self, set: impl FnOnce(&mut RunOptions)) -> Ended {
        let mut options = self.options();
        set(&mut options);
        let manifest = self.engine.load(&SourceRef::new(self.path("manifest.yaml")), &options);
        let manifest = manifest.unwrap_or_else(|error| panic!("{}", ccm_engine::chain(&error)));
        let mut lines = Lines::default();
        let finished = self.engine.apply(manifest, &options, None, &mut lines);
        Ended {
            failed: finished.report.summary.failed,
            report: serde_json::to_value(&finished.report).unwrap(),
            stop: finished.stop,
            lines: lines.0,
        }
    }

    /// What is found in the manifest before anything runs: severity, line and
    /// column, message, hint.
    pub(crate) fn findings(&self) -> Vec<String> {
        let options = self.options();
        let source = SourceRef::new(self.path("manifest.yaml"));
        let found = ccm_author::validate(&self.engine, &source, &options);
        let noted = options.host.take_warnings().into_iter().map(Diagnostic::warning);
        let all: Vec<Diagnostic> = noted.chain(found.diagnostics()).collect();
        let has_errors = all.iter().any(|finding| finding.severity == ccm_model::Severity::Error);
        assert_eq!(found.is_valid(), !has_errors);
        let shown = all.iter().map(|finding| {
            let severity = format!("{:?}", finding.severity).to_lowercase();
            let number = |number: Option<usize>| number.map_or("-".to_owned(), |n| n.to_string());
            let (line, column) = (number(finding.line), number(finding.column));
            let hint = finding.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            let text = format!("{severity} {line}:{column} {}{hint}", finding.message);
            text.replace(self.dir().to_str().unwrap(), "[DIR]")
        });
        shown.collect()
    }

    /// What is owed, as `subscriber by`.
    pub(crate) fn owed(&self) -> Vec<String> {
        let state = self.options().state.directory.unwrap();
        let owed = ccm_state::list(&state).unwrap().owed;
        owed.iter().map(|(_, record)| format!("{} {}", record.subscriber, record.by)).collect()
    }
}
