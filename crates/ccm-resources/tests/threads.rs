//! Runs in several threads of one process: each has its own handle and its own
//! token, and none disturbs another.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "the test sets its stage")]

use std::path::Path;
use std::time::{Duration, Instant};

use ccm_engine::{Detail, Diffs, Inputs, Manifest, MemorySession, Observer, Run, Settings, Stop};
use ccm_host::{Cancel, CancelReason, System};
use ccm_model::Report;
use ccm_resources::TYPES;

struct Silent;

impl Observer for Silent {}

fn apply(system: &System, cancel: Cancel, path: &Path) -> (Report, Option<Stop>) {
    let host = system.begin(cancel);
    let inputs = Inputs::default();
    let manifest = Manifest::load(&host, path, TYPES, &inputs, false).ok().unwrap();
    let settings = Settings {
        host: host.clone(),
        noop: false,
        health_check_only: false,
        diffs: Diffs::None,
        detail: Detail::Report,
        working_directory: manifest.working_directory,
        fail_on_error: false,
    };
    let (mut session, mut observer) = (MemorySession::default(), Silent);
    let mut run = Run::new(settings, &manifest.templates, &mut session, &mut observer)
        .of_manifest(path, TYPES, &inputs);
    let stop = run.apply_all(manifest.declarations.resources);
    host.sync().unwrap();
    (run.finish("").0, stop)
}

#[test]
fn two_manifests_at_once_and_a_third_that_is_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let me = format!("owner: \"{}\", group: \"{}\"", my_ids().0, my_ids().1);
    let files = |name: &str| {
        let file = |n: usize| {
            let path = dir.path().join(name).join(format!("f{n}"));
            format!(
                "{{file: [{{{}: {{content: \"{name} {n}\", mode: \"0644\", {me}}}}}]}}",
                path.display()
            )
        };
        let made = dir.path().join(name);
        let first = format!(
            "{{file: [{{{}: {{ensure: directory, mode: \"0755\", {me}}}}}]}}",
            made.display()
        );
        let all: Vec<String> = (0..200).map(file).collect();
        let path = dir.path().join(format!("{name}.yaml"));
        std::fs::write(&path, format!("ccm: {{resources: [{first}, {}]}}\n", all.join(", ")))
            .unwrap();
        path
    };
    let (one, two) = (files("one"), files("two"));
    let slow = dir.path().join("slow.yaml");
    std::fs::write(&slow, "ccm: {resources: [{exec: [{sleep 60: {}}, {echo never: {}}]}]}\n")
        .unwrap();
    let system = System::default();
    let cancel = Cancel::new().unwrap();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let system = &system;
        let run = |path| scope.spawn(move || apply(system, Cancel::default(), path));
        let (first, second) = (run(&one), run(&two));
        let token = cancel.clone();
        let third = scope.spawn(|| apply(system, token, &slow));
        std::thread::sleep(Duration::from_millis(300));
        cancel.cancel(CancelReason::Requested);
        for done in [first, second] {
            let (report, stop) = done.join().unwrap();
            assert_eq!((report.summary.changed, report.summary.failed, stop), (201, 0, None));
        }
        let (report, stop) = third.join().unwrap();
        assert_eq!(stop, Some(Stop::Cancelled(CancelReason::Requested)));
        assert_eq!((report.summary.total, report.summary.failed), (1, 1), "{report:?}");
    });
    assert!(begin.elapsed() < Duration::from_secs(30));
    for (name, n) in [("one", 0), ("one", 199), ("two", 0), ("two", 199)] {
        let text = std::fs::read_to_string(dir.path().join(name).join(format!("f{n}"))).unwrap();
        assert_eq!(text, format!("{name} {n}"));
    }
}

fn my_ids() -> (u32, u32) {
    ccm_host::Host::new().whoami()
}
