//! What `ccm --version` shows is right wherever ccm is built.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs a program that must succeed, and returns what it prints.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_source_tarball_has_the_commit_of_its_clone() {
    let dir = tempfile::tempdir().unwrap();
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let clone = dir.path().join("clone");
    let tarball = dir.path().join("tarball");
    let plain = dir.path().join("plain");
    for tree in [&clone, &tarball, &plain] {
        fs::create_dir_all(tree.join("crates/ccm")).unwrap();
    }
    for file in ["crates/ccm/build.rs", "crates/ccm/commit", ".gitattributes"] {
        let from = project.join("../..").join(file);
        fs::copy(&from, clone.join(file)).unwrap();
        fs::copy(&from, plain.join(file)).unwrap();
    }
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        // 2026-03-01, the day after a February without a 29th.
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .env("GIT_AUTHOR_DATE", "1772323200 +0000")
            .env("GIT_COMMITTER_DATE", "1772323200 +0000");
        output(git.args(args).current_dir(&clone))
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message=first"]);
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    git(&["archive", "--output=../source.tar", "HEAD"]);
    output(
        Command::new("tar").args(["-xf", "source.tar", "-C", "tarball"]).current_dir(dir.path()),
    );

    let script = dir.path().join("build");
    let source = project.join("build.rs");
    output(Command::new("rustc").args(["--edition=2024", "-o"]).arg(&script).arg(source));
    let version = |tree: &Path, epoch: Option<&str>| {
        let mut build = Command::new(&script);
        build.current_dir(tree.join("crates/ccm")).env_remove("SOURCE_DATE_EPOCH");
        let said = output(build.envs(epoch.map(|epoch| ("SOURCE_DATE_EPOCH", epoch))));
        let value = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        (value("cargo:rustc-env=CCM_COMMIT="), value("cargo:rustc-env=CCM_DATE="))
    };
    let expected = (commit.trim().to_owned(), "2026-03-01".to_owned());
    assert_eq!(version(&clone, None), expected);
    assert_eq!(version(&tarball, None), expected);
    assert_eq!(version(&tarball, Some("0")).1, "1970-01-01");
    // Neither a clone nor a tarball of `git archive`.
    let (commit, _) = version(&plain, None);
    assert_eq!(commit, "unknown");
    assert!(fs::read_to_string(tarball.join("crates/ccm/commit")).unwrap().len() > 40);
}
