use ccm_host::Host;

use super::*;

struct Scene {
    dir: tempfile::TempDir,
    host: Host,
    state: StateDir,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let state = host.state_dir(&dir.path().join("state"), true).unwrap().unwrap();
        Self { dir, host, state }
    }

    fn store(&self) -> OwedStore {
        OwedStore::open(&self.state, "/m.yaml", false).unwrap()
    }

    fn owed(&self) -> Vec<String> {
        self.store().records().map(|record| record.subscriber.clone()).collect()
    }

    fn file(&self) -> std::path::PathBuf {
        self.dir.path().join("state/owed").join(name_of("/m.yaml"))
    }

    fn names(&self) -> usize {
        std::fs::read_dir(self.dir.path().join("state/owed")).unwrap().count()
    }
}

fn record(subscriber: &str) -> OwedRecord {
    let since = Timestamp::from_second(1_800_000_000).unwrap();
    OwedRecord { path: Vec::new(), subscriber: subscriber.into(), by: "file#/a".into(), since }
}

#[test]
fn owed_reactions_last_until_they_are_paid() {
    let scene = Scene::new();
    assert!(scene.owed().is_empty());
    assert_eq!(scene.state.names().unwrap().len(), 0, "reading writes nothing");
    let mut store = scene.store();
    store.owe(vec![record("exec#a"), record("exec#b")]).unwrap();
    let below = OwedRecord { path: vec!["c.yaml".into()], ..record("exec#a") };
    store.owe(vec![below.clone()]).unwrap();
    // Killed here: nothing was closed.
    assert_eq!(scene.owed(), ["exec#a", "exec#b", "exec#a"]);
    store.pay(&[], "exec#a").unwrap();
    assert_eq!(scene.owed(), ["exec#b", "exec#a"]);
    let again = OwedRecord { by: "file#/later".into(), ..record("exec#b") };
    store.owe(vec![again]).unwrap();
    assert_eq!(store.find(&[], "exec#b"), Some(&record("exec#b")), "the first change counts");
    store.close().unwrap();
    let mut store = scene.store();
    assert_eq!(store.find(&below.path, "exec#a"), Some(&below));
    store.pay(&below.path, "exec#a").unwrap();
    store.pay(&[], "exec#b").unwrap();
    store.close().unwrap();
    assert_eq!(scene.names(), 0);
}

/// A command of a run may apply the same manifest.
#[test]
fn a_run_within_a_run_loses_nothing() {
    let scene = Scene::new();
    let mut outer = scene.store();
    outer.owe(vec![record("exec#a"), record("exec#b")]).unwrap();
    let mut inner = scene.store();
    inner.pay(&[], "exec#a").unwrap();
    inner.owe(vec![record("exec#inner")]).unwrap();
    inner.close().unwrap();
    // The inner run has replaced the file that the outer one has open.
    outer.owe(vec![record("exec#c")]).unwrap();
    assert_eq!(scene.owed(), ["exec#a", "exec#b", "exec#c", "exec#inner"]);
    for name in ["exec#a", "exec#b", "exec#c"] {
        outer.pay(&[], name).unwrap();
    }
    outer.close().unwrap();
    assert_eq!(scene.owed(), ["exec#inner"]);
    let mut outer = scene.store();
    let mut inner = scene.store();
    inner.pay(&[], "exec#inner").unwrap();
    inner.close().unwrap();
    assert!(!scene.file().exists());
    outer.owe(vec![record("exec#d")]).unwrap();
    outer.pay(&[], "exec#inner").unwrap();
    outer.pay(&[], "exec#d").unwrap();
    outer.close().unwrap();
    assert_eq!(scene.names(), 0);
}

fn change(by: &str) -> Change {
    let since = Timestamp::from_second(1_800_000_000).unwrap();
    Change { by: by.into(), names: vec![by.into(), "apply#a.yaml".into()], since }
}

fn unseen(store: &OwedStore, path: &[&str]) -> Vec<String> {
    let path: Vec<String> = path.iter().map(|&part| part.to_owned()).collect();
    store.unseen(&path).iter().map(|change| change.by.clone()).collect()
}

#[test]
fn manifests_that_come_later_see_what_changed_before() {
    let scene = Scene::new();
    let path = |name: &str| vec![name.to_owned()];
    let mut store = scene.store();
    store.owe_for(vec![], Some(change("file#/1")), false).unwrap();
    store.owe_for(vec![record("exec#a")], Some(change("file#/2")), true).unwrap();
    store.owe_for(vec![], Some(change("file#/2")), false).unwrap();
    store.enter(&path("a")).unwrap();
    store.owe_for(vec![], Some(change("file#/3")), false).unwrap();
    store.owe_for(vec![], Some(change("file#/4")), false).unwrap();
    store.take_back("file#/4").unwrap();
    // Killed here. What was entered has seen the later changes by itself.
    let mut store = scene.store();
    assert_eq!(unseen(&store, &["a"]), [""; 0]);
    assert_eq!(unseen(&store, &["b"]), ["file#/1", "file#/2", "file#/3"]);
    store.owe_for(vec![], Some(change("file#/1")), false).unwrap();
    // Killed before it entered anything.
    let mut store = scene.store();
    assert_eq!(unseen(&store, &["a"]), ["file#/1"]);
    assert_eq!(unseen(&store, &["b"]), ["file#/1", "file#/2", "file#/3", "file#/1"]);
    store.pay(&[], "exec#a").unwrap();
    store.close().unwrap();
    let mut store = scene.store();
    assert_eq!(unseen(&store, &["b"]).len(), 4, "an interrupted run keeps them");
    store.enter(&path("a")).unwrap();
    store.enter(&path("b")).unwrap();
    store.forget_changes();
    store.close().unwrap();
    assert_eq!(scene.names(), 0);
}

#[test]
fn changes_of_a_run_within_a_run_are_kept() {
    let scene = Scene::new();
    let mut outer = scene.store();
    outer.owe_for(vec![], Some(change("file#/outer")), false).unwrap();
    let mut inner = scene.store();
    inner.owe_for(vec![], Some(change("file#/inner")), false).unwrap();
    inner.close().unwrap();
    outer.owe_for(vec![], Some(change("file#/last")), false).unwrap();
    outer.forget_changes();
    outer.close().unwrap();
    assert_eq!(unseen(&scene.store(), &["b"]), ["file#/inner"]);
}

#[test]
fn a_store_in_memory_writes_nothing() {
    let mut store = OwedStore::in_memory();
    store.owe_for(vec![record("exec#a")], Some(change("file#/1")), true).unwrap();
    assert_eq!(store.find(&[], "exec#a"), Some(&record("exec#a")));
    store.close().unwrap();
    store.pay(&[], "exec#a").unwrap();
    assert_eq!(store.records().count(), 0);
}

#[test]
fn manifests_do_not_meet() {
    let scene = Scene::new();
    scene.store().owe(vec![record("exec#a")]).unwrap();
    OwedStore::open(&scene.state, "/n.yaml", false).unwrap().owe(vec![record("exec#b")]).unwrap();
    assert_eq!(scene.owed(), ["exec#a"]);
    let all = list(&scene.state).unwrap();
    let all: Vec<_> = all.owed.iter().map(|(m, record)| (&**m, &*record.subscriber)).collect();
    assert_eq!(all, [("/m.yaml", "exec#a"), ("/n.yaml", "exec#b")]);
}

#[test]
fn a_file_cut_anywhere_can_be_read_and_written() {
    let scene = Scene::new();
    scene.store().owe(vec![record("exec#a"), record("exec#b")]).unwrap();
    let whole = std::fs::read(scene.file()).unwrap();
    let aside = scene.file().with_extension("damaged");
    for end in 0..=whole.len() {
        std::fs::write(scene.file(), &whole[..end]).unwrap();
        let before = scene.owed();
        assert!(["exec#a", "exec#b"].starts_with(&before.iter().map(|s| &**s).collect::<Vec<_>>()));
        scene.store().owe(vec![record("exec#z")]).unwrap();
        assert_eq!(scene.owed().len(), before.len() + 1, "cut at {end}");
        // Between two records nobody can tell.
        let lines = whole[..end].split(|&byte| byte == b'\n').count() - 1;
        let is_whole = lines > 1 && whole[end - 1] == b'\n';
        assert_eq!(aside.exists(), !is_whole, "cut at {end}");
        if !is_whole {
            assert_eq!(std::fs::read(&aside).unwrap(), whole[..end]);
            std::fs::remove_file(&aside).unwrap();
        }
    }
}

#[test]
fn flipped_bits_are_reported_and_the_rest_survives() {
    let scene = Scene::new();
    scene.store().owe(vec![record("exec#a"), record("exec#b")]).unwrap();
    let whole = std::fs::read(scene.file()).unwrap();
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(scene.file(), &flipped).unwrap();
        let host = Host::new();
        let state = host.state_dir(&scene.dir.path().join("state"), false).unwrap().unwrap();
        let mut store = OwedStore::open(&state, "/m.yaml", false).unwrap();
        assert!(!host.take_warnings().is_empty(), "bit {bit}");
        // Without its end, a line takes the next one with it.
        let is_end = whole[bit / 8] == b'\n';
        assert!(is_end || store.records().count() >= 1, "bit {bit}");
        store.owe(vec![record("exec#z")]).unwrap();
        assert!(scene.owed().contains(&"exec#z".to_owned()), "bit {bit}");
    }
}

#[test]
fn what_a_newer_version_wrote_is_kept() {
    let scene = Scene::new();
    scene.store().owe(vec![record("exec#a")]).unwrap();
    let newer = Record::Header { format: FORMAT + 1, manifest: "/m.yaml".into() };
    let bytes = [encode(&newer), encode(&serde_json::json!({"lent": 1}))].concat();
    std::fs::write(scene.file(), &bytes).unwrap();
    assert!(OwedStore::open(&scene.state, "/m.yaml", true).is_ok());
    assert!(scene.host.take_warnings()[0].contains("newer"));
    assert_eq!(scene.names(), 1, "a preview only reports it");
    scene.store().owe(vec![record("exec#b")]).unwrap();
    assert_eq!(std::fs::read(scene.file().with_extension("newer")).unwrap(), bytes);
    assert_eq!(scene.owed(), ["exec#b"]);
}
