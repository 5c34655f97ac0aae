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

use ccm_engine::{
    Detail, Diffs, Engine, NoObserver, Observer, PlanRecording, SavedPlan, SourceRef,
};
use ccm_host::{Cancel, Reach, System};
use ccm_model::{Event, Outcome, PlannedResource};
use ccm_resources::TYPES;
use ccm_testkit::snapshot;

#[derive(Default)]
struct Case {
    name: String,
    /// How many resources only the run can judge.
    provisional: usize,
    setup: Vec<String>,
    files: Vec<(String, String)>,
    resources: String,
    /// What somebody else does after the plan was made.
    outside: Vec<String>,
    /// What a saved plan must find then.
    differences: Vec<String>,
}

fn corpus(name: &str) -> Vec<Case> {
    // Read when the test runs, so that a new case needs no build.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prediction").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let cases = text.split("\n== ").skip(1);
    cases
        .map(|case| {
            let (name, body) = case.split_once('\n').unwrap();
            let (name, provisional) = match name.rsplit_once(" [") {
                Some((name, rest)) => {
                    (name, rest.trim_end_matches(" provisional]").parse().unwrap())
                }
                None => (name, 0),
            };
            let mut this = Case { name: name.to_owned(), provisional, ..Case::default() };
            let mut file: Option<(String, String)> = None;
            for line in body.lines() {
                if let Some(path) = line.strip_prefix('@') {
                    this.files.extend(file.take());
                    file = (!path.is_empty()).then(|| (path.to_owned(), String::new()));
                } else if let Some((_, text)) = &mut file {
                    text.push_str(line);
                    text.push('\n');
                } else if let Some(command) = line.strip_prefix("! ") {
                    this.outside.push(command.to_owned());
                } else if let Some(difference) = line.strip_prefix("= ") {
                    this.differences.push(difference.to_owned());
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
            let text = text.replace("ME_BLOCK", &block).replace("ME", &me);
            text.replace("MY_UID", &uid.to_string()).replace("D/", &format!("{d}/"))
        };
        for (path, text) in &self.files {
            let path = directory.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, fill(text)).unwrap();
        }
        self.run(&self.setup, directory);
        let manifest = directory.join("manifest.yaml");
        let text = format!("ccm:\n  resources:\n{}", fill(&self.resources));
        std::fs::write(&manifest, text).unwrap();
        manifest
    }

    /// Runs commands in the directory of the case.
    fn run(&self, commands: &[String], directory: &Path) {
        for command in commands {
            let status = Command::new("sh").args(["-ec", command]).current_dir(directory).status();
            assert!(status.unwrap().success(), "{}: {command}", self.name);
        }
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
fn agrees(planned: Outcome, event: &Event) -> bool {
    let outcome = event.outcome();
    match planned {
        // Whatever it does, it does not fail for a reason that was visible.
        Outcome::Provisional => !event.skipped,
        _ => outcome == planned,
    }
}

#[test]
fn plans_predict_what_runs_do() {
    let cases = corpus("corpus.txt");
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let engine = Engine::new(System::default(), TYPES);
    let (mut wrong, mut resources) = (Vec::new(), 0);
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
        let is_open = |one: &&PlannedResource| one.outcome == Outcome::Provisional;
        let open: Vec<_> = planned.iter().filter(is_open).map(|one| &one.name).collect();
        if open.len() != case.provisional {
            wrong.push(format!("{} [{} provisional]: {open:?}", case.name, open.len()));
        }
        let planned_before = planned.clone();
        for (at, planned) in planned.iter().enumerate() {
            let (kind, name) = (&planned.kind, &planned.name);
            // A child manifest may have a resource of the same name.
            let is_same = |one: &&PlannedResource| one.kind == *kind && one.name == *name;
            let earlier = planned_before[..at].iter().filter(is_same).count();
            let mut found = events.0.iter().filter(|e| e.kind == *kind && e.name == *name);
            let event = found.nth(earlier);
            let event = event.unwrap_or_else(|| panic!("{}: no {kind}#{name}", case.name));
            // What a plan says of the members of a directory is what happens.
            let members = |changes: &[ccm_model::Change]| {
                changes.iter().find(|change| change.property == "files").cloned()
            };
            if planned.outcome != Outcome::Provisional
                && !event.failed
                && members(&planned.changes) != members(&event.changes)
            {
                wrong.push(format!(
                    "{}: {kind}#{name}: planned {:?}, done {:?}",
                    case.name, planned.changes, event.changes
                ));
            }
            if !agrees(planned.outcome, event) {
                wrong.push(format!(
                    "{}: {kind}#{name} was planned as {:?} ({:?} {:?}), and was {} {:?}",
                    case.name,
                    planned.outcome,
                    planned.error,
                    planned.waits_for,
                    event.log_words(),
                    event.error
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(resources > 300, "{resources}");
}

/// What a plan says of each resource of a manifest: outcome and what it waits for.
fn planned(dir: &Path, case: &Case) -> Vec<PlannedResource> {
    let engine = Engine::new(System::default(), TYPES);
    let path = case.stage(dir);
    let options = engine.options(Cancel::default());
    let manifest = engine.load(&SourceRef::new(&path), &options).ok().unwrap();
    let mut planned = Vec::new();
    flatten(&engine.plan(manifest, &options, &mut NoObserver).plan.resources, &mut planned);
    planned
}

fn case(setup: &str, resources: &str) -> Case {
    let resources = resources.lines().map(|line| format!("    {line}\n")).collect();
    let setup = vec![setup.to_owned()];
    Case { setup, resources, ..Case::default() }
}

/// A provisional resource waits for the one that makes the difference, not for
/// one that waits itself.
#[test]
fn provisional_resources_name_their_supplier() {
    let dir = tempfile::tempdir().unwrap();
    let resources = r#"
- exec:
    - make: {command: "true"}
    - fill: {command: mkdir D/sub, creates: D/sub}
- file:
    - D/sub: {ensure: directory, mode: "0755", ME}
    - D/sub/f: {content: x, mode: "0644", ME}
    - D/no/f: {content: x, mode: "0644", ME, require: ["exec#fill"]}
"#;
    let planned = planned(dir.path(), &case("true", resources));
    let waits: Vec<_> = planned[1..].iter().map(|one| (one.outcome, &one.waits_for)).collect();
    let supplier = vec!["exec#make".to_owned()];
    assert_eq!(waits, [(Outcome::Provisional, &supplier); 4], "{planned:#?}");
}

/// A package that is to be installed may bring any file below the directories
/// that packages use. What is to be absent there, and is now, is not settled.
#[test]
fn what_a_package_may_bring_is_not_settled() {
    let dir = tempfile::tempdir().unwrap();
    let resources = r"
- file:
    - /etc/ccm-test-no-such/default: {ensure: absent}
    - /usr/local/ccm-test-no-such: {ensure: absent}
    - D/elsewhere: {ensure: absent}
- archive: [{/opt/ccm-test-no-such.tar.gz: {ensure: absent}}]
- scaffold: [{/var/lib/ccm-test-no-such: {ensure: absent, source: D/src}}]
";
    let case = case("mkdir src; touch src/f", resources);
    let path = case.stage(dir.path());
    let engine = Engine::new(System::default(), TYPES);
    let plan = |reach: Option<Reach>| {
        let mut options = engine.options(Cancel::default());
        options.host = options.host.preview();
        let host = &options.host;
        host.begin_prediction("package#app");
        if let Some(reach) = reach {
            host.predict_more(reach, None);
        }
        let manifest = engine.load(&SourceRef::new(&path), &options).ok().unwrap();
        let plan = engine.plan(manifest, &options, &mut NoObserver);
        let one = |one: PlannedResource| (one.outcome, one.now, one.waits_for.join(""));
        let rows: Vec<_> = plan.plan.resources.into_iter().map(one).collect();
        (rows, plan.finished.report.summary.changed)
    };
    let stable = || (Outcome::Stable, None, String::new());
    let (rows, changed) = plan(Some(Reach::Packages));
    let open = || {
        let now = Some(Outcome::Stable);
        (Outcome::Provisional, now, "package#app".to_owned())
    };
    assert_eq!(rows, [open(), open(), stable(), open(), open()]);
    assert_eq!(changed, 0);
    // A package that is removed brings nothing.
    for reach in [None, Some(Reach::Anything), Some(Reach::Files)] {
        assert_eq!(plan(reach).0, [(); 5].map(|()| stable()), "{reach:?}");
    }
}

/// Not even root removes what is immutable, wherever in a tree it is.
#[test]
fn immutable_files_keep_their_tree() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let chattr = |flag: &str| {
        let path = dir.path().join("t/sub/f");
        Command::new("chattr").arg(flag).arg(path).status().is_ok_and(|status| status.success())
    };
    let resources = "- file: [{D/t: {ensure: absent, force: true}}]";
    let case = case("mkdir -p t/sub; touch t/sub/f", resources);
    case.stage(dir.path());
    if !chattr("+i") {
        return ccm_testkit::not_run("the file system has no immutable files");
    }
    let again = Case { setup: Vec::new(), ..case };
    let outcome = planned(dir.path(), &again)[0].outcome;
    chattr("-i");
    assert_eq!(outcome, Outcome::Failed);
    assert_eq!(planned(dir.path(), &again)[0].outcome, Outcome::Remove);
}

/// Plans a manifest as `ccm plan --out` does.
fn save(engine: &Engine, path: &Path) -> SavedPlan {
    let mut options = engine.options(Cancel::default());
    let recording = PlanRecording::start(&mut options);
    let manifest = engine.load(&SourceRef::new(path), &options).ok().unwrap();
    let plan = engine.plan(manifest, &options, &mut NoObserver).plan;
    recording.finish(plan, path.to_owned(), &options, Vec::new(), Vec::new())
}

/// Whatever somebody changes after the plan was made, the plan is refused, and
/// says what it was.
#[test]
fn saved_plans_find_what_has_changed() {
    let engine = Engine::new(System::default(), TYPES);
    let cases = corpus("stale.txt");
    assert!(cases.len() >= 30, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        let dir = tempfile::tempdir().unwrap();
        let path = case.stage(dir.path());
        let saved = save(&engine, &path);
        case.run(&case.outside, dir.path());
        let before = snapshot(dir.path());
        let options = engine.options(Cancel::default());
        let sources = saved.sources().unwrap();
        let _replay = options.host.replay(&sources).unwrap();
        let found = engine.verify(&saved, &sources, &options, &mut NoObserver).unwrap();
        assert_eq!(snapshot(dir.path()), before, "{}: something was changed", case.name);
        let d = format!("{}/", dir.path().display());
        let found: Vec<_> = found.iter().map(|one| one.to_string().replace(&d, "D/")).collect();
        if found != case.differences || found.is_empty() {
            wrong.push(format!("{}:\n= {}", case.name, found.join("\n= ")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a saved plan allows is what the run decides, as long as nobody
/// interferes: no resource is refused.
#[test]
fn saved_plans_allow_what_they_show() {
    let engine = Engine::new(System::default(), TYPES);
    let mut refused = Vec::new();
    for case in &corpus("corpus.txt") {
        let dir = tempfile::tempdir().unwrap();
        let path = case.stage(dir.path());
        let source = SourceRef::new(&path);
        let saved = save(&engine, &path);
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
