//! Directories rendered from templates.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::TestEnv;

/// Content and mode of everything in a directory.
pub(crate) fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut tree = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let mode = meta.permissions().mode() & 0o777;
            if meta.is_dir() {
                tree.insert(format!("{name}/"), format!("{mode:o}"));
                pending.push(path);
            } else {
                let content = fs::read(&path).map(|bytes| String::from_utf8_lossy(&bytes).into());
                tree.insert(
                    name,
                    format!("{mode:o} {}", content.unwrap_or_else(|_| String::new())),
                );
            }
        }
    }
    tree
}

/// A source with a partial, a nested file and an executable template.
fn example(env: &TestEnv) {
    env.write("templates/_partials/header", "# [[ .Data.app ]], made by ccm");
    env.write(
        "templates/app.conf",
        "[[ render(\"_partials/header\", .) ]]\nport = [[ data.port ]]\n",
    );
    env.write("templates/bin/run.sh", "#!/bin/sh\nexec [[ data.app ]]\n");
    env.write(
        "templates/sites/list",
        "[[ range i, s := data.sites ]][[ write(\"sites/\" + s, \"on\\n\") ]][[ end ]]x\n",
    );
    let script = env.path("templates/bin/run.sh");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    env.manifest(
        r#"
data: {app: shop, port: 8080, sites: [one, two]}
ccm:
  resources:
    - scaffold:
        - [DIR]/target:
            source: templates
            purge: true
    - exec:
        - reload:
            command: echo reloaded
            refresh_only: true
            subscribe: ["scaffold#[DIR]/target"]
"#,
    );
}

#[test]
fn renders_once_previews_and_is_stable_the_second_time() {
    let env = TestEnv::new();
    example(&env);
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--noop"]), @"
    exit: 0
    --- stdout ---
    Plan for manifest.yaml on [HOST]

      + scaffold#[DIR]/target  added app.conf, bin/run.sh, sites/list and 2 more
      ↻ exec#reload  run, because scaffold#[DIR]/target changes

    1 to create, 1 to refresh
    ");
    assert!(!env.path("target").exists());
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
      + scaffold#[DIR]/target  added app.conf, bin/run.sh, sites/list and 2 more
      ↻ exec#reload  ran, because scaffold#[DIR]/target changed

    Applied manifest.yaml in [TIME]: 1 created, 1 refreshed
    ");
    insta::assert_debug_snapshot!(tree(&env.path("target")), @r#"
    {
        "app.conf": "644 # shop, made by ccm\nport = 8080\n",
        "bin/": "755",
        "bin/run.sh": "755 #!/bin/sh\nexec shop\n",
        "sites/": "755",
        "sites/list": "644 x\n",
        "sites/one": "644 on\n",
        "sites/two": "644 on\n",
    }
    "#);
    let output = env.run(["apply", "manifest.yaml", "--detailed-exitcodes"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    // What others put there goes, what differs is replaced.
    env.write("target/foreign", "f");
    env.write("target/app.conf", "changed");
    let before = tree(&env.path("target"));
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml", "--noop", "--diff"]), @r#"
    exit: 0
    --- stdout ---
    Plan for manifest.yaml on [HOST]

      ~ scaffold#[DIR]/target
            updated  app.conf
            removed  foreign
            --- [DIR]/target/app.conf
            +++ [DIR]/target/app.conf
            @@ -1 +1,2 @@
            -changed
            \ No newline at end of file
            +# shop, made by ccm
            +port = 8080
      ↻ exec#reload  run, because scaffold#[DIR]/target changes

    1 to change, 1 to refresh
    "#);
    assert_eq!(tree(&env.path("target")), before);
    assert!(env.run(["apply", "manifest.yaml"]).status.success());
    insta::assert_debug_snapshot!(tree(&env.path("target")), @r#"
    {
        "app.conf": "644 # shop, made by ccm\nport = 8080\n",
        "bin/": "755",
        "bin/run.sh": "755 #!/bin/sh\nexec shop\n",
        "sites/": "755",
        "sites/list": "644 x\n",
        "sites/one": "644 on\n",
        "sites/two": "644 on\n",
    }
    "#);
    assert_eq!(env.names().iter().filter(|name| name.contains(".ccm-")).count(), 0);
}

#[test]
fn at_the_command_line_with_status_and_removal() {
    let env = TestEnv::new();
    env.write("src/a.txt", "{{ .facts.role | upper }} {{ .data.port }}\n");
    env.write("src/sub/b.sh", "echo hi\n");
    env.write(".hiera", "data: {port: 80}\n");
    let args = [
        "ensure",
        "scaffold",
        "[DIR]/t",
        "src",
        "--engine",
        "go",
        "--fact",
        "role=web",
        "--post",
        "*.sh=chmod +x {}",
    ];
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
      + scaffold#[DIR]/t  added a.txt, sub/b.sh
    ");
    insta::assert_debug_snapshot!(tree(&env.path("t")), @r#"
    {
        "a.txt": "644 WEB 80\n",
        "sub/": "755",
        "sub/b.sh": "755 echo hi\n",
    }
    "#);
    env.write("t/foreign", "f");
    let status = [
        "status", "scaffold", "[DIR]/t", "--source", "src", "--engine", "go", "--fact", "role=db",
        "--json",
    ];
    let shown: serde_json::Value = serde_json::from_slice(&env.run(status).stdout).unwrap();
    let list =
        |name: &str| shown["metadata"][name].to_string().replace(env.dir().to_str().unwrap(), "");
    assert_eq!(list("changed"), r#"["/t/a.txt"]"#);
    assert_eq!(list("stable"), r#"["/t/sub/b.sh"]"#);
    assert_eq!(list("purged"), r#"["/t/foreign"]"#);
    assert_eq!(shown["ensure"], "present");

    let args = [
        "ensure", "scaffold", "[DIR]/t", "src", "absent", "--fact", "role=web", "--engine", "go",
        "--noop",
    ];
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
      - scaffold#[DIR]/t  removed a.txt, sub/b.sh  (noop)
    ");
    let args =
        ["ensure", "scaffold", "[DIR]/t", "src", "absent", "--fact", "role=web", "--engine", "go"];
    insta::assert_snapshot!(env.ccm(args), @"
    exit: 0
    --- stdout ---
      - scaffold#[DIR]/t  removed a.txt, sub/b.sh
    ");
    // Only what is foreign is left.
    assert_eq!(tree(&env.path("t")).into_keys().collect::<Vec<_>>(), ["foreign"]);
    fs::remove_file(env.path("t/foreign")).unwrap();
    assert!(env.run(["ensure", "scaffold", "[DIR]/t", "src", "--engine", "jet"]).status.success());
    assert!(env.run(["ensure", "scaffold", "[DIR]/t", "src", "absent"]).status.success());
    assert!(!env.path("t").exists());
    insta::assert_snapshot!(env.ccm(["ensure", "scaffold", "[DIR]/t", "src", "absent"]), @"
    exit: 0
    --- stdout ---
      = scaffold#[DIR]/t  stable
    ");
}

#[test]
fn own_data_replaces_that_of_the_manifest() {
    let env = TestEnv::new();
    env.write(
        "src/a",
        "[[ data.name ]] [[ data.port ]] [[ data.tags[1] ]] [[ data.host ]] [[ data.app ]].",
    );
    env.manifest(
        r#"
data: {app: shop, key: host}
ccm:
  resources:
    - scaffold:
        - [DIR]/t:
            source: src
            data:
              name: "{{ Data.app }}-1"
              port: 8080
              tags: [a, "{{ 1 + 1 }}"]
              "{{ Data.key }}": "${ Facts.role }"
"#,
    );
    assert!(env.run(["apply", "manifest.yaml", "--fact", "role=web"]).status.success());
    assert_eq!(env.read("t/a"), "shop-1 8080 2 web .");
}

#[test]
fn errors_name_the_file_and_change_nothing() {
    let env = TestEnv::new();
    env.write("t/a", "old");
    env.write("src/a", "new");
    let apply = |source: &str, more: &[&str]| {
        env.write("src/b", source);
        let mut args = vec!["ensure", "scaffold", "[DIR]/t", "src"];
        args.extend(more);
        let before = tree(&env.path("t"));
        let output = env
            .command(args.iter().map(|arg| arg.replace("[DIR]", env.dir().to_str().unwrap())))
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{source}");
        assert_eq!(tree(&env.path("t")), before, "{source}");
        assert_eq!(env.names().iter().filter(|name| name.contains("ccm-")).count(), 0);
        env.steady(&String::from_utf8(output.stdout).unwrap())
    };
    insta::assert_snapshot!(apply("one\n[[ data.nope.x ]]\n", &[]), @"
    ✗ scaffold#[DIR]/t
          cannot render b: there is no member `nope`
           --> b:2:8
            |
          2 | [[ data.nope.x ]]
            |        ^^^^^
    ");
    insta::assert_snapshot!(apply("[[ if ]]", &[]), @"
    ✗ scaffold#[DIR]/t
          cannot render b: unexpected `]]` in if: an expression is missing
           --> b:1:7
            |
          1 | [[ if ]]
            |       ^^
    ");
    insta::assert_snapshot!(apply("[[ write(\"../x\", \"y\") ]]", &[]), @r#"
    ✗ scaffold#[DIR]/t
          cannot render b: ../x is not in the target directory
           --> b:1:4
            |
          1 | [[ write("../x", "y") ]]
            |    ^^^^^
    "#);
    insta::assert_snapshot!(apply("[[ render(\"../../etc/passwd\", .) ]]", &[]), @r#"
    ✗ scaffold#[DIR]/t
          cannot render b: ../../etc/passwd is not in source directory [DIR]/src
           --> b:1:4
            |
          1 | [[ render("../../etc/passwd", .) ]]
            |    ^^^^^^
    "#);
    insta::assert_snapshot!(apply("[[ render(\"b\", .) ]]", &[]), @"
    ✗ scaffold#[DIR]/t
          cannot render b: templates render one another without end: b renders b renders b renders b renders b renders b renders b renders b renders b renders b renders b renders b
    ");
    insta::assert_snapshot!(apply("{{ render \"b\" . }}", &["--engine", "go"]), @"
    ✗ scaffold#[DIR]/t
          cannot render b: templates render one another without end: b renders b renders b renders b renders b renders b renders b renders b renders b renders b renders b renders b
    ");
    insta::assert_snapshot!(apply("[[ write(\"x\", 5) ]]", &[]), @r#"
    ✗ scaffold#[DIR]/t
          cannot render b: the content must be a string, not float64
           --> b:1:4
            |
          1 | [[ write("x", 5) ]]
            |    ^^^^^
    "#);
    insta::assert_snapshot!(apply("{{ upper 5 }}", &["--engine", "go"]), @"
    ✗ scaffold#[DIR]/t
          cannot render b: expected string; found 5
           --> b:1:10
            |
          1 | {{ upper 5 }}
            |          ^
    ");
    insta::assert_snapshot!(apply("{{ range until 100000000 }}{{ end }}", &["--engine", "go"]), @"
    ✗ scaffold#[DIR]/t
          cannot render b: the template takes too many steps
           --> b:1:10
            |
          1 | {{ range until 100000000 }}{{ end }}
            |          ^^^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(apply("x", &["--post", "b=sh -c 'echo oh no >&2; exit 3'"]), @"
    ✗ scaffold#[DIR]/t
          post command `sh -c 'echo oh no >&2; exit 3'` failed for b: exit code 3: oh no
    ");
    insta::assert_snapshot!(apply("x", &["--post", "b=/nonexistent/tool"]), @"
    ✗ scaffold#[DIR]/t
          post command `/nonexistent/tool` failed for b: command not found: /nonexistent/tool
    ");
}

#[test]
fn bad_properties_are_found_before_anything_runs() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - scaffold:
        - relative: {source: src}
        - /a/../b: {source: src, engine: perl}
        - /c: {engine: jet, left_delimiter: "<<"}
        - /d: {source: "ftp://x/y.tgz", post: [{"[": "true"}, {"*.sh": ""}]}
        - /e: {source: src, post: ["*.sh"], data: [1]}
"#,
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: scaffold#relative: name: path must be absolute, `relative` is not
     --> manifest.yaml:5:11
      |
    5 |         - relative: {source: src}
      |           ^^^^^^^^

    error: scaffold#/a/../b: name: path must be clean: without `.`, `..`, `//` or a trailing `/`
     --> manifest.yaml:6:11
      |
    6 |         - /a/../b: {source: src, engine: perl}
      |           ^^^^^^^
      |
      = hint: write it as `/b`

    error: scaffold#/a/../b: engine: unknown scaffold engine `perl`
     --> manifest.yaml:6:42
      |
    6 |         - /a/../b: {source: src, engine: perl}
      |                                          ^^^^
      |
      = hint: allowed: jet, go

    error: scaffold#/c: property `source` is required
     --> manifest.yaml:7:11
      |
    7 |         - /c: {engine: jet, left_delimiter: "<<"}
      |           ^^
      |
      = hint: source: Directory of templates, or URL of a tarball with templates

    error: scaffold#/d: source: cannot download ftp://x/y.tgz: `ftp` is not available in this version
     --> manifest.yaml:8:24
      |
    8 |         - /d: {source: "ftp://x/y.tgz", post: [{"[": "true"}, {"*.sh": ""}]}
      |                        ^^^^^^^^^^^^^^^
      |
      = hint: available schemes: file, http, https, kv, obj

    error: scaffold#/d: post: the pattern `[` is wrong: a `[` is not closed
     --> manifest.yaml:8:47
      |
    8 |         - /d: {source: "ftp://x/y.tgz", post: [{"[": "true"}, {"*.sh": ""}]}
      |                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: scaffold#/d: post: the command for `*.sh` is empty
     --> manifest.yaml:8:47
      |
    8 |         - /d: {source: "ftp://x/y.tgz", post: [{"[": "true"}, {"*.sh": ""}]}
      |                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: scaffold#/e: post: expected a map from a pattern to a command, found a string
     --> manifest.yaml:9:36
      |
    9 |         - /e: {source: src, post: ["*.sh"], data: [1]}
      |                                    ^^^^^^

    error: scaffold#/e: data: expected a map, found a list
     --> manifest.yaml:9:51
      |
    9 |         - /e: {source: src, post: ["*.sh"], data: [1]}
      |                                                   ^^^
    "#);
}

#[test]
fn the_example_renders_and_is_stable_the_second_time() {
    let env = TestEnv::new();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scaffold/manifest.yaml");
    let apply = || env.run(["apply", manifest, "--fact", "target=[DIR]/t", "--detailed-exitcodes"]);
    assert_eq!(apply().status.code(), Some(2));
    assert_eq!(apply().status.code(), Some(0));
    assert_eq!(env.read("t/sites/blog.example.net.conf"), "root = /srv/blog\n");
    assert_eq!(tree(&env.path("t")).len(), 6);
}

/// A tarball of the given paths in the test's directory.
fn tarball(env: &TestEnv, directory: &str, names: &[&str]) -> Vec<u8> {
    let output = std::process::Command::new("tar")
        .args(["-czf", "-", "-C", env.path(directory).to_str().unwrap()])
        .args(names)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn sources_come_over_http_and_leave_nothing_behind() {
    let env = TestEnv::new();
    env.write("made/app/_partials/p", "<[[ facts.role ]]>");
    env.write("made/app/sub/a", "[[ render(\"_partials/p\", .) ]]");
    for names in [["app", "app/sub"], ["-C", "made/app"]] {
        let bytes = match names {
            ["-C", inner] => tarball(&env, inner, &["."]),
            _ => tarball(&env, "made", &["app"]),
        };
        let server = ccm_testkit::Server::with_body(bytes);
        let url = server.url("/app.tar.gz").replace("http://", "http://me:secret@");
        let target = env.path("t");
        let args = ["ensure", "scaffold", target.to_str().unwrap(), &url, "--fact", "role=web"];
        let output = env.run(args);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(env.read("t/sub/a"), "<web>");
        assert_eq!(tree(&target).len(), 2);
        let request = server.requests().join("\n").to_lowercase();
        assert!(request.contains("authorization: basic bwu6c2vjcmv0"), "{request}");
        assert!(!env.names().iter().any(|name| name.contains("ccm-")), "{:?}", env.names());
        fs::remove_dir_all(target).unwrap();
    }
    let server = ccm_testkit::Server::with_bytes(ccm_testkit::answer("404 Not Found", "", b""));
    let url = server.url("/app.tgz").replace("http://", "http://me:secret@");
    let target = env.path("t");
    let output = env.run(["ensure", "scaffold", target.to_str().unwrap(), &url, "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("404") && !text.contains("secret"), "{text}");
    assert!(!target.exists());
}

#[test]
fn status_runs_no_commands_and_says_what_it_could_not_compare() {
    let env = TestEnv::new();
    env.write("src/a.sh", "echo\n");
    env.write("src/b.conf", "b\n");
    let target = env.path("out").display().to_string();
    let post = format!("*.sh=touch {}", env.path("ran").display());
    let status = |name: &str| {
        let args = ["status", "scaffold", &target, "--source", "src", "--post", &post, "--json"];
        let output = env.run(args);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        status["metadata"][name].as_array().map_or(0, Vec::len)
    };
    env.run(["ensure", "scaffold", &target, "src"]);
    assert_eq!((status("stable"), status("uncompared")), (1, 1));
    assert!(!env.path("ran").exists());
}
