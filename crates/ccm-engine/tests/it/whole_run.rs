//! Whole runs: what `prepare` checks and does not touch, and what the result says.

use ccm_engine::{
    Engine, NoObserver, RunError, RunExit, RunRequest, RunResult, RunSource, SavedPlan, Selectors,
    SourceRef, StateRequest, UndoOptions,
};
use ccm_host::{Cancel, System};
use ccm_model::Request;
use ccm_resources::TYPES;
use ccm_yaml::Source;

use super::Bed;

const FILE: &str = "ccm: {resources: [{file: [{'[DIR]/a': {content: x, [ME], mode: '0644'}}]}]}\n";

struct Stage {
    bed: Bed,
    engine: Engine,
}

impl Stage {
    fn new(manifest: &str) -> Self {
        let bed = Bed::new();
        bed.manifest(manifest);
        Self { bed, engine: Engine::new(System::default(), TYPES) }
    }

    fn state(&self) -> StateRequest {
        StateRequest { path: Some(self.bed.path("state")), ..StateRequest::default() }
    }

    fn run<'a>(
        &'a self,
        source: impl Into<Option<RunSource<'a>>>,
        change: impl FnOnce(&mut RunRequest<'_, String>),
    ) -> Result<RunResult, RunError<String>> {
        let path = SourceRef::Path(self.bed.path("manifest.yaml"));
        let load = |options: &_| self.engine.load(&path, options);
        let options = self.engine.options(Cancel::default());
        options.host.skip_sync();
        let mut request = RunRequest {
            source: source.into().unwrap_or(RunSource::Manifest(&load)),
            options,
            inputs: &|_| Ok(ccm_engine::Inputs::default()),
            selectors: Selectors::default(),
            state: self.state(),
            session: None,
            is_saved: false,
        };
        change(&mut request);
        let prepared = self.engine.prepare(request, &mut |_| {})?;
        Ok(prepared.run(&mut NoObserver)?)
    }

    fn plan(&self) -> SavedPlan {
        let planned = self.run(None, |request| {
            request.options.mode.noop = true;
            request.is_saved = true;
        });
        planned.unwrap().saved.unwrap()
    }
}

fn of_plan<'a>(plan: SavedPlan) -> RunSource<'a> {
    RunSource::SavedPlan { plan: Box::new(plan), any_host: false, max_age: None }
}

fn undo<'a>(id: Option<&str>) -> RunSource<'a> {
    let undo = UndoOptions::default();
    RunSource::Undo { id: id.map(str::to_owned), undo }
}

const CHANGED: RunExit = RunExit::Finished { changed: true, failed: false };

#[test]
fn a_manifest_a_saved_plan_and_an_undo_are_runs() {
    let stage = Stage::new(FILE);
    let plan = stage.plan();
    assert!(!stage.bed.path("a").exists() && !stage.bed.path("state").exists());
    assert_eq!(stage.run(of_plan(plan), |_| {}).unwrap().exit, CHANGED);
    assert_eq!(stage.bed.read("a"), "x");
    let again = stage.run(None, |_| {}).unwrap();
    assert_eq!(again.exit, RunExit::Finished { changed: false, failed: false });
    assert_eq!(stage.run(undo(None), |_| {}).unwrap().exit, CHANGED);
    assert!(!stage.bed.path("a").exists());
}

#[test]
fn what_cannot_begin_changes_nothing() {
    let stage = Stage::new(FILE);
    let plan = stage.plan();
    stage.bed.write("a", "another");
    let refused = stage.run(of_plan(plan), |_| {}).unwrap_err();
    assert!(matches!(&refused, RunError::Stale { differences } if !differences.is_empty()));
    assert_eq!(refused.exit(), RunExit::Failed);
    let none = stage.run(undo(Some("none")), |_| {}).unwrap_err();
    assert!(matches!(none, RunError::Undo(_)));
    let refused = stage.run(None, |request| {
        request.inputs = &|_| Err("no data".to_owned());
    });
    let refused = refused.unwrap_err();
    assert!(matches!(refused, RunError::Inputs(reason) if reason == "no data"));
    let only = vec!["file#/nowhere".to_owned()];
    let refused = stage.run(None, |request| request.selectors.only = only);
    assert!(matches!(refused, Err(RunError::Selection(_))));
    stage.bed.manifest("ccm: {resources: [{fil: []}]}\n");
    assert!(matches!(stage.run(None, |_| {}), Err(RunError::Manifest(_))));
    assert_eq!(stage.bed.read("a"), "another");
}

#[test]
fn what_is_owed_is_part_of_the_result() {
    let stage = Stage::new(
        "ccm:\n  post_message: done\n  resources:\n  \
         - file: [{'[DIR]/a': {content: x, [ME], mode: '0644'}}]\n  \
         - exec: [{react: {command: 'test -e [DIR]/ready', refresh_only: true, \
         subscribe: ['file#[DIR]/a']}}]\n",
    );
    let RunResult { finished, exit, .. } = stage.run(None, |_| {}).unwrap();
    assert_eq!(exit, RunExit::Finished { changed: true, failed: true });
    assert_eq!(finished.post_message, None, "only after a run without errors");
    let owed = &finished.report.owed;
    assert_eq!(owed.len(), 1);
    assert_eq!(owed[0].subscriber, "exec#react");
    assert_eq!(owed[0].by, format!("file#{}/a", stage.bed.dir().display()));
    stage.bed.write("ready", "");
    let RunResult { finished, exit, .. } = stage.run(None, |_| {}).unwrap();
    assert_eq!(exit, CHANGED);
    assert_eq!(finished.post_message.as_deref(), Some("done"));
    assert!(finished.report.owed.is_empty());
}

/// A lock that another run holds, a request that is wrong, one that fails.
#[test]
fn requests_end_with_what_became_of_all() {
    let stage = Stage::new(FILE);
    let end = |requests: &[&str], lock: bool| {
        let options = stage.engine.options(Cancel::default());
        options.host.skip_sync();
        let mut open = stage.engine.open::<String>(options, &stage.state(), None).unwrap();
        if lock {
            open.lock(&mut |_| {}).unwrap();
        }
        let mut observer = NoObserver;
        let mut run = open.start(&mut observer).unwrap();
        for text in requests {
            let text = format!("{{protocol: io.choria.ccm.v1.resource.ensure.request, {text}}}");
            let source = Source::new("request", &*text);
            let _ = run.ensure(Request::parse(&source).unwrap(), &mut |_| {});
        }
        run.finish().exit
    };
    let ran = "type: exec, properties: {name: /bin/true}";
    for (requests, exit) in [
        (&[][..], RunExit::Finished { changed: false, failed: false }),
        (&[ran], CHANGED),
        (
            &[ran, "type: fil, properties: {name: x}"],
            RunExit::Finished { changed: true, failed: true },
        ),
        (
            &["type: exec, properties: {name: /bin/false}"],
            RunExit::Finished { changed: false, failed: true },
        ),
    ] {
        assert_eq!(end(requests, false), exit, "{requests:?}");
        assert_eq!(end(requests, true), exit, "{requests:?}");
    }
    let options = stage.engine.options(Cancel::default());
    let mut holder = stage.engine.open::<String>(options, &stage.state(), None).unwrap();
    holder.lock(&mut |_| {}).unwrap();
    assert_eq!(end(&[ran], false), RunExit::Busy);
}
