//! Runs in several threads of one process: each has its own handle and its own
//! token, and none disturbs another.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "the test sets its stage")]

use std::path::Path;
use std::time::{Duration, Instant};

use ccm_engine::{Detail, Engine, NoObserver, SourceRef, Stop};
use ccm_host::{Cancel, CancelReason, System};
use ccm_model::Report;
use ccm_resources::TYPES;

fn apply(engine: &Engine, cancel: Cancel, path: &Path) -> (Report, Option<Stop>) {
    let mut options = engine.options(cancel);
    options.detail = Detail::Report;
    let manifest = engine.load(&SourceRef::new(path), &options).ok().unwrap();
    let finished = engine.apply(manifest, &options, None, &mut NoObserver);
    (finished.report, finished.stop)
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
    let at_work = dir.path().join("at-work");
    std::fs::write(&slow, format!("ccm: {{resources: [{{exec: [{{\"sh -c 'touch {}; sleep 60'\": {{}}}}, {{echo never: {{}}}}]}}]}}\n", at_work.display()))
        .unwrap();
    let engine = Engine::new(System::default(), TYPES);
    let cancel = Cancel::new().unwrap();
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let engine = &engine;
        let run = |path| scope.spawn(move || apply(engine, Cancel::default(), path));
        let (first, second) = (run(&one), run(&two));
        let token = cancel.clone();
        let third = scope.spawn(|| apply(engine, token, &slow));
        ccm_testkit::wait_until("the slow run", || at_work.exists());
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
