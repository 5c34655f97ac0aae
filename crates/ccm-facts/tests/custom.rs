//! Facts files: who wins, who is refused, and which warnings they cause.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ccm_facts::{Error, Options, gather, read_file, set};
use ccm_host::Host;
use govalue::Value;
use tempfile::TempDir;

/// Two directories of facts, and what is said while they are read.
struct Stage {
    dir: TempDir,
}

impl Stage {
    fn new(files: &[(&str, &str)]) -> Self {
        let stage = Self { dir: tempfile::tempdir().unwrap() };
        for (path, text) in files {
            let path = stage.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        }
        stage
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// The member `mine` of the facts, and the warnings.
    fn gather(&self) -> (String, Vec<String>) {
        let options = Options {
            directories: vec![self.path("etc"), self.path("home")],
            timeout: Duration::from_secs(10),
        };
        let host = Host::new();
        let facts = gather(&host, &options);
        let mine = facts.get("mine").map(Value::to_string).unwrap_or_default();
        // What other file systems of this machine do is not the matter here.
        let is_ours = |warning: &String| warning.contains("ccm ignores");
        (mine, host.take_warnings().into_iter().filter(is_ours).collect())
    }

    /// As [`Stage::gather`], for files without errors.
    fn facts(&self) -> String {
        let (facts, warnings) = self.gather();
        assert!(warnings.is_empty(), "{warnings:?}");
        facts
    }

    /// As [`Stage::gather`], for one file that ccm rejects with these words.
    fn refused(&self, words: &[&str]) -> String {
        let (facts, warnings) = self.gather();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        for word in words {
            assert!(warnings[0].contains(word), "{word:?} in {warnings:?}");
        }
        facts
    }
}

fn is_root() -> bool {
    Host::new().is_root()
}

#[test]
fn no_files_are_no_problem() {
    assert_eq!(Stage::new(&[]).facts(), "");
    assert_eq!(Stage::new(&[("etc/unrelated", "")]).facts(), "");
}

#[test]
fn later_files_win() {
    let order = [
        "etc/facts.json",
        "etc/facts.yaml",
        "etc/facts.d/10-a.yaml",
        "etc/facts.d/20-b.json",
        "home/facts.json",
        "home/facts.yaml",
        "home/facts.d/a.json",
        "home/facts.d/b.yaml",
    ];
    for many in 1..=order.len() {
        let texts: Vec<_> = order[..many]
            .iter()
            .map(|path| format!(r#"{{"mine": {{"last": "{path}", "{path}": 1}}}}"#))
            .collect();
        let files: Vec<_> = order.iter().copied().zip(texts.iter().map(String::as_str)).collect();
        let facts = Stage::new(&files).facts();
        assert!(facts.contains(&format!("last:{}", order[many - 1])), "{facts}");
        assert!(order[..many].iter().all(|path| facts.contains(&format!("{path}:1"))), "{facts}");
    }
}

#[test]
fn maps_merge_and_lists_are_replaced() {
    let stage = Stage::new(&[
        ("etc/facts.yaml", "mine: {a: {x: 1, y: 2}, list: [1, 2, 3]}\n"),
        ("home/facts.yaml", "mine: {a: {y: 3}, list: [4]}\n"),
    ]);
    assert_eq!(stage.facts(), "map[a:map[x:1 y:3] list:[4]]");
}

#[test]
fn they_win_over_what_the_machine_says() {
    let stage = Stage::new(&[("etc/facts.yaml", "host: {info: {hostname: other}}\n")]);
    let options =
        Options { directories: vec![stage.path("etc")], timeout: Duration::from_secs(10) };
    let facts = Value::from(gather(&Host::new(), &options));
    let info = facts.get("host").and_then(|host| host.get("info")).unwrap();
    assert_eq!(info.get("hostname"), Some(&Value::from("other")));
    assert_eq!(info.get("os"), Some(&Value::from("linux")));
}

#[test]
fn other_names_are_left_alone() {
    let wrong = "this: is: wrong";
    let stage = Stage::new(&[
        ("etc/facts.yml", wrong),
        ("etc/facts.d/.hidden.yaml", wrong),
        ("etc/facts.d/a.yaml~", wrong),
        ("etc/facts.d/README", wrong),
        ("etc/facts.d/sub/a.yaml", wrong),
        ("etc/facts.d/good.yaml", "mine: 1"),
    ]);
    assert_eq!(stage.facts(), "1");
}

#[test]
fn malformed_files_are_reported_and_skipped() {
    for (name, text, words) in [
        ("facts.json", "{\"mine\": ", "facts.json:1:10"),
        ("facts.d/a.json", "[1]", "a.json:1:1: facts must be a map, not a list"),
        ("facts.d/a.yaml", "mine: 1\nmine: 2\n", "a.yaml:2:1: duplicate key `mine`"),
        ("facts.yaml", "just text\n", "facts.yaml:1:1: facts must be a map, not a single value"),
        ("facts.yaml", "a: [1\n", "facts.yaml"),
    ] {
        let path = format!("etc/{name}");
        let stage = Stage::new(&[(&path, text), ("home/facts.yaml", "mine: good\n")]);
        assert_eq!(stage.refused(&[words]), "good", "{name}");
    }
}

#[test]
fn bytes_that_are_not_text_are_reported() {
    let stage = Stage::new(&[("home/facts.yaml", "mine: good\n"), ("etc/facts.d/x", "")]);
    std::fs::write(stage.path("etc/facts.d/a.yaml"), b"mine: \xff\n").unwrap();
    assert_eq!(stage.refused(&["not UTF-8", "line 1"]), "good");
}

#[test]
fn deep_nesting_is_bounded() {
    let nested =
        |depth: usize| format!("{{\"mine\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    let stage = Stage::new(&[("etc/facts.json", &nested(500))]);
    assert_eq!(stage.facts().len(), 2 * 500 + 1);
    let stage = Stage::new(&[("etc/facts.json", &nested(100_000))]);
    assert_eq!(stage.refused(&["facts.json"]), "");
    let stage = Stage::new(&[("etc/facts.yaml", &nested(100_000))]);
    assert_eq!(stage.refused(&["facts.yaml"]), "");
}

#[test]
fn empty_files_have_no_facts() {
    let stage = Stage::new(&[("etc/facts.json", ""), ("etc/facts.yaml", "# later\n")]);
    assert_eq!(stage.facts(), "");
}

#[test]
fn links_are_refused() {
    for name in ["facts.json", "facts.yaml", "facts.d/a.json", "facts.d/a.yaml"] {
        let stage = Stage::new(&[
            ("elsewhere", "{\"mine\": \"linked\"}"),
            ("etc/facts.d/keep", ""),
            ("home/facts.d/good.yaml", "mine: good\n"),
        ]);
        symlink(stage.path("elsewhere"), stage.path("etc").join(name)).unwrap();
        assert_eq!(stage.refused(&[name, "symlink"]), "good");
        // Neither does a link win over a file that counts.
        symlink(stage.path("elsewhere"), stage.path("home/facts.d/z.json")).unwrap();
        assert_eq!(stage.gather().0, "good");
    }
}

#[test]
fn a_linked_directory_is_refused() {
    let stage =
        Stage::new(&[("elsewhere/a.yaml", "mine: linked\n"), ("etc/facts.yaml", "mine: good\n")]);
    symlink(stage.path("elsewhere"), stage.path("etc/facts.d")).unwrap();
    assert_eq!(stage.refused(&["facts.d", "symlink"]), "good");
}

#[test]
fn dangling_links_are_refused() {
    let stage = Stage::new(&[("etc/facts.yaml", "mine: good\n")]);
    symlink("/nonexistent", stage.path("etc/facts.json")).unwrap();
    assert_eq!(stage.refused(&["facts.json", "symlink"]), "good");
}

#[test]
fn what_is_no_file_is_refused_and_does_not_hang() {
    let stage = Stage::new(&[("etc/facts.yaml", "mine: good\n")]);
    let made = std::process::Command::new("mkfifo").arg(stage.path("etc/facts.json")).status();
    assert!(made.unwrap().success());
    assert_eq!(stage.refused(&["facts.json", "FIFO"]), "good");

    let stage = Stage::new(&[("etc/facts.yaml", "mine: good\n"), ("etc/facts.d/a.yaml/x", "")]);
    assert_eq!(stage.refused(&["a.yaml", "a directory"]), "good");

    let stage = Stage::new(&[("etc/facts.yaml", "mine: good\n"), ("etc/facts.d", "")]);
    assert_eq!(stage.refused(&["facts.d", "not a directory"]), "good");
}

#[test]
fn as_root_only_roots_files_count() {
    let change = |path: &Path, mode: u32, owner: Option<(u32, u32)>| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        if let (Some((uid, gid)), true) = (owner, is_root()) {
            std::os::unix::fs::chown(path, Some(uid), Some(gid)).unwrap();
        }
    };
    for (mode, owner, safe) in [
        (0o644, None, true),
        (0o600, None, true),
        (0o646, None, false),
        (0o666, None, false),
        (0o664, Some((0, 12345)), false),
        (0o644, Some((0, 12345)), true),
        (0o644, Some((12345, 0)), false),
    ] {
        for name in ["etc/facts.yaml", "etc/facts.d/a.yaml"] {
            let stage = Stage::new(&[(name, "mine: theirs\n")]);
            change(&stage.path(name), mode, owner);
            if safe || !is_root() {
                assert_eq!(stage.facts(), "theirs", "{mode:o} {owner:?}");
            } else {
                assert_eq!(
                    stage.refused(&["is writable by other users", name]),
                    "",
                    "{mode:o} {owner:?}"
                );
            }
        }
    }
}

#[test]
fn unreadable_files_are_reported() {
    if ccm_testkit::runs_as_nobody() {
        return;
    }
    let stage = Stage::new(&[("etc/facts.yaml", "mine: x\n"), ("home/facts.yaml", "mine: good\n")]);
    let path = stage.path("etc/facts.yaml");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o000)).unwrap();
    assert_eq!(stage.refused(&["facts.yaml"]), "good");
}

#[test]
fn a_file_that_was_asked_for_may_be_linked_but_must_be_there() {
    let stage = Stage::new(&[("f.yaml", "mine: {a: 1}\n"), ("bad.json", "{")]);
    let link = stage.path("link.yaml");
    symlink(stage.path("f.yaml"), &link).unwrap();
    let mut facts = read_file(&Host::new(), &link).unwrap();
    set(&mut facts, "mine.b=2").unwrap();
    assert_eq!(Value::from(facts).to_string(), "map[mine:map[a:1 b:2]]");
    let missing = read_file(&Host::new(), &stage.path("missing")).unwrap_err();
    assert!(matches!(missing, Error::Read { .. }), "{missing}");
    let bad = read_file(&Host::new(), &stage.path("bad.json")).unwrap_err();
    assert!(matches!(bad, Error::Syntax { .. }), "{bad}");
}

#[test]
fn a_broken_file_is_shown_at_its_line() {
    let stage = Stage::new(&[("etc/facts.yaml", "mine: a\nmine: b\n")]);
    stage.refused(&["duplicate key `mine`", "facts.yaml:2:1\n  |\n2 | mine: b\n  | ^^^^"]);
    let stage = Stage::new(&[("etc/facts.yaml", "password: a\npassword: hunter2\n")]);
    let (_, warnings) = stage.gather();
    assert!(warnings[0].contains("2 | password: ***"), "{warnings:?}");
    assert!(!warnings[0].contains("hunter2"), "{warnings:?}");
}
