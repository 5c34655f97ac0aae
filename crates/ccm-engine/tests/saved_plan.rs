//! Saved plans: applied exactly, and refused by name when anything has changed.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "the test sets its stage"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use ccm_engine::{Difference, Engine, NoObserver, PlanRecording, RunOptions, SavedPlan, SourceRef};
use ccm_hiera::DataSource;
use ccm_host::{Cancel, Host, System};
use ccm_model::Report;
use ccm_resources::TYPES;
use ccm_template::{Facts, Scope};
use ccm_testkit::snapshot;
use govalue::Map;

/// A manifest with everything that a plan can depend on.
const MANIFEST: &str = r#"
data: {greeting: hello}
ccm:
  resources:
    - file:
        - defaults: {ME, mode: "0644"}
        - D/t/stable: {content: "same\n"}
        - D/t/changed: {content: "{{ Data.greeting }} {{ Data.extra }} {{ Environ.CCM_WORD }}\n"}
        - D/t/new/sub: {ensure: directory, mode: "0755"}
        - D/t/new/sub/f: {content: "{{ readFile('text.txt') }}"}
        - D/t/copy: {source: source.txt}
        - D/t/attributes: {mode: "0640"}
        - D/t/gone: {ensure: absent}
        - D/t/missing: {ensure: absent}
        - D/t/hidden: {content: "hidden\n", mode: "0600"}
    - archive: [{D/t/got.tar.gz: {url: "file://D/local.tar.gz", ME}}]
    - scaffold: [{D/t/out: {source: templates}}]
    - exec:
        - touch D/t/never: {onlyif: test -e D/t/trigger}
        - touch D/t/ran: {creates: D/t/ran}
    - apply: [{child.yaml: {}}]
"#;

const CHILD: &str = r#"
ccm:
  resources:
    - file: [{D/t/child: {content: "child\n", ME, mode: "0644"}}]
    - exec: [{touch D/t/reacted: {refresh_only: true, subscribe: ["file#D/t/child"]}}]
"#;

struct Stage {
    dir: tempfile::TempDir,
    engine: Engine,
}

impl Stage {
    fn new() -> Self {
        let stage = Self {
            dir: tempfile::tempdir().unwrap(),
            engine: Engine::new(System::default(), TYPES),
        };
        for (path, text) in [
            ("manifest.yaml", MANIFEST),
            ("child.yaml", CHILD),
            ("extra.yaml", "data: {extra: more}\n"),
            ("text.txt", "read by a template\n"),
            ("source.txt", "copied\n"),
            ("templates/a.conf", "[[ 1 + 1 ]]\n"),
            ("templates/sub/b.conf", "b\n"),
            ("templates/tool", "#!/bin/sh\n"),
            ("local.tar.gz", "only its bytes count\n"),
            ("t/hidden", "hidden\n"),
            ("t/stable", "same\n"),
            ("t/changed", "old\n"),
            ("t/copy", "old\n"),
            ("t/attributes", "x\n"),
            ("t/gone", "x\n"),
            ("t/out/a.conf", "old\n"),
        ] {
            stage.write(path, text);
        }
        set_mode(&stage.path("t/hidden"), 0o600);
        set_mode(&stage.path("templates/tool"), 0o755);
        stage
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let (uid, gid) = Host::new().whoami();
        let me = format!("owner: \"{uid}\", group: \"{gid}\"");
        let d = format!("{}/", self.dir.path().display());
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text.replace("ME", &me).replace("D/", &d)).unwrap();
        set_mode(&path, 0o644);
    }

    fn sh(&self, script: &str) {
        let done = Command::new("sh").args(["-ec", script]).current_dir(self.dir.path()).status();
        assert!(done.unwrap().success(), "{script}");
    }

    fn options(&self) -> RunOptions {
        self.engine.options(Cancel::default())
    }

    fn plan(&self) -> SavedPlan {
        let mut options = self.options();
        let recording = PlanRecording::start(&mut options);
        let external = self.path("extra.yaml");
        let external = DataSource::new(external.to_str().unwrap()).load(&options.host).unwrap();
        options.inputs.external = Some(external);
        options.inputs.facts =
            Facts::known(Map::from_iter([("role", govalue::Value::from("web"))]));
        let variables = [("CCM_WORD", "word"), ("CCM_UNRELATED_SECRET", "hunter2")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        options.inputs.environ = Scope::environ(variables);
        let path = self.path("manifest.yaml");
        let manifest = self.engine.load(&SourceRef::new(&path), &options);
        let manifest = manifest.unwrap_or_else(|error| panic!("{}", ccm_engine::chain(&error)));
        let planned = self.engine.plan(manifest, &options, &mut NoObserver);
        assert_eq!(planned.plan.summary.failed, 0, "{:#?}", planned.plan);
        let saved = recording.finish(planned.plan, path, &options, Vec::new(), Vec::new());
        // As it comes back from its file.
        let elsewhere = tempfile::tempdir().unwrap();
        let file = elsewhere.path().join("x");
        std::fs::write(&file, saved.encode()).unwrap();
        assert!(SavedPlan::is_one(&options.host, &file));
        SavedPlan::read(&options.host, &file).unwrap()
    }

    fn verify(&self, saved: &SavedPlan) -> Vec<Difference> {
        let mut options = self.options();
        options.inputs = saved.inputs().unwrap();
        let sources = saved.sources().unwrap();
        let _replay = options.host.replay(&sources).unwrap();
        self.engine.verify(saved, &sources, &options, &mut NoObserver).unwrap()
    }

    fn apply(&self, saved: &SavedPlan) -> Report {
        let mut options = self.options();
        options.inputs = saved.inputs().unwrap();
        options.decisions = saved.decisions();
        options.detail = ccm_engine::Detail::Report;
        let _replay = options.host.replay(&saved.sources().unwrap()).unwrap();
        let source = SourceRef::Path(saved.manifest_path().clone());
        let manifest = self.engine.load(&source, &options).ok().unwrap();
        self.engine.apply(saved.named(manifest), &options, None, &mut NoObserver).report
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_plan_is_applied_exactly_and_without_its_sources() {
    let stage = Stage::new();
    let before = snapshot(stage.dir.path());
    let saved = stage.plan();
    assert_eq!(snapshot(stage.dir.path()), before, "making a plan changes nothing");
    assert!(!String::from_utf8_lossy(&saved.encode()).contains("hunter2"));
    assert_eq!(stage.verify(&saved), []);
    // A time is no difference.
    stage.sh("touch -d 2001-01-01 t/stable t/changed manifest.yaml");
    assert_eq!(stage.verify(&saved), []);
    stage
        .sh("rm -r manifest.yaml child.yaml extra.yaml text.txt source.txt templates local.tar.gz");
    assert_eq!(stage.verify(&saved), []);
    let report = stage.apply(&saved);
    let errors: Vec<_> = report.events.iter().flat_map(|event| &event.error).collect();
    assert_eq!(report.summary.failed, 0, "{errors:?}");
    let text = |path: &str| std::fs::read_to_string(stage.path(path)).unwrap();
    assert_eq!(text("t/changed"), "hello more word\n");
    assert_eq!(text("t/new/sub/f"), "read by a template\n");
    assert_eq!(text("t/copy"), "copied\n");
    assert_eq!(text("t/out/a.conf"), "2\n");
    assert_eq!(text("t/child"), "child\n");
    assert_eq!(text("t/got.tar.gz"), "only its bytes count\n");
    stage.sh("test -x t/out/tool && test ! -x t/out/sub/b.conf");
    assert!(stage.path("t/ran").exists() && stage.path("t/reacted").exists());
    assert!(!stage.path("t/gone").exists() && !stage.path("t/never").exists());
}

/// What someone does behind the back of a plan, and what the refusal names.
const OUTSIDE: [(&str, &str); 40] = [
    ("chmod 755 templates/sub/b.conf", "templates/sub/b.conf: mode is 0755, was 0644"),
    ("chmod 644 templates/tool", "templates/tool: mode is 0644, was 0755"),
    ("echo other > local.tar.gz", "local.tar.gz has changed"),
    ("echo x > t/got.tar.gz", "t/got.tar.gz"),
    ("echo other > t/hidden", "t/hidden: content has changed"),
    ("chmod 644 t/hidden", "t/hidden: mode is 0644, was 0600"),
    ("echo x > templates/new", "templates/new: is new"),
    ("echo more >> t/gone", "t/gone: content has changed"),
    ("echo other > t/stable", "t/stable"),
    ("chmod 600 t/stable", "t/stable: mode is 0600, was 0644"),
    ("rm t/stable", "t/stable"),
    ("rm t/stable; mkdir t/stable", "t/stable"),
    ("rm t/stable; ln -s copy t/stable", "t/stable"),
    ("rm t/stable; mkfifo t/stable", "t/stable"),
    ("echo newer > t/changed", "t/changed: content has changed"),
    ("rm t/changed", "t/changed"),
    ("printf 'hello more word\\n' > t/changed", "t/changed"),
    ("chmod 666 t/changed", "t/changed: mode"),
    ("mkdir -p t/new/sub", "t/new/sub"),
    ("mkdir t/new; touch t/new/sub", "t/new/sub"),
    ("mkdir -p t/new/sub; touch t/new/sub/f", "t/new/sub/f"),
    ("echo copied > t/copy", "t/copy"),
    ("chmod 640 t/attributes", "t/attributes"),
    ("rm t/attributes", "t/attributes"),
    ("rm t/gone", "t/gone"),
    ("rm t/gone; mkdir t/gone", "t/gone"),
    ("touch t/missing", "t/missing"),
    ("echo other > t/out/a.conf", "t/out"),
    ("touch t/out/foreign", "t/out"),
    ("rm -r t/out", "t/out"),
    ("touch t/ran", "exec#touch"),
    ("touch t/trigger", "exec#touch"),
    ("echo x > t/child", "t/child"),
    ("echo '# edited' >> manifest.yaml", "manifest.yaml has changed"),
    ("echo '# edited' >> child.yaml", "child.yaml has changed"),
    ("echo other > text.txt", "text.txt has changed"),
    ("echo other > source.txt", "source.txt has changed"),
    ("echo other > templates/a.conf", "templates/a.conf has changed"),
    ("echo 'data: {extra: less}' > extra.yaml", "extra.yaml has changed"),
    ("rm -r t; mkdir t", "t/"),
];

#[test]
fn whatever_changes_behind_the_back_of_a_plan_is_named_and_nothing_is_done() {
    for (script, name) in OUTSIDE {
        let stage = Stage::new();
        let saved = stage.plan();
        stage.sh(script);
        let before = snapshot(stage.dir.path());
        let differences = stage.verify(&saved);
        let named = differences.iter().any(|found| {
            let text = found.to_string();
            text.replace(": has", " has").contains(name)
        });
        assert!(named, "{script}: {differences:?}");
        assert_eq!(snapshot(stage.dir.path()), before, "{script}");
    }
}

#[test]
fn other_users_files_are_a_difference_too() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let stage = Stage::new();
    let saved = stage.plan();
    stage.sh("chown 1234 t/stable");
    let differences = stage.verify(&saved);
    assert!(differences.iter().any(|found| found.to_string().contains("owner")), "{differences:?}");
}

/// Between the check and the turn of a resource: it fails instead of doing
/// something else.
#[test]
fn what_changes_during_the_run_fails_its_resource() {
    let stage = Stage::new();
    let saved = stage.plan();
    assert_eq!(stage.verify(&saved), []);
    stage.sh("rm t/changed; chmod 777 t/stable");
    let report = stage.apply(&saved);
    let failed: Vec<&str> = report
        .events
        .iter()
        .filter(|event| event.failed)
        .map(|event| event.name.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(failed, ["stable", "changed"], "{:#?}", report.events);
    assert!(report.events[0].error[0].contains("not those of the plan"), "{:?}", report.events[0]);
}

#[test]
fn plans_of_other_hosts_and_old_plans_are_refused() {
    let stage = Stage::new();
    let mut saved = stage.plan();
    let host = Host::new();
    saved.check_host(&host).unwrap();
    let hour = std::time::Duration::from_hours(1);
    saved.check_age(host.now(), hour).unwrap();
    let later = host.now() + jiff::SignedDuration::from_hours(2);
    let error = saved.check_age(later, hour).unwrap_err();
    assert!(error.to_string().contains("2h old"), "{error}");
    saved.plan.host.id = "another".into();
    saved.plan.host.name = "web9".into();
    let error = saved.check_host(&host).unwrap_err();
    assert!(error.to_string().contains("made for web9") && error.hint().is_some(), "{error}");
}
