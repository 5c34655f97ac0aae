//! Blocks that are repeated for each item of a list or a map.

use serde_json::Value;

use crate::TestEnv;

/// A manifest with one loop over `over`, whose block is `block`.
fn looped(env: &TestEnv, data: &str, over: &str, block: &str) {
    env.manifest(&format!(
        "data: {data}\nccm:\n  resources:\n    - for_each: {over}\n{}\n",
        block.trim_matches('\n')
    ));
}

/// The findings of a manifest: severity, line and column, message, hint.
fn findings(env: &TestEnv) -> Vec<String> {
    let output = env.run(["validate", "manifest.yaml", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let shown = report["findings"].as_array().unwrap().iter().map(|finding| {
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        let hint = finding["hint"].as_str().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let place = format!("{}:{}", finding["line"], finding["column"]);
        format!("{} {place} {}{hint}", text("severity"), text("message"))
    });
    shown.collect()
}

/// The events of an apply, in their order.
fn events<const N: usize>(env: &TestEnv, arguments: [&str; N]) -> Vec<Value> {
    let output = env.run(arguments);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    report["events"].as_array().unwrap().clone()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["name"].as_str().unwrap()).collect()
}

#[test]
fn items_of_a_map_come_by_key_and_those_of_a_list_in_order() {
    let env = TestEnv::new();
    looped(
        &env,
        "{m: {zebra: 1, B: 2, ape: 3}}",
        "\"{{ Data.m }}\"",
        r#"
      exec: {"echo {{ Key }} {{ Item }} {{ Index }}": {}}
"#,
    );
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    assert_eq!(names(&found), ["echo B 2 0", "echo ape 3 1", "echo zebra 1 2"]);
    assert_eq!(found[1]["item"], serde_json::json!({"index": 1, "key": "ape", "as": "Item"}));
    let plan = env.run(["plan", "manifest.yaml", "--json"]);
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["resources"][1]["item"], found[1]["item"]);

    looped(
        &env,
        "{tail: z}",
        "[b, a, \"{{ Data.tail }}\", 7]",
        r#"
      as: word
      exec: {"echo {{ word }} {{ word_index }} {{ Item }}": {}}
"#,
    );
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    assert_eq!(names(&found), ["echo b 0 b", "echo a 1 a", "echo z 2 z", "echo 7 3 7"]);
    assert_eq!(found[0]["item"], serde_json::json!({"index": 0, "as": "word"}));
}

#[test]
fn all_three_shapes_and_the_block_of_resources_repeat() {
    let env = TestEnv::new();
    let owner = "[ME], mode: \"0644\"";
    looped(
        &env,
        "{m: {a: {text: one}, b: {text: two}}}",
        "\"{{ Data.m }}\"",
        &format!(
            r#"
      as: site
      resources:
        - file:
            - defaults: {{{owner}, content: "{{{{ site.text }}}}\n"}}
            - "[DIR]/out/list-{{{{ Key }}}}": {{}}
        - file:
            name: "[DIR]/out/named-{{{{ site_key }}}}"
            content: "{{{{ site.text }}}}"
            mode: "0644"
            owner: "{{{{ Facts.user.name }}}}"
            group: "{{{{ Facts.user.group }}}}"
        - file:
            "[DIR]/out/map-{{{{ site.text }}}}":
              {{{owner}, content: "{{{{ jet('[[ site.text ]] [[ .Key ]]') }}}}"}}
"#
        ),
    );
    std::fs::create_dir(env.path("out")).unwrap();
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    let order = ["list-a", "named-a", "map-one", "list-b", "named-b", "map-two"];
    let made: Vec<&str> =
        names(&found).iter().map(|name| name.rsplit('/').next().unwrap()).collect();
    assert_eq!(made, order);
    assert_eq!(env.read("out/list-b"), "two\n");
    assert_eq!(env.read("out/named-a"), "one");
    assert_eq!(env.read("out/map-two"), "two b");
    let again = events(&env, ["apply", "manifest.yaml", "--json"]);
    assert!(again.iter().all(|event| event["outcome"] == "stable"), "{again:?}");
}

#[test]
fn loops_nest_four_levels_deep() {
    let env = TestEnv::new();
    env.manifest(
        r#"
data: {sites: {shop: {hosts: [a, b]}, blog: {hosts: [a]}}}
ccm:
  resources:
    - for_each: "{{ Data.sites }}"
      as: site
      resources:
        - for_each: "{{ site.hosts }}"
          as: host
          resources:
            - for_each: [x]
              as: third
              resources:
                - for_each: [y]
                  exec: {"echo {{ site_key }} {{ host }} {{ third }} {{ Item }} {{ host_index }}": {}}
"#,
    );
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    assert_eq!(names(&found), ["echo blog a x y 0", "echo shop a x y 0", "echo shop b x y 1"]);
    let item = &found[2]["item"];
    assert_eq!(item["parent"]["parent"]["index"], 1);
    assert_eq!(item["parent"]["parent"]["parent"]["key"], "shop");
    let text = env.read("manifest.yaml").replace(
        "                  exec:",
        "                  resources:\n                    - for_each: [z]\n                      as: fifth\n                      exec:",
    );
    env.manifest(&text);
    assert_eq!(findings(&env), ["error 16:23 `for_each` can be nested 4 levels deep, no deeper"]);
}

#[test]
fn wrong_values_are_named_with_what_to_write() {
    let cases = [
        (
            "Data.sites",
            "error 4:17 for_each needs a list or a map, found a string (write `{{ Data.sites }}`)",
        ),
        ("\"{{ Data.word }}\"", "error 4:17 for_each needs a list or a map, found a string"),
        (
            "7",
            "error 4:17 for_each needs a list or a map, found a number (write an expression, such as `{{ Data.sites }}`)",
        ),
        (
            "\"{{ Data.sits }}\"",
            "error 4:21 for_each: `Data.sits` has no value; did you mean `Data.sites`? (use `?? []` for an optional list)",
        ),
        ("", "error 4:15 for_each needs a list or a map, found nothing"),
    ];
    for (over, message) in cases {
        let env = TestEnv::new();
        looped(&env, "{sites: {a: 1}, word: x}", over, "      exec: {\"echo {{ Item }}\": {}}");
        assert_eq!(findings(&env), [message], "{over}");
    }
}

#[test]
fn words_of_a_block_are_checked() {
    let cases = [
        ("as: Data\n      exec: {\"echo {{ Item }}\": {}}", "an item cannot be called `Data`"),
        ("as: filter\n      exec: {\"echo {{ Item }}\": {}}", "an item cannot be called `filter`"),
        ("as: a-b\n      exec: {\"echo {{ Item }}\": {}}", "an item cannot be called `a-b`"),
        ("as: x", "an entry needs a resource type or `resources` beside these words"),
        (
            "exec: {\"echo {{ Item }}\": {}}\n      file: {}",
            "an entry must have one type, not `exec` and `file`",
        ),
        (
            "exec: {\"echo {{ Item }}\": {}}\n      resources: []",
            "an entry must have one type, not `exec` and `resources`",
        ),
        (
            "exec: {echo: {}}",
            "the name does not use `Item`; every item would make the same resource",
        ),
        (
            "as: site\n      exec: {\"echo {{ Data.l }}\": {}}",
            "the name does not use `site`; every item would make the same resource",
        ),
        (
            "exec: {\"echo {{ Index }}\": {}}",
            "the name uses only the index of the item: a new item renames all that follow",
        ),
        ("exec: {\"echo {{ Key }}{{ Item }}\": {}}", "unknown name Key"),
    ];
    for (block, message) in cases {
        let env = TestEnv::new();
        looped(&env, "{l: [1]}", "\"{{ Data.l }}\"", &format!("      {block}"));
        let found = findings(&env);
        assert_eq!(found.len(), 1, "{block}: {found:?}");
        assert!(found[0].contains(message), "{block}: {found:?}");
    }
    let env = TestEnv::new();
    env.manifest("ccm:\n  resources:\n    - as: x\n      exec: {echo: {}}\n");
    assert_eq!(
        findings(&env),
        ["error 3:7 `as` names the items of a `for_each`, which is missing"]
    );
}

#[test]
fn names_of_inner_loops_use_each_outer_item_that_the_inner_loop_does_not() {
    let nested = |inner: &str, name: &str| {
        let env = TestEnv::new();
        env.manifest(&format!(
            r#"
data: {{sites: {{shop: {{hosts: [a]}}, blog: {{hosts: [b]}}}}}}
ccm:
  resources:
    - for_each: "{{{{ Data.sites }}}}"
      as: site
      resources:
        - for_each: {inner}
          as: host
          exec: {{"echo {name}": {{}}}}
"#
        ));
        findings(&env)
    };
    assert_eq!(nested("\"{{ site.hosts }}\"", "{{ host }}"), [""; 0]);
    assert_eq!(nested("[a, b]", "{{ host }} {{ site_key }}"), [""; 0]);
    let wrong = nested("[a, b]", "{{ host }}");
    assert!(wrong[0].contains("the name does not use `site`"), "{wrong:?}");
    // The item of the outer loop, which has no name of its own, is out of reach.
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - for_each: [a, b]
      resources:
        - for_each: [1, 2]
          as: n
          exec: {"echo {{ Item }} {{ n }}": {}}
"#,
    );
    assert_eq!(
        findings(&env),
        ["error 8:18 the name does not use `Item`; every item would make the same resource \
          (`Item` is that of the inner loop here; give the outer `for_each` an `as`, and use its \
          name)"]
    );
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - for_each: [[1], [2]]
      resources:
        - for_each: "{{ Item }}"
          exec: {"echo {{ Item }}": {}}
"#,
    );
    assert_eq!(
        findings(&env),
        ["warning 6:11 `Item` is now the item of this loop, and hides the outer one (name the \
          items of each loop with `as`)"]
    );
}

#[test]
fn an_error_of_several_items_is_told_once() {
    let env = TestEnv::new();
    looped(
        &env,
        "{sites: {a: {port: 1}, b: {prot: 2}, c: {}, d: {}, e: {}, f: {}}}",
        "\"{{ Data.sites }}\"",
        r#"
      as: site
      exec: {"echo {{ Key }}": {cwd: "/{{ site.port }}"}}
"#,
    );
    insta::assert_snapshot!(env.ccm(["validate", "manifest.yaml"]), @r#"
    exit: 1
    --- stderr ---
    error: exec#echo b: cwd: `site.port` has no value; did you mean `site.prot`? (in item "b" of for_each)
     --> manifest.yaml:6:43
      |
    6 |       exec: {"echo {{ Key }}": {cwd: "/{{ site.port }}"}}
      |                                           ^^^^^^^^^
      |
    note: the item
     --> manifest.yaml:1:33
      |
    1 | data: {sites: {a: {port: 1}, b: {prot: 2}, c: {}, d: {}, e: {}, f: {}}}
      |                                 ^^^^^^^^^

    error: exec#echo c: cwd: `site.port` has no value (in item "c" of for_each, and 3 more items: d, e, f)
     --> manifest.yaml:6:43
      |
    6 |       exec: {"echo {{ Key }}": {cwd: "/{{ site.port }}"}}
      |                                           ^^^^^^^^^
      |
      = hint: for an optional value, write `site.port ?? "default"`
    note: the item
     --> manifest.yaml:1:47
      |
    1 | data: {sites: {a: {port: 1}, b: {prot: 2}, c: {}, d: {}, e: {}, f: {}}}
      |                                               ^^
    "#);
}

#[test]
fn two_items_that_make_one_resource_are_named() {
    let env = TestEnv::new();
    looped(&env, "{l: [a, b, a, a]}", "\"{{ Data.l }}\"", "      exec: {\"echo {{ Item }}\": {}}");
    let found = findings(&env);
    assert_eq!(found, ["error 5:14 exec#echo a is made by item 0 and item 2 of this for_each"]);
}

#[test]
fn an_empty_loop_makes_nothing_and_is_valid() {
    let env = TestEnv::new();
    looped(&env, "{l: []}", "\"{{ Data.l }}\"", "      exec: {\"echo {{ Item }}\": {}}");
    assert_eq!(findings(&env), ["warning 1:1 there are no resources: no `for_each` has items"]);
    let output = env.run(["apply", "manifest.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    // Its tag is known although no resource has it.
    env.manifest(
        r#"
data: {}
ccm:
  resources:
    - for_each: "{{ Data.sites ?? [] }}"
      tags: [sites]
      exec: {"echo {{ Item }}": {}}
    - exec: {echo done: {require: ["tag#sites"]}}
"#,
    );
    let errors: Vec<String> =
        findings(&env).into_iter().filter(|finding| finding.starts_with("error")).collect();
    assert_eq!(errors, [""; 0]);
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    assert_eq!(names(&found), ["echo done"]);
    // So is that of a loop in it. What the block says is checked for items to come.
    env.manifest(
        r#"
ccm:
  resources:
    - for_each: []
      as: site
      resources:
        - for_each: "{{ site.hosts }}"
          as: host
          tags: [hosts]
          exec: {"echo {{ host }} {{ site }}": {}}
    - exec: {echo done: {require: ["tag#hosts"]}}
"#,
    );
    assert_eq!(findings(&env), [""; 0]);
    let text = env.read("manifest.yaml").replace("{}}", "{comand: x}}");
    env.manifest(&text);
    assert_eq!(findings(&env), ["error 10:49 unknown property `comand` (did you mean `command`?)"]);
}

#[test]
fn more_than_the_limit_is_refused_before_anything_runs() {
    let env = TestEnv::new();
    looped(&env, "{}", "\"{{ 1..250000 }}\"", "      exec: {\"echo {{ Item }}\": {}}");
    assert_eq!(findings(&env), ["error 4:7 for_each makes 250000 resources; the limit is 100000"]);
    // Nor are loops gone through for ever that make nothing.
    env.manifest(
        r#"
ccm:
  resources:
    - for_each: "{{ 1..3000 }}"
      as: a
      resources:
        - for_each: "{{ 1..3000 }}"
          as: b
          resources:
            - for_each: []
              as: c
              exec: {"echo {{ a }} {{ b }} {{ c }}": {}}
"#,
    );
    let found = findings(&env);
    assert!(found[0].contains("the loops have more than 200000 items"), "{found:?}");
}

#[test]
fn block_and_resource_must_both_want_an_item() {
    let env = TestEnv::new();
    looped(
        &env,
        "{m: {a: {on: true, n: 1}, b: {on: false, n: 1}, c: {on: true, n: 2}}}",
        "\"{{ Data.m }}\"",
        r#"
      as: site
      control: {if: site.on}
      exec: {"echo {{ Key }}": {control: {unless: "site.n == 2"}}}
"#,
    );
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    let outcomes: Vec<&str> =
        found.iter().map(|event| event["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["run", "skipped", "skipped"]);
    // What it renders means the same.
    let rendered = env.run(["apply", "manifest.yaml", "--render"]);
    env.manifest(&String::from_utf8(rendered.stdout).unwrap());
    let again = events(&env, ["apply", "manifest.yaml", "--json"]);
    let outcomes: Vec<&str> =
        again.iter().map(|event| event["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["run", "skipped", "skipped"]);
}

#[test]
fn what_is_rendered_keeps_deferred_placeholders_without_variables_of_loops() {
    let env = TestEnv::new();
    looped(
        &env,
        "{m: {a: {text: \"it's \\\"x\\\"\"}}}",
        "\"{{ Data.m }}\"",
        r#"
      as: site
      file: {"[DIR]/out-{{ Key }}": {content: "{{ site.text }}{{ Environ.TAIL ?? '-' }}", [ME], mode: "0644"}}
"#,
    );
    let rendered =
        String::from_utf8(env.run(["apply", "manifest.yaml", "--render"]).stdout).unwrap();
    assert!(!rendered.contains("for_each"), "{rendered}");
    env.manifest(&rendered);
    let output = env.run(["apply", "manifest.yaml"]);
    assert!(output.status.success(), "{rendered}\n{output:?}");
    assert_eq!(env.read("out-a"), "it's \"x\"-");
}

#[test]
fn tags_stand_for_all_earlier_resources_that_have_them() {
    let env = TestEnv::new();
    let manifest = |second: &str| {
        env.manifest(&format!(
            r#"
data: {{l: ["true", "{second}", "true "]}}
ccm:
  resources:
    - for_each: "{{{{ Data.l }}}}"
      tags: [checks]
      exec: {{"{{{{ Item }}}}": {{}}}}
    - exec: {{needs all: {{command: "true", require: ["tag#checks"]}}}}
    - exec: {{reacts: {{cwd: "[DIR]", command: "sh -c 'echo x >> reacted'", refresh_only: true, subscribe: ["tag#checks"]}}}}
"#
        ));
    };
    manifest("false");
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    assert_eq!(found[3]["unmet_requirements"], serde_json::json!(["exec#false"]));
    assert_eq!(env.read("reacted"), "x\n");
    manifest(" true");
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    assert_eq!(found[3]["outcome"], "run");
    assert_eq!(env.read("reacted"), "x\nx\n");
}

#[test]
fn tags_that_nothing_earlier_has_are_refused() {
    let cases = [
        (
            "tag#site",
            "no earlier resource has the tag `site` (in item 0 of for_each) (did you mean `sites`?)",
        ),
        (
            "tag#late",
            "no earlier resource has the tag `late` (in item 0 of for_each) (resources run in the \
             order written: move it up)",
        ),
        (
            "tag#own",
            "tag#own names the tag of the block that it stands in (in item 0 of for_each) (refer to \
             one resource of the block by its name)",
        ),
    ];
    for (reference, message) in cases {
        let env = TestEnv::new();
        env.manifest(&format!(
            r#"
ccm:
  resources:
    - for_each: [a]
      tags: [sites]
      exec: {{"echo {{{{ Item }}}}": {{}}}}
    - for_each: [b]
      tags: [own]
      exec: {{"echo {{{{ Item }}}}": {{require: ["{reference}"]}}}}
    - exec: {{echo late: {{tags: [late]}}}}
"#
        ));
        let found = findings(&env);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(message), "{found:?}");
    }
}

#[test]
fn items_are_chosen_by_name_star_and_tag() {
    let env = TestEnv::new();
    env.manifest(
        r#"
ccm:
  resources:
    - for_each: [aa, ab, b]
      tags: [words]
      exec: {"echo {{ Item }}": {}}
    - exec: {echo other: {}}
"#,
    );
    let chosen = |[first, second]: [&str; 2]| {
        let found = events(&env, ["apply", "manifest.yaml", "--json", first, second]);
        let run = found.iter().filter(|event| event["outcome"] == "run");
        run.map(|event| event["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(chosen(["--only=exec#echo aa", "--quiet"]), ["echo aa"]);
    assert_eq!(chosen(["--only=exec#echo a*", "--quiet"]), ["echo aa", "echo ab"]);
    assert_eq!(chosen(["--only=tag#words", "--skip=exec#echo a*"]), ["echo b"]);
}

#[test]
fn a_secret_item_is_shown_nowhere() {
    let env = TestEnv::new();
    env.manifest(
        r#"
data:
  # @secret
  tokens: {shop: hunter2hunter2}
ccm:
  resources:
    - for_each: "{{ Data.tokens }}"
      as: token
      exec: {"echo {{ token }}": {}}
"#,
    );
    let shown = || format!("{:?}", env.run(["validate", "manifest.yaml"]));
    assert!(shown().contains("the name would show a secret of the item"), "{}", shown());
    assert!(!shown().contains("hunter2"), "{}", shown());
    // Nor by the line of an item that is at fault.
    env.manifest(
        r#"
data:
  sites: {shop: {word: hunter2hunter2}}
  # @secret
  token: hunter2hunter2
ccm:
  resources:
    - for_each: "{{ Data.sites }}"
      as: site
      exec: {"echo {{ Key }}": {cwd: "/{{ site.tokn }}"}}
"#,
    );
    assert!(shown().contains("in item") && !shown().contains("hunter2"), "{}", shown());
}

#[test]
fn why_tells_the_data_behind_an_item() {
    let env = TestEnv::new();
    looped(
        &env,
        "{sites: {shop: {port: 8081}}}",
        "\"{{ Data.sites }}\"",
        r#"
      as: site
      tags: [shops]
      exec: {"{{ Key }}": {command: "echo {{ site.port }}"}}
"#,
    );
    insta::assert_snapshot!(env.ccm(["why", "manifest.yaml", "exec#shop"]), @r#"
    exit: 0
    --- stdout ---
    exec#shop
      name: shop
        set by manifest.yaml:7
        reads, in `Key`
          item Key: shop
      ensure: present
        default of the type
      tags: ["shops"]
        set by manifest.yaml:6 (block)
      command: echo 8081
        set by manifest.yaml:7
        reads, in `site.port`
          item site.port: 8081
            is data sites.shop.port
            from manifest.yaml:1 (data)
      now: a run executes it
        command: to echo 8081
    "#);
}

#[test]
fn a_saved_plan_of_a_loop_is_applied_goes_stale_with_its_data_and_is_undone() {
    let env = TestEnv::new();
    let manifest = |text: &str| {
        looped(
            &env,
            &format!("{{m: {{a: {text}, b: two}}}}"),
            "\"{{ Data.m }}\"",
            r#"
      file: {"[DIR]/{{ Key }}": {content: "{{ Item }}", [ME], mode: "0644"}}
"#,
        );
    };
    manifest("before");
    assert!(env.run(["plan", "manifest.yaml", "--out", "stale.json"]).status.success());
    manifest("one");
    let stale = env.run(["apply", "stale.json"]);
    assert!(!stale.status.success() && !env.path("a").exists(), "{stale:?}");
    assert!(env.run(["plan", "manifest.yaml", "--out", "plan.json"]).status.success());
    let output = env.run(["apply", "plan.json"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!((env.read("a"), env.read("b")), ("one".into(), "two".into()));
    assert!(env.run(["undo"]).status.success());
    assert!(!env.path("a").exists() && !env.path("b").exists());
}

#[test]
fn one_child_manifest_is_applied_for_each_item() {
    let env = TestEnv::new();
    env.write("site.yaml", "ccm:\n  resources:\n    - exec: {\"echo {{ Data.name }}\": {}}\n");
    looped(
        &env,
        "{sites: {a: {name: shop}, b: {name: blog}}}",
        "\"{{ Data.sites }}\"",
        "      apply: {\"site {{ Key }}\": {manifest: site.yaml, data: {name: \"{{ Item.name }}\"}}}",
    );
    assert_eq!(findings(&env), [""; 0]);
    let found = events(&env, ["apply", "manifest.yaml", "--json"]);
    assert_eq!(names(&found), ["echo shop", "site a", "echo blog", "site b"]);
    assert_eq!(found[2]["route"], serde_json::json!(["site b"]));
}

#[test]
fn delimiters_of_the_other_language_are_warned_of() {
    let env = TestEnv::new();
    env.write("t.jet", "[[ site ]] {{ site }} {{ other }}");
    looped(
        &env,
        "{sites: {a: b}}",
        "\"{{ Data.sites }}\"",
        "      as: site\n      exec: {\"echo {{ Key }} {{ [[ Data.sites ]] }}\": {command: \"true {{ jet('t.jet') }}\"}}",
    );
    let found = env.ccm(["apply", "manifest.yaml"]);
    let has = |text: &str| found.contains(text);
    assert!(
        has("`{{ [[ Data.sites ]] }}` is a list in a list; write `{{ Data.sites }}`"),
        "{found:?}"
    );
    assert!(
        has("t.jet: a Jet template does not resolve `{{ site }}`; write `[[ site ]]`"),
        "{found:?}"
    );
}

#[test]
fn unknown_members_in_templates_are_errors_when_strict() {
    let env = TestEnv::new();
    env.write("t.jet", "[[ site.prot ]]");
    env.write("from/a", "{{ .site.prot }}");
    looped(
        &env,
        "{sites: {a: {port: 1}}}",
        "\"{{ Data.sites }}\"",
        r#"
      as: site
      resources:
        - scaffold: {"[DIR]/to-{{ Key }}": {source: from, engine: go}}
        - exec: {"echo {{ Key }}": {command: "true {{ jet('t.jet') }}"}}
"#,
    );
    let wanted = "`site.prot` has no value; did you mean `site.port`?";
    for command in ["validate", "plan", "apply"] {
        for (strict, code) in [("0", 0), ("1", 1)] {
            let (status, text) = strictly(&env, command, strict);
            assert_eq!(status, Some(code), "{command}: {text}");
            assert!(text.contains(&format!("t.jet:1:4: {wanted}")), "{command}: {text}");
            assert!(text.contains(&format!("a:1:4: {wanted}")), "{command}: {text}");
        }
    }
}

fn strictly(env: &TestEnv, command: &str, strict: &str) -> (Option<i32>, String) {
    let output = env.command([command, "manifest.yaml"]).env("CCM_STRICT", strict).output();
    let output = output.unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), text.concat())
}

/// The item of an error is shown where it is written: in an override, too.
#[test]
fn an_item_of_an_override_is_shown_there() {
    let env = TestEnv::new();
    env.manifest(
        r#"hierarchy: {order: ["is:{{ Facts.user.uid >= 0 }}"], merge: deep}
data:
  sites: {shop: {port: 1}}
  names: [a, b]
overrides:
  is:true:
    sites: {blog: {prot: 2}}
ccm:
  resources:
    - for_each: "{{ Data.sites }}"
      as: site
      exec: {"echo {{ Key }}": {cwd: "/{{ site.port }}"}}
"#,
    );
    let shown = env.ccm(["validate", "manifest.yaml"]);
    let note = "note: the item\n  --> manifest.yaml:7:19\n";
    assert!(shown.contains("in item \"blog\" of for_each") && shown.contains(note), "{shown}");
}

/// A template that fails has printed such a member before. That is no fault of
/// the template behind it.
#[test]
fn what_a_template_prints_is_the_fault_of_no_other_one() {
    let env = TestEnv::new();
    env.write("t.jet", "[[ site.prot ]][[ 1 / 0 ]]");
    env.write("from/a", "{{ .site.port }}");
    looped(
        &env,
        "{sites: {a: {port: 1}}}",
        "\"{{ Data.sites }}\"",
        r#"
      as: site
      resources:
        - exec: {"echo {{ Key }}": {command: "true {{ jet('t.jet') }}"}}
        - scaffold: {"[DIR]/to-{{ Key }}": {source: from, engine: go}}
"#,
    );
    let (_, text) = strictly(&env, "apply", "1");
    assert!(text.contains("1 created, 1 failed") && text.contains("zero"), "{text}");
    assert_eq!(env.read("to-a/a"), "1");
}

/// What is wrong for each item of a loop is told for all of them at once.
#[test]
fn references_and_sources_of_items_are_told_once() {
    let env = TestEnv::new();
    looped(
        &env,
        "{l: [a, b, c]}",
        "\"{{ Data.l }}\"",
        r#"
      exec: {"echo {{ Item }}": {require: ["exec#no {{ Item }}", "tag#no"]}}
"#,
    );
    assert_eq!(
        findings(&env),
        [
            "error 5:44 exec#no a is not in this manifest (in item 0 of for_each, and 2 more \
             items: 1, 2)",
            "error 5:66 no earlier resource has the tag `no` (in item 0 of for_each, and 2 more \
             items: 1, 2)",
        ]
    );
    looped(
        &env,
        "{l: [a, b, c]}",
        "\"{{ Data.l }}\"",
        r#"
      resources:
        - file: {"[DIR]/{{ Item }}": {source: "no-{{ Item }}", [ME], mode: "0644"}}
        - scaffold: {"[DIR]/{{ Item }}.d": {source: "no-{{ Item }}"}}
"#,
    );
    let found = findings(&env);
    let about = |what: &str| found.iter().filter(|finding| finding.contains(what)).count();
    assert_eq!(about("`no-a` does not exist (in item 0 of for_each, and 2 more items: 1, 2)"), 1);
    assert_eq!(found.len(), 1, "{found:?}");
    // The same item of an inner loop, made by two of the outer one.
    env.manifest(
        r#"
data: {l: [{w: x}, {w: x}]}
ccm:
  resources:
    - for_each: "{{ Data.l }}"
      as: outer
      resources:
        - for_each: [a]
          as: inner
          exec: {"echo {{ outer.w }} {{ inner }}": {}}
"#,
    );
    assert_eq!(
        findings(&env),
        ["error 10:18 exec#echo x a is made by item 0 of item 0 and item 0 of item 1 of this \
          for_each"]
    );
}

#[test]
fn words_of_other_tools_beside_a_type_are_explained() {
    for (word, hint) in [
        ("loop", "to repeat a block, write `for_each` beside its type"),
        ("foreach", "to repeat a block, write `for_each` beside its type"),
        ("control_", "did you mean `control`?"),
        ("file", "begin each type with its own `-`; indent properties below the name"),
    ] {
        let env = TestEnv::new();
        env.manifest(&format!("ccm: {{resources: [{{{word}: [a], exec: {{echo: {{}}}}}}]}}\n"));
        let found = findings(&env);
        assert!(found.len() == 1 && found[0].ends_with(&format!("({hint})")), "{found:?}");
    }
}

/// Resources of a loop are edited by their name as it is written, as others are.
#[test]
fn resources_of_a_loop_are_edited() {
    let env = TestEnv::new();
    let text = r#"
data: {sites: {shop: {port: 1}, blog: {port: 2}}}
ccm:
  resources:
    - for_each: "{{ Data.sites }}"   # all of them
      as: site
      tags: [sites]
      resources:
        - exec:
            - "echo {{ Key }}": {}   # first
            - "echo {{ site.port }}": {require: ["exec#echo {{ Key }}"]}
    - exec: {echo all: {subscribe: ["tag#sites"], refresh_only: true}}
"#;
    let edit = |args: &[&str]| {
        env.manifest(text);
        let output = env.command([&["edit", "manifest.yaml"], args].concat()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), env.read("manifest.yaml"), said)
    };
    let done = |args: &[&str], from: &str, to: &str| {
        let (is_done, after, said) = edit(args);
        assert!(is_done, "{args:?}: {said}");
        assert_eq!(after, text.replacen(from, to, 1), "{args:?}");
    };
    let first = "exec#echo {{ Key }}";
    let second = "exec#echo {{ site.port }}";
    done(
        &["set", first, "cwd", "/tmp/{{ Key }}"],
        "{}   # first",
        "{cwd: \"/tmp/{{ Key }}\"}   # first",
    );
    done(&["unset", second, "require"], "{require: [\"exec#echo {{ Key }}\"]}", "{}");
    done(
        &["rename", second, "echo port {{ site.port }}"],
        "\"echo {{ site.port }}\"",
        "\"echo port {{ site.port }}\"",
    );
    let line = "            - \"echo {{ site.port }}\": {require: [\"exec#echo {{ Key }}\"]}\n";
    done(&["rm", second], line, "");
    let added = format!("{line}            - echo {{{{ Key }}}} again: {{}}\n");
    done(&["add", "exec", "echo {{ Key }} again", "--after", second], line, &added);
    // What would break the loop is refused, and nothing is changed.
    for (args, reason) in [
        (&["rename", second, "echo port"][..], "the name does not use `site`"),
        (
            &["rm", "exec#echo shop"],
            "hint: name a resource of a loop as it is written: `exec#echo {{ Key }}`",
        ),
        (&["rm", first], "exec#echo blog is not in this manifest"),
        (&["set", second, "cwd", "{{ site.prot }}"], "did you mean `site.port`?"),
        (&["mv", second, "--before", first], "the referring resource must come later"),
        (&["mv", "exec#echo all", "--before", first], "no earlier resource has the tag `sites`"),
    ] {
        let (is_done, after, said) = edit(args);
        assert!(!is_done && after == text && said.contains(reason), "{args:?}: {said}");
    }
}
