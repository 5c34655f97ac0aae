//! `CCM_STRICT=1`: root reads nothing that another user can change.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::TestEnv;
use crate::planted::{chmod, give_away, shared_place};

/// Runs the command without and with strictness.
fn both(env: &TestEnv, args: &[&str]) -> [Output; 2] {
    [None, Some("1")].map(|strict| {
        let mut command = env.command(args);
        command.envs(strict.map(|value| ("CCM_STRICT", value)));
        if args[0] == "ensure" && args[1] == "api" {
            use std::io::Write as _;
            let mut child = command
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let request = r#"{"protocol":"io.choria.ccm.v1.resource.ensure.request","type":"exec","properties":{"name":"true"}}"#;
            let _ = child.stdin.take().unwrap().write_all(request.as_bytes());
            return child.wait_with_output().unwrap();
        }
        command.output().unwrap()
    })
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

const RESOURCES: &str = "ccm: {resources: [{exec: [{'true': {}}]}]}\n";

fn with_content(expression: &str) -> String {
    format!(
        "ccm: {{resources: [{{file: [{{'[DIR]/out': {{content: \"{{{{ {expression} }}}}\", \
         mode: '0644', [ME]}}}}]}}]}}\n"
    )
}

#[test]
fn everything_that_decides_what_root_does_is_checked() {
    let file = with_content("file('x/f')");
    let read_file = with_content("readFile('x/f')");
    let template = with_content("template('x/f.templ')");
    let jet = with_content("jet('x/f.jet')");
    let source = "ccm: {resources: [{file: [{'[DIR]/out': {source: x/f, mode: '0644', [ME]}}]}]}\n";
    let nested = "ccm: {resources: [{apply: [{x/f.yaml: {}}]}]}\n";
    let jet_file = "ccm: {resources_jet_file: x/f.jet}\n";
    let apply: &[&str] = &["apply", "manifest.yaml"];
    let scaffold: &[&str] = &["ensure", "scaffold", "[DIR]/out", "x"];
    let partials = "[[ render(\"_partials/p\", .) ]]";
    let resources_jet = "- exec: [{'true': {}}]\n";
    // What is read, its text, the manifest, the command.
    let cases: &[(&str, &str, &str, &[&str])] = &[
        (".env", "A=b\n", RESOURCES, apply),
        (".hiera", "data: {}\n", "", &["ensure", "exec", "true"]),
        ("x/f", "data: {}\n", RESOURCES, &["apply", "manifest.yaml", "--hiera", "x/f"]),
        (
            "x/f",
            "data: {}\n",
            RESOURCES,
            &["apply", "manifest.yaml", "--hiera", "file://[DIR]/x/f"],
        ),
        ("x/f", "a: 1\n", RESOURCES, &["apply", "manifest.yaml", "--facts", "x/f"]),
        ("x/f", "a: 1\n", "", &["ensure", "api", "pipe", "--data", "x/f"]),
        ("x/f", "text", "", &["ensure", "file", "[DIR]/out", "--content-file", "x/f"]),
        ("x/f", "text", &file, apply),
        ("x/f", "text", &read_file, apply),
        ("x/f.templ", "text", &template, apply),
        ("x/f.jet", "text", &jet, apply),
        ("x/f", "text", source, apply),
        ("x/f.yaml", RESOURCES, nested, apply),
        ("x/f.jet", resources_jet, jet_file, apply),
        ("x/f", "text", "", scaffold),
        ("x/_partials/p", "text", "", scaffold),
        ("x/m.yaml", RESOURCES, "", &["apply", "x/m.yaml"]),
        ("x/m.yaml", RESOURCES, "", &["validate", "x/m.yaml"]),
    ];
    for (name, text, manifest, args) in cases {
        // The file belongs to another user, or only its directory does, or only
        // the symlink to it.
        for how in ["file", "directory", "symlink"] {
            let Some(env) = shared_place() else { return };
            env.manifest(manifest);
            if name.contains("_partials") {
                env.write("x/t", partials);
            }
            let path = env.write(name, text);
            let is_top = path.parent() == Some(env.dir());
            match how {
                "file" => give_away(&path),
                "directory" if is_top => continue,
                "directory" => give_away(path.parent().unwrap()),
                _ if args.contains(&"scaffold") && !name.contains("_partials") => continue,
                _ => {
                    let real = path.with_extension("real");
                    fs::rename(&path, &real).unwrap();
                    std::os::unix::fs::symlink(real.file_name().unwrap(), &path).unwrap();
                    give_away(&path);
                }
            }
            let args = args.iter().map(|arg| arg.replace("[DIR]", env.dir().to_str().unwrap()));
            let args: Vec<String> = args.collect();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let what = format!("{how} {name} {args:?}");
            let [lenient, strict] = both(&env, &args);
            let words =
                if how == "symlink" { "belongs to user" } else { "writable by other users" };
            let (lenient_words, strict_words) = (said(&lenient), said(&strict));
            assert!(lenient.status.success(), "{what}: {lenient_words}");
            assert!(lenient_words.contains(words), "{what}: {lenient_words}");
            assert_eq!(strict.status.code(), Some(1), "{what}: {strict_words}");
            assert!(strict_words.contains(words), "{what}: {strict_words}");
        }
    }
}

/// Which partials are rendered may depend on facts, so all of them count.
#[test]
fn partials_that_nothing_renders_are_checked() {
    for (name, mode) in [("p", 0o666), ("deep/p", 0o646), ("", 0o777), ("deep", 0o757)] {
        let Some(env) = shared_place() else { return };
        env.write("x/t", "text");
        env.write("x/_partials/p", "text");
        env.write("x/_partials/deep/p", "text");
        let args = ["ensure", "scaffold", &env.path("out").display().to_string(), "x"];
        let [_, strict] = both(&env, &args);
        assert!(strict.status.success(), "{}", said(&strict));
        chmod(&env.path("x/_partials").join(name), mode);
        let [lenient, strict] = both(&env, &args);
        let words = "writable by other users";
        assert!(lenient.status.success() && said(&lenient).contains(words), "{}", said(&lenient));
        assert_eq!(strict.status.code(), Some(1), "{name}: {}", said(&strict));
        assert!(said(&strict).contains(words), "{name}: {}", said(&strict));
    }
}

#[test]
fn archives_by_file_urls_are_checked() {
    let Some(env) = shared_place() else { return };
    let source = env.write("x/f.tar", "text");
    give_away(&source);
    let url = format!("file://{}", source.display());
    let archive = |strict: &str| {
        let path = env.path(&format!("out{strict}.tar"));
        let mut command = env.command(["ensure", "archive"]);
        let output = command.arg(&path).arg(&url).env("CCM_STRICT", strict).output().unwrap();
        let words = said(&output);
        assert!(words.contains("writable by other users"), "{words}");
        (output.status.code(), path.exists())
    };
    assert_eq!(archive("0"), (Some(0), true));
    assert_eq!(archive("1"), (Some(1), false));
}

#[test]
fn what_is_roots_alone_is_read_without_a_word() {
    let Some(env) = shared_place() else { return };
    let sticky = env.path("x");
    fs::create_dir(&sticky).unwrap();
    chmod(&sticky, 0o1777);
    env.write("x/m.yaml", &with_content("file('f')"));
    env.write("x/f", "text");
    for output in both(&env, &["apply", "x/m.yaml"]) {
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

/// A session in which a file has changed; a command waits for that.
fn with_event(env: &TestEnv, session: &Path, directory_mode: u32) {
    let mut command = env.command(["ensure", "file", "--alias", "conf", "--content", "x"]);
    command.arg(env.path("f")).arg("--session").arg(session);
    assert!(command.output().unwrap().status.success());
    chmod(session, directory_mode);
}

fn waiting(env: &TestEnv, session: &Path, is_strict: bool) -> Output {
    let touched = format!("touch {}", env.path("ran").display());
    let mut command =
        env.command(["ensure", "exec", &touched, "--refresh-only", "-S", "file#conf"]);
    command.env("CCM_SESSION_STORE", session);
    command.envs(is_strict.then_some(("CCM_STRICT", "1")));
    command.output().unwrap()
}

#[test]
fn events_of_another_user_trigger_nothing() {
    let Some(env) = shared_place() else { return };
    let session = env.path("session");
    with_event(&env, &session, 0o1777);
    let trusted = waiting(&env, &session, true);
    assert!(trusted.status.success() && env.path("ran").exists(), "{trusted:?}");
    fs::remove_file(env.path("ran")).unwrap();
    for entry in fs::read_dir(&session).unwrap() {
        give_away(&entry.unwrap().path());
    }
    let strict = waiting(&env, &session, true);
    assert_eq!(strict.status.code(), Some(1), "{strict:?}");
    assert!(!env.path("ran").exists(), "a forged event ran a command");
    let lenient = waiting(&env, &session, false);
    assert!(lenient.status.success() && env.path("ran").exists(), "{lenient:?}");
    assert!(said(&lenient).contains("is writable by other users"), "{lenient:?}");
}

#[test]
fn sessions_of_another_user_are_refused() {
    let Some(env) = shared_place() else { return };
    let session = env.path("session");
    with_event(&env, &session, 0o777);
    let strict = waiting(&env, &session, true);
    assert_eq!(strict.status.code(), Some(1), "{strict:?}");
    assert!(said(&strict).contains("is writable by other users"), "{strict:?}");
    assert!(!env.path("ran").exists());
    chmod(&session, 0o700);
    give_away(&session);
    let strict = waiting(&env, &session, true);
    assert_eq!(strict.status.code(), Some(1), "{strict:?}");
    assert!(!env.path("ran").exists());
}
