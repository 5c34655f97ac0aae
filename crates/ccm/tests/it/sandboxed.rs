//! Kernels and sandboxes without `openat2`.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use ccm_testkit::{OPENAT2_ERRORS, snapshot_of_content, without_openat2};

use crate::TestEnv;

/// Runs ccm, or a program in its place, in the sandbox.
fn sandboxed(env: &TestEnv, errno: i32, args: &[&str]) -> Option<Output> {
    let plain = env.command(args);
    let mut command = without_openat2(errno, Path::new(plain.get_program()), env.state())?;
    command.args(plain.get_args()).current_dir(env.dir()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Some(command.output().unwrap())
}

fn example(env: &TestEnv) {
    env.write("templates/app.conf", "port = [[ data.port ]]\n");
    env.write("templates/sub/deep/f", "deep\n");
    env.write("target/stale", "purged\n");
    env.write("outside/kept", "kept\n");
    symlink("../outside", env.path("target/away")).unwrap();
    env.write("gone/a/b/c", "removed\n");
    symlink("../../outside", env.path("gone/a/link")).unwrap();
    env.write("tree/etc/app", "extracted\n");
    let tar = Command::new("tar").current_dir(env.dir()).args(["-czf", "app.tgz", "tree"]).status();
    assert!(tar.unwrap().success());
    env.manifest(
        r#"
data: {port: 8080}
ccm:
  resources:
    - scaffold:
        - [DIR]/target: {source: templates, purge: true}
    - archive:
        - [DIR]/copy.tgz:
            {url: "file://[DIR]/app.tgz", extract_parent: "[DIR]/extracted", cleanup: true,
             creates: "[DIR]/extracted/tree", [ME]}
    - file:
        - [DIR]/gone: {ensure: absent, force: true}
        - [DIR]/new: {ensure: present, content: "new\n", mode: "0600", [ME]}
"#,
    );
}

#[test]
fn every_type_works_where_openat2_does_not() {
    let mut expected = None;
    for (name, errno) in OPENAT2_ERRORS {
        let env = TestEnv::new();
        example(&env);
        for (command, words) in [("plan", "to create"), ("apply", "created"), ("apply", "4 stable")]
        {
            let Some(output) = sandboxed(&env, errno, &[command, "manifest.yaml"]) else { return };
            let said = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            assert!(output.status.success() && said.contains(words), "{name}: {command}: {said}");
        }
        assert_eq!(env.read("target/app.conf"), "port = 8080\n", "{name}");
        assert_eq!(env.read("outside/kept"), "kept\n", "{name}");
        assert!(!env.path("gone").exists() && !env.path("target/stale").exists(), "{name}");
        let made = ["target", "extracted"].map(|tree| snapshot_of_content(&env.path(tree)));
        assert!(!made[1].is_empty(), "{name}");
        assert_eq!(expected.get_or_insert_with(|| made.clone()), &made, "{name}");
    }
}
