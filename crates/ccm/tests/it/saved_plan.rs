//! Saved plans at the command line: made, shown, compared, applied, refused.

use ccm_testkit::snapshot_of_content;

use crate::env::TestEnv;

fn planned() -> TestEnv {
    let env = TestEnv::new();
    env.manifest(
        "ccm:\n  resources:\n    - file:\n        - [DIR]/d: {ensure: directory, mode: \"0755\", \
         [ME]}\n        - [DIR]/d/f: {content: \"{{ readFile('text') }}\", mode: \"0644\", \
         [ME], tags: [web]}\n        - [DIR]/gone: {ensure: absent}\n",
    );
    env.write("text", "one\n");
    env.write("gone", "x");
    let output = env.run(["plan", "manifest.yaml", "--out", "web.plan"]);
    assert!(output.status.success(), "{output:?}");
    env
}

fn refused(env: &TestEnv, args: &[&str]) -> String {
    let before = snapshot_of_content(env.dir());
    let output = env.command(["apply"]).args(args).output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(snapshot_of_content(env.dir()), before, "something was changed: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A source that is gone is in the plan. One that became something else is not
/// what was planned.
#[test]
fn a_source_that_is_no_longer_a_file_makes_a_plan_stale() {
    let env = planned();
    std::fs::remove_file(env.path("text")).unwrap();
    std::fs::create_dir(env.path("text")).unwrap();
    let error = refused(&env, &["web.plan"]);
    assert!(error.contains("/text: is no longer a regular file"), "{error}");
    std::fs::remove_dir(env.path("text")).unwrap();
    nix::unistd::mkfifo(&env.path("text"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    let error = refused(&env, &["web.plan"]);
    assert!(error.contains("/text: is no longer a regular file"), "{error}");
    std::fs::remove_file(env.path("text")).unwrap();
    let output = env.run(["apply", "web.plan", "--no-report"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(env.read("d/f"), "one\n");
}

#[test]
fn a_plan_is_private_and_applied_once() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = planned();
    let mode = std::fs::metadata(env.path("web.plan")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    insta::assert_snapshot!(env.ccm(["plan", "show", "web.plan"]), @"
    exit: 0
    --- stdout ---
    Plan for manifest.yaml on [HOST]

      + file#[DIR]/d  directory, [ME], mode 0755
      + file#[DIR]/d/f  content +1, [ME], mode 0644
            @@ -0,0 +1 @@
            +one
      - file#[DIR]/gone

    2 to create, 1 to remove
    ");
    let output = env.run(["apply", "web.plan", "--no-report"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(env.read("d/f"), "one\n");
    assert!(!env.path("gone").exists());
    let error = refused(&env, &["web.plan"]);
    assert!(error.contains("the plan is stale: nothing was changed"), "{error}");
    assert!(error.contains("/d/f: ensure is present, was absent when planned"), "{error}");
    // The name says nothing; the first bytes do.
    std::fs::rename(env.path("web.plan"), env.path("manifest.yml")).unwrap();
    assert!(refused(&env, &["manifest.yml"]).contains("stale"));
}

#[test]
fn a_plan_needs_none_of_its_sources() {
    let env = planned();
    std::fs::remove_file(env.path("manifest.yaml")).unwrap();
    std::fs::remove_file(env.path("text")).unwrap();
    let output = env.run(["apply", "web.plan"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(env.read("d/f"), "one\n");
}

#[test]
fn what_has_changed_is_named() {
    for (path, text, words) in [
        ("text", "two\n", "/text: has changed since the plan was made"),
        ("gone", "y", "/gone: content has changed"),
        ("d", "", "/d: was planned as create, now failed"),
    ] {
        let env = planned();
        env.write(path, text);
        let error = refused(&env, &["web.plan"]);
        assert!(error.contains(words), "{path}: {error}");
        assert!(error.contains("hint: make a new plan"), "{error}");
    }
}

#[test]
fn a_plan_that_is_cut_or_flipped_changes_nothing() {
    let env = planned();
    let whole = std::fs::read(env.path("web.plan")).unwrap();
    let step = whole.len() / 40;
    for end in (0..whole.len()).step_by(step) {
        std::fs::write(env.path("web.plan"), &whole[..end]).unwrap();
        refused(&env, &["web.plan"]);
    }
    for at in (0..whole.len()).step_by(97) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(env.path("web.plan"), &flipped).unwrap();
        refused(&env, &["web.plan"]);
    }
}

#[test]
fn plans_that_do_not_fit_are_refused() {
    let env = planned();
    for (args, words) in [
        (&["web.plan", "--only", "web"][..], "--only cannot be used with a saved plan"),
        (&["web.plan", "--skip", "web"], "--skip cannot be used with a saved plan"),
        (&["web.plan", "--fact", "a=b"], "--fact cannot be used with a saved plan"),
        (&["web.plan", "--max-age", "1ns"], "old, and the limit is"),
    ] {
        let error = refused(&env, args);
        assert!(error.contains(words), "{args:?}: {error}");
    }
    let bytes = std::fs::read(env.path("web.plan")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let signed = |body: &str| {
        let digest = ccm_host::Digest::of(body.as_bytes());
        std::fs::write(env.path("web.plan"), format!("{body}\n{digest}\n")).unwrap();
    };
    let at = body.find("\"id\":\"").unwrap() + 6;
    signed(&format!("{}x{}", &body[..at], &body[at..]));
    let error = refused(&env, &["web.plan"]);
    assert!(error.contains("the plan was made for"), "{error}");
    let output = env.run(["apply", "web.plan", "--any-host", "--noop"]);
    assert!(output.status.success(), "{output:?}");
    signed(&body.replacen("ccm-plan 1", "ccm-plan 2", 1));
    let error = refused(&env, &["web.plan"]);
    assert!(error.contains("format 2, and this ccm reads format 1"), "{error}");
}

#[test]
fn plans_are_compared() {
    let env = planned();
    env.write("text", "two\n");
    env.run(["apply", "manifest.yaml", "--only", "file#[DIR]/d"]);
    env.run(["plan", "manifest.yaml", "--out", "later.plan"]);
    insta::assert_snapshot!(env.ccm(["plan", "diff", "web.plan", "later.plan"]), @"
    exit: 0
    --- stdout ---
    file#[DIR]/d: create → stable
      was
        + file#[DIR]/d  directory, [ME], mode 0755
    file#[DIR]/d/f: create
      was
        + file#[DIR]/d/f  content +1, [ME], mode 0644
              @@ -0,0 +1 @@
              +one
      now
        + file#[DIR]/d/f  content +1, [ME], mode 0644
              @@ -0,0 +1 @@
              +two
    ");
    let same = env.run(["plan", "diff", "web.plan", "web.plan", "--json"]);
    assert_eq!(
        String::from_utf8_lossy(&same.stdout).replace(char::is_whitespace, ""),
        "{\"differences\":[]}"
    );
    insta::assert_snapshot!(env.ccm(["plan", "show", "manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: manifest.yaml is not a saved plan
    hint: make a new plan with `ccm plan MANIFEST --out FILE`
    ");
}

/// A saved plan that somebody has written by hand puts nothing anywhere else.
#[test]
fn plans_do_not_leave_their_directory() {
    let env = planned();
    let whole = std::fs::read(env.path("web.plan")).unwrap();
    let text = String::from_utf8(whole).unwrap();
    let (body, _) = text.trim_end().rsplit_once('\n').unwrap();
    let empty = ccm_host::Digest::of(b"");
    for path in ["../../../../../../[DIR]/planted", "/../../[DIR]/planted", "planted"] {
        let path = path.replace("[DIR]", env.dir().to_str().unwrap());
        let file = format!(
            "{{\"path\":\"{path}\",\"sha256\":\"{empty}\",\"mode\":420,\"content\":\"\"}},"
        );
        let body = body.replacen("\"sources\":[", &format!("\"sources\":[{file}"), 1);
        let digest = ccm_host::Digest::of(body.as_bytes());
        std::fs::write(env.path("web.plan"), format!("{body}\n{digest}\n")).unwrap();
        let error = refused(&env, &["web.plan"]);
        assert!(error.contains("the saved plan is damaged"), "{path}: {error}");
    }
    assert!(!env.path("planted").exists());
    // Content that is not what its digest says is no better.
    let at = body.find("\"content\":\"").unwrap() + 11;
    let end = at + body[at..].find('"').unwrap();
    let body = format!("{}eA=={}", &body[..at], &body[end..]);
    let digest = ccm_host::Digest::of(body.as_bytes());
    std::fs::write(env.path("web.plan"), format!("{body}\n{digest}\n")).unwrap();
    assert!(refused(&env, &["web.plan"]).contains("the saved plan is damaged"));
}

#[test]
fn a_plan_is_not_a_manifest_and_a_pipe_is_neither() {
    let env = planned();
    for command in ["plan", "validate", "graph"] {
        let shown = env.ccm([command, "web.plan"]);
        assert!(shown.contains("web.plan is a saved plan, not a manifest"), "{shown}");
        assert!(shown.contains("`ccm plan show`"), "{shown}");
    }
    rustix::fs::mknodat(
        rustix::fs::CWD,
        env.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for args in
        [&["apply", "pipe"][..], &["plan", "show", "pipe"], &["plan", "diff", "pipe", "web.plan"]]
    {
        let output = env.command(args.iter().copied()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("is a socket, FIFO or device, not a regular file"), "{error}");
    }
}

/// A symlink that leads elsewhere is named, and nothing is changed behind it.
#[test]
fn symlinks_that_lead_elsewhere_are_named() {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("one")).unwrap();
    std::fs::create_dir(env.path("two")).unwrap();
    std::os::unix::fs::symlink("one", env.path("current")).unwrap();
    env.manifest(
        "ccm: {resources: [{file: [{[DIR]/current/f: {content: x, [ME], mode: \"0644\"}}]}]}\n",
    );
    assert!(env.run(["plan", "manifest.yaml", "--out", "web.plan"]).status.success());
    std::fs::remove_file(env.path("current")).unwrap();
    std::os::unix::fs::symlink("two", env.path("current")).unwrap();
    let error = env.steady(&refused(&env, &["web.plan"]));
    let words = "file#[DIR]/current/f: symlink [DIR]/current is two, was one when planned";
    assert!(error.contains(words), "{error}");
}
