//! Resources that a template makes.

use std::fs;

use crate::TestEnv;

#[test]
fn a_template_makes_the_resources_of_a_manifest() {
    let env = TestEnv::new();
    env.manifest("data: {names: [a, b]}\nccm: {resources_jet_file: resources.jet}\n");
    env.write(
        "resources.jet",
        "[[ range i, name := data.names ]]- file:\n    - [DIR]/[[ name ]]:\n        content: \"{{ Data.names | len() }} [[ i ]]\"\n        mode: \"0644\"\n        [ME0]\n[[ end ]]",
    );
    let text = env.read("resources.jet");
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let ids = format!("owner: \"{uid}\"\n        group: \"{gid}\"");
    fs::write(env.path("resources.jet"), text.replace("[ME0]", &ids)).unwrap();
    let output = env.run(["apply", "manifest.yaml"]);
    assert!(output.status.success());
    assert_eq!((env.read("a"), env.read("b")), ("2 0".into(), "2 1".into()));
    // The placeholder works, but does not know the variables of the template.
    let said = String::from_utf8(output.stderr).unwrap();
    let warning = "resources.jet: `{{ Data.names | len() }}` is resolved after the template; in \
                   it, write `[[ Data.names | len() ]]`";
    assert!(said.contains(warning), "{said}");
}

#[test]
fn errors_point_into_the_template_or_into_what_it_made() {
    let env = TestEnv::new();
    let validate = |template: &str| {
        env.manifest("ccm:\n  resources_jet_file: resources.jet\n");
        env.write("resources.jet", template);
        env.ccm(["validate", "manifest.yaml"])
    };
    insta::assert_snapshot!(validate("- file:\n[[ if x ]]\n"), @"
    exit: 1
    --- stderr ---
    error: `if` has no `end`
     --> [DIR]/resources.jet:2:4
      |
    2 | [[ if x ]]
      |    ^^
    ");
    insta::assert_snapshot!(validate("- file:\n    - /x: [[ nope ]]\n"), @"
    exit: 1
    --- stderr ---
    error: `nope` is neither a variable nor a function
     --> [DIR]/resources.jet:2:14
      |
    2 |     - /x: [[ nope ]]
      |              ^^^^
    ");
    insta::assert_snapshot!(validate("[[ range i := ints(0, 1) ]]- file:\n    - /x: {contnet: a}\n[[ end ]]"), @"
    exit: 1
    --- stderr ---
    error: file#/x: property `owner` is required
     --> [DIR]/resources.jet (rendered):2:7
      |
    2 |     - /x: {contnet: a}
      |       ^^
      |
      = hint: owner: Owner, as user name or ID

    error: file#/x: property `group` is required
     --> [DIR]/resources.jet (rendered):2:7
      |
    2 |     - /x: {contnet: a}
      |       ^^
      |
      = hint: group: Group, as name or ID

    error: file#/x: property `mode` is required
     --> [DIR]/resources.jet (rendered):2:7
      |
    2 |     - /x: {contnet: a}
      |       ^^
      |
      = hint: mode: Permissions in octal, `0777` at most

    error: file#/x: unknown property `contnet`
     --> [DIR]/resources.jet (rendered):2:12
      |
    2 |     - /x: {contnet: a}
      |            ^^^^^^^
      |
      = hint: did you mean `content`?
    ");
    insta::assert_snapshot!(validate("- file: [\n"), @"
    exit: 1
    --- stderr ---
    error: unclosed bracket '['
     --> [DIR]/resources.jet (rendered):1:9
      |
    1 | - file: [
      |         ^
    ");
    insta::assert_snapshot!(validate("[[ if false ]]x[[ end ]]\n"), @"
    exit: 1
    --- stderr ---
    error: the output of the template is empty; it must be a list of resources
     --> manifest.yaml:2:23
      |
    2 |   resources_jet_file: resources.jet
      |                       ^^^^^^^^^^^^^
    ");
    env.manifest("ccm: {resources_jet_file: none.jet, resources: []}\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @"
    exit: 1
    --- stderr ---
    error: `resources` and `resources_jet_file` cannot both be set
     --> manifest.yaml:1:7
      |
    1 | ccm: {resources_jet_file: none.jet, resources: []}
      |       ^^^^^^^^^^^^^^^^^^

    error: there are no resources
     --> manifest.yaml:1:48
      |
    1 | ccm: {resources_jet_file: none.jet, resources: []}
      |                                                ^^
    ");
    env.manifest("ccm: {resources_jet_file: none.jet}\n");
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml", "--json"]), @r#"
    exit: 1
    --- stdout ---
    {
      "valid": false,
      "findings": [
        {
          "severity": "error",
          "message": "cannot open [DIR]/none.jet: No such file or directory (os error 2)",
          "file": "manifest.yaml",
          "line": 1,
          "column": 27
        }
      ]
    }
    "#);
}
