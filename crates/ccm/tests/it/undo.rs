//! Undo where the machine is no longer as the run left it, and where other
//! users, or other runs, have a say.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use ccm_testkit::{lacks_root, snapshot, snapshot_of_content, wait_until};
use serde_json::Value;

use crate::TestEnv;
use crate::history::{fails, newest, ok, runs, said};
use crate::state::first_line;

const OTHER: u32 = 65534;

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Outcome and errors of each resource of an undo.
fn outcomes(env: &TestEnv, args: &[&str]) -> Vec<(String, bool, Vec<String>)> {
    let output = env.command(["undo", "--json"].iter().chain(args)).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = report["events"].as_array().unwrap().iter().map(|event| {
        let errors = event["error"].as_array().cloned().unwrap_or_default();
        let is_failed = event["failed"].as_bool().unwrap_or_default();
        (text(&event["name"]), is_failed, errors.iter().map(text).collect())
    });
    events.collect()
}

/// What the preview says is what happens.
fn undo_as_previewed(env: &TestEnv, args: &[&str]) -> Vec<(String, bool, Vec<String>)> {
    let tree = snapshot(env.dir());
    let state = snapshot(env.state());
    let preview = outcomes(env, &[args, &["--noop"]].concat());
    assert_eq!(snapshot(env.dir()), tree, "a preview changes nothing");
    assert_eq!(snapshot(env.state()), state, "a preview writes nothing");
    let done = outcomes(env, args);
    assert_eq!(preview, done);
    done
}

/// One file that the run changes by two names.
#[test]
fn a_file_with_two_names_is_previewed_as_one() {
    let env = TestEnv::new();
    env.write("real/f", "old\n");
    symlink("real", env.path("link")).unwrap();
    env.manifest(
        r#"ccm: {resources: [{file: [{defaults: {[ME], mode: "0644"}},
            {"[DIR]/link/f": {content: "one\n"}}, {"[DIR]/real/f": {content: "two\n"}},
            {"[DIR]/link/g": {content: "g\n"}}, {"[DIR]/real/g": {ensure: absent}}]}]}"#,
    );
    let before = snapshot_of_content(&env.path("real"));
    ok(&env, ["apply", "manifest.yaml"]);
    let after = snapshot_of_content(&env.path("real"));
    let done = undo_as_previewed(&env, &[]);
    assert!(done.len() == 2 && done.iter().all(|(_, is_failed, _)| !is_failed), "{done:?}");
    assert_eq!(snapshot_of_content(&env.path("real")), before);
    undo_as_previewed(&env, &[]);
    assert_eq!(snapshot_of_content(&env.path("real")), after);
}

/// A directory above the file, which the run did not touch, is another one.
#[test]
fn a_directory_that_became_a_symlink_is_not_followed() {
    let env = TestEnv::new();
    env.write("d/sub/f", "old\n");
    env.write("d/kept", "old\n");
    env.manifest(
        r#"ccm: {resources: [{file: [{defaults: {[ME], mode: "0644"}},
            {"[DIR]/d/sub/f": {content: "new\n"}}, {"[DIR]/d/sub/g": {content: "new\n"}},
            {"[DIR]/d/kept": {content: "new\n"}}]}]}"#,
    );
    ok(&env, ["apply", "manifest.yaml"]);
    let id = newest(&env);
    std::fs::rename(env.path("d/sub"), env.path("moved")).unwrap();
    symlink(env.path("moved"), env.path("d/sub")).unwrap();
    for args in [&[&*id][..], &[&*id, "--force"]] {
        let done = undo_as_previewed(&env, args);
        let failed: Vec<_> = done.iter().filter(|(_, is_failed, _)| *is_failed).collect();
        assert_eq!(failed.len(), 2, "{done:?}");
        for (_, _, errors) in failed {
            assert!(errors[0].contains("d/sub now points to"), "{errors:?}");
        }
        assert_eq!((env.read("moved/f"), env.read("moved/g")), ("new\n".into(), "new\n".into()));
        assert_eq!(env.read("d/kept"), "old\n");
        ok(&env, ["ensure", "file", "[DIR]/d/kept", "--content", "new\n", "--no-history"]);
    }
    // Back as it was, it is the run's again.
    std::fs::remove_file(env.path("d/sub")).unwrap();
    std::fs::rename(env.path("moved"), env.path("d/sub")).unwrap();
    ok(&env, ["undo", &id]);
    assert_eq!(env.read("d/sub/f"), "old\n");
    assert!(!env.path("d/sub/g").exists());
}

/// The run itself went through a symlink; now it leads elsewhere.
#[test]
fn a_symlink_that_leads_elsewhere_is_not_followed() {
    let env = TestEnv::new();
    env.write("one/f", "old\n");
    env.write("two/f", "new\n");
    symlink("one", env.path("link")).unwrap();
    ok(&env, ["ensure", "file", "[DIR]/link/f", "--content", "new\n"]);
    std::fs::remove_file(env.path("link")).unwrap();
    symlink("two", env.path("link")).unwrap();
    let done = undo_as_previewed(&env, &[]);
    assert!(done[0].1 && done[0].2[0].contains("now points to"), "{done:?}");
    assert_eq!(env.read("two/f"), "new\n");
    std::fs::remove_file(env.path("link")).unwrap();
    symlink(env.path("one"), env.path("link")).unwrap();
    ok(&env, ["undo"]);
    assert_eq!(env.read("one/f"), "old\n");
}

/// Runs a script in which the test's `ro` is mounted read-only.
/// A release is switched by its symlink, and back: what was written through the
/// symlink goes before the symlink itself.
#[test]
fn a_symlink_is_switched_back_to_where_it_pointed() {
    let env = TestEnv::new();
    for release in ["r1", "r2"] {
        std::fs::create_dir(env.path(release)).unwrap();
    }
    symlink("r1", env.path("current")).unwrap();
    env.manifest(
        "ccm: {resources: [{file: [{[DIR]/current: {ensure: link, target: r2}}, \
         {[DIR]/current/new: {content: x, mode: '0644', [ME]}}, \
         {[DIR]/fresh: {ensure: link, target: nowhere}}]}]}\n",
    );
    let before = snapshot_of_content(env.dir());
    ok(&env, ["apply", "manifest.yaml"]);
    assert_eq!(env.read("r2/new"), "x");
    assert_eq!(std::fs::read_link(env.path("fresh")).unwrap(), Path::new("nowhere"));
    let done = undo_as_previewed(&env, &[]);
    assert!(done.iter().all(|(_, is_failed, _)| !is_failed), "{done:?}");
    assert_eq!(snapshot_of_content(env.dir()), before);
    // A symlink that someone has switched since is not touched, nor what it hides.
    ok(&env, ["apply", "manifest.yaml"]);
    std::fs::remove_file(env.path("current")).unwrap();
    symlink("r1", env.path("current")).unwrap();
    let done =
        undo_as_previewed(&env, &["--only", &format!("file#{}/current", env.dir().display())]);
    assert!(done.iter().all(|(_, is_failed, _)| !is_failed), "{done:?}");
    assert_eq!(std::fs::read_link(env.path("current")).unwrap(), Path::new("r1"));
    assert_eq!(env.read("r2/new"), "x");
}

#[test]
fn a_read_only_file_system_is_foreseen() {
    if lacks_root() {
        return;
    }
    let env = TestEnv::new();
    for (path, text) in [("ro/changed", "old\n"), ("ro/mode", "m\n"), ("ro/gone/f", "gone\n")] {
        env.write(path, text);
    }
    env.write("rw/f", "old\n");
    env.manifest(
        r#"ccm: {resources: [{file: [{defaults: {[ME], mode: "0644"}},
            {"[DIR]/ro/changed": {content: "new\n"}}, {"[DIR]/ro/made": {content: "new\n"}},
            {"[DIR]/ro/mode": {mode: "0600"}}, {"[DIR]/ro/gone": {ensure: absent, force: true}},
            {"[DIR]/ro/dir": {ensure: directory, mode: "0755"}},
            {"[DIR]/rw/f": {content: "new\n"}}]}]}"#,
    );
    ok(&env, ["apply", "manifest.yaml"]);
    let script = format!(
        "cd {d} && mount --bind ro ro && mount -o remount,bind,ro ro || exit 99; \
         for noop in --noop ''; do {ccm} undo --json $noop > report$noop; echo \"exit $?\"; done",
        d = env.dir().display(),
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).env("CCM_STATE_DIR", env.state());
    let output = command.output().unwrap();
    if output.status.code() == Some(99) {
        return ccm_testkit::not_run("nothing can be mounted in this sandbox");
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "exit 1\nexit 1\n", "{}", said(&output));
    let failed = |name: &str| -> Vec<String> {
        let report: Value = serde_json::from_str(&env.read(name)).unwrap();
        let events = report["events"].as_array().unwrap().clone();
        let failed = events.iter().filter(|event| event["failed"] == true);
        failed
            .map(|event| {
                assert!(event["error"][0].as_str().unwrap().contains("Read-only"), "{event}");
                event["name"].as_str().unwrap().to_owned()
            })
            .collect()
    };
    assert_eq!(failed("report--noop"), failed("report"));
    assert_eq!(failed("report").len(), 5);
    assert_eq!((env.read("rw/f"), env.read("ro/changed")), ("old\n".into(), "new\n".into()));
    ok(&env, ["undo", runs(&env)[1]["id"].as_str().unwrap()]);
    assert_eq!(env.read("ro/gone/f"), "gone\n");
}

#[test]
fn privileges_in_directories_of_others_are_named_beforehand() {
    if lacks_root() {
        return;
    }
    for (mode, owner, is_kept) in
        [(0o2755, 0, true), (0o2755, OTHER, false), (0o4755, OTHER, false), (0o1644, OTHER, true)]
    {
        let env = TestEnv::new();
        env.write("d/f", "old\n");
        chown(env.path("d"), Some(owner), Some(owner)).unwrap();
        chmod(&env.path("d/f"), mode);
        ok(&env, ["ensure", "file", "[DIR]/d/f", "--content", "new\n", "--mode", "0755"]);
        let done = undo_as_previewed(&env, &[]);
        let is = std::fs::metadata(env.path("d/f")).unwrap().mode() & 0o7777;
        assert_eq!(env.read("d/f"), "old\n");
        if is_kept {
            assert!(!done[0].1, "{done:?}");
            assert_eq!(is, mode);
        } else {
            assert!(done[0].2[0].contains("without its setuid and setgid bits"), "{done:?}");
            assert_eq!(is, mode & 0o1777);
        }
    }
}

/// A run gives a file away; who has it now writes to it. Given back unseen, it
/// would be trusted as root's.
#[test]
fn what_another_user_may_have_written_is_not_given_back_unseen() {
    if lacks_root() {
        return;
    }
    let env = TestEnv::new();
    for name in ["same", "edited", "setuid"] {
        env.write(name, "#!/bin/sh\n");
        chmod(&env.path(name), if name == "setuid" { 0o4755 } else { 0o755 });
    }
    env.manifest(
        r#"ccm: {resources: [{file: [{defaults: {owner: "65534", group: "65534", mode: "0755"}},
            {"[DIR]/same": {}}, {"[DIR]/edited": {}}, {"[DIR]/setuid": {}}]}]}"#,
    );
    ok(&env, ["apply", "manifest.yaml"]);
    let inode = std::fs::metadata(env.path("same")).unwrap().ino();
    for name in ["edited", "setuid"] {
        std::fs::write(env.path(name), "#!/bin/no\n").unwrap();
    }
    let done = undo_as_previewed(&env, &[]);
    let failed: Vec<_> = done.iter().filter(|(_, is_failed, _)| *is_failed).collect();
    assert_eq!(failed.len(), 2, "{done:?}");
    assert!(failed.iter().all(|(_, _, errors)| errors[0].contains("its content")), "{done:?}");
    let meta = |name: &str| std::fs::metadata(env.path(name)).unwrap();
    assert_eq!((meta("edited").uid(), meta("setuid").uid()), (OTHER, OTHER));
    // A copy: the other user may still hold the old file open.
    assert_eq!(meta("same").uid(), 0);
    assert_ne!(meta("same").ino(), inode);
    let first = runs(&env).pop().unwrap()["id"].as_str().unwrap().to_owned();
    let text = fails(&env, ["undo", &first, "--force"]);
    assert!(text.contains("without its setuid and setgid bits (mode 4755)"), "{text}");
    assert_eq!((meta("setuid").uid(), meta("setuid").mode() & 0o7777), (0, 0o755));
}

/// A run that holds the lock until there is a file `go`.
fn hold_lock(env: &TestEnv) -> Child {
    env.manifest(
        "ccm: {resources: [{exec: [{wait: {provider: shell, command: \"touch [DIR]/at-work; while \
         [ ! -e [DIR]/go ]; do sleep 0.01; done\"}}]}]}",
    );
    let holder =
        env.command(["apply", "manifest.yaml", "--no-history"]).stdout(Stdio::null()).spawn();
    wait_until("the run", || env.path("at-work").exists());
    holder.unwrap()
}

/// Also when the first has begun already: its journal is there, without an end.
#[test]
fn an_undo_at_work_is_not_the_run_to_undo() {
    let env = TestEnv::new();
    env.write("f", "old\n");
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n"]);
    let id = newest(&env);
    ok(&env, ["undo"]);
    cut(&env, false);
    let mut holder = hold_lock(&env);
    let mut undo = env.command(["undo"]);
    let mut undo = undo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (waiting, _lines) = first_line(&mut undo);
    assert!(waiting.contains("waiting for another run"), "{waiting}");
    env.write("go", "");
    assert!(holder.wait().unwrap().success());
    let output = undo.wait_with_output().unwrap();
    assert!(said(&output).contains(&format!("{id} is already undone")), "{}", said(&output));
    assert_eq!(env.read("f"), "old\n");
    // One that was killed can be undone.
    ok(&env, ["undo"]);
    assert_eq!(env.read("f"), "new\n");
}

/// The second waits for the first, and takes back nothing of what that did.
#[test]
fn two_undos_at_once_undo_one_run() {
    let env = TestEnv::new();
    env.write("f", "old\n");
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n"]);
    let id = newest(&env);
    // Until both have chosen what to undo.
    let mut holder = hold_lock(&env);
    let undos = [(); 2].map(|()| {
        let mut undo = env.command(["undo"]);
        let mut undo = undo.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (line, rest) = first_line(&mut undo);
        assert!(line.contains("waiting for another run"), "{line}");
        (undo, rest)
    });
    env.write("go", "");
    assert!(holder.wait().unwrap().success());
    let texts = undos.map(|(undo, _rest)| {
        let output = undo.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    });
    assert_eq!(env.read("f"), "old\n", "{texts:#?}");
    let is_told = |text: &String| text.contains(&format!("{id} is already undone"));
    assert_eq!(texts.iter().filter(|text| is_told(text)).count(), 1, "{texts:#?}");
    assert_eq!(runs(&env).len(), 2);
}

#[test]
fn a_run_that_is_undone_is_said_so() {
    let env = TestEnv::new();
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n"]);
    let id = newest(&env);
    ok(&env, ["undo"]);
    let by = newest(&env);
    for args in [&["undo", &*id][..], &["undo", &*id, "--noop"], &["undo", &*id, "--force"]] {
        let output = env.command(args).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let words = format!("The run {id} is already undone, by the run {by}\n");
        assert!(said(&output).contains(&words), "{}", said(&output));
    }
    ok(&env, ["ensure", "file", "[DIR]/g", "--content", "new\n"]);
    let id = newest(&env);
    std::fs::remove_file(env.path("g")).unwrap();
    assert!(ok(&env, ["undo", &id]).contains(&format!("Nothing of the run {id} is left to undo")));
    assert_eq!(runs(&env).len(), 3, "an undo of nothing leaves nothing");
}

#[test]
fn a_preview_leaves_damaged_contents_where_they_are() {
    let env = TestEnv::new();
    env.write("f", "old\n");
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n"]);
    let object = std::fs::read_dir(env.state().join("objects")).unwrap().next().unwrap();
    let object = object.unwrap().path();
    std::fs::write(&object, "tampered\n").unwrap();
    let done = undo_as_previewed(&env, &[]);
    assert!(done[0].2[0].contains("no longer in the history"), "{done:?}");
    assert!(object.with_extension("damaged").exists() && !object.exists());
    assert_eq!(env.read("f"), "new\n");
}

#[test]
fn everything_below_an_apply_resource_is_taken_back() {
    let env = TestEnv::new();
    let file = |name: &str| {
        format!("{{file: [{{\"[DIR]/{name}\": {{content: new, [ME], mode: \"0644\"}}}}]}}")
    };
    env.write("deep.yaml", &format!("ccm: {{resources: [{}]}}", file("deep")));
    env.write(
        "child.yaml",
        &format!("ccm: {{resources: [{}, {{apply: [deep.yaml]}}]}}", file("child")),
    );
    env.manifest(&format!(
        "ccm: {{resources: [{}, {{apply: [child.yaml]}}, {}]}}",
        file("first"),
        file("last")
    ));
    ok(&env, ["apply", "manifest.yaml"]);
    let id = newest(&env);
    let wrong = fails(&env, ["undo", "--only", "apply#chld.yaml"]);
    assert!(wrong.contains("did you mean `apply#child.yaml`"), "{wrong}");
    ok(&env, ["undo", "--only", "apply#deep.yaml"]);
    let is_there = |name: &str| env.path(name).exists();
    assert!(!is_there("deep") && is_there("child") && is_there("first") && is_there("last"));
    ok(&env, ["undo"]);
    assert!(is_there("deep"));
    ok(&env, ["undo", &id, "--only", "apply#child.yaml"]);
    assert!(!is_there("deep") && !is_there("child") && is_there("first") && is_there("last"));
}

/// What a killed run leaves beside a file does not keep a directory from going.
#[test]
fn leftovers_of_a_killed_run_are_no_foreign_files() {
    let env = TestEnv::new();
    ok(&env, ["ensure", "file", "[DIR]/d", "directory", "--mode", "0755"]);
    env.write("d/.ccm-0123456789abcdef01234567", "left\n");
    let done = undo_as_previewed(&env, &[]);
    assert!(!done[0].1, "{done:?}");
    assert!(!env.path("d").exists());
}

/// Files of other users are of any size, and are not read to the end.
#[test]
fn a_huge_file_in_the_place_of_a_small_one_is_not_read() {
    let env = TestEnv::new();
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n"]);
    let file = std::fs::File::create(env.path("f")).unwrap();
    if file.set_len(1 << 43).is_err() {
        return ccm_testkit::not_run("the file system has no large files");
    }
    let done = outcomes(&env, &[]);
    assert!(done[0].2[0].contains("changed since the run: its content"), "{done:?}");
}

/// The journal of the newest run.
fn journal(env: &TestEnv) -> std::path::PathBuf {
    env.state().join("runs").join(newest(env)).join("journal")
}

/// Makes the newest run one that did not end: killed, or in an earlier boot.
fn cut(env: &TestEnv, is_other_boot: bool) {
    let path = journal(env);
    let text = std::fs::read_to_string(&path).unwrap();
    let (header, rest) = text.split_once('\n').unwrap();
    let (rest, _end) = rest.trim_end().rsplit_once('\n').unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    assert!(header.contains(boot.trim()), "{header}");
    let boot = boot.trim();
    let json = header[17..].replace(boot, if is_other_boot { "another" } else { boot });
    let sum = ccm_host::Digest::of(json.as_bytes()).to_string();
    let zeros = if is_other_boot { "\0".repeat(40) } else { String::new() };
    std::fs::write(&path, format!("{} {json}\n{rest}\n{zeros}", &sum[..16])).unwrap();
    std::fs::remove_file(path.with_file_name("summary")).unwrap();
}

#[test]
fn a_run_that_a_power_failure_ended_is_told_from_a_killed_one() {
    let words = "the machine stopped during the run";
    for is_other_boot in [false, true] {
        let env = TestEnv::new();
        env.write("f", "old\n");
        env.write("g", "old\n");
        env.manifest(
            r#"ccm: {resources: [{file: [{defaults: {[ME], mode: "0644"}},
                {"[DIR]/f": {content: "new\n"}}, {"[DIR]/g": {content: "new\n"}},
                {"[DIR]/h": {content: "new\n"}}]}]}"#,
        );
        ok(&env, ["apply", "manifest.yaml"]);
        cut(&env, is_other_boot);
        let id = newest(&env);
        assert!(ok(&env, ["history"]).contains("(interrupted)"));
        let shown = ok(&env, ["history", "show", &id]);
        assert_eq!(shown.contains(words), is_other_boot, "{shown}");
        let text = if is_other_boot { fails(&env, ["undo"]) } else { ok(&env, ["undo"]) };
        assert_eq!(text.contains(words), is_other_boot, "{text}");
        assert_eq!((env.read("f"), env.read("g")), ("old\n".into(), "old\n".into()));
    }
    // The summary is there, and nothing of the journal.
    let env = TestEnv::new();
    ok(&env, ["ensure", "file", "[DIR]/f", "--content", "new\n"]);
    std::fs::write(journal(&env), "").unwrap();
    let text = fails(&env, ["undo"]);
    assert!(text.contains("part of the journal was damaged"), "{text}");
}

/// A line of the journal that is damaged takes nothing else with it, and what
/// follows is not taken for what it is not.
#[test]
fn every_damaged_line_of_a_journal_is_left_out() {
    let env = TestEnv::new();
    let files: Vec<String> = (0..6).map(|n| format!("t/f{n}")).collect();
    let mut text = "ccm: {resources: [{file: [".to_owned();
    for (n, file) in files.iter().enumerate() {
        env.write(file, "old\n");
        text.push_str(&format!(
            "{{\"[DIR]/{file}\": {{content: \"new {n}\\n\", [ME], mode: \"0600\"}}}},"
        ));
    }
    text.push_str("]}]}");
    env.manifest(&text);
    ok(&env, ["apply", "manifest.yaml"]);
    let (path, after) = (journal(&env), snapshot_of_content(&env.path("t")));
    let id = newest(&env);
    let whole = std::fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    assert!(lines.len() >= 8, "{}", lines.len());
    for damaged in 1..lines.len() - 1 {
        let mut bytes = whole.clone();
        let begin: usize = lines[..damaged].iter().map(|line| line.len()).sum();
        bytes[begin + lines[damaged].len() / 2] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let left = |file: &String| env.read(file) != "old\n";
        let text = fails(&env, ["undo", &id]);
        assert!(text.contains("part of the journal was damaged"), "line {damaged}: {text}");
        let not_undone: Vec<_> = files.iter().filter(|file| left(file)).collect();
        assert_eq!(not_undone.len(), 1, "line {damaged}: {text}");
        // The same again, from the journal that was put in its place.
        let _ = std::fs::remove_file(path.with_file_name("journal.damaged"));
        let text = fails(&env, ["undo", &id]);
        assert!(text.contains("part of the journal was damaged"), "line {damaged}: {text}");
        assert_eq!(files.iter().filter(|file| left(file)).count(), 1, "line {damaged}: {text}");
        std::fs::write(&path, &whole).unwrap();
        ok(&env, ["apply", "manifest.yaml", "--no-history"]);
        assert_eq!(snapshot_of_content(&env.path("t")), after);
    }
}

/// A journal of a run that came to its end says so at its end. One that does not
/// is told from that of a killed run, wherever it was cut.
#[test]
fn a_journal_that_lost_its_end_is_not_that_of_a_killed_run() {
    let env = TestEnv::new();
    env.write("f", "old\n");
    env.write("g", "old\n");
    env.manifest(
        r#"ccm: {resources: [{file: [{defaults: {[ME], mode: "0644"}},
            {"[DIR]/f": {content: "new\n"}}, {"[DIR]/g": {content: "new\n"}}]}]}"#,
    );
    ok(&env, ["apply", "manifest.yaml"]);
    let (path, id) = (journal(&env), newest(&env));
    let whole = std::fs::read(&path).unwrap();
    for length in (0..whole.len()).step_by(97).chain([whole.len() - 1]) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let text = fails(&env, ["undo", "--noop", &id]);
        let is_named = ["the end of the journal is missing", "part of the journal was damaged"];
        assert!(is_named.iter().any(|words| text.contains(words)), "{length}: {text}");
    }
    std::fs::write(&path, &whole).unwrap();
    ok(&env, ["undo", &id]);
    assert_eq!((env.read("f"), env.read("g")), ("old\n".into(), "old\n".into()));
}

/// What was changed before a command is recorded on disk when it starts.
#[test]
fn records_are_on_disk_before_a_command_starts() {
    if ccm_testkit::lacks_strace() {
        return;
    }
    for sync in [true, false] {
        let env = TestEnv::new();
        env.write("f", "old\n");
        env.manifest(
            r#"ccm: {resources: [{file: [{"[DIR]/f": {content: "new\n", [ME], mode: "0644"}}]},
                {exec: [{/bin/true: {}}]}]}"#,
        );
        let ccm =
            env.command(["apply", "manifest.yaml"].iter().chain((!sync).then_some(&"--no-sync")));
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,execve", "-o"]);
        command.arg(env.path("trace")).arg(ccm.get_program()).args(ccm.get_args());
        command.current_dir(env.dir()).env_clear();
        command.envs(ccm.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let trace = env.read("trace");
        let (before, _) = trace.split_once("/bin/true").unwrap();
        for name in ["/journal>", "/objects/", "/objects>", "/runs>"] {
            assert_eq!(before.contains(name), sync, "{name} {sync}: {trace}");
        }
        ok(&env, ["undo", "--only", "file#[DIR]/f"]);
        assert_eq!(env.read("f"), "old\n");
    }
}

/// An undo makes a directory and then gives it its owner and mode. Killed in
/// between, the next undo goes on where it was.
#[test]
fn a_directory_that_a_killed_undo_has_begun_is_finished() {
    if ccm_testkit::lacks_strace() {
        return;
    }
    let mut half_made = 0;
    for call in ["fchown", "fchmod"] {
        for time in 1..=12 {
            let env = TestEnv::new();
            env.write("d/sub/f", "old\n");
            chmod(&env.path("d/sub"), 0o750);
            chmod(&env.path("d"), 0o755);
            let before = snapshot_of_content(&env.path("d"));
            ok(&env, ["ensure", "file", "[DIR]/d", "absent", "--force"]);
            let id = newest(&env);
            let ccm = env.command(["undo", &id]);
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"]);
            command.arg(format!("inject={call}:signal=SIGKILL:when={time}"));
            command.arg(ccm.get_program()).args(ccm.get_args()).current_dir(env.dir()).env_clear();
            command.envs(ccm.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.output().unwrap();
            let mode = |path: &str| std::fs::metadata(env.path(path)).map(|it| it.mode() & 0o777);
            half_made += u32::from(mode("d").is_ok_and(|mode| mode == 0o700));
            half_made += u32::from(mode("d/sub").is_ok_and(|mode| mode == 0o700));
            let output = env.run(["undo", &id]);
            assert!(output.status.success(), "{call} {time}: {}", said(&output));
            assert_eq!(snapshot_of_content(&env.path("d")), before, "{call} {time}");
            assert_eq!(mode("d/sub").unwrap(), 0o750, "{call} {time}");
        }
    }
    assert!(half_made >= 2, "killed at the right moment {half_made} times");
    // A directory that somebody else has made there is somebody else's.
    let env = TestEnv::new();
    env.write("d/f", "old\n");
    ok(&env, ["ensure", "file", "[DIR]/d", "absent", "--force"]);
    std::fs::create_dir(env.path("d")).unwrap();
    chmod(&env.path("d"), 0o711);
    assert!(fails(&env, ["undo"]).contains("changed since the run"));
}
