//! Copied directories, symlinks and validated writes under attack: runs that are
//! killed between any two system calls that write, and users who swap symlinks
//! while root copies.
//!
//! `CCM_KILLS_CHOSEN=all` tries every moment, `CCM_ATTACKS=1000` that many races.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ccm_testkit::snapshot_of_content;

use crate::TestEnv;
use crate::history::{ok, runs, said};
use crate::killed::{moments_with, traced_with};
use crate::planted::{attempts, give_away, is_untouched, lured, while_swapping};

/// What a run of the manifest changes, as it was before.
fn prepare(env: &TestEnv) {
    for name in ["t", "rendered", "link", "forced", "checked", "state"] {
        let path = env.path(name);
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&path).unwrap(),
            Ok(_) => fs::remove_file(&path).unwrap(),
            Err(_) => {}
        }
    }
    let _ = fs::remove_dir_all(env.state());
    for n in 0..12 {
        env.write(&format!("t/sub/old{n}"), &format!("old {n}\n"));
        env.write(&format!("t/f{n}"), "old\n");
    }
    env.write("t/gone/deep/f", "gone\n");
    symlink("old", env.path("t/l")).unwrap();
    symlink("old", env.path("link")).unwrap();
    env.write("forced", "old\n");
    env.write("checked", "old\n");
    env.write("rendered/a", "old\n");
}

fn stage() -> TestEnv {
    let env = TestEnv::new();
    for n in 0..12 {
        env.write(&format!("src/f{n}"), &format!("new {n}\n"));
        env.write(&format!("src/made/f{n}"), &format!("new {n}\n"));
    }
    symlink("f1", env.path("src/l")).unwrap();
    symlink("../f2", env.path("src/made/l")).unwrap();
    env.write("templates/a", "new\n");
    env.write("templates/b", "new\n");
    env.manifest(
        "ccm:
  resources:
    - file:
        - [DIR]/link: {ensure: link, target: new}
        - [DIR]/forced: {ensure: link, target: new, force: true}
        - [DIR]/t: {ensure: directory, source: src, purge: true, mode: '0644', [ME]}
        - [DIR]/checked: {content: \"new\\n\", validate: 'grep -q new {}', mode: '0644', [ME]}
    - scaffold: [{[DIR]/rendered: {source: templates, validate: 'grep -q new {}'}}]
",
    );
    env
}

/// Everything that is managed, without the leftovers of a killed run.
fn managed(env: &TestEnv) -> BTreeMap<PathBuf, String> {
    let mut all = snapshot_of_content(env.dir());
    let is_managed = |path: &PathBuf| {
        let names = ["t", "rendered", "link", "forced", "checked"];
        names.iter().any(|name| path.starts_with(name))
            && !path.file_name().unwrap().to_string_lossy().starts_with(".ccm-")
    };
    all.retain(|path, _| is_managed(path));
    all
}

/// A temporary file or symlink of a killed run.
fn leftover(env: &TestEnv) -> Option<String> {
    env.names().into_iter().find(|name| name.contains("/.ccm-"))
}

/// After every kill the next run repairs everything, or undo takes back what the
/// killed run has done; and every path holds what it did before or what it
/// should.
#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn killed_between_any_two_writes() {
    if ccm_testkit::lacks_strace() {
        return;
    }
    let env = stage();
    prepare(&env);
    let before = managed(&env);
    let all = moments_with(&env, &[]);
    let wanted = managed(&env);
    assert!(all.len() > 150, "only {} moments", all.len());
    let count = match std::env::var("CCM_KILLS_CHOSEN").as_deref() {
        Ok("all") => all.len(),
        Ok(number) => number.parse::<usize>().unwrap().min(all.len()),
        Err(_) => 40,
    };
    let (mut killed, mut half, mut undone) = (0, 0, 0);
    for index in 0..count {
        let (call, number) = &all[index * all.len() / count];
        let place = format!("before {call} {number}");
        prepare(&env);
        let (trace, inject) =
            (format!("trace={call}"), format!("inject={call}:signal=KILL:when={number}"));
        let status = traced_with(&env, &[], &["-e", &trace, "-e", &inject]);
        killed += usize::from(!status.success());
        let left = managed(&env);
        for (path, found) in &left {
            // A directory that is being made has its mode a moment later.
            let is_known = [before.get(path), wanted.get(path)].contains(&Some(found));
            let is_new_directory = env.path("").join(path).is_dir() && !before.contains_key(path);
            assert!(is_known || is_new_directory, "{place}: {}: {found}", path.display());
        }
        half += usize::from(left != before && left != wanted);
        if index % 2 == 1 && !runs(&env).is_empty() {
            ok(&env, ["undo"]);
            assert_eq!(managed(&env), before, "{place}: undo");
            // Private directories of checks are removed by the next check, and what
            // was written for a directory before its first record by the next run.
            let is_recorded = |name: &String| {
                let top = Path::new(name).components().next().unwrap();
                let of = |tree: &BTreeMap<PathBuf, String>| -> Vec<(PathBuf, String)> {
                    let tree = tree.iter().filter(|(path, _)| path.starts_with(top));
                    tree.map(|(path, found)| (path.clone(), found.clone())).collect()
                };
                !name.starts_with("ccm-validate-") && of(&left) != of(&before)
            };
            assert_eq!(leftover(&env).filter(is_recorded), None, "{place}: undo");
            undone += 1;
        }
        ok(&env, ["apply", "manifest.yaml", "--no-report"]);
        assert_eq!(managed(&env), wanted, "{place}");
        assert_eq!(leftover(&env), None, "{place}");
        assert!(ok(&env, ["apply", "manifest.yaml"]).contains("5 stable"), "{place}");
    }
    println!(
        "{killed} runs killed at {count} of {} moments, {half} half done, {undone} undone",
        all.len()
    );
    assert!(killed >= count * 3 / 4 && half > 0, "{killed} killed, {half} half done");
}

fn copy(env: &TestEnv, target: &Path, source: &Path) -> std::process::Output {
    let args = ["ensure", "file"].map(PathBuf::from);
    let mut command = env.command(args);
    command.arg(target).arg("directory").arg("--source").arg(source).arg("--purge");
    command.args(["--mode", "0644"]).output().unwrap()
}

/// Nothing of what only root may read gets into a copy, whatever the user who
/// owns the source does to it meanwhile.
#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn a_source_that_is_swapped_gives_no_secret_away() {
    let Some(env) = lured() else { return };
    env.write("secret/passwd", "secret");
    env.write("secret/sub/passwd", "secret");
    crate::planted::chmod(&env.path("secret"), 0o700);
    env.write("home/app/sub/passwd", "theirs");
    env.write("home/app/f", "theirs");
    for (target, name) in [
        ("../secret", "home/to-secret"),
        ("../../secret", "home/app-lure"),
        ("../secret/passwd", "home/file-lure"),
    ] {
        symlink(target, env.path(name)).unwrap();
        give_away(&env.path(name));
    }
    for name in ["home/app/sub", "home/app/sub/passwd", "home/app/f"] {
        give_away(&env.path(name));
    }
    let swaps = [
        ("home/app", "home/to-secret"),
        ("home/app/sub", "home/app-lure"),
        ("home/app/f", "home/file-lure"),
    ];
    let mut outcomes = [0, 0];
    for (one, other) in swaps {
        while_swapping(&env.path(one), &env.path(other), || {
            for round in 0..attempts() {
                let output = copy(&env, &env.path("copy"), &env.path("home/app"));
                outcomes[usize::from(output.status.success())] += 1;
                // Only the copy: what is swapped cannot be walked.
                if env.path("copy").exists() {
                    for place in snapshot_of_content(&env.path("copy")).keys() {
                        let text = fs::read_to_string(env.path("copy").join(place));
                        let is_secret = text.unwrap_or_default().contains("secret");
                        assert!(!is_secret, "{one}, round {round}: {}", place.display());
                    }
                }
                let _ = fs::remove_dir_all(env.path("copy"));
            }
        });
    }
    println!("{} runs refused, {} done, no secret copied", outcomes[0], outcomes[1]);
    assert!(outcomes[0] > 0 && outcomes[1] > 0, "the swap never came in between");
}

/// Nothing outside of the target is written or removed, whatever the user who
/// owns it does to it meanwhile.
#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn a_target_that_is_swapped_leads_root_nowhere_else() {
    let Some(env) = lured() else { return };
    env.write("src/passwd", "copied");
    env.write("src/sub/passwd", "copied");
    env.write("src/sub/more", "copied");
    let swaps = [("home/app", "home/lure"), ("home/app/sub", "home/sub-lure")];
    symlink("../../etc", env.path("home/sub-lure")).unwrap();
    give_away(&env.path("home/sub-lure"));
    // By its descriptor, whatever its name is now.
    let open = fs::File::open(env.path("home/app")).unwrap();
    let real = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    let mut outcomes = [0, 0];
    for (one, other) in swaps {
        while_swapping(&env.path(one), &env.path(other), || {
            for round in 0..attempts() {
                // Something to purge, and a directory that the user can swap.
                let _ = fs::create_dir(real.join("sub"));
                let _ = fs::write(real.join("foreign"), "");
                give_away_if_there(&real.join("sub"));
                let output = copy(&env, &env.path("home/app"), &env.path("src"));
                outcomes[usize::from(output.status.success())] += 1;
                let is_same = is_untouched(&env);
                assert!(is_same, "{one}, round {round}: {}", said(&output));
            }
        });
    }
    println!("{} runs refused, {} done, nothing else touched", outcomes[0], outcomes[1]);
    assert!(outcomes[0] > 0, "the swap never came in between");
}

fn give_away_if_there(path: &Path) {
    let user = Some(crate::planted::NOBODY);
    let _ = std::os::unix::fs::lchown(path, user, user);
}
