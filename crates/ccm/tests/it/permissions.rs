//! Modes, and what a user without permissions is told.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Output;

use ccm_testkit::lacks_root;
use serde_json::Value;

use crate::TestEnv;
use crate::history::{ok, said};

const NOBODY: u32 = 65534;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs ccm as a user without permissions, with a home of its own.
fn as_nobody(env: &TestEnv, args: &[&str]) -> Output {
    let binary = match std::env::var_os("CCM_BINARY") {
        Some(given) => {
            let copy = env.path("ccm");
            assert!(
                std::process::Command::new("cp").arg(given).arg(&copy).status().unwrap().success()
            );
            copy
        }
        None => env.copy_of_ccm(),
    };
    let home = env.path("home");
    std::fs::create_dir_all(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    chmod(env.dir(), 0o755);
    let mut command = std::process::Command::new(binary);
    command.args(args).env_clear().env("HOME", &home).env("TMPDIR", &home);
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir(&home);
    command.uid(NOBODY).gid(NOBODY).output().unwrap()
}

/// A private directory is not made below one that everybody can list.
#[test]
fn parents_are_no_wider_than_what_is_made_in_them() {
    for (wanted, itself, above) in [
        ("0700", 0o700, 0o700),
        ("0750", 0o750, 0o750),
        ("0755", 0o755, 0o755),
        ("0777", 0o777, 0o755),
    ] {
        let env = TestEnv::new();
        env.manifest(&format!(
            r#"ccm: {{resources: [{{file: [{{"[DIR]/a/b/c": {{ensure: directory, mode: "{wanted}",
                [ME]}}}}]}}]}}"#
        ));
        ok(&env, ["apply", "manifest.yaml"]);
        for (path, wanted) in [("a", above), ("a/b", above), ("a/b/c", itself)] {
            let found = mode(&env.path(path));
            assert_eq!(found, wanted, "{path} is {found:o}");
        }
        ok(&env, ["undo"]);
        assert!(!env.path("a").exists());
    }
}

/// Execute bits are added where there are none, and only there.
#[test]
fn a_mode_with_execute_bits_says_who_may_enter() {
    for (wanted, found) in [("0644", 0o755), ("0740", 0o740), ("0711", 0o711), ("0600", 0o700)] {
        let env = TestEnv::new();
        let args = ["ensure", "file", "[DIR]/d", "directory", "--mode", wanted];
        ok(&env, args);
        assert_eq!(mode(&env.path("d")), found, "{wanted}");
        assert!(ok(&env, args).contains("  = file#"), "{wanted}: it is stable");
        assert_eq!(mode(&env.path("d")), found, "{wanted}");
    }
}

/// What cannot be seen is reported as absent, with a warning.
#[test]
fn the_status_of_what_may_not_be_looked_at() {
    if lacks_root() {
        return;
    }
    let env = TestEnv::new();
    env.write("closed/f", "text");
    chmod(&env.path("closed"), 0o700);
    let path = env.path("closed/f");
    let output = as_nobody(&env, &["status", "file", path.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["ensure"], "absent", "{status}");
    let warning = String::from_utf8_lossy(&output.stderr);
    assert!(warning.contains("warning") && warning.contains("Permission denied"), "{warning}");
    // To act on that would be wrong.
    let output =
        as_nobody(&env, &["ensure", "file", path.to_str().unwrap(), "--content", "x", "--noop"]);
    assert!(!output.status.success(), "{}", said(&output));
}

/// The checksum of a file is in its event, whatever its mode is, unless a secret
/// is in the file.
#[test]
fn checksums_are_in_events_unless_something_is_secret() {
    let env = TestEnv::new();
    env.write("source", "from a file\n");
    env.manifest(
        r#"ccm: {resources: [{file: [{defaults: {[ME], mode: "0600"}},
            {"[DIR]/plain": {content: "nothing special\n"}},
            {"[DIR]/copied": {source: source}},
            {"[DIR]/secret": {content: "the password is {{ Data.password }}\n"}}]}]}
data:
  # @secret
  password: correct-horse-battery
"#,
    );
    let report = |args: &[&str]| -> Value {
        let apply = ["apply", "manifest.yaml", "--json"];
        let output = env.command(apply.iter().chain(args)).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", said(&output)))
    };
    let checksum = |report: &Value, name: &str| {
        let events = report["events"].as_array().unwrap().clone();
        let is_it = |event: &&Value| event["name"].as_str().unwrap().ends_with(name);
        events.iter().find(is_it).unwrap()["status"]["metadata"]["checksum"].clone()
    };
    let sum = |text: &str| Value::from(ccm_host::Digest::of(text.as_bytes()).to_string());
    for round in 0..2 {
        let report = report(&[]);
        assert_eq!(checksum(&report, "/plain"), sum("nothing special\n"), "{round}");
        assert_eq!(checksum(&report, "/copied"), sum("from a file\n"), "{round}");
        assert_eq!(checksum(&report, "/secret"), Value::Null, "{round}");
    }
    // Of what is replaced, nobody knows what is in it.
    env.write("plain", "an old secret\n");
    chmod(&env.path("plain"), 0o600);
    assert_eq!(checksum(&report(&["--noop"]), "/plain"), Value::Null);
}

/// New files from a source are counted as others are, up to the bound.
#[test]
fn lines_of_new_files_are_counted() {
    let env = TestEnv::new();
    env.write("source", "one\ntwo\nthree\n");
    env.write("large", &"line\n".repeat(300_000));
    env.manifest(
        r#"ccm: {resources: [{file: [{defaults: {[ME], mode: "0644"}},
            {"[DIR]/new": {source: source}}, {"[DIR]/big": {source: large}}]}]}"#,
    );
    let output = ok(&env, ["apply", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_str(&output).unwrap();
    let content = |at: usize| {
        let changes = report["events"][at]["changes"].as_array().unwrap().clone();
        changes.into_iter().find(|change| change["property"] == "content").unwrap()
    };
    assert_eq!((&content(0)["added"], &content(0)["removed"]), (&3.into(), &0.into()));
    assert_eq!(content(1)["added"], Value::Null, "more than 1 MiB is not counted");
}

/// Whoever has no permission to install sees what would be.
#[test]
fn packages_are_predicted_without_root() {
    if lacks_root() {
        return;
    }
    let known = std::process::Command::new("dpkg-query").args(["-W", "strace"]).output();
    if !known.is_ok_and(|output| output.status.success()) {
        return ccm_testkit::not_run("strace is no package here");
    }
    let env = TestEnv::new();
    let args = ["ensure", "package", "strace", "absent", "--noop"];
    let output = as_nobody(&env, &args);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("- package#strace"), "{text}");
    assert!(text.contains("apply needs root"), "{text}");
}

/// There is nothing to remove, so the source need not be there.
#[test]
fn a_scaffold_that_is_not_there_needs_no_source() {
    let env = TestEnv::new();
    env.manifest(
        r#"ccm: {resources: [{scaffold: [{"[DIR]/t": {ensure: absent, source: missing}}]}]}"#,
    );
    for args in [&[][..], &["--noop"]] {
        let apply = ["apply", "manifest.yaml", "--json"];
        let output = env.command(apply.iter().chain(args)).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["summary"]["stable"], 1, "{report}");
    }
    env.write("t/f", "text");
    let output = env.run(["apply", "manifest.yaml"]);
    assert!(!output.status.success(), "what to remove, only the source tells");
}
