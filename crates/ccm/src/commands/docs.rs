//! Tests of the documentation: its command lines parse, its generated tables
//! are up to date, and the forms of one example are equivalent.
//! `CCM_WRITE_DOCS=1` regenerates the tables.
#![expect(clippy::disallowed_methods, reason = "tests read the documentation by themselves")]

mod lines;
mod render;

use ccm_engine::{AnyType, Ensure, SourceRef, find_type};
use ccm_host::Host;
use ccm_model::{Reader, Request, Stage};
use ccm_resources::TYPES;
use ccm_template::{Resolver, Scope};
use ccm_testkit::markdown::{Block, Page, pages, regenerate};
use ccm_yaml::Source;
use serde_json::Value;

use super::{ensure, flags};

/// The page on graphs shows the signs that ccm draws.
#[test]
fn the_signs_of_outcomes_are_those_of_the_program() {
    let pages = pages();
    for name in ["why-and-graph.md", "preview.md"] {
        let page = pages.iter().find(|page| page.name.ends_with(name)).unwrap();
        for outcome in ccm_model::Outcome::ALL {
            let row = match name {
                "preview.md" => format!("| `{}` |", outcome.glyph()),
                _ => format!("| `{}` | {} |", outcome.glyph(), outcome.word()),
            };
            assert!(page.text.contains(&row), "{name} has no {row}");
        }
    }
}

/// What a command line is wrong about, if it is.
fn misunderstood(command: &[String]) -> Option<String> {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    match crate::cli().try_get_matches_from(command) {
        Ok(_) => None,
        Err(error) if matches!(error.kind(), DisplayHelp | DisplayVersion) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// The text of a block as a shell would get it.
fn script(block: &Block) -> String {
    let lines = block.text.lines();
    match &*block.language {
        "nohighlight" => block.text.clone(),
        // What follows a prompt, and what goes on from there.
        "console" => {
            let mut goes_on = false;
            let mut script = String::new();
            for line in lines {
                let command = line.strip_prefix("$ ").or_else(|| goes_on.then_some(line));
                goes_on = command.is_some() && line.ends_with('\\');
                if let Some(command) = command {
                    script.push_str(command);
                    script.push('\n');
                }
            }
            script
        }
        _ => String::new(),
    }
}

#[test]
fn every_command_line_is_understood() {
    let (mut problems, mut count) = (String::new(), 0);
    for page in pages() {
        for block in page.blocks() {
            for command in lines::of_ccm(&script(&block)) {
                count += 1;
                if let Some(error) = misunderstood(&command) {
                    problems += &format!("{}: {command:?}\n{error}\n", page.at(block.line));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
    assert!(count > 60, "only {count} command lines were found");
}

/// In these blocks there is nothing but commands; what programs say belongs
/// into others, or the check above would pass it over.
#[test]
fn blocks_of_commands_hold_commands() {
    const KNOWN: [&str; 25] = [
        "apt-get",
        "ccm",
        "cargo",
        "cd",
        "cp",
        "curl",
        "dnf",
        "echo",
        "eval",
        "examples/fleet/fleet.py",
        "export",
        "git",
        "install",
        "journalctl",
        "mdbook",
        "mkdir",
        "man",
        "packaging/overlay.sh",
        "printf",
        "rm",
        "rustup",
        "sh",
        "systemctl",
        "tar",
        "target/release/ccm",
    ];
    for page in pages() {
        for block in page.blocks().iter().filter(|block| block.language == "nohighlight") {
            for command in lines::commands(&block.text) {
                let word = command.iter().find(|word| !word.contains('=') && *word != "sudo");
                let word = word.map(String::as_str).unwrap_or_default();
                assert!(KNOWN.contains(&word), "{}: `{word}`?", page.at(block.line));
            }
        }
    }
}

#[test]
fn every_example_in_the_help_is_understood() {
    fn check(command: &clap::Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for words in lines::of_ccm(help.trim_start_matches("Examples:\n")) {
            assert_eq!(misunderstood(&words), None);
        }
        // Help that is wrapped cannot be copied.
        for line in help.lines() {
            assert!(line.len() <= 80, "{line}");
        }
        command.get_subcommands().for_each(check);
    }
    check(&crate::cli());
}

#[test]
fn commands_within_the_text_exist() {
    for page in pages() {
        for (line, code) in page.inline_code() {
            let mut command = crate::cli();
            let Some(words) = code.strip_prefix("ccm ") else { continue };
            let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
            for word in words.split_whitespace().take_while(is_name) {
                if !command.has_subcommands() {
                    break;
                }
                let found = command.find_subcommand(word);
                command = found.unwrap_or_else(|| panic!("{}: `{code}`", page.at(line))).clone();
            }
            for flag in words.split_whitespace().filter_map(|word| word.strip_prefix("--")) {
                let name = flag.split(['=', '[']).next().unwrap_or_default();
                let is_known = command.get_arguments().any(|arg| arg.get_long() == Some(name))
                    || crate::cli().get_arguments().any(|arg| arg.get_long() == Some(name))
                    || matches!(name, "help" | "version");
                assert!(is_known, "{}: `{code}` has no --{name}", page.at(line));
            }
        }
    }
}

#[test]
fn generated_parts_are_current() {
    let is_writing = std::env::var_os("CCM_WRITE_DOCS").is_some();
    for page in pages() {
        let current = regenerate(&page.text, render::render);
        if is_writing && current != page.text {
            std::fs::write(&page.path, current).unwrap();
        } else {
            assert!(current == page.text, "{}: run `cargo xtask docs`", page.name);
        }
    }
}

/// The page of a type.
fn page_of(kind: &dyn AnyType) -> Page {
    let name = format!("docs/resources/{}.md", kind.name());
    pages().into_iter().find(|page| page.name == name).expect("every type has a page")
}

#[test]
fn every_type_has_a_page_that_knows_it() {
    for kind in TYPES.iter().copied() {
        let page = page_of(kind);
        let generated = format!("<!-- generated: properties {} -->", kind.name());
        assert!(page.text.contains(&generated), "{}: no table of properties", page.name);
        assert!(page.text.contains("> [!info] "), "{}: no callout", page.name);
        let rows = page.rows(&["Value", "Description"]);
        let values: Vec<&str> = rows.iter().map(|(_, row)| row[0].trim_matches('`')).collect();
        match kind.ensure() {
            Ensure::OneOf(words) => assert_eq!(values, words, "{}", page.name),
            Ensure::Any(word) => assert_eq!(values.first(), Some(&word), "{}", page.name),
        }
        for provider in kind.providers() {
            assert!(page.text.contains(&format!("`{provider}`")), "{}: {provider}", page.name);
        }
    }
}

#[test]
fn the_forms_of_an_example_mean_the_same() {
    for kind in TYPES.iter().copied() {
        let page = page_of(kind);
        let blocks = page.blocks();
        let first = |language: &str| blocks.iter().find(|block| block.language == language);
        let manifest = from_manifest(kind, &first("yaml").expect("a manifest").text);
        if kind.command_line().is_none() {
            continue;
        }
        let command = lines::of_ccm(&first("nohighlight").expect("a command").text);
        assert_eq!(from_command(kind, &command[0]), manifest, "{}: command", page.name);
        let request = &first("json").expect("a request").text;
        assert_eq!(from_request(request), manifest, "{}: request", page.name);
    }
}

fn resolver() -> Resolver {
    Resolver::new(Scope::new(&ccm_host::Host::new()))
}

fn from_manifest(kind: &dyn AnyType, text: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("manifest.yaml");
    let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
    std::fs::write(&path, format!("ccm:\n  resources:\n{indented}")).unwrap();
    let engine = flags::engine(&clap::ArgMatches::default(), "docs");
    let options = engine.options(ccm_host::Cancel::default());
    let manifest = engine.load(&SourceRef::new(&path), &options);
    let manifest = manifest.unwrap_or_else(|error| panic!("{}: {error:?}", kind.name()));
    let resources = manifest.declarations.resources;
    let resource = resources.iter().find(|resource| resource.kind() == kind.name());
    resource.expect("a resource of the type").properties()
}

fn from_command(kind: &'static dyn AnyType, command: &[String]) -> Value {
    let matches = crate::cli().try_get_matches_from(command).unwrap();
    let (_, matches) = matches.subcommand().unwrap();
    let (name, matches) = matches.subcommand().unwrap();
    assert_eq!(name, kind.name());
    let arguments = ensure::arguments(kind, matches, &Host::new()).unwrap();
    let mut resource = kind.declare(arguments.into_entries(), None, &mut Reader::default());
    assert!(resource.resolve(Stage::Parse, &resolver()).is_empty());
    resource.properties()
}

fn from_request(text: &str) -> Value {
    let source = Source::new("request", text);
    let request = Request::parse(&source).unwrap();
    let kind = find_type(TYPES, &request.kind).unwrap();
    let mut resource = kind.declare(request.properties, None, &mut Reader::default());
    assert!(resource.resolve(Stage::Parse, &resolver()).is_empty());
    resource.properties()
}
