//! The mistakes that people make, and what ccm says to each.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::TestEnv;

/// What a manifest gets: a title, its text, and what the errors contain.
const MANIFESTS: &[(&str, &str, &[&str])] = &[
    (
        "an unquoted placeholder",
        "ccm:\n  resources:\n    - file:\n        - /a:\n            owner: {{ Data.owner }}\n",
        &["unquoted placeholder", "m.yaml:5:20", r#"quote the value: owner: "{{ Data.owner }}""#],
    ),
    (
        "a tab",
        "ccm:\n  resources:\n\t- exec: []\n",
        &["a tab in the indentation", "m.yaml:3:1", "indent with spaces"],
    ),
    (
        "a colon in a value",
        "ccm:\n  resources:\n    - exec:\n        - x:\n            command: echo port: 8080\n",
        &["unquoted value contains `: `", "m.yaml:5:22", r#"quote the value: command: "…""#],
    ),
    (
        "a quote without an end",
        "ccm:\n  resources:\n    - exec:\n        - x:\n            command: \"echo a\n        - y:\n            command: b\n",
        &["this quote is never closed", "m.yaml:5:22", r#"add the closing ""#],
    ),
    (
        "notify",
        "ccm: {resources: [{file: [{/a: {ensure: absent, notify: [\"exec#x\"]}}]}]}",
        &["unknown property `notify`", "`subscribe` with the name of this one"],
    ),
    (
        "cron jobs",
        "ccm: {resources: [{cron: [{backup: {}}]}]}",
        &["unknown resource type `cron`", "available types: apply, archive, ", "/etc/cron.d"],
    ),
    (
        "a misspelled type",
        "ccm: {resources: [{pacakge: [{zsh: {}}]}]}",
        &["unknown resource type `pacakge`", "did you mean `package`?"],
    ),
    (
        "a symlink by a command",
        "ccm: {resources: [{exec: [{/bin/ln -sfn b /a: {}}, {x: {command: ln --symbolic b /c}}, \
         {y: {provider: shell, command: 'cd /d && ln -s b c'}}]}]}",
        &[
            "warning: exec#/bin/ln -sfn b /a: name: a symlink that a command makes",
            "exec#x: command: a symlink",
            "exec#y: command: a symlink",
            "use `file` with `ensure: link` and `target`",
        ],
    ),
    (
        "properties of other tools",
        "ccm: {resources: [{file: [{/a: {ensure: absent, backup: true, loop: [1], become: true}}]}]}",
        &["see `ccm history`", "write `for_each` beside its type", "`exec` has `user`"],
    ),
    (
        "a pipe without a shell",
        "ccm: {resources: [{exec: [{x: {command: ls | wc}}]}]}",
        &["warning: exec#x: command: `|` is passed to the program", "set `provider: shell`"],
    ),
    (
        "a variable without a shell",
        "ccm: {resources: [{exec: [{echo $HOME: {}}]}]}",
        &["name: `$` is passed to the program", "set `provider: shell`"],
    ),
];

#[test]
fn mistakes_in_manifests_are_explained() {
    let env = TestEnv::new();
    for (title, text, wanted) in MANIFESTS {
        env.write("m.yaml", text);
        let said = String::from_utf8(env.run(["validate", "m.yaml"]).stderr).unwrap();
        for words in *wanted {
            assert!(said.contains(words), "{title}: {words:?} is not in\n{said}");
        }
    }
}

#[test]
fn what_is_quoted_or_meant_for_a_shell_gets_no_warning() {
    let env = TestEnv::new();
    for command in ["ln /a /b", "find /tmp -name '*.txt'", "echo 'a | b' \\$HOME", "echo 5>4 a=b#c"]
    {
        let text = format!("ccm: {{resources: [{{exec: [{{x: {{command: {command:?}}}}}]}}]}}");
        env.write("m.yaml", &text);
        let output = env.run(["validate", "m.yaml"]);
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{command}");
    }
    env.write("m.yaml", "ccm: {resources: [{exec: [{x: {command: ls | wc, provider: shell}}]}]}");
    assert_eq!(String::from_utf8(env.run(["validate", "m.yaml"]).stderr).unwrap(), "");
}

#[test]
fn flags_and_types_of_other_tools_are_explained() {
    let env = TestEnv::new();
    env.write("m.yaml", "ccm: {resources: [{exec: [{/bin/true: {}}]}]}");
    for (args, wanted) in [
        (&["apply", "m.yaml", "--dry-run"][..], ["unknown option `--dry-run`", "use `--noop`"]),
        (&["apply", "m.yaml", "--check"], ["unknown option `--check`", "`ccm plan`"]),
        (&["apply", "m.yaml", "--nop"], ["unknown option `--nop`", "did you mean `--noop`?"]),
        (&["ensure", "cron", "backup"], ["unknown resource type `cron`", "/etc/cron.d"]),
        (&["ensure", "fiel", "/a"], ["unknown resource type `fiel`", "did you mean `file`?"]),
        (&["aply", "m.yaml"], ["unknown command `aply`", "did you mean `apply`?"]),
    ] {
        let output = env.command(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{said}");
        for words in wanted {
            assert!(said.contains(words), "{args:?}: {words:?} is not in\n{said}");
        }
        assert!(said.contains("\nhint: "), "{said}");
    }
}

#[test]
fn failures_of_resources_say_what_to_do() {
    let env = TestEnv::new();
    let path = |name: &str| env.path(name).display().to_string();
    std::fs::write(env.path("page.tar.gz"), "<html>not found</html>").unwrap();
    for (args, wanted) in [
        (
            vec!["ensure".into(), "file".into(), path("none/a"), "--content".into(), "x".into()],
            [
                format!("{} is not a directory: it does not exist", path("none")),
                "ensure: directory".into(),
            ],
        ),
        (
            vec![
                "ensure".into(),
                "file".into(),
                path("a"),
                "--content=x".into(),
                "--owner=no-such-user".into(),
            ],
            ["user `no-such-user`: it does not exist".into(), "numeric ID".to_owned()],
        ),
        (
            vec![
                "ensure".into(),
                "archive".into(),
                path("copy.tar.gz"),
                format!("file://{}", path("page.tar.gz")),
                format!("--extract={}", path("out")),
            ],
            ["not a gzip file (22 bytes)".into(), "may have sent an error page".to_owned()],
        ),
    ] {
        let output = env.command(&args).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        for words in wanted {
            assert!(said.contains(&words), "{args:?}: {words:?} is not in\n{said}");
        }
        assert!(said.contains("hint: "), "{said}");
    }
}

/// A web server without TLS answers a TLS handshake with 400, in plain text.
#[test]
fn an_https_url_to_a_plain_port_is_explained() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
            // Closed by the client, so that it is not reset before it has read.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let env = TestEnv::new();
    let url = format!("https://{address}/a.tar.gz");
    let archive = env.path("a.tar.gz").display().to_string();
    for args in [&["ensure", "archive", &archive, &url][..], &["validate", &url]] {
        let output = env.command(args).output().unwrap();
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let reason = "the TLS handshake failed: the server did not respond with TLS";
        assert!(said.contains(&format!("cannot download {url}: {reason}")), "{said}");
        assert!(said.contains("hint: if the server uses plain HTTP, write http://"), "{said}");
        assert!(!said.contains("InvalidContentType"), "{said}");
    }
    assert!(!env.path("a.tar.gz").exists());
}
