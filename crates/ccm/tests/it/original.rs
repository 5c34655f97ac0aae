//! What the original documents works here: a corpus of manifests, data, requests
//! and command lines.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

const CORPUS: &str = include_str!("../corpus/original.txt");

/// Files that manifests of the corpus name.
const FILES: [(&str, &str); 9] = [
    ("motd.txt", "Welcome\n"),
    ("b", "b\n"),
    ("a.tar", "no archive"),
    (
        "resources.jet",
        "[[ range _, n := data.names ]]- exec: [{\"/bin/echo [[ n ]]\": {}}]\n[[ end ]]",
    ),
    ("greeting.templ", "Hello {{ Data.name }}"),
    ("greeting.jet", "Hello [[ data.name ]]"),
    ("child.yaml", "ccm: {resources: [{exec: [{/bin/true: {}}]}]}\n"),
    ("templates/app.conf", "x\n"),
    ("templates/other.conf", "y\n"),
];

struct Case<'a> {
    title: &'a str,
    directive: &'a str,
    body: &'a str,
}

fn cases() -> Vec<Case<'static>> {
    let blocks = CORPUS.split("\n== ").skip(1);
    let parse = |block: &'static str| {
        let (title, rest) = block.split_once('\n')?;
        let (directive, body) = rest.split_once('\n')?;
        Some(Case { title, directive, body })
    };
    blocks.map(|block| parse(block).unwrap()).collect()
}

fn stage() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

fn ccm(directory: &Path, program: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_ccm")).parent().unwrap();
    let mut command = Command::new(program);
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", binary.display()))
        .env("HOME", directory)
        .env("TMPDIR", directory)
        .env("CCM_STATE_DIR", directory.join(".state"));
    command
}

/// Runs one case; says what went wrong.
fn check(case: &Case<'_>) -> Result<(), String> {
    let stage = stage();
    let here = stage.path();
    let (word, rest) = case.directive.split_once(' ').unwrap_or((case.directive, ""));
    let validated = |text: &str| {
        std::fs::write(here.join("case.yaml"), text).unwrap();
        let output = ccm(here, "ccm").args(["validate", "case.yaml"]).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&said).into_owned())
    };
    match word {
        "valid" => match validated(case.body) {
            (true, _) => Ok(()),
            (false, said) => Err(said),
        },
        "invalid" => match validated(case.body) {
            (false, said) if said.contains(rest) => Ok(()),
            (_, said) => Err(format!("expected an error with {rest:?}: {said}")),
        },
        "hiera" | "hiera-invalid" => {
            std::fs::write(here.join("data.yaml"), case.body).unwrap();
            let (facts, wanted) = rest.split_once("=> ").unwrap_or(("", rest));
            let mut command = ccm(here, "ccm");
            command.args(["hiera", "parse", "data.yaml"]).args(facts.split_whitespace());
            let output = command.output().unwrap();
            if word == "hiera-invalid" {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                let is_told = !output.status.success() && said.contains(rest);
                return if is_told { Ok(()) } else { Err(said) };
            }
            let found: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
            let wanted: Value = serde_json::from_str(wanted).unwrap();
            if found == wanted { Ok(()) } else { Err(found.to_string()) }
        }
        "request" => {
            let mut child = ccm(here, "ccm")
                .args(["ensure", "api", "pipe", "--noop"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(case.body.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let response: Value = serde_json::from_str(&said).map_err(|e| e.to_string())?;
            let is_right = match rest.strip_prefix("error ") {
                None => response["state"]["noop"] == true,
                Some(wanted) => response["error"].as_str().is_some_and(|e| e.contains(wanted)),
            };
            if is_right { Ok(()) } else { Err(said) }
        }
        "command" => {
            let output = ccm(here, "sh").args(["-c", case.body.trim_end()]).output().unwrap();
            if output.status.code().map(|code| code.to_string()).as_deref() == Some(rest) {
                return Ok(());
            }
            let said = [output.stdout, output.stderr].concat();
            Err(format!("{:?}: {}", output.status.code(), String::from_utf8_lossy(&said)))
        }
        other => Err(format!("unknown directive {other}")),
    }
}

#[test]
fn what_the_original_documents_works_here() {
    let cases = cases();
    assert!(cases.len() >= 120, "{}", cases.len());
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| Some(format!("{}: {}", case.title, check(case).err()?)))
        .collect();
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// Messages that the design documents quote, and a command that provokes each.
const QUOTED: [(&str, &str); 12] = [
    ("is not a directory", "ccm ensure file $PWD/none/f"),
    ("file path must be absolute", "ccm ensure file relative"),
    ("could not lookup user", "ccm ensure file $PWD/f --owner nobody-here:0"),
    ("could not lookup group", "ccm ensure file $PWD/f --owner 0:nobody-here"),
    ("provider not found", "ccm ensure exec /bin/true --provider none"),
    ("desired state not achieved", "ccm ensure exec /bin/false"),
    ("no command specified", "ccm ensure exec a --command ' '"),
    ("no command to execute", "ccm ensure exec a --command ' ' --provider shell"),
    ("invalid guard command", "ccm ensure exec /bin/true --exec-if \"'a\""),
    (
        "checksum mismatch",
        "ccm ensure archive $PWD/copy.tar file://$PWD/a.tar --checksum $(printf %064d 1)",
    ),
    (
        "archive type not supported",
        "ccm ensure archive $PWD/a.rar http://127.0.0.1:1/a.rar --extract $PWD/x",
    ),
    ("contains dangerous characters", "ccm ensure service 'a;b' running"),
];

#[test]
fn quoted_messages_are_found_by_their_words() {
    let directory = stage();
    for (words, line) in QUOTED {
        let output = ccm(directory.path(), "sh").args(["-c", line]).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!output.status.success() && said.contains(words), "{line}\n{said}");
    }
}
