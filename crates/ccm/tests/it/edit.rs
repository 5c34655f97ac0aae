//! `ccm edit`.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::Value;

use crate::TestEnv;

const SITE: &str = "\
# The site.
ccm:
  resources:
    - file:
        - defaults: {owner: root, group: root, mode: \"0600\"}
        - /etc/motd:
            content: hello  # greets
            mode: \"0644\"
        - /etc/issue:
            content: x
    - exec:
        - reload:
            command: 'true'
            subscribe: [\"file#/etc/motd\"]
";

fn site() -> TestEnv {
    let env = TestEnv::new();
    env.manifest(SITE);
    env
}

#[test]
fn a_dry_run_prints_the_diff_and_changes_nothing() {
    let env = site();
    insta::assert_snapshot!(env.ccm(["edit", "manifest.yaml", "--noop", "set", "file#/etc/motd", "mode", "0600"]), @r#"
    exit: 0
    --- stdout ---
    --- manifest.yaml
    +++ manifest.yaml
    @@ -5,7 +5,7 @@
             - defaults: {owner: root, group: root, mode: "0600"}
             - /etc/motd:
                 content: hello  # greets
    -            mode: "0644"
    +            mode: "0600"
             - /etc/issue:
                 content: x
         - exec:
    "#);
    assert_eq!(env.read("manifest.yaml"), SITE);
}

#[test]
fn every_verb_edits_the_file() {
    let env = site();
    for (args, wanted) in [
        (vec!["set", "file#/etc/motd", "mode", "0600"], "mode: \"0600\"\n"),
        (vec!["set", "file#/etc/issue", "content", "{{ 1 + 1 }}"], "content: \"{{ 1 + 1 }}\"\n"),
        (vec!["unset", "file#/etc/motd", "mode"], "content: hello  # greets\n        - /etc/issue"),
        (
            vec!["add", "package", "zsh", "ensure=latest"],
            "    - package:\n        - zsh:\n            ensure: latest\n",
        ),
        (vec!["mv", "package#zsh", "--before", "file#/etc/motd"], "  resources:\n    - package:\n"),
        (
            vec!["mv", "file#/etc/motd", "--after", "file#/etc/issue"],
            "{{ 1 + 1 }}\"\n        - /etc/motd:\n",
        ),
        (
            vec!["rename", "file#/etc/motd", "/etc/motd.d/a"],
            "subscribe: [\"file#/etc/motd.d/a\"]\n",
        ),
        (vec!["rm", "exec#reload"], "content: hello  # greets\n"),
    ] {
        let mut command = env.command(["edit", "manifest.yaml"]);
        let output = command.args(&args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = env.read("manifest.yaml");
        assert!(text.contains(wanted), "{args:?}: {text}");
        assert!(text.starts_with("# The site.\n"));
    }
    assert!(!env.read("manifest.yaml").contains("exec"));
    let again = env.ccm(["edit", "manifest.yaml", "set", "package#zsh", "ensure", "latest"]);
    insta::assert_snapshot!(again, @r"
    exit: 0
    --- stdout ---
    manifest.yaml already has this, nothing to change
    ");
}

#[test]
fn changes_as_json() {
    let env = site();
    let output = env.run([
        "edit",
        "manifest.yaml",
        "set",
        "file#/etc/motd",
        "content",
        "bye",
        "--json",
        "--noop",
    ]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["changes"][0]["range"], serde_json::json!([6, 21, 6, 26]));
    assert_eq!(json["changes"][0]["text"], "bye");
    assert_eq!((json["changed"].as_bool(), json["noop"].as_bool()), (Some(true), Some(true)));
    assert!(json["diff"].as_str().unwrap().contains("+            content: bye  # greets\n"));
    assert_eq!(env.read("manifest.yaml"), SITE);
}

#[test]
fn the_file_keeps_its_mode_and_nothing_is_left_beside_it() {
    let env = site();
    let path = env.path("manifest.yaml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let before = std::fs::metadata(&path).unwrap();
    assert!(env.run(["edit", "manifest.yaml", "rm", "exec#reload"]).status.success());
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!(
        (before.mode(), before.uid(), before.gid()),
        (after.mode(), after.uid(), after.gid())
    );
    assert_eq!(std::fs::read_dir(env.dir()).unwrap().count(), 1);
}

#[test]
fn an_owner_other_than_the_caller_stays() {
    if !nix::unistd::geteuid().is_root() {
        ccm_testkit::not_run("only root can give files away");
        return;
    }
    let env = site();
    let path = env.path("manifest.yaml");
    std::os::unix::fs::chown(&path, Some(12345), Some(12346)).unwrap();
    assert!(env.run(["edit", "manifest.yaml", "rm", "exec#reload"]).status.success());
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!((after.uid(), after.gid()), (12345, 12346));
}

#[test]
fn mistakes_are_named() {
    let env = site();
    insta::assert_snapshot!(env.ccm(["edit", "manifest.yaml", "rm", "file#/etc/mot"]), @r"
    exit: 1
    --- stderr ---
    error: cannot edit manifest.yaml: file#/etc/mot is not in this manifest
    hint: did you mean `file#/etc/motd`?
    ");
    insta::assert_snapshot!(env.ccm(["edit", "manifest.yaml", "set", "file#/etc/motd", "contnet", "x"]), @r"
    exit: 1
    --- stderr ---
    error: cannot edit manifest.yaml: file has no property `contnet`
    hint: did you mean `content`?
    ");
    insta::assert_snapshot!(env.ccm(["edit", "manifest.yaml", "mv", "exec#reload", "--before", "file#/etc/motd"]), @r"
    exit: 1
    --- stderr ---
    error: cannot edit manifest.yaml: exec#reload refers to file#/etc/motd
    hint: resources run in the order written, so the referring resource must come later
    ");
    assert_eq!(env.run(["edit", "manifest.yaml"]).status.code(), Some(64));
    assert_eq!(env.run(["edit", "manifest.yaml", "mv", "exec#reload"]).status.code(), Some(64));
    assert_eq!(
        env.run(["edit", "manifest.yaml", "add", "file", "/x", "mode"]).status.code(),
        Some(64)
    );
    assert_eq!(env.read("manifest.yaml"), SITE);
}

/// What others need does not go, and what is right does not become wrong, unless
/// that is asked for.
#[test]
fn edits_that_give_the_manifest_new_errors_are_refused() {
    let env = site();
    insta::assert_snapshot!(env.ccm(["edit", "manifest.yaml", "rename", "file#/etc/motd", "defaults"]), @r"
    exit: 1
    --- stderr ---
    error: cannot edit manifest.yaml: `defaults` is not the name of a resource
    hint: in a block it holds the properties that all its resources share
    ");
    for (args, words) in [
        (&["rm", "file#/etc/motd"][..], "file#/etc/motd"),
        (&["set", "file#/etc/motd", "mode", "0999"], "mode"),
        (&["set", "exec#reload", "subscribe", "[file#/etc/none]"], "file#/etc/none"),
        (&["add", "file", "etc/relative", "content=x"], "etc/relative"),
        (&["rename", "file#/etc/issue", "issue"], "issue"),
    ] {
        for noop in [&["--noop"][..], &[]] {
            let mut command = env.command(["edit", "manifest.yaml"]);
            let output = command.args(args).args(noop).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
            let refused = "manifest.yaml was not edited: the manifest would have ";
            assert!(said.contains(refused) && said.contains("or use --force"), "{args:?}: {said}");
            assert!(
                said.contains(words) && said.contains(" --> manifest.yaml:"),
                "{args:?}: {said}"
            );
            assert!(output.stdout.is_empty(), "{args:?}");
            assert_eq!(env.read("manifest.yaml"), SITE);
        }
        let mut command = env.command(["edit", "manifest.yaml", "--force"]);
        assert!(command.args(args).output().unwrap().status.success(), "{args:?}");
        assert_ne!(env.read("manifest.yaml"), SITE, "{args:?}");
        env.write("manifest.yaml", SITE);
    }
}

/// Errors that are there already do not stand in the way, also when what they
/// are about gets another name.
#[test]
fn errors_that_are_there_already_are_no_reason() {
    let env = site();
    let broken = SITE.replace("content: x", "contnet: x");
    for args in [
        &["set", "file#/etc/motd", "mode", "0600"][..],
        &["rename", "file#/etc/issue", "/etc/issue.net"],
        &["unset", "file#/etc/motd", "content"],
        &["mv", "file#/etc/issue", "--before", "file#/etc/motd"],
    ] {
        env.write("manifest.yaml", &broken);
        let mut command = env.command(["edit", "manifest.yaml"]);
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    env.write("manifest.yaml", &broken);
    let output = env.run(["edit", "manifest.yaml", "rm", "file#/etc/motd"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(!said.contains("contnet"), "{said}");
}

#[test]
fn files_that_cannot_be_edited_stay_as_they_are() {
    let env = TestEnv::new();
    let laughs: String =
        (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |mut text, n| {
            let list = vec![format!("*a{}", n - 1); 10].join(", ");
            text.push_str(&format!("a{n}: &a{n} [{list}]\n"));
            text
        });
    let large = format!("ccm:\n  resources: []\n# {}\n", "x".repeat(16 << 20));
    for (name, text) in [
        ("list.yaml", "- a\n"),
        ("empty.yaml", ""),
        ("data.yaml", "data: {a: 1}\n"),
        ("broken.yaml", "ccm: [\n"),
        ("twice.yaml", "ccm: {}\nccm: {}\n"),
        ("none.yaml", "ccm: {}\n"),
        ("jet.yaml", "ccm: {resources_jet_file: r.jet}\n"),
        ("laughs.yaml", &*laughs),
        ("deep.yaml", &*format!("ccm: {}", "[".repeat(10_000))),
        ("large.yaml", &*large),
        ("documents.yaml", "ccm: {resources: []}\n---\nccm: {}\n"),
    ] {
        env.write(name, text);
        let output = env.run(["edit", name, "add", "package", "zsh"]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {stderr}");
        assert!(stderr.starts_with("error: "), "{name}: {stderr}");
        assert_eq!(env.read(name), text, "{name}");
    }
    std::fs::write(env.path("latin.yaml"), b"ccm: \xe9\n").unwrap();
    assert_eq!(env.run(["edit", "latin.yaml", "rm", "a#b"]).status.code(), Some(1));
    assert_eq!(env.run(["edit", "missing.yaml", "rm", "a#b"]).status.code(), Some(1));
    assert_eq!(env.run(["edit", ".", "rm", "a#b"]).status.code(), Some(1));
}

#[test]
fn symlinks_are_not_followed() {
    let env = site();
    symlink("manifest.yaml", env.path("link.yaml")).unwrap();
    insta::assert_snapshot!(env.ccm(["edit", "link.yaml", "rm", "exec#reload"]), @r"
    exit: 1
    --- stderr ---
    error: cannot edit link.yaml: it is a symlink
    hint: give the path that the symlink points to
    ");
    assert_eq!(env.read("manifest.yaml"), SITE);
    assert!(env.path("link.yaml").is_symlink());
}

#[test]
fn without_permission_nothing_changes() {
    if !nix::unistd::geteuid().is_root() {
        ccm_testkit::not_run("another user is needed");
        return;
    }
    let env = site();
    let ccm = env.copy_of_ccm();
    std::fs::set_permissions(&ccm, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(env.dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = || {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&ccm);
        command.args(["edit", "manifest.yaml", "rm", "exec#reload"]).current_dir(env.dir());
        command.env("CCM_STATE_DIR", env.state()).output().unwrap()
    };
    // The directory cannot be written to.
    let output = run();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot write") && stderr.contains("ermission denied"), "{stderr}");
    assert_eq!(env.read("manifest.yaml"), SITE);
    // The file cannot be read.
    std::fs::set_permissions(env.path("manifest.yaml"), std::fs::Permissions::from_mode(0o600))
        .unwrap();
    let output = run();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("cannot read manifest.yaml"), "{stderr}");
}
