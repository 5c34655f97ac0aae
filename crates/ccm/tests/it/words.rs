//! Help, completions, manual pages, colour.

use crate::TestEnv;

#[test]
fn completions_and_manual_pages_know_the_types() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = env.run(["completion", shell]);
        let script = String::from_utf8(script.stdout).unwrap();
        assert!(script.contains("exec-unless"), "{shell} does not know the flags of exec");
    }
    let page = String::from_utf8(env.run(["man"]).stdout).unwrap();
    assert!(page.contains(".TH ccm 1"), "{page}");
    for title in ["EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES"] {
        assert!(page.contains(title), "{title} is missing: {page}");
    }
    assert!(env.run(["man", "--dir", "man"]).status.success());
    let names = env.names();
    for name in ["man/ccm.1", "man/ccm-apply.1", "man/ccm-ensure-file.1", "man/ccm-session-new.1"] {
        assert!(names.contains(&name.to_owned()), "{name} is not in {names:?}");
    }
}

#[test]
fn the_version_names_commit_and_date() {
    let env = TestEnv::new();
    let text = String::from_utf8(env.run(["--version"]).stdout).unwrap();
    let inside = text
        .trim()
        .strip_prefix(concat!("ccm ", env!("CARGO_PKG_VERSION"), " ("))
        .and_then(|text| text.strip_suffix(')'));
    let (commit, date) = inside.and_then(|text| text.split_once(", ")).expect(&text);
    let is_commit = commit.len() == 12 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    assert!(is_commit || commit == "unknown", "{text}");
    let numbers: Vec<u32> = date.split('-').map(|number| number.parse().unwrap()).collect();
    assert!(date.len() == 10 && numbers.len() == 3, "{text}");
    assert!(numbers[0] >= 1970 && (1..=12).contains(&numbers[1]), "{text}");
    assert!((1..=31).contains(&numbers[2]), "{text}");
}

#[test]
fn colour_is_for_terminals_or_on_request() {
    let env = TestEnv::new();
    let has_colour = |args: [&str; 5]| env.run(args).stdout.contains(&0x1b);
    assert!(!has_colour(["ensure", "exec", "true", "--color", "auto"]));
    assert!(has_colour(["ensure", "exec", "true", "--color", "always"]));
    assert!(!has_colour(["ensure", "exec", "true", "--color", "never"]));
}

#[test]
fn logs_go_to_standard_error_without_secrets() {
    let env = TestEnv::new();
    let args = ["--debug", "ensure", "exec", "true", "-e", "TOKEN=hunter2", "--log-format", "json"];
    let output = env.run(args);
    let log = String::from_utf8(output.stderr).unwrap();
    let line: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(line["level"], "DEBUG");
    assert!(!log.contains("hunter2"), "{log}");
    assert!(!String::from_utf8(output.stdout).unwrap().contains("running"));
}

#[test]
fn output_that_is_lost_is_told_and_a_reader_that_left_is_not() {
    let env = TestEnv::new();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = env.command(["ensure", "exec", "true", "--json"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("cannot write to standard output"), "{stderr}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = env.command(["ensure", "exec", "true"]).stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
}
