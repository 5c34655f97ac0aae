//! Scaffolds where things are in the way, go on for ever, or end half-way.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::TestEnv;
use crate::scaffold::tree;

#[test]
fn links_in_the_target_lead_nothing_astray() {
    let env = TestEnv::new();
    env.write("outside/keep", "k");
    env.write("src/link/a", "a");
    env.write("src/b", "b");
    fs::create_dir(env.path("t")).unwrap();
    symlink(env.path("outside"), env.path("t/link")).unwrap();
    let output = env.run(["ensure", "scaffold", "[DIR]/t", "src"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(tree(&env.path("outside")).len(), 1, "nothing was written through the link");

    fs::remove_dir_all(env.path("src/link")).unwrap();
    symlink(env.path("outside/keep"), env.path("t/b")).unwrap();
    assert!(env.run(["ensure", "scaffold", "[DIR]/t", "src", "--purge"]).status.success());
    assert_eq!(env.read("outside/keep"), "k");
    assert_eq!(tree(&env.path("t")).into_keys().collect::<Vec<_>>(), ["b"]);
    assert!(env.run(["ensure", "scaffold", "[DIR]/t", "src", "absent"]).status.success());
    assert_eq!(env.read("outside/keep"), "k");
}

#[test]
fn a_source_and_a_target_within_one_another_are_refused() {
    let env = TestEnv::new();
    env.write("src/a", "a");
    symlink(env.path("src"), env.path("link")).unwrap();
    for (target, source) in [("src", "src"), ("src/out", "src"), ("", "src"), ("link/out/x", "src")]
    {
        let target = env.path(target);
        let target = target.to_str().unwrap().trim_end_matches('/');
        let output = env.run(["ensure", "scaffold", target, source, "--purge"]);
        assert_eq!(output.status.code(), Some(1), "{target}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("overlap"), "{text}");
        assert_eq!(env.names(), ["link", "src", "src/a"]);
    }
}

#[test]
fn an_empty_source_is_not_the_working_directory() {
    let env = TestEnv::new();
    env.write("a", "a");
    let output = env.run(["ensure", "scaffold", "[DIR]/t", ""]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("source: cannot be empty"));
    assert!(!env.path("t").exists());
}

#[test]
fn a_link_that_serves_as_a_directory_is_not_purged() {
    let env = TestEnv::new();
    env.write("src/d/f", "f");
    fs::create_dir_all(env.path("t/real")).unwrap();
    symlink("real", env.path("t/d")).unwrap();
    symlink("none", env.path("t/foreign")).unwrap();
    for row in ["  ~ scaffold#[DIR]/t", "  = scaffold#[DIR]/t  stable"] {
        let output = env.run(["ensure", "scaffold", "[DIR]/t", "src", "--purge"]);
        let text = env.steady(&String::from_utf8(output.stdout).unwrap());
        assert_eq!(text.lines().next(), Some(row), "{text}");
        assert!(env.path("t/d").is_symlink(), "{:?}", env.names());
        // The walk finds it as `real/f` too.
        assert_eq!(env.read("t/d/f"), "f");
        assert!(!env.path("t/foreign").is_symlink());
    }
}

#[test]
fn absent_leaves_a_link_to_the_target_and_what_is_in_the_way() {
    let env = TestEnv::new();
    env.write("src/a", "a");
    env.write("src/sub/b", "b");
    fs::create_dir(env.path("real")).unwrap();
    symlink("real", env.path("t")).unwrap();
    assert!(env.run(["ensure", "scaffold", "[DIR]/t", "src"]).status.success());
    fs::remove_dir_all(env.path("real/sub")).unwrap();
    env.write("real/sub", "in the way");
    let output = env.run(["ensure", "scaffold", "[DIR]/t", "src", "absent"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(tree(&env.path("real")).into_keys().collect::<Vec<_>>(), ["sub"]);
}

#[test]
fn a_dangling_target_is_refused_in_a_preview_too() {
    let env = TestEnv::new();
    env.write("src/a", "a");
    symlink("nowhere", env.path("t")).unwrap();
    let output = env.run(["ensure", "scaffold", "[DIR]/t", "src", "--noop"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn templates_that_render_too_many_others_are_stopped() {
    let env = TestEnv::new();
    for n in 1..=7 {
        let line = format!("[[ render(\"_partials/p{}\", .) ]]", n + 1);
        env.write(&format!("src/_partials/p{n}"), &line.repeat(10));
    }
    env.write("src/_partials/p8", "[[ 1 ]]");
    env.write("src/a", "[[ render(\"_partials/p1\", .) ]]");
    let output = env.run(["ensure", "scaffold", "[DIR]/t", "src"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("more than 10000 templates are rendered for one file"), "{text}");
}

#[test]
fn templates_that_others_can_write_are_refused_where_that_is_wanted() {
    let env = TestEnv::new();
    if ccm_testkit::lacks_root() {
        return;
    }
    let path = env.write("src/a", "a");
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).unwrap();
    let target = env.path("t");
    let args = ["ensure", "scaffold", target.to_str().unwrap(), "src"];
    let strict = env.command(args).env("CCM_STRICT", "1").output().unwrap();
    assert_eq!(strict.status.code(), Some(1));
    assert!(!target.exists());
    let lenient = env.command(args).output().unwrap();
    assert!(lenient.status.success());
    assert!(
        String::from_utf8_lossy(&lenient.stderr).contains("is writable by other users"),
        "{lenient:?}"
    );
}

#[test]
fn two_runs_at_once_do_not_purge_each_other() {
    let env = TestEnv::new();
    for n in 0..200 {
        env.write(&format!("src/f{n}"), "[[ facts.version ]]");
    }
    for version in 0..5 {
        let runs: Vec<_> = (0..3)
            .map(|which| {
                let fact = format!("version={version}{which}");
                let target = env.path("t");
                env.command([
                    "ensure",
                    "scaffold",
                    target.to_str().unwrap(),
                    "src",
                    "--purge",
                    "--no-sync",
                    "--fact",
                    &fact,
                ])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
            })
            .collect();
        for run in runs {
            let text = String::from_utf8(run.wait_with_output().unwrap().stdout).unwrap();
            assert!(!text.contains("purged") && !text.contains(".ccm-"), "{text}");
        }
    }
}

#[test]
fn a_kill_at_any_moment_leaves_each_file_old_or_new() {
    let env = TestEnv::new();
    const FILES: usize = 200;
    let content = |version: usize, n: usize| format!("{version} {n}\n").repeat(300);
    for n in 0..FILES {
        env.write(
            &format!("src/f{n}"),
            &format!("[[ range i := ints(0, 300) ]][[ facts.version ]] {n}\n[[ end ]]"),
        );
    }
    let mut killed = 0;
    for version in 1..=25_usize {
        let fact = format!("version={version}");
        let mut child = env
            .command([
                "ensure",
                "scaffold",
                env.path("t").to_str().unwrap(),
                "src",
                "--fact",
                &fact,
                "--no-sync",
            ])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Another moment of the run each time.
        std::thread::sleep(Duration::from_micros((version as u64 * 7_919) % 120_000));
        kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        for n in 0..FILES {
            if let Ok(text) = fs::read_to_string(env.path(&format!("t/f{n}"))) {
                let is_whole = (1..=version).any(|version| text == content(version, n));
                assert!(is_whole, "f{n} is torn after version {version}");
            }
        }
    }
    assert!(killed > 0, "no run was killed: the test shows nothing");
    let last = ["ensure", "scaffold", "[DIR]/t", "src", "--fact", "version=99"];
    assert!(env.run(last).status.success());
    assert_eq!(tree(&env.path("t")).len(), FILES, "something was left behind");
    assert_eq!(env.read("t/f7"), content(99, 7));
}

#[test]
fn what_cannot_be_listed_is_not_called_purged() {
    use std::os::unix::process::CommandExt as _;
    let Some(env) = crate::planted::shared_place() else { return };
    env.write("src/a", "a");
    env.write("t/a", "a");
    env.write("t/closed/left", "x");
    for name in ["t", "t/a"] {
        crate::planted::give_away(&env.path(name));
    }
    crate::planted::chmod(&env.path("t/closed"), 0o700);
    let copy = env.copy_of_ccm();
    let run = |purge: Option<&str>| {
        let mut command = std::process::Command::new(&copy);
        command.args(["ensure", "scaffold"]).arg(env.path("t")).arg(env.path("src")).args(purge);
        command.uid(65534).gid(65534).env("HOME", "/").env("TMPDIR", "/tmp").current_dir("/");
        command.output().unwrap()
    };
    let kept = run(None);
    assert!(kept.status.success(), "{kept:?}");
    let purged = run(Some("--purge"));
    assert_eq!(purged.status.code(), Some(1), "{purged:?}");
    assert!(String::from_utf8_lossy(&purged.stdout).contains("t/closed"), "{purged:?}");
}

/// One file that fails its check keeps all of them as they were, and the
/// command sees only files that change.
#[test]
fn a_rendered_file_that_fails_its_check_changes_nothing() {
    let env = TestEnv::new();
    env.write("src/a", "ok [[ facts.v ]]\n");
    env.write("src/b", "[[ facts.v ]]\n");
    env.write("src/same", "never checked\n");
    env.write("t/same", "never checked\n");
    env.write("t/a", "old\n");
    env.write("check.sh", "echo \"$1\" >>[DIR]/seen; cat \"$1\"; grep -q ok \"$1\"\n");
    env.manifest(
        "ccm: {resources: [{scaffold: [{[DIR]/t: {source: src, purge: true, validate: \
         'sh [DIR]/check.sh {}'}}]}]}",
    );
    env.write("t/foreign", "x\n");
    let before = ccm_testkit::snapshot_of_content(&env.path("t"));
    for args in [&["--noop"][..], &[]] {
        let mut command = env.command(["apply", "manifest.yaml", "--no-report", "--fact", "v=bad"]);
        let output = command.args(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}");
        let message = format!(
            "validation failed: sh {0}/check.sh {0}/t/b exited with code 1",
            env.dir().display()
        );
        assert!(text.contains(&message), "{text}");
        assert_eq!(ccm_testkit::snapshot_of_content(&env.path("t")), before);
    }
    let seen = env.read("seen");
    assert!(!seen.contains("/same") && !seen.contains("/t/"), "{seen}");
    let args = ["apply", "manifest.yaml", "--no-report", "--fact", "v=ok"];
    assert!(env.run(args).status.success());
    assert_eq!((env.read("t/b"), env.path("t/foreign").exists()), ("ok\n".into(), false));
    fs::remove_file(env.path("seen")).unwrap();
    assert!(env.run(args).status.success());
    assert!(!env.path("seen").exists(), "nothing changes, so nothing is checked");
    env.manifest("ccm: {resources: [{scaffold: [{[DIR]/t: {source: src, validate: 'sh -n'}}]}]}");
    let output = env.run(["validate", "manifest.yaml"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("the command does not contain `{}`"), "{text}");
}
