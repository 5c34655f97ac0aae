//! Templates that take long, and a signal while they do.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ccm_testkit::{processor_time, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::TestEnv;

/// What takes many seconds in each of the languages, within their limits.
const SLOW: [(&str, &str); 3] = [
    ("expr", "content: \"{{ let a = 1..4500; count(a, count(a, # == 0) > 5) }}\""),
    ("jet", "content: \"{{ jet('slow.jet') }}\""),
    ("go", ""),
];

fn start(env: &TestEnv, args: &[&str]) -> Child {
    let mut command = env.command(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn templates_end_when_the_run_is_cancelled() {
    for (language, property) in SLOW {
        let env = TestEnv::new();
        env.write(
            "slow.jet",
            "[[ range i := ints(0, 3000) ]][[ range j := ints(0, 3000) ]][[ end ]][[ end ]]",
        );
        // Patterns that differ are compiled each time.
        env.write(
            "scaffold/f",
            "{{ range $i := until 3000 }}{{ regexMatch (printf \"(\\\\pL{8}x%d){2}\" $i) \"a\" }}{{ end }}",
        );
        env.manifest(&if language == "go" {
            "ccm: {resources: [{scaffold: [{[DIR]/target: {engine: go, source: [DIR]/scaffold}}]}]}\n".to_owned()
        } else {
            format!("ccm: {{resources: [{{file: [{{[DIR]/f: {{{property}, mode: '0644', [ME]}}}}]}}]}}\n")
        });
        let child = start(&env, &["apply", "manifest.yaml"]);
        let pid = child.id().cast_signed();
        let at_work = Duration::from_millis(400);
        wait_until("the template to be rendered", || processor_time(pid) >= at_work);
        let begin = Instant::now();
        kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
        let output = child.wait_with_output().unwrap();
        let took = begin.elapsed();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(143), "{language}, after {took:?}: {text}");
        assert!(took < Duration::from_secs(3), "{language}: {took:?}: {text}");
        assert!(!env.path("f").exists() && !env.path("target/f").exists());
    }
}

/// Expressions of rules are compiled as part of the tests.
#[test]
fn expressions_of_rules_count_for_the_time_limit() {
    let env = TestEnv::new();
    let rules: String = (0..600)
        .map(|n| {
            format!("  x{n}: {{content: a, matches: {{match-regexp: '(\\pL{{40}}x{n}){{2}}'}}}}\n")
        })
        .collect();
    env.write("rules.yaml", &format!("matching:\n{rules}"));
    let begin = Instant::now();
    let output = env.run(["check", "rules.yaml", "--timeout", "500ms"]);
    let took = begin.elapsed();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("timeout for all tests"), "{text:.2000}");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// What a value becomes is not for the shell to decide.
#[test]
fn commands_of_rules_quote_what_placeholders_give() {
    let env = TestEnv::new();
    let manifest = "data: {name: \"a'b; touch [DIR]/evil #\"}\nccm:\n  resources:\n    - exec:\n        \
                    - \"true\":\n            health_checks:\n              - goss_rules:\n                  command:\n                    \
                    \"echo {{ NAME }}\": {exit-status: 0, stdout: [\"{{ Data.name }}\"]}\n";
    env.manifest(&manifest.replace("NAME", "shellQuote(Data.name)"));
    let output = env.run(["apply", "manifest.yaml"]);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && !text.contains("warning"), "{text}");
    assert!(!env.path("evil").exists());
    env.manifest(&manifest.replace("NAME", "Data.name"));
    let output = env.run(["validate", "manifest.yaml"]);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(text.contains("warning") && text.contains("shellQuote"), "{text}");
    assert!(text.contains("manifest.yaml:9:"), "{text}");
    env.write("rules.yaml", "command:\n  \"echo {{ Facts.x ?? 1 }}\": {exit-status: 0}\n");
    let output = env.run(["check", "rules.yaml"]);
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(text.contains("rules.yaml:2: command: the shell reads"), "{text}");
}
