//! Directories that are copies of others: `file` with `source` and `purge`.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

use ccm_testkit::{snapshot, snapshot_of_content};
use serde_json::Value;

use crate::TestEnv;
use crate::history::{fails, ok, said};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// A source with everything that one can have, and a manifest that copies it.
fn stage(properties: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("src/a", "a\n");
    env.write("src/sub/b", "b\n");
    env.write("src/sub/run", "#!/bin/sh\n");
    fs::create_dir(env.path("src/empty")).unwrap();
    fs::set_permissions(env.path("src/sub/run"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(env.path("src/a"), fs::Permissions::from_mode(0o600)).unwrap();
    symlink("sub/b", env.path("src/link")).unwrap();
    symlink("../a", env.path("src/sub/up")).unwrap();
    env.manifest(&format!(
        "ccm: {{resources: [{{file: [{{[DIR]/t: {{ensure: directory, source: src/, [ME], {properties}}}}}]}}]}}"
    ));
    env
}

fn event(env: &TestEnv, args: &[&str]) -> Value {
    let args = ["apply", "manifest.yaml", "--report-file", "report.json"].iter().chain(args);
    let output = env.command(args).output().unwrap();
    let report: Value = serde_json::from_str(&env.read("report.json"))
        .unwrap_or_else(|_| panic!("{}", said(&output)));
    report["events"][0].clone()
}

#[test]
fn a_directory_is_copied_with_modes_and_symlinks() {
    let env = stage("mode: '0640'");
    let plan = event(&env, &["--noop"]);
    assert!(!env.path("t").exists());
    let wanted = "Would have created directory. Would have created 7 entries";
    assert_eq!(plan["noop_message"], wanted);
    let done = event(&env, &[]);
    assert_eq!(plan["changes"], done["changes"]);
    let files = &done["changes"][4];
    assert_eq!(files["property"], "files");
    let created = ["a", "empty", "link", "sub", "sub/b", "sub/run", "sub/up"];
    assert_eq!(files["created"], serde_json::json!(created));
    let metadata = &done["status"]["metadata"];
    assert_eq!((&metadata["files_total"], &metadata["files_different"]), (&5.into(), &0.into()));
    for (name, wanted) in [
        ("t", 0o750),
        ("t/empty", 0o750),
        ("t/sub", 0o750),
        ("t/a", 0o640),
        ("t/sub/b", 0o640),
        ("t/sub/run", 0o750),
    ] {
        assert_eq!(mode(&env.path(name)), wanted, "{name}");
    }
    assert_eq!(env.read("t/sub/b"), "b\n");
    assert_eq!(fs::read_link(env.path("t/link")).unwrap(), Path::new("sub/b"));
    assert_eq!(fs::read_link(env.path("t/sub/up")).unwrap(), Path::new("../a"));
    let before = snapshot(&env.path("t"));
    assert!(ok(&env, ["apply", "manifest.yaml"]).contains("1 stable"));
    assert_eq!(snapshot(&env.path("t")), before);
}

#[test]
fn equal_files_are_not_touched_and_the_rest_is_repaired() {
    let env = stage("mode: '0644'");
    ok(&env, ["apply", "manifest.yaml"]);
    let inode = fs::metadata(env.path("t/a")).unwrap().ino();
    env.write("t/sub/b", "c\n");
    fs::set_permissions(env.path("t/empty"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(env.path("t/link")).unwrap();
    symlink("elsewhere", env.path("t/link")).unwrap();
    env.write("t/foreign", "f\n");
    let done = event(&env, &[]);
    let files = &done["changes"][0];
    assert_eq!(files["updated"], serde_json::json!(["empty", "link", "sub/b"]), "{done}");
    assert_eq!(files["removed"], Value::Null);
    assert_eq!(done["status"]["metadata"]["files_foreign"], 1);
    assert_eq!(fs::metadata(env.path("t/a")).unwrap().ino(), inode);
    assert_eq!(env.read("t/foreign"), "f\n");
    assert!(ok(&env, ["apply", "manifest.yaml"]).contains("1 stable"));
}

#[test]
fn what_cannot_be_copied_is_refused_before_anything_is_written() {
    type Prepare = fn(&TestEnv);
    let cases: [(&str, Prepare); 9] = [
        ("is an absolute symlink", |env| symlink("/etc", env.path("src/x")).unwrap()),
        ("to a path outside the source", |env| symlink("../..", env.path("src/sub/x")).unwrap()),
        ("to a path outside the source", |env| {
            symlink("sub/up2/../x", env.path("src/x")).unwrap();
            symlink("..", env.path("src/sub/up2")).unwrap();
        }),
        ("is a socket, FIFO or device", |env| {
            nix::unistd::mkfifo(&env.path("src/x"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        }),
        ("is a socket, FIFO or device", |env| {
            drop(std::os::unix::net::UnixListener::bind(env.path("src/x")).unwrap());
        }),
        ("t/sub exists and is not a directory", |env| drop(env.write("t/sub", ""))),
        ("t/sub exists and is not a directory", |env| {
            fs::create_dir(env.path("t")).unwrap();
            symlink("..", env.path("t/sub")).unwrap();
        }),
        ("t/sub/b exists as a directory", |env| drop(env.write("t/sub/b/c", ""))),
        ("t/link exists and is not a symlink", |env| drop(env.write("t/link", ""))),
    ];
    for (message, prepare) in cases {
        let env = stage("mode: '0644'");
        prepare(&env);
        for noop in [true, false] {
            let before = snapshot_of_content(&env.path(""));
            let mut command = env.command(["apply", "manifest.yaml", "--no-report"]);
            let output = command.args(noop.then_some("--noop")).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{message}: {}", said(&output));
            assert!(said(&output).contains(message), "{message}: {}", said(&output));
            let mut after = snapshot_of_content(&env.path(""));
            after.retain(|path, _| before.contains_key(path));
            assert_eq!(after, before, "{message}");
            let is_new = !before.contains_key(Path::new("t"));
            assert!(!is_new || !env.path("t").exists(), "{message}");
        }
    }
}

#[test]
fn a_source_has_at_most_a_hundred_thousand_entries_and_a_gibibyte() {
    let env = stage("mode: '0644'");
    fs::create_dir(env.path("src/many")).unwrap();
    for n in 0..100_000 {
        fs::File::create(env.path(&format!("src/many/{n}"))).unwrap();
    }
    let text = fails(&env, ["apply", "manifest.yaml", "--no-report"]);
    assert!(text.contains("the limit is 100000 files and directories"), "{text}");
    assert!(!env.path("t").exists());
    fs::remove_dir_all(env.path("src/many")).unwrap();
    let large = fs::File::create(env.path("src/large")).unwrap();
    large.set_len((1 << 30) + 1).unwrap();
    let text = fails(&env, ["apply", "manifest.yaml", "--no-report"]);
    assert!(text.contains("are larger than 1 GiB in all"), "{text}");
    assert!(!env.path("t").exists());
}

#[test]
fn properties_that_mean_nothing_are_rejected() {
    let env = TestEnv::new();
    env.write("src/a", "a");
    env.write("file", "a");
    for (properties, message) in [
        ("ensure: directory, purge: true", "purge: only `ensure: directory` with a `source`"),
        ("source: file, purge: true", "purge: only `ensure: directory` with a `source`"),
        ("ensure: directory, source: src, allow_empty: true", "allow_empty: it has no meaning"),
        ("ensure: directory, source: src, validate: 'true {}'", "validate: only the content of a"),
        ("ensure: directory, content: x", "content: a directory has no content"),
        ("ensure: directory, source: src, write: in_place", "write: only `ensure: present`"),
        ("ensure: directory, source: file", "file is a file; use `ensure: present`"),
        ("source: src", "src is a directory; use `ensure: directory`"),
    ] {
        let [open, close] = ["{", "}"];
        env.manifest(&format!(
            "ccm: {open}resources: [{open}file: [{open}[DIR]/t: {open}{properties}, [ME], mode: '0644'{close}{close}]{close}]{close}"
        ));
        let output = env.run(["validate", "manifest.yaml"]);
        assert!(said(&output).contains(message), "{properties}: {}", said(&output));
        assert_ne!(output.status.code(), Some(0), "{properties}");
    }
    // A default of the block is for those that it means something to.
    env.manifest(
        "ccm:
  resources:
    - file:
        - defaults: {[ME], mode: '0644', purge: true, source: file}
        - [DIR]/f: {}
        - [DIR]/d: {ensure: directory, source: src}
",
    );
    ok(&env, ["apply", "manifest.yaml"]);
    assert_eq!((env.read("f"), env.read("d/a")), ("a".into(), "a".into()));
}

#[test]
fn purge_removes_what_nobody_declares_and_undo_brings_it_back() {
    let env = stage("mode: '0644', purge: true");
    env.write("t/old", "old\n");
    env.write("t/gone/deep/f", "f\n");
    env.write("t/sub/x", "x\n");
    fs::create_dir(env.path("outside")).unwrap();
    env.write("outside/keep", "k\n");
    symlink("../outside", env.path("t/astray")).unwrap();
    let before = snapshot_of_content(&env.path("t"));
    let plan = event(&env, &["--noop"]);
    let done = event(&env, &[]);
    assert_eq!(plan["changes"], done["changes"]);
    let files = done["changes"].as_array().unwrap().iter().find(|one| one["property"] == "files");
    let removed = ["astray", "gone", "gone/deep", "gone/deep/f", "old", "sub/x"];
    assert_eq!(files.unwrap()["removed"], serde_json::json!(removed));
    assert_eq!(env.read("outside/keep"), "k\n");
    for name in ["astray", "gone", "old", "sub/x"] {
        assert!(fs::symlink_metadata(env.path("t").join(name)).is_err(), "{name}");
    }
    assert!(ok(&env, ["apply", "manifest.yaml"]).contains("1 stable"));
    ok(&env, ["undo"]);
    assert_eq!(snapshot_of_content(&env.path("t")), before);
}

#[test]
fn an_empty_source_empties_nothing_unless_that_is_allowed() {
    for allow in [false, true] {
        let env = TestEnv::new();
        fs::create_dir_all(env.path("src/sub")).unwrap();
        env.write("t/a", "");
        env.write("t/b/c", "");
        env.manifest(&format!(
            "ccm: {{resources: [{{file: [{{[DIR]/t: {{ensure: directory, source: src, purge: true, \
             allow_empty: {allow}, [ME], mode: '0644'}}}}]}}]}}"
        ));
        if allow {
            ok(&env, ["apply", "manifest.yaml"]);
            assert_eq!(fs::read_dir(env.path("t")).unwrap().count(), 1);
        } else {
            let text = fails(&env, ["apply", "manifest.yaml"]);
            assert!(text.contains("the source is empty; purge would remove 3 entries"), "{text}");
            assert!(env.path("t/b/c").exists() && !env.path("t/sub").exists());
        }
    }
}

/// Whatever chooses or skips them, what the manifest and its children declare
/// is kept.
#[test]
fn purge_keeps_what_the_manifests_declare() {
    let env = TestEnv::new();
    env.write("src/f", "f");
    env.write("templates/x", "x");
    let foreign = ["t/foreign", "t/sub/foreign", "t/other/foreign"];
    let kept = [
        "t/own",
        "t/sub/own",
        "t/closed",
        "t/skipped",
        "t/child",
        "t/grandchild",
        "t/loop-a",
        "t/loop-b",
        "t/rendered/x",
        "t/rendered/any",
        "t/unpacked/any",
        "t/marker",
    ];
    for name in foreign.iter().chain(&kept) {
        env.write(name, "x");
    }
    symlink("t", env.path("way")).unwrap();
    env.write("t/by-way", "x");
    env.manifest(
        r#"
ccm:
  resources:
    - file:
        - defaults: {[ME], mode: "0644"}
        - [DIR]/t: {ensure: directory, source: src, purge: true, tags: [copy]}
        - [DIR]/t/own: {content: x}
        - [DIR]/t/sub/own: {content: x}
        - [DIR]/t/closed: {content: x, control: {if: "false"}}
        - [DIR]/t/skipped: {content: x, tags: [skipped]}
        - [DIR]/way/by-way: {content: x}
    - for_each: "{{ ['a', 'b'] }}"
      file: [{"[DIR]/t/loop-{{ Item }}": {content: x, [ME], mode: "0644"}}]
    - scaffold: [{[DIR]/t/rendered: {source: templates}}]
    - archive: [{[DIR]/x.tgz: {url: "http://127.0.0.1:1/x.tgz", extract_parent: "[DIR]/t/unpacked", [ME]}}]
    - exec: [{"true": {creates: "[DIR]/t/marker"}}]
    - apply: [{child.yaml: {control: {if: "false"}}}]
"#,
    );
    env.write(
        "child.yaml",
        "ccm: {resources: [{file: [{[DIR]/t/child: {content: x, [ME], mode: '0644'}}]}, {apply: [{grandchild.yaml: {}}]}]}",
    );
    env.write(
        "grandchild.yaml",
        "ccm: {resources: [{file: [{[DIR]/t/grandchild: {content: x, [ME], mode: '0644'}}]}]}",
    );
    let all = snapshot_of_content(&env.path("t"));
    for args in [&["--only", "tag#copy"][..], &["--skip", "tag#skipped", "--skip", "archive#*"]] {
        for name in foreign {
            env.write(name, "x");
        }
        let mut command = env.command(["apply", "manifest.yaml", "--no-report"]);
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let mut wanted = all.clone();
        wanted.retain(|path, _| !path.ends_with("foreign") && !path.starts_with("other"));
        let after = snapshot_of_content(&env.path("t"));
        let lost: Vec<_> = wanted.keys().filter(|path| !after.contains_key(*path)).collect();
        assert_eq!(lost, Vec::<&std::path::PathBuf>::new(), "{args:?}");
        for name in foreign {
            assert!(!env.path(name).exists(), "{name}");
        }
        assert!(!env.path("t/other").exists());
    }
}

#[test]
fn a_child_manifest_that_cannot_be_read_stops_the_purge_alone() {
    for (child, message) in [(None, "cannot read manifest"), (Some("ccm: {"), "is invalid")] {
        let env = stage("mode: '0644', purge: true");
        let manifest = env.read("manifest.yaml");
        let apply = ", {apply: [{child.yaml: {control: {if: 'false'}}}]}]}";
        env.manifest(
            &manifest
                .replace("]}]}", "]}")
                .replace("]}}", "]}")
                .replace("}}]}", &format!("}}}}]}}{apply}")),
        );
        if let Some(text) = child {
            env.write("child.yaml", text);
        }
        // With nothing to purge, nothing has to be known.
        ok(&env, ["apply", "manifest.yaml", "--no-report"]);
        env.write("t/foreign", "x");
        for args in
            [["plan", "manifest.yaml", "--no-diff"], ["apply", "manifest.yaml", "--no-report"]]
        {
            let text = said(&env.run(args));
            assert!(text.contains("cannot purge: a child manifest"), "{text}");
            assert!(text.contains(message), "{text}");
            assert!(env.path("t/foreign").exists());
        }
    }
}

#[test]
fn what_the_history_cannot_keep_is_not_destroyed() {
    let large = |env: &TestEnv, name: &str| {
        env.write(name, "");
        let file = fs::File::create(env.path(name)).unwrap();
        file.set_len((64 << 20) + 1).unwrap();
    };
    let manifests = [
        "file: [{[DIR]/t: {ensure: directory, source: src, purge: true, [ME], mode: '0644'}}]",
        "file: [{[DIR]/t: {ensure: absent, force: true}}]",
        "file: [{[DIR]/t/large: {ensure: link, target: x, force: true}}]",
        "scaffold: [{[DIR]/t: {source: src, purge: true}}]",
    ];
    for resource in manifests {
        let env = TestEnv::new();
        env.write("src/f", "new");
        large(&env, "t/large");
        env.write("t/f", "old");
        env.manifest(&format!("ccm: {{resources: [{{{resource}}}]}}"));
        for args in [&["--noop"][..], &[]] {
            let mut command = env.command(["apply", "manifest.yaml", "--no-report"]);
            let output = command.args(args).output().unwrap();
            let text = said(&output);
            assert_eq!(output.status.code(), Some(1), "{resource}: {text}");
            assert!(text.contains("it is larger than 64 MiB"), "{resource}: {text}");
            assert!(text.contains("--no-history"), "{resource}: {text}");
            assert_eq!((env.path("t/large").is_file(), env.read("t/f")), (true, "old".into()));
        }
        ok(&env, ["apply", "manifest.yaml", "--no-report", "--no-history"]);
        assert!(!env.path("t/large").is_file(), "{resource}");
    }
}

/// A plan that was saved holds the source, and applies as it was.
#[test]
fn a_saved_plan_copies_what_it_was_made_with() {
    let env = stage("mode: '0644', purge: true");
    env.write("t/foreign", "x");
    ok(&env, ["plan", "manifest.yaml", "--out", "plan.ccm"]);
    ok(&env, ["apply", "plan.ccm"]);
    assert_eq!(fs::read_link(env.path("t/link")).unwrap(), Path::new("sub/b"));
    assert!(env.path("t/empty").is_dir() && !env.path("t/foreign").exists());
    assert_eq!((mode(&env.path("t/sub/run")), mode(&env.path("t/a"))), (0o755, 0o644));
    assert!(ok(&env, ["apply", "manifest.yaml"]).contains("1 stable"));
}

#[test]
fn purge_stays_on_its_side_of_a_mount() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let env = stage("mode: '0644', purge: true");
    for name in ["t/old/mnt/x", "t/old/f", "t/file", "there/keep", "there/real"] {
        env.write(name, "x");
    }
    let ccm = env.command([""; 0]).get_program().to_owned();
    let script = format!(
        "mount --bind there t/old/mnt && mount --bind there/real t/file && echo mounted && \
         {} apply manifest.yaml --no-report",
        ccm.display()
    );
    let output = std::process::Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .current_dir(env.dir())
        .env("CCM_STATE_DIR", env.state())
        .output()
        .unwrap();
    if !said(&output).contains("mounted") {
        return ccm_testkit::not_run("nothing can be mounted in this sandbox");
    }
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!((env.read("there/keep"), env.read("there/real")), ("x".into(), "x".into()));
    assert!(!env.path("t/old/f").exists(), "what lies beside the mount is purged");
    assert!(env.path("t/old/mnt/x").exists() && env.path("t/file").exists());
}
