//! Runs, outside edits and undos in random order on real trees: an undo gives
//! back the exact tree, or names what it leaves alone.
//!
//! `CCM_UNDOS` sets the number of sequences.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "the test sets its stage"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use ccm_engine::{Engine, HistoryInfo, NoObserver, RunOptions, SourceRef, UndoOptions};
use ccm_host::{Cancel, Host, System};
use ccm_model::Report;
use ccm_resources::TYPES;
use ccm_state::history;
use ccm_testkit::{Random, snapshot_of_content};

type Tree = BTreeMap<PathBuf, String>;

/// `ld` is a symlink to `d`, in some of the trees: the same files by other names.
const FILES: [&str; 10] =
    ["a", "b", "d/a", "d/b", "d/e/a", "x/a", "s/one", "ex/bin/tool", "ld/a", "ld/b"];
const DIRECTORIES: [&str; 7] = ["d", "d/e", "x", "x/y", "s", "ex", "new/deep"];
const LINKS: [&str; 3] = ["l", "d/l", "s/l"];
const TEXTS: [&str; 4] = ["", "one\n", "two\nlines\n", "\u{fffd} other\n"];
const MODES: [&str; 4] = ["0644", "0600", "0755", "0640"];

struct Stage {
    dir: tempfile::TempDir,
    engine: Engine,
    random: Random,
    sequence: usize,
}

impl Stage {
    fn new(sequence: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ ((sequence as u64 + 1) << 20));
        for _ in 0..9 {
            random.below(2);
        }
        let engine = Engine::new(System::default(), TYPES);
        let stage = Self { dir, engine, random, sequence };
        for (path, text) in [
            ("templates/one", "[[ 1 + 1 ]]\n"),
            ("templates/sub/two", "two\n"),
            ("packed/bin/tool", "#!/bin/sh\n"),
            ("packed/share/text", "text\n"),
        ] {
            let path = stage.dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        symlink("../share/text", stage.dir.path().join("packed/bin/link")).unwrap();
        let packed = Command::new("tar")
            .args(["-czf", "packed.tar.gz", "-C", "packed", "bin", "share"])
            .current_dir(stage.dir.path())
            .status();
        assert!(packed.unwrap().success());
        stage
    }

    fn top(&self) -> PathBuf {
        self.dir.path().join("t")
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())]
    }

    fn owner(&mut self) -> (u32, u32) {
        let me = Host::new().whoami();
        if me.0 == 0 { self.pick(&[(0, 0), (0, 0), (65534, 65534), (1, 0)]) } else { me }
    }

    /// Puts something at a path, whatever was there.
    fn put(&mut self, path: &str) {
        let path = self.top().join(path);
        if std::fs::create_dir_all(path.parent().unwrap()).is_err() {
            return;
        }
        remove(&path);
        std::fs::write(&path, self.pick(&TEXTS)).unwrap();
        self.set(&path);
    }

    fn set(&mut self, path: &Path) {
        let mode = u32::from_str_radix(self.pick(&MODES), 8).unwrap();
        let (uid, gid) = self.owner();
        chown(path, Some(uid), Some(gid)).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn fill(&mut self) {
        std::fs::create_dir(self.top()).unwrap();
        for path in DIRECTORIES {
            if self.random.below(3) > 0 {
                let path = self.top().join(path);
                let _ = std::fs::create_dir_all(&path);
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        for path in FILES {
            if self.random.below(2) > 0 {
                self.put(path);
            }
        }
        let (directory, link) = (self.top().join("d"), self.top().join("ld"));
        if directory.is_dir() && self.random.below(2) == 0 {
            remove(&link);
            symlink("d", link).unwrap();
        }
        for path in LINKS {
            let path = self.top().join(path);
            if self.random.below(3) == 0 && path.parent().unwrap().is_dir() {
                symlink(self.pick(&["a", "nowhere", "/etc/hostname"]), path).unwrap();
            }
        }
    }

    /// What somebody else does between a run and its undo.
    fn edit(&mut self) {
        for _ in 0..=self.random.below(3) {
            let path = self.pick(&FILES);
            match self.random.below(7) {
                6 => {
                    // A symlink leads elsewhere, or a directory became one.
                    let link = self.top().join(self.pick(&["ld", "d", "x"]));
                    let target = self.pick(&["x", "s", "d"]);
                    if !link.is_symlink() && link.is_dir() {
                        let moved = self.top().join("moved");
                        remove(&moved);
                        std::fs::rename(&link, moved).unwrap();
                    } else {
                        remove(&link);
                    }
                    symlink(target, link).unwrap();
                }
                0 => self.put(path),
                1 => remove(&self.top().join(path)),
                2 if self.top().join(path).is_file() => self.set(&self.top().join(path)),
                3 => {
                    let directory = self.top().join(self.pick(&DIRECTORIES));
                    if directory.is_dir() {
                        std::fs::write(directory.join("foreign"), "foreign\n").unwrap();
                    }
                }
                4 => {
                    let path = self.top().join(path);
                    if path.parent().unwrap().is_dir() {
                        remove(&path);
                        std::fs::create_dir(&path).unwrap();
                    }
                }
                _ => {
                    let path = self.top().join(self.pick(&LINKS));
                    if path.parent().unwrap().is_dir() {
                        remove(&path);
                        symlink("elsewhere", path).unwrap();
                    }
                }
            }
        }
    }

    fn manifest(&mut self) -> PathBuf {
        let mut text = "ccm:\n  resources:\n".to_owned();
        let top = self.top().display().to_string();
        let mut used = BTreeSet::new();
        for _ in 0..=self.random.below(6) {
            let (uid, gid) = self.owner();
            let mode = self.pick(&MODES);
            let me = format!("owner: \"{uid}\", group: \"{gid}\"");
            let own = format!("{me}, mode: \"{mode}\"");
            let path = match self.random.below(9) {
                0 | 1 => self.pick(&DIRECTORIES),
                2 => self.pick(&LINKS),
                _ => self.pick(&FILES),
            };
            let name = format!("{top}/{path}");
            let content = format!("{:?}", self.pick(&TEXTS));
            let (kind, properties) = match self.random.below(9) {
                0 | 1 => ("file", format!("{{content: {content}, {own}}}")),
                2 => ("file", format!("{{{own}}}")),
                3 => ("file", format!("{{content: {content}, {own}, write: in_place}}")),
                4 => ("file", format!("{{ensure: directory, {me}, mode: \"0755\"}}")),
                5 => ("file", "{ensure: absent, force: true}".to_owned()),
                6 => ("file", "{ensure: absent}".to_owned()),
                7 => {
                    let purge = self.random.below(2) == 0;
                    let ensure = self.pick(&["present", "present", "absent"]);
                    let source = self.dir.path().join("templates").display().to_string();
                    let target = self.pick(&["s", "x", "new/deep"]);
                    let properties =
                        format!("{{source: {source}, purge: {purge}, ensure: {ensure}}}");
                    let name = format!("{top}/{target}");
                    if used.insert(format!("scaffold {name}")) {
                        let _ = writeln!(text, "    - scaffold: [{{{name}: {properties}}}]");
                    }
                    continue;
                }
                _ => {
                    let url = self.dir.path().join("packed.tar.gz").display().to_string();
                    let cleanup = self.random.below(2) == 0;
                    let (name, into) = (format!("{top}/p.tar.gz"), format!("{top}/ex"));
                    let properties = format!(
                        "{{url: \"file://{url}\", extract_parent: {into}, creates: {into}/bin/tool, \
                         cleanup: {cleanup}, {me}}}"
                    );
                    if used.insert(format!("archive {name}")) {
                        let _ = writeln!(text, "    - archive: [{{{name}: {properties}}}]");
                    }
                    continue;
                }
            };
            if used.insert(format!("{kind} {name}")) {
                let _ = writeln!(text, "    - {kind}: [{{{name}: {properties}}}]");
            }
        }
        let path = self.dir.path().join("manifest.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn options(&self) -> RunOptions {
        let mut options = self.engine.options(Cancel::default());
        options.host.skip_sync();
        let state = options.host.state_dir(&self.dir.path().join("state"), true);
        options.state.directory = state.unwrap();
        options.state.history = Some(HistoryInfo::default());
        options
    }

    /// Applies a random manifest; the id of the run if it left one.
    fn apply(&mut self) -> Option<String> {
        let path = self.manifest();
        let options = self.options();
        let state = options.state.directory.clone().unwrap();
        let newest = || history::list(&state).unwrap().into_iter().next().map(|run| run.info.id);
        let before = newest();
        let manifest = match self.engine.load(&SourceRef::new(&path), &options) {
            Ok(manifest) => manifest,
            Err(error) => panic!("{}", ccm_engine::chain(&error)),
        };
        self.engine.apply(manifest, &options, None, &mut NoObserver);
        newest().filter(|id| before.as_ref() != Some(id))
    }

    fn undo(&self, id: &str, noop: bool, force: bool) -> Report {
        let mut options = self.options();
        options.mode.noop = noop;
        let state = options.state.directory.clone().unwrap();
        let run = history::open(&state, id).unwrap().unwrap();
        let undo = UndoOptions { force, ..UndoOptions::default() };
        self.engine.undo(&run, &undo, &options, &mut NoObserver).unwrap().finished.report
    }

    /// Previews an undo, then does it: the outcomes must be the same.
    fn undo_as_previewed(&self, id: &str, force: bool) -> Report {
        let before = self.tree();
        let preview = self.undo(id, true, force);
        assert_eq!(self.tree(), before, "a preview changes nothing");
        let report = self.undo(id, false, force);
        let outcomes = |report: &Report| -> Vec<String> {
            let word = |event: &ccm_model::Event| {
                format!("{}#{} {} {:?}", event.kind, event.name, event.log_words(), event.error)
            };
            report.events.iter().map(word).collect()
        };
        assert_eq!(outcomes(&preview), outcomes(&report), "sequence {}", self.sequence);
        report
    }

    fn tree(&self) -> Tree {
        snapshot_of_content(&self.top())
    }

    fn newest(&self) -> String {
        let state = self.options().state.directory.unwrap();
        history::list(&state).unwrap()[0].info.id.clone()
    }
}

fn remove(path: &Path) {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => std::fs::remove_dir_all(path).unwrap(),
        Ok(_) => std::fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

fn errors(report: &Report) -> String {
    let line = |event: &ccm_model::Event, error: &String| format!("{}: {error}", event.name);
    let lines = report.events.iter();
    let lines = lines.flat_map(|event| event.error.iter().map(move |error| line(event, error)));
    lines.collect::<Vec<_>>().join("\n")
}

fn differing<'a>(one: &'a Tree, other: &'a Tree) -> BTreeSet<&'a PathBuf> {
    one.keys().chain(other.keys()).filter(|path| one.get(*path) != other.get(*path)).collect()
}

/// Undo after undo, the last run first, gives back every tree in between.
fn undo_everything(stage: &mut Stage) -> usize {
    let mut runs = Vec::new();
    for _ in 0..=stage.random.below(3) {
        let before = stage.tree();
        let id = stage.apply();
        let after = stage.tree();
        match id {
            Some(id) => runs.push((id, before, after)),
            None => assert_eq!(before, after, "sequence {}: a change unrecorded", stage.sequence),
        }
    }
    let sequence = stage.sequence;
    let count = runs.len();
    while let Some((id, before, after)) = runs.pop() {
        let report = stage.undo_as_previewed(&id, false);
        let manifest = std::fs::read_to_string(stage.dir.path().join("manifest.yaml")).unwrap();
        assert_eq!(errors(&report), "", "sequence {sequence}\n{manifest}");
        assert_eq!(stage.tree(), before, "sequence {sequence} {id}\n{manifest}");
        let again = stage.undo(&id, false, false);
        assert_eq!((again.events.len(), errors(&again)), (0, String::new()), "{sequence}");
        if before != after && stage.random.below(2) == 0 {
            // There and back: the undo of an undo is the state after the run.
            stage.undo_as_previewed(&stage.newest(), false);
            assert_eq!(stage.tree(), after, "sequence {sequence} {id}");
            stage.undo_as_previewed(&stage.newest(), false);
            assert_eq!(stage.tree(), before, "sequence {sequence} {id}");
        }
    }
    count
}

/// An undo after outside edits restores the rest and leaves these alone.
fn undo_after_edits(stage: &mut Stage) -> usize {
    let sequence = stage.sequence;
    let before = stage.tree();
    let Some(id) = stage.apply() else { return 0 };
    let after = stage.tree();
    stage.edit();
    let edited = stage.tree();
    let report = stage.undo_as_previewed(&id, false);
    let (end, errors) = (stage.tree(), errors(&report));
    let manifest = std::fs::read_to_string(stage.dir.path().join("manifest.yaml")).unwrap();
    let context = format!("sequence {sequence}\n{manifest}\n{errors}");
    let foreign = differing(&after, &edited);
    for path in differing(&before, &end).into_iter().chain(differing(&edited, &end)) {
        let shown = path.display();
        let [was, left, found, is] = [&before, &after, &edited, &end].map(|tree| tree.get(path));
        assert!(is == was || is == found, "{shown} is neither old nor as found\n{context}");
        if foreign.contains(path) && found != was {
            // A directory that stays is not as before if something in it is not.
            assert_eq!(is, found, "{shown} of somebody else was touched\n{context}");
        }
        if was != left && is != was {
            let full = stage.top().join(path).display().to_string();
            let holds_foreign = foreign.iter().any(|other| other.starts_with(path));
            let is_below_foreign = foreign.iter().any(|other| path.starts_with(other));
            let other = full.replace("/t/d/", "/t/ld/");
            let is_named = errors.contains(&full) || errors.contains(&other);
            assert!(
                is_named || holds_foreign || is_below_foreign,
                "{shown} was not restored, and nobody says so\n{context}"
            );
        }
    }
    errors.lines().count()
}

#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn undo_gives_back_the_tree_or_names_the_conflict() {
    let count = std::env::var("CCM_UNDOS").ok().and_then(|count| count.parse().ok());
    let count: usize = count.unwrap_or(200);
    let (mut undone, mut conflicts) = (0, 0);
    for sequence in 0..count {
        let mut stage = Stage::new(sequence);
        stage.fill();
        if sequence % 2 == 0 {
            undone += undo_everything(&mut stage);
        } else {
            conflicts += undo_after_edits(&mut stage);
        }
    }
    println!("{count} sequences: {undone} runs undone, {conflicts} conflicts named");
    assert!(undone > count / 4 && conflicts > count / 20, "{undone} {conflicts}");
}
