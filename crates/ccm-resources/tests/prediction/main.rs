//! Plans predict: for every manifest of the corpus, what the plan says becomes
//! of each resource is what becomes of it, and making the plan changes nothing.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "the test sets its stage"
)]

use std::path::Path;
use std::process::Command;

use ccm_engine::{Detail, Diffs, Engine, NoObserver, Observer, PlanRecording, SourceRef};
use ccm_host::{Cancel, System};
use ccm_model::{Event, PlanOutcome, PlannedResource};
use ccm_resources::TYPES;
use ccm_testkit::snapshot;

struct Case {
    name: String,
    setup: Vec<String>,
    files: Vec<(String, String)>,
    resources: String,
}

fn corpus() -> Vec<Case> {
    let text = include_str!("corpus.txt");
    let cases = text.split("\n== ").skip(1);
    cases
        .map(|case| {
            let (name, body) = case.split_once('\n').unwrap();
            let mut this = Case {
                name: name.to_owned(),
                setup: Vec::new(),
                files: Vec::new(),
                resources: String::new(),
            };
            let mut file: Option<(String, String)> = None;
            for line in body.lines() {
                if let Some(path) = line.strip_prefix('@') {
                    this.files.extend(file.take());
                    file = (!path.is_empty()).then(|| (path.to_owned(), String::new()));
                } else if let Some((_, text)) = &mut file {
                    text.push_str(line);
                    text.push('\n');
                } else if line.starts_with("- ") || line.starts_with(' ') {
                    this.resources.push_str("    ");
                    this.resources.push_str(line);
                    this.resources.push('\n');
                } else if !line.is_empty() {
                    this.setup.push(line.to_owned());
                }
            }
            this
        })
        .collect()
}

impl Case {
    /// Sets the stage in a directory; the path of the manifest.
    fn stage(&self, directory: &Path) -> std::path::PathBuf {
        let host = ccm_host::Host::new();
        let (uid, gid) = host.whoami();
        let me = format!("owner: \"{uid}\", group: \"{gid}\"");
        let block = format!("owner: \"{uid}\"\n            group: \"{gid}\"");
        let d = directory.to_str().unwrap();
        let fill = |text: &str| {
            text.replace("ME_BLOCK", &block).replace("ME", &me).replace("D/", &format!("{d}/"))
        };
        for (path, text) in &self.files {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, fill(text)).unwrap();
        }
        for command in &self.setup {
            let status = Command::new("sh").args(["-ec", command]).current_dir(directory).status();
            assert!(status.unwrap().success(), "{}: {command}", self.name);
        }
        let manifest = directory.join("manifest.yaml");
        let text = format!("ccm:\n  resources:\n{}", fill(&self.resources));
        std::fs::write(&manifest, text).unwrap();
        manifest
    }
}

/// Keeps the events of a run with how deep their manifests lie.
#[derive(Default)]
struct Events(Vec<Event>);

impl Observer for Events {
    fn finished(&mut self, event: &Event, _diff: Option<&str>) {
        self.0.push(event.clone());
    }
}

/// The resources of a plan in the order in which they are finished.
fn flatten(resources: &[PlannedResource], into: &mut Vec<PlannedResource>) {
    for resource in resources {
        flatten(&resource.children, into);
        into.push(resource.clone());
    }
}

/// Whether what became of a resource is what was planned for it.
fn agrees(planned: PlanOutcome, event: &Event) -> bool {
    let outcome = PlanOutcome::of(event);
    match planned {
        // Whatever it does, it does not fail for a reason that was visible.
        PlanOutcome::Provisional => !event.skipped,
        PlanOutcome::Stable | PlanOutcome::Failed | PlanOutcome::Skipped => outcome == planned,
        _ => event.changed && !event.failed && !event.skipped,
    }
}

#[test]
fn plans_predict_what_runs_do() {
    let cases = corpus();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let engine = Engine::new(System::default(), TYPES);
    let (mut wrong, mut provisional, mut resources) = (Vec::new(), 0, 0);
    for case in &cases {
        let dir = tempfile::tempdir().unwrap();
        let path = case.stage(dir.path());
        let source = SourceRef::new(&path);
        let before = snapshot(dir.path());
        let mut options = engine.options(Cancel::default());
        options.diffs = Diffs::Public;
        let manifest = engine.load(&source, &options);
        let manifest =
            manifest.unwrap_or_else(|error| panic!("{}: {}", case.name, ccm_engine::chain(&error)));
        let plan = engine.plan(manifest, &options, &mut NoObserver).plan;
        let after = snapshot(dir.path());
        assert_eq!(before, after, "{}: the plan changed something", case.name);
        let mut planned = Vec::new();
        flatten(&plan.resources, &mut planned);
        let mut options = engine.options(Cancel::default());
        options.detail = Detail::Report;
        let mut events = Events::default();
        let manifest = engine.load(&source, &options).ok().unwrap();
        engine.apply(manifest, &options, None, &mut events);
        resources += planned.len();
        for planned in &planned {
            let (kind, name) = (&planned.kind, &planned.name);
            let event = events.0.iter().find(|e| e.kind == *kind && e.name == *name);
            let event = event.unwrap_or_else(|| panic!("{}: no {kind}#{name}", case.name));
            provisional += usize::from(planned.outcome == PlanOutcome::Provisional);
            if !agrees(planned.outcome, event) {
                wrong.push(format!(
                    "{}: {kind}#{name} was planned as {:?} ({:?} {:?}), and was {} {:?}",
                    case.name,
                    planned.outcome,
                    planned.error,
                    planned.waits_for,
                    event.outcome(),
                    event.error
                ));
            }
        }
    }
    assert!(resources > 140 && provisional < resources / 10, "{provisional} of {resources}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a saved plan allows is what the run decides, as long as nobody
/// interferes: no resource is refused.
#[test]
fn saved_plans_allow_what_they_show() {
    let engine = Engine::new(System::default(), TYPES);
    let mut refused = Vec::new();
    for case in &corpus() {
        let dir = tempfile::tempdir().unwrap();
        let path = case.stage(dir.path());
        let source = SourceRef::new(&path);
        let mut options = engine.options(Cancel::default());
        let recording = PlanRecording::start(&mut options);
        let manifest = engine.load(&source, &options).ok().unwrap();
        let plan = engine.plan(manifest, &options, &mut NoObserver).plan;
        let saved = recording.finish(plan, path, &options, Vec::new(), Vec::new());
        let mut options = engine.options(Cancel::default());
        let sources = saved.sources().unwrap();
        let replay = options.host.replay(&sources).unwrap();
        let differences = engine.verify(&saved, &sources, &options, &mut NoObserver).unwrap();
        if !differences.is_empty() {
            refused.push(format!("{}: {differences:?}", case.name));
        }
        drop(replay);
        options = engine.options(Cancel::default());
        options.decisions = saved.decisions();
        options.detail = Detail::Report;
        let _replay = options.host.replay(&sources).unwrap();
        let manifest = engine.load(&source, &options).ok().unwrap();
        let mut events = Events::default();
        engine.apply(manifest, &options, None, &mut events);
        for event in &events.0 {
            if event.error.iter().any(|error| error.contains("exactly the saved plan")) {
                refused.push(format!(
                    "{}: {}#{}: {:?}",
                    case.name, event.kind, event.name, event.error
                ));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
