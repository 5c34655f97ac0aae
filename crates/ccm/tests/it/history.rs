//! History and undo at the command line.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Output;

use ccm_testkit::{lacks_root, snapshot_of_content};
use serde_json::Value;

use crate::TestEnv;

const MANIFEST: &str = r#"
ccm:
  resources:
    - file:
        - defaults: {[ME], mode: "0644"}
        - [DIR]/t/new: {ensure: directory, mode: "0755"}
        - [DIR]/t/new/f: {content: "created\n"}
        - [DIR]/t/changed: {content: "one\nnew\n", alias: config}
        - [DIR]/t/mode: {mode: "0600"}
        - [DIR]/t/gone: {ensure: absent, force: true}
"#;

pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn stage() -> TestEnv {
    let env = TestEnv::new();
    env.write("t/changed", "one\nold\n");
    env.write("t/mode", "mode\n");
    env.write("t/gone/deep/f", "gone\n");
    symlink("f", env.path("t/gone/deep/l")).unwrap();
    env.manifest(MANIFEST);
    env
}

pub(crate) fn ok<const N: usize>(env: &TestEnv, args: [&str; N]) -> String {
    let output = env.run(args);
    assert!(output.status.success(), "{args:?}: {}", said(&output));
    said(&output)
}

pub(crate) fn fails<const N: usize>(env: &TestEnv, args: [&str; N]) -> String {
    let output = env.run(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {}", said(&output));
    said(&output)
}

pub(crate) fn runs(env: &TestEnv) -> Vec<Value> {
    let list = env.run(["history", "--json"]);
    assert!(list.status.success(), "{}", said(&list));
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    list["runs"].as_array().unwrap().clone()
}

pub(crate) fn newest(env: &TestEnv) -> String {
    runs(env)[0]["id"].as_str().unwrap().to_owned()
}

/// Everything below the state directory that is a file.
fn state_files(env: &TestEnv) -> Vec<PathBuf> {
    let all = snapshot_of_content(env.state());
    let files = all.keys().map(|path| env.state().join(path));
    files.filter(|path| path.is_file()).collect()
}

#[test]
fn a_run_is_listed_shown_and_taken_back() {
    let env = stage();
    assert_eq!(ok(&env, ["history"]), "There is no history\n");
    let before = snapshot_of_content(&env.path("t"));
    ok(&env, ["apply", "manifest.yaml"]);
    let after = snapshot_of_content(&env.path("t"));
    let list = runs(&env);
    assert_eq!(list.len(), 1);
    assert_eq!((&list[0]["changed"], &list[0]["failed"]), (&5.into(), &0.into()));
    assert_eq!(list[0]["undo"], "yes");
    let manifest = env.path("manifest.yaml").canonicalize().unwrap();
    assert_eq!(list[0]["manifest"], manifest.to_str().unwrap());
    for file in state_files(&env) {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
    let id = newest(&env);
    let shown = ok(&env, ["history", "show", &id]);
    for words in ["-old", "+new", "mode 0644 → 0600", "file#[DIR]/t/gone"] {
        let words = words.replace("[DIR]", env.dir().to_str().unwrap());
        assert!(shown.contains(&words), "no {words} in {shown}");
    }
    let json: Value = serde_json::from_str(&ok(&env, ["history", "show", &id, "--json"])).unwrap();
    assert_eq!(json["resources"].as_array().unwrap().len(), 5);
    assert_eq!(ok(&env, ["history", "cat", &id, "[DIR]/t/changed"]), "one\nold\n");
    assert_eq!(ok(&env, ["history", "cat", &id[..8], "t/gone/deep/f"]), "gone\n");

    let preview = ok(&env, ["undo", "--noop"]);
    assert!(preview.contains("1 to create, 2 to change, 2 to remove"), "{preview}");
    assert_eq!(snapshot_of_content(&env.path("t")), after);
    ok(&env, ["undo"]);
    assert_eq!(snapshot_of_content(&env.path("t")), before);
    assert_eq!(runs(&env).len(), 2);
    assert_eq!(runs(&env)[0]["undo_of"], id.as_str());
    let again = ok(&env, ["undo", &id]);
    assert!(again.contains(&format!("The run {id} is already undone")), "{again}");
    // The last run that changed something is the undo.
    ok(&env, ["undo"]);
    assert_eq!(snapshot_of_content(&env.path("t")), after);
}

#[test]
fn a_run_without_changes_leaves_nothing() {
    let env = stage();
    ok(&env, ["apply", "manifest.yaml"]);
    let before = snapshot_of_content(env.state());
    ok(&env, ["apply", "manifest.yaml"]);
    ok(&env, ["apply", "manifest.yaml", "--noop"]);
    ok(&env, ["plan", "manifest.yaml"]);
    assert_eq!(snapshot_of_content(env.state()), before);
    let fresh = stage();
    ok(&fresh, ["apply", "manifest.yaml", "--no-history"]);
    assert!(runs(&fresh).is_empty());
    assert!(fails(&fresh, ["undo"]).contains("there is no run to undo"));
}

#[test]
fn what_was_changed_since_is_left_alone_unless_forced() {
    let env = stage();
    let before = snapshot_of_content(&env.path("t"));
    ok(&env, ["apply", "manifest.yaml"]);
    env.write("t/changed", "edited\n");
    env.write("t/new/foreign", "foreign\n");
    std::fs::set_permissions(env.path("t/mode"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let text = fails(&env, ["undo"]);
    for words in [
        "t/changed: changed since the run: its content",
        "t/mode: changed since the run: its mode (0640 instead of 0600)",
        "t/new: not removed, because it contains",
        "t/new/foreign",
    ] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    assert!(text.starts_with("Will not be undone:"), "{text}");
    assert_eq!(env.read("t/changed"), "edited\n");
    assert_eq!(env.read("t/new/foreign"), "foreign\n");
    assert!(!env.path("t/new/f").exists(), "what was not touched is undone");
    assert_eq!(env.read("t/gone/deep/f"), "gone\n");
    let id = runs(&env)[1]["id"].as_str().unwrap().to_owned();
    let text = fails(&env, ["undo", &id, "--force"]);
    assert_eq!(env.read("t/changed"), "one\nold\n");
    assert_eq!(env.read("t/new/foreign"), "foreign\n", "not even by force: {text}");
    std::fs::remove_file(env.path("t/new/foreign")).unwrap();
    ok(&env, ["undo", &id]);
    assert_eq!(snapshot_of_content(&env.path("t")), before);
}

#[test]
fn a_part_of_a_run_is_taken_back() {
    let env = stage();
    ok(&env, ["apply", "manifest.yaml"]);
    let id = newest(&env);
    let wrong = fails(&env, ["undo", &id, "--only", "file#[DIR]/t/chnged"]);
    assert!(wrong.contains("did you mean"), "{wrong}");
    ok(&env, ["undo", &id, "--only", "config"]);
    assert_eq!(env.read("t/changed"), "one\nold\n");
    assert!(env.path("t/new/f").exists());
    ok(&env, ["undo", &id, "--only", "file#[DIR]/t/gone"]);
    assert_eq!(env.read("t/gone/deep/f"), "gone\n");
    assert_eq!(std::fs::read_link(env.path("t/gone/deep/l")).unwrap(), PathBuf::from("f"));
}

#[test]
fn what_cannot_be_undone_is_said_beforehand() {
    let env = TestEnv::new();
    env.write("t/f", "old\n");
    let big = std::fs::File::create(env.path("t/big")).unwrap();
    big.set_len((64 << 20) + 1).unwrap();
    env.manifest(
        r#"
ccm:
  resources:
    - exec: [{touch [DIR]/t/ran: {}}]
    - file:
        - defaults: {[ME], mode: "0644"}
        - [DIR]/t/f: {content: "new\n"}
        - [DIR]/t/big: {content: "small\n"}
"#,
    );
    let text = ok(&env, ["apply", "manifest.yaml"]);
    assert!(text.contains("t/big cannot be restored later"), "{text}");
    assert_eq!(runs(&env)[0]["undo"], "partly");
    let text = fails(&env, ["undo"]);
    assert!(
        text.contains(
            "file#[DIR]/t/big came after"
                .replace("[DIR]", &env.dir().display().to_string())
                .as_str()
        ),
        "{text}"
    );
    assert_eq!(env.read("t/f"), "new\n");
    let text = fails(&env, ["undo", "--partial"]);
    let (said_first, rest) = text.split_once("\n\n").unwrap();
    for words in ["exec#touch", "does not know what a command has changed", "larger than 64 MiB"] {
        assert!(said_first.contains(words), "no {words} in {said_first}");
    }
    assert!(rest.contains("1 changed, 2 failed"), "{rest}");
    assert_eq!((env.read("t/f"), env.read("t/big")), ("old\n".into(), "small\n".into()));
    assert!(env.path("t/ran").exists());
}

#[test]
fn contents_that_are_gone_or_damaged_are_not_restored() {
    for damage in [(|path| std::fs::remove_file(path).unwrap()) as fn(&PathBuf), |path| {
        std::fs::write(path, "tampered\n").unwrap();
    }] {
        let env = stage();
        ok(&env, ["apply", "manifest.yaml"]);
        let id = newest(&env);
        let objects = state_files(&env).into_iter();
        let objects: Vec<_> =
            objects.filter(|path| path.parent().unwrap() == env.state().join("objects")).collect();
        assert_eq!(objects.len(), 2);
        objects.iter().for_each(damage);
        let cat = fails(&env, ["history", "cat", &id, "t/changed"]);
        assert!(cat.contains("no longer there"), "{cat}");
        let text = fails(&env, ["undo"]);
        assert!(text.contains("t/changed came after"), "{text}");
        assert!(text.contains("its former content is no longer in the history"), "{text}");
        assert!(env.path("t/new").exists(), "nothing is undone without --partial");
        let text = fails(&env, ["undo", "--partial"]);
        assert!(text.contains("its former content is no longer in the history"), "{text}");
        assert_eq!(env.read("t/changed"), "one\nnew\n");
        assert!(!env.path("t/gone/deep/f").exists());
        assert!(!env.path("t/new").exists(), "the rest is undone");
        // The good content takes the place of a damaged one.
        env.write("t/changed", "one\nold\n");
        ok(&env, ["apply", "manifest.yaml"]);
        assert_eq!(ok(&env, ["history", "cat", &newest(&env), "t/changed"]), "one\nold\n");
    }
}

#[test]
fn damage_in_the_records_stops_nothing() {
    let env = stage();
    ok(&env, ["apply", "manifest.yaml"]);
    let after = snapshot_of_content(&env.path("t"));
    let id = newest(&env);
    for name in ["journal", "summary"] {
        let path = env.state().join("runs").join(&id).join(name);
        let whole = std::fs::read(&path).unwrap();
        for at in (0..whole.len()).step_by(97) {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            std::fs::write(&path, &flipped).unwrap();
            for args in [vec!["history"], vec!["history", "show", &id], vec!["undo", &id, "--noop"]]
            {
                let output = env.command(&args).output().unwrap();
                let text = said(&output);
                assert!(matches!(output.status.code(), Some(0 | 1)), "{at} {args:?}: {text}");
                assert!(!text.contains("panicked"), "{at} {args:?}: {text}");
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(env.run(["history"]).status.success(), "{name} cut at {at}");
        }
        std::fs::write(&path, &whole).unwrap();
    }
    // A summary that is cut is set aside; the journal has it all.
    let path = env.state().join("runs").join(&id).join("summary");
    let whole = std::fs::read(&path).unwrap();
    let listed = ok(&env, ["history"]);
    for cut in [&whole[..whole.len() - 1], &whole[..20], b"", b"garbage"] {
        std::fs::write(&path, cut).unwrap();
        assert!(ok(&env, ["history"]).contains("summary is damaged"), "{cut:?}");
        assert!(path.exists(), "a list leaves it alone");
        let pruned = ok(&env, ["history", "prune"]);
        assert!(pruned.contains("summary is damaged; ccm renames it"), "{cut:?}: {pruned}");
        assert_eq!(std::fs::read(path.with_extension("damaged")).unwrap(), cut);
        assert_eq!(ok(&env, ["history"]), listed, "{cut:?}");
        assert!(!path.exists());
        std::fs::remove_file(path.with_extension("damaged")).unwrap();
    }
    std::fs::write(&path, &whole).unwrap();
    // What can be read of a damaged journal is used, and the file set aside.
    let path = env.state().join("runs").join(&id).join("journal");
    let whole = std::fs::read_to_string(&path).unwrap();
    let at = whole.find("t/mode").unwrap();
    std::fs::write(&path, format!("{}T{}", &whole[..at], &whole[at + 1..])).unwrap();
    assert!(ok(&env, ["history", "show", &id]).contains("is damaged"));
    let text = fails(&env, ["undo", &id]);
    assert!(text.contains("part of the journal was damaged"), "{text}");
    assert_eq!(env.read("t/changed"), "one\nold\n");
    assert!(path.with_file_name("journal.damaged").exists());
    assert!(!ok(&env, ["history", "show", &id]).contains("is damaged"));
    ok(&env, ["undo"]);
    assert_eq!(snapshot_of_content(&env.path("t")), after);
    // A run goes on whatever is in the history.
    std::fs::write(&path, "damaged\n").unwrap();
    std::fs::remove_file(path.with_file_name("summary")).unwrap();
    env.write("t/changed", "again\n");
    ok(&env, ["apply", "manifest.yaml"]);
    assert_eq!(snapshot_of_content(&env.path("t")), after);
    std::fs::create_dir(env.state().join("runs/nonsense")).unwrap();
    ok(&env, ["history", "prune"]);
    assert_eq!(runs(&env).len(), 4);
}

#[test]
fn journals_of_a_newer_version_are_left_alone() {
    let env = stage();
    ok(&env, ["apply", "manifest.yaml"]);
    let id = newest(&env);
    let run = env.state().join("runs").join(&id);
    let text = std::fs::read_to_string(run.join("journal")).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let json = first[17..].replace("\"format\":1", "\"format\":2");
    let digest = ccm_host::Digest::of(json.as_bytes()).to_string();
    std::fs::write(run.join("journal"), format!("{} {json}\n{rest}", &digest[..16])).unwrap();
    let text = fails(&env, ["undo", &id]);
    assert!(text.contains("was written by a newer ccm"), "{text}");
    assert_eq!(env.read("t/changed"), "one\nnew\n");
    std::fs::remove_file(run.join("summary")).unwrap();
    let text = ok(&env, ["history"]);
    assert!(text.contains("was written by a newer ccm"), "{text}");
}

#[test]
fn old_runs_go_with_what_only_they_need() {
    let env = TestEnv::new();
    for number in 0..104 {
        env.write("f", &format!("content {number}\n"));
        env.manifest(&format!(
            "ccm: {{resources: [{{file: [{{[DIR]/f: {{[ME], mode: \"0644\", content: n{number}}}}}]}}]}}"
        ));
        ok(&env, ["apply", "manifest.yaml", "--no-sync"]);
    }
    assert_eq!(runs(&env).len(), 100);
    let count = |name: &str| std::fs::read_dir(env.state().join(name)).unwrap().count();
    assert_eq!((count("runs"), count("objects")), (100, 100));
    let oldest = runs(&env).pop().unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(ok(&env, ["history", "cat", &oldest, "f"]), "content 4\n");
    // A month later only their age counts.
    for entry in std::fs::read_dir(env.state().join("runs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::rename(&path, path.with_file_name(format!("2001{}", &name[4..]))).unwrap();
    }
    let text = ok(&env, ["history", "prune"]);
    assert!(text.contains("Removed 100 runs and 1098 bytes"), "{text}");
    assert_eq!((count("runs"), count("objects")), (0, 0));
}

#[test]
fn ensure_and_the_api_leave_runs_too() {
    let env = TestEnv::new();
    env.write("f", "old\n");
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n"]);
    let list = runs(&env);
    let name = format!("ensure file#{}", env.path("f").display());
    assert_eq!(list[0]["manifest"], name.as_str());
    ok(&env, ["undo"]);
    assert_eq!(env.read("f"), "old\n");
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n", "--no-history"]);
    assert_eq!(runs(&env).len(), 2);
}

#[test]
fn hidden_contents_are_kept_private_and_not_shown() {
    let env = TestEnv::new();
    env.write("f", "password=hunter2\n");
    std::fs::set_permissions(env.path("f"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let args = ["ensure", "file", "[DIR]/f", "--mode", "0600", "--content", "password=swordfish\n"];
    ok(&env, args);
    let id = newest(&env);
    for args in [vec!["history", "show", &id], vec!["history", "show", &id, "--json"], vec!["undo"]]
    {
        let text = said(&env.command(&args).output().unwrap());
        assert!(!text.contains("hunter2") && !text.contains("swordfish"), "{args:?}: {text}");
    }
    let journal = env.state().join("runs").join(&id).join("journal");
    let journal = std::fs::read_to_string(journal).unwrap();
    assert!(!journal.contains("hunter2") && !journal.contains("swordfish"), "{journal}");
    assert_eq!(ok(&env, ["history", "cat", &id, "f"]), "password=hunter2\n");
    assert_eq!(env.read("f"), "password=hunter2\n");
}

#[test]
fn nothing_is_changed_that_cannot_be_recorded() {
    if lacks_root() {
        return;
    }
    let env = stage();
    env.write("t/large", &"x".repeat(300_000));
    env.manifest(&format!("{MANIFEST}        - [DIR]/t/large: {{content: small}}\n"));
    let state = env.path("small-state");
    std::fs::create_dir(&state).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=128k,mode=0700 none {state} && exec {ccm} apply manifest.yaml \
         --state-dir {state} --no-sync",
        state = state.display(),
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(env.dir()).env_clear();
    let output = command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("cannot record the former state of") && text.contains("--no-history"),
        "{text}"
    );
    assert_eq!(std::fs::metadata(env.path("t/large")).unwrap().size(), 300_000);
    assert_eq!(env.read("t/changed"), "one\nnew\n", "what fits is changed");
}

#[test]
fn wrong_arguments_are_explained() {
    let env = stage();
    assert!(fails(&env, ["history", "show", "x"]).contains("there is no run `x`"));
    ok(&env, ["apply", "manifest.yaml"]);
    let id = newest(&env);
    assert!(fails(&env, ["history", "show", "../lock"]).contains("there is no run"));
    assert!(fails(&env, ["history", "cat", &id, "/etc/passwd"]).contains("did not change"));
    assert!(fails(&env, ["history", "cat", &id, "t/new/f"]).contains("did not exist before"));
    assert!(fails(&env, ["history", "cat", &id, "t/gone"]).contains("was not a file"));
    env.write("t/changed", "again\n");
    ok(&env, ["apply", "manifest.yaml"]);
    assert!(fails(&env, ["undo", &id[..8]]).contains("more than one run begins with"));
    std::fs::set_permissions(env.state(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(fails(&env, ["undo"]).contains("refusing to keep state"));
    let text = ok(&env, ["history"]);
    assert!(text.contains("refusing to keep state") && text.contains("no history"), "{text}");
}

/// A run, or an undo, that is killed at any moment leaves whole files, and a
/// record of everything that it changed.
#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn what_a_killed_run_did_is_taken_back() {
    let times = std::env::var("CCM_KILLS").ok().and_then(|times| times.parse().ok());
    let times: u32 = times.unwrap_or(8);
    let env = TestEnv::new();
    let mut text = "ccm:\n  resources:\n    - file:\n".to_owned();
    for n in 0..40 {
        let path = format!("[DIR]/t/d{}/f{n}", n % 4);
        let kind = match n % 4 {
            0 => "{ensure: absent, force: true}".to_owned(),
            1 => "{[ME], mode: \"0600\"}".to_owned(),
            _ => format!("{{content: \"new {n}\\n\", [ME], mode: \"0644\"}}"),
        };
        text.push_str(&format!("        - {path}: {kind}\n"));
        text.push_str(&format!(
            "        - [DIR]/t/n{n}/deep: {{ensure: directory, [ME], mode: \"0750\"}}\n"
        ));
    }
    text.push_str("    - scaffold: [{[DIR]/t/s: {source: [DIR]/templates, purge: true}}]\n");
    env.manifest(&text);
    env.write("templates/a/one", "one\n");
    env.write("templates/b/two", "two\n");
    let fill = || {
        let _ = std::fs::remove_dir_all(env.path("t"));
        for n in 0..40 {
            env.write(&format!("t/d{}/f{n}", n % 4), &format!("old {n}\n"));
        }
        env.write("t/s/purged/f", "purged\n");
        env.write("t/s/a/one", "old\n");
    };
    // What a kill leaves beside a target goes with the next write there.
    let tree = || {
        let mut tree = snapshot_of_content(&env.path("t"));
        tree.retain(|path, _| !path.to_string_lossy().contains("/.ccm-"));
        tree
    };
    fill();
    let before = tree();
    let begin = std::time::Instant::now();
    ok(&env, ["apply", "manifest.yaml"]);
    let whole = begin.elapsed();
    ok(&env, ["undo"]);
    assert_eq!(snapshot_of_content(&env.path("t")), before);
    let (mut killed, mut partial) = (0, 0);
    for time in 0..times {
        let mut run = env.start();
        // Another moment of the run each time.
        std::thread::sleep(whole * time / times);
        run.kill().unwrap();
        killed += u32::from(run.wait().unwrap().code().is_none());
        let left = tree();
        let changed = left != before;
        for (path, what) in &left {
            assert!(!what.contains(" 0 bytes"), "{} is torn", path.display());
        }
        if runs(&env).is_empty() || !changed {
            continue;
        }
        partial += 1;
        // An undo that is killed is taken up again by the next.
        let id = runs(&env).iter().find(|run| run["undo_of"].is_null()).unwrap()["id"].clone();
        let mut undo = env.command(["undo", id.as_str().unwrap()]);
        let mut undo = undo.stdout(std::process::Stdio::null()).spawn().unwrap();
        // Another moment of the undo each time.
        std::thread::sleep(whole * (times - time) / (2 * times));
        undo.kill().unwrap();
        undo.wait().unwrap();
        let output = env.run(["undo", id.as_str().unwrap()]);
        let context = format!("killed at {time} of {times}: {}", said(&output));
        assert_eq!(tree(), before, "{context}");
        assert!(output.status.success(), "{context}");
    }
    println!("{killed} of {times} runs killed, {partial} had changed something");
    assert!(partial > 0, "no kill came at the right moment: the test shows nothing");
}

/// A run whose only resource failed half-way has changed something all the same.
#[test]
fn a_run_that_failed_half_way_is_the_last_that_changed_something() {
    if lacks_root() {
        return;
    }
    let env = TestEnv::new();
    env.write("keep", "base\n");
    ok(&env, ["ensure", "file", "[DIR]/keep", "--content", "changed\n"]);
    env.write("source/a", "a\n");
    env.write("source/z", "z\n");
    env.write("t/a", "old a\n");
    env.write("t/z", "old z\n");
    env.manifest("ccm: {resources: [{scaffold: [{[DIR]/t: {source: [DIR]/source}}]}]}");
    // A mount point cannot be replaced.
    let apply = env.command(["apply", "manifest.yaml"]);
    let script = format!(
        "mount --bind t/z t/z && exec {} apply manifest.yaml",
        apply.get_program().to_str().unwrap()
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(env.dir());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let output = command.env("CCM_STATE_DIR", env.state()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert_eq!((env.read("t/a"), env.read("t/z")), ("a\n".into(), "old z\n".into()));
    assert_eq!(runs(&env)[0]["changed"], 1);
    ok(&env, ["undo"]);
    assert_eq!((env.read("t/a"), env.read("keep")), ("old a\n".into(), "changed\n".into()));
}

/// What a symlink leads to that somebody has put in the place of a directory is
/// not what the run has changed.
#[test]
fn nothing_is_undone_through_a_symlink_that_came_later() {
    let env = TestEnv::new();
    env.write("d/f", "secret\n");
    std::fs::create_dir(env.path("elsewhere")).unwrap();
    ok(&env, ["ensure", "file", "[DIR]/d", "absent", "--force"]);
    symlink("elsewhere", env.path("d")).unwrap();
    let text = fails(&env, ["undo"]);
    assert!(text.contains("is no longer a directory"), "{text}");
    assert_eq!(std::fs::read_dir(env.path("elsewhere")).unwrap().count(), 0);

    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{file: [{[DIR]/d: {ensure: directory, [ME], mode: '0755'}}, {[DIR]/d/f: \
         {content: x, [ME], mode: '0644'}}]}]}",
    );
    ok(&env, ["apply", "manifest.yaml"]);
    std::fs::rename(env.path("d"), env.path("other")).unwrap();
    symlink("other", env.path("d")).unwrap();
    for force in [&["undo"][..], &["undo", "--force", "--only", "file#[DIR]/d/f"]] {
        let args: Vec<String> =
            force.iter().map(|arg| arg.replace("[DIR]", env.dir().to_str().unwrap())).collect();
        let output = env.command(&args).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert_eq!(env.read("other/f"), "x");
    }
}

/// A file that was written in place is restored in place.
#[test]
fn other_names_of_a_file_are_restored_with_it() {
    if lacks_root() {
        return;
    }
    let env = TestEnv::new();
    env.write("f", "old\n");
    std::fs::hard_link(env.path("f"), env.path("g")).unwrap();
    let inode = std::fs::metadata(env.path("f")).unwrap().ino();
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n", "--write", "in_place"]);
    assert_eq!(env.read("g"), "new\n");
    ok(&env, ["undo"]);
    assert_eq!((env.read("f"), env.read("g")), ("old\n".into(), "old\n".into()));
    assert_eq!(std::fs::metadata(env.path("f")).unwrap().ino(), inode);
}
