//! Files that are mount points, as container runtimes make of `/etc/hosts`.

use std::process::Command;

use crate::TestEnv;

/// Runs a script in a mount namespace of its own, in which `[DIR]/f` is a mount
/// of a file elsewhere; the machine never sees the mount. What it printed, or
/// `None` where nothing can be mounted.
fn with_mounted_file(env: &TestEnv, elsewhere: &str, script: &str) -> Option<String> {
    if ccm_testkit::lacks_root() {
        return None;
    }
    let dir = env.dir().display();
    let script = format!(
        "cd {dir} && {elsewhere} && printf old > there/real && chmod 644 there/real && : > f && \
         mount --bind there/real f && echo mounted && ccm() {{ {ccm} \"$@\"; echo \"exit $?\"; }} \
         && {script}",
        ccm = env!("CARGO_BIN_EXE_ccm"),
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env("CCM_STATE_DIR", env.state())
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let Some(text) = text.strip_prefix("mounted\n") else {
        ccm_testkit::not_run("nothing can be mounted in this sandbox");
        return None;
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    Some(env.steady(text))
}

const SAME_FILE_SYSTEM: &str = "mkdir there";
const OTHER_FILE_SYSTEM: &str = "mkdir there && mount -t tmpfs none there";

#[test]
fn a_mount_point_cannot_be_replaced_and_the_preview_knows() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{file: [{'[DIR]/f': {content: new, mode: '0644', [ME]}}]}]}");
    let script = "ccm apply manifest.yaml --noop; ccm apply manifest.yaml; ccm ensure file $PWD/f \
                  absent --noop; ccm ensure file $PWD/f absent; cat there/real; ls -A";
    let Some(text) = with_mounted_file(&env, SAME_FILE_SYSTEM, script) else { return };
    let refused = "cannot replace [DIR]/f: it is a mount point\n        hint: set `write: \
                   in_place` to write into it";
    let kept = "cannot remove [DIR]/f: another file system is mounted there\n        hint: \
                unmount it first";
    // Only the failures at the end of `apply` are shown in full.
    assert_eq!(text.matches(refused).count(), 2, "{text}");
    assert_eq!(text.matches(kept).count(), 2, "{text}");
    assert_eq!(text.matches("exit 0").count(), 0, "{text}");
    assert!(text.ends_with("oldf\nmanifest.yaml\nthere\n"), "nothing is left behind: {text}");
}

#[test]
fn content_is_written_into_a_mount_point() {
    for elsewhere in [SAME_FILE_SYSTEM, OTHER_FILE_SYSTEM] {
        let env = TestEnv::new();
        env.manifest(
            "ccm: {resources: [{file: [{'[DIR]/f': {content: new, write: in_place, mode: '0600', \
             [ME]}}]}]}",
        );
        let script = "stat -c %i f > before; ccm apply manifest.yaml --noop; cat there/real; echo; \
                      ccm apply manifest.yaml; cat there/real; echo; stat -c %a f; \
                      ccm apply manifest.yaml; stat -c %i f | cmp - before && \
                      mountpoint -q f && echo still mounted; rm before; ls -A";
        let Some(text) = with_mounted_file(&env, elsewhere, script) else { return };
        // What ccm prints is more than one word.
        let is_ours =
            |line: &&str| !line.is_empty() && (!line.contains(' ') || *line == "still mounted");
        let words: Vec<&str> = text.lines().filter(is_ours).collect();
        assert_eq!(text.matches("exit 0").count(), 3, "{text}");
        assert_eq!(
            words,
            ["old", "new", "600", "still mounted", "f", "manifest.yaml", "there"],
            "{text}"
        );
        assert!(text.contains("1 to change"), "{text}");
    }
}

/// In a container the directory is often read-only, and the mounted file is not.
#[test]
fn the_directory_need_not_be_writable() {
    let env = TestEnv::new();
    let script = "mount --bind ro ro && mount -o remount,bind,ro ro && \
                  mount --bind there/real ro/f && \
                  for noop in --noop ''; do ccm ensure file $PWD/ro/f --content new --write in_place \
                  $noop; done; cat there/real";
    let elsewhere = "mkdir there ro && : > ro/f";
    let Some(text) = with_mounted_file(&env, elsewhere, script) else { return };
    assert_eq!(text.matches("exit 0").count(), 2, "{text}");
    assert!(text.ends_with("exit 0\nnew"), "{text}");
}
