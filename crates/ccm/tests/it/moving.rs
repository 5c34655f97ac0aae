//! What people who come from the original rely on.

use crate::env::TestEnv;

fn stdout(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn top_level_keys_that_begin_with_x_hold_anchors() {
    let env = TestEnv::new();
    env.manifest(
        "x-common: &common {command: echo hello, logoutput: true}\nx-more: [1]\n\
         ccm: {resources: [{exec: [{greet: *common}]}]}\n",
    );
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
      | hello
      » exec#greet  echo hello

    Applied manifest.yaml in [TIME]: 1 ran
    ");
    env.manifest("y-common: {}\nccm: {resources: [{exec: [\"true\"]}]}\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: unknown top-level key `y-common`
     --> manifest.yaml:1:1
      |
    1 | y-common: {}
      | ^^^^^^^^
      |
      = hint: available: data, hierarchy, overrides, ccm
    ");
}

#[test]
fn control_without_a_value_is_false_and_says_so() {
    let env = TestEnv::new();
    env.manifest(
        "data: {enabled: true}\nccm:\n  resources:\n    - exec:\n        \
         - touch [DIR]/a: {control: {if: Data.enabld}}\n        \
         - touch [DIR]/b: {control: {unless: Data.web?.off}}\n        \
         - touch [DIR]/d: {control: {if: Data.enabled}}\n",
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
    manifest.yaml is valid: 3 resources
    --- stderr ---
    warning: control.if counts as false: `Data.enabld` has no value; did you mean `Data.enabled`?
    warning: control.unless counts as false: `Data.web` has no value
    ");
    insta::assert_snapshot!(env.ccm(["apply", "manifest.yaml"]), @"
    exit: 0
    --- stdout ---
      » exec#touch [DIR]/b
      » exec#touch [DIR]/d

    Applied manifest.yaml in [TIME]: 2 ran, 1 skipped; 2 warnings
    --- stderr ---
    warning: exec#touch [DIR]/a: control.if counts as false: `Data.enabld` has no value; did you mean `Data.enabled`?
    warning: exec#touch [DIR]/b: control.unless counts as false: `Data.web` has no value
    ");
    assert_eq!(env.names().into_iter().filter(|name| name.len() == 1).collect::<String>(), "bd");
}

#[test]
fn empty_and_missing_variables_give_the_default_of_a_lookup() {
    let env = TestEnv::new();
    env.manifest(
        "ccm: {resources: [{exec: [{show: {command: \"echo {{ lookup('environ.E', 'd') }} {{ \
         lookup('environ.NONE', 'd') }} {{ lookup('environ.F', 'd') }} [{{ lookup('environ.E') }}] \
         {{ lookup('env.F') }} {{ lookup('env.E', 'd') }}\", logoutput: true}}]}]}\n",
    );
    let output =
        env.command(["apply", "manifest.yaml"]).env("E", "").env("F", "full").output().unwrap();
    let text = stdout(&output);
    assert!(text.contains("| d d full [] full d\n"), "{text}");
}

#[test]
fn a_variable_that_is_not_set_is_an_error_unless_provided_for() {
    let env = TestEnv::new();
    env.manifest("ccm: {resources: [{exec: [\"echo {{ Environ.HOEM }}\"]}]}\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: exec#echo {{ Environ.HOEM }}: name: `Environ.HOEM` has no value; did you mean `Environ.HOME`?
     --> manifest.yaml:1:36
      |
    1 | ccm: {resources: [{exec: ["echo {{ Environ.HOEM }}"]}]}
      |                                    ^^^^^^^^^^^^
    "#);
    env.manifest(
        "ccm: {resources: [{exec: [{show: {command: \"echo {{ Environ.HOEM ?? 'none' }} [{{ \
         Environ.E ?? 'none' }}]\", logoutput: true}}]}]}\n",
    );
    let output = env.command(["apply", "manifest.yaml"]).env("E", "").output().unwrap();
    assert!(stdout(&output).contains("| none []\n"), "{}", stdout(&output));
}

const DOCUMENT: &str = "data: {port: 80, web: {root: /srv}, none: null}\n\
                        hierarchy: {order: ['os:{{ lookup(\"facts.host.info.os\") }}'], merge: deep}\n\
                        overrides:\n  os:linux: {system: yes}\n";

#[test]
fn queries_of_data_that_match_nothing_print_null() {
    let env = TestEnv::new();
    env.write("data.yaml", DOCUMENT);
    insta::assert_snapshot!(env.ccm(["hiera", "parse", "data.yaml", "--query", "prot"]), @"
    exit: 0
    --- stdout ---
    null
    --- stderr ---
    warning: the query `prot` matches nothing; did you mean `port`?
    ");
    insta::assert_snapshot!(env.ccm(["hiera", "parse", "data.yaml", "--query", "none"]), @"
    exit: 0
    --- stdout ---
    null
    ");
    insta::assert_snapshot!(env.ccm(["hiera", "parse", "data.yaml", "--env", "--query", "prot"]), @"
    exit: 0
    --- stdout ---
    HIERA_VALUE=
    --- stderr ---
    warning: the query `prot` matches nothing; did you mean `port`?
    ");
}

#[test]
fn a_single_value_is_printed_as_one_variable() {
    let env = TestEnv::new();
    env.write("data.yaml", DOCUMENT);
    for (query, wanted) in [
        ("port", "HIERA_VALUE=80\n"),
        ("web.root", "HIERA_VALUE=/srv\n"),
        ("web", "HIERA_ROOT=/srv\n"),
        ("[port,web]", "HIERA_VALUE='[80,{\"root\":\"/srv\"}]'\n"),
    ] {
        let output = env.run(["hiera", "parse", "data.yaml", "--env", "--query", query]);
        assert_eq!(stdout(&output), wanted, "{query}");
        assert!(output.status.success(), "{query}");
    }
}

#[test]
fn hiera_uses_the_facts_of_the_machine_unless_told_otherwise() {
    let env = TestEnv::new();
    env.write("data.yaml", DOCUMENT);
    let system = |args: &[&str]| {
        let mut command = env.command(["hiera", "parse"]);
        let output = command.args(args).args(["--query", "system"]).output().unwrap();
        assert!(output.status.success());
        stdout(&output)
    };
    assert_eq!(system(&["data.yaml"]), "\"yes\"\n");
    assert_eq!(system(&["data.yaml", "-S"]), "\"yes\"\n");
    assert_eq!(system(&["data.yaml", "host.info.os=plan9"]), "null\n");
    assert_eq!(system(&["data.yaml", "--no-system-facts"]), "null\n");
    let facts = |args: &[&str]| {
        let output = env.command(["hiera", "facts"]).args(args).output().unwrap();
        (stdout(&output), output.status.code())
    };
    assert_eq!(facts(&["--query", "host.info.os"]), ("\"linux\"\n".into(), Some(0)));
    assert_eq!(facts(&["role=web", "--query", "role"]), ("\"web\"\n".into(), Some(0)));
    assert_eq!(facts(&["--query", "no.such"]), ("null\n".into(), Some(0)));
    let alone = facts(&["role=web", "--no-system-facts", "--yaml"]);
    assert_eq!(alone, ("role: web\n".into(), Some(0)));
}

#[test]
fn the_document_of_hiera_can_come_from_the_environment() {
    let env = TestEnv::new();
    env.write("data.yaml", DOCUMENT);
    let mut command = env.command(["hiera", "parse", "--query", "port"]);
    let output = command.env("HIERA_INPUT", "data.yaml").output().unwrap();
    assert_eq!(stdout(&output), "80\n");
    // An argument without a `=` is the document.
    env.write("other.yaml", "data: {port: 81}\n");
    let mut command = env.command(["hiera", "parse", "other.yaml", "--query", "port"]);
    let output = command.env("HIERA_INPUT", "data.yaml").output().unwrap();
    assert_eq!(stdout(&output), "81\n");
    let mut command = env.command(["hiera", "parse", "host.info.os=linux", "--query", "system"]);
    let output = command.env("HIERA_INPUT", "data.yaml").output().unwrap();
    assert_eq!(stdout(&output), "\"yes\"\n");
    insta::assert_snapshot!(env.ccm(["hiera", "parse", "--query", "port"]), @"
    exit: 64
    --- stderr ---
    error: the following required arguments were not provided:
      <SOURCE>

    Usage: ccm hiera parse --query <PATH> <SOURCE> [FACT=VALUE]...

    For more information, try '--help'.
    ");
}

#[test]
fn switches_can_be_negated_as_scripts_of_the_original_do() {
    let env = TestEnv::new();
    env.write("data.yaml", DOCUMENT);
    let output = env.run(["hiera", "parse", "data.yaml", "--no-yaml", "--query", "port"]);
    assert_eq!((stdout(&output).as_str(), output.status.code()), ("80\n", Some(0)));
    let output = env.run(["facts", "host.info.os", "--no-yaml"]);
    assert_eq!(stdout(&output), "\"linux\"\n");
    env.write("templates/empty", "");
    let target = env.path("out");
    let target = target.to_str().unwrap();
    let output = env.run(["ensure", "scaffold", target, "[DIR]/templates", "--no-skip-empty"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(env.path("out/empty").exists());
}

#[test]
fn one_delimiter_may_be_given_alone() {
    let env = TestEnv::new();
    env.write("templates/a", "<< Data.name ]] [[ Data.name >>");
    for (engine, property, wanted) in [
        ("jet", "left_delimiter: '<<'", "n [[ Data.name >>"),
        ("jet", "right_delimiter: '>>'", "<< Data.name ]] n"),
    ] {
        env.manifest(&format!(
            "data: {{name: n}}\nccm: {{resources: [{{scaffold: [{{\"[DIR]/out\": {{source: \
             templates, engine: {engine}, {property}}}}}]}}]}}\n"
        ));
        let output = env.run(["apply", "manifest.yaml"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(env.read("out/a"), wanted);
    }
}

#[test]
fn empty_guards_are_unset_and_paths_may_end_in_a_slash() {
    let env = TestEnv::new();
    env.manifest(
        "data: {guard: ''}\nccm:\n  resources:\n    - exec:\n        - literal:\n            command: \
         touch made\n            cwd: \"[DIR]/\"\n            onlyif: \"\"\n            unless: \
         \"{{ Data.guard }}\"\n        - again: {command: touch again, cwd: \"[DIR]//\", creates: \
         \"[DIR]/made/\"}\n        - root: {command: \"true\", cwd: /}\n",
    );
    let output = env.run(["apply", "manifest.yaml"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(env.path("made").exists());
    assert!(!env.path("again").exists());
}

#[test]
fn flags_that_the_original_documents_are_accepted() {
    let env = TestEnv::new();
    env.write("templates/a", "x");
    let args = ["ensure", "scaffold", "[DIR]/out", "--source", "[DIR]/templates"];
    let output = env.run(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(env.read("out/a"), "x");
    insta::assert_snapshot!(env.ccm(["ensure", "scaffold", "[DIR]/out"]), @"
    exit: 1
    --- stderr ---
    error: scaffold#[DIR]/out: property `source` is required
    hint: source: Directory of templates, or URL of a tarball with templates
    ");
    let args = [
        "ensure",
        "archive",
        "[DIR]/a.tgz",
        "--url",
        "http://127.0.0.1:1/a.tgz",
        "--extract-parent",
        "[DIR]/x",
        "--headers",
        "A:b",
        "--noop",
        "--json",
    ];
    let event: serde_json::Value = serde_json::from_slice(&env.run(args).stdout).unwrap();
    let properties = &event["properties"];
    assert_eq!(properties["url"], "http://127.0.0.1:1/a.tgz");
    assert_eq!(properties["extract_parent"], env.path("x").to_str().unwrap());
    assert!(properties["headers"].get("A").is_some(), "{properties}");
    let help = stdout(&env.run(["ensure", "archive", "--help"]));
    assert!(!help.contains("--url") && !help.contains("--headers"), "{help}");
}
