//! Manifests, data, requests, templates and quotes.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use ccm_testkit::markdown::{Block, Page, pages, root};
use serde_json::Value;

use crate::ccm;

/// What a block of YAML is, by its shape.
#[derive(Debug, PartialEq, Eq)]
enum Shape {
    Manifest,
    Resources,
    Data,
    Request,
    Rules,
    AgentConfiguration,
}

fn shape(text: &str) -> Option<Shape> {
    let begins = |word: &str| text.lines().any(|line| line.starts_with(word));
    let shape = if begins("- ") {
        Shape::Resources
    } else if begins("protocol:") {
        Shape::Request
    } else if begins("ccm:") {
        Shape::Manifest
    } else if begins("manifests:") {
        Shape::AgentConfiguration
    } else if begins("data:") {
        Shape::Data
    } else if ccm_goss::KINDS.iter().any(|kind| begins(&format!("{}:", kind.name))) {
        Shape::Rules
    } else {
        return None;
    };
    Some(shape)
}

/// A directory with the files of a page.
fn stage(page: &Page) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for block in page.blocks() {
        if let Some(name) = block.attribute("file") {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &block.text).unwrap();
        }
    }
    // Sources that resources name exist; what is in them does not matter here.
    for block in page.blocks().iter().filter(|block| block.language == "yaml") {
        for rest in block.text.split("source: ").skip(1) {
            let end = rest.find([',', '}', '\n', ' ']).unwrap_or(rest.len());
            let written = &rest[..end];
            let source = directory.path().join(written);
            let is_here = source.starts_with(directory.path()) && !written.contains("://");
            let is_directory = written.ends_with('/') || block.text.contains("scaffold");
            if is_here && !source.exists() {
                std::fs::create_dir_all(if is_directory {
                    &source
                } else {
                    source.parent().unwrap()
                })
                .unwrap();
                if !is_directory {
                    std::fs::write(source, "").unwrap();
                }
            }
        }
    }
    directory
}

#[test]
fn every_block_of_yaml_is_valid() {
    let mut problems = String::new();
    for page in pages() {
        let stage = stage(&page);
        for block in page.blocks().iter().filter(|block| block.language == "yaml") {
            if let Err(error) = check_yaml(stage.path(), block) {
                problems += &format!("{}: {error}\n", page.at(block.line));
            }
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

fn check_yaml(directory: &Path, block: &Block) -> Result<(), String> {
    let name = block.attribute("file").unwrap_or("block.yaml").to_owned();
    let path = directory.join(&name);
    let shape = shape(&block.text)
        .ok_or("neither a manifest nor resources, data, rules, a request or a configuration")?;
    // One that is wrong on purpose is wrong.
    let is_wrong = block.attributes.iter().any(|word| word == "invalid");
    let mut command = ccm(directory);
    match shape {
        Shape::Request => return check_request(directory, &block.text),
        Shape::Data => {
            std::fs::write(&path, &block.text).unwrap();
            command.args(["hiera", "parse", &name, "--system-facts"]);
        }
        Shape::AgentConfiguration => {
            std::fs::write(&path, &block.text).unwrap();
            command.args(["agent", "--check", "--config", &name]);
        }
        Shape::Rules => {
            std::fs::write(&path, &block.text).unwrap();
            // Whether they hold depends on the machine.
            let output = command.args(["check", &name]).output().unwrap();
            let is_usable = matches!(output.status.code(), Some(0 | 2));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return if is_usable == is_wrong { Err(said) } else { Ok(()) };
        }
        Shape::Manifest | Shape::Resources => {
            let text = match shape {
                Shape::Manifest => block.text.clone(),
                _ => {
                    let lines = block.text.lines();
                    let indented: String = lines.map(|line| format!("    {line}\n")).collect();
                    format!("ccm:\n  resources:\n{indented}")
                }
            };
            std::fs::write(&path, text).unwrap();
            command.args(["validate", &name]);
        }
    }
    let output = command.output().unwrap();
    if output.status.success() != is_wrong {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// Requests are asked for in noop: what is wrong with the request itself is
/// found, whatever the machine is like.
fn check_request(directory: &Path, text: &str) -> Result<(), String> {
    let mut child = ccm(directory)
        .args(["ensure", "api", "pipe", "--noop"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let response: Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    match response.get("state") {
        Some(state) if state["noop"] == true => Ok(()),
        _ => Err(response.to_string()),
    }
}

#[test]
fn every_block_of_json_is_valid() {
    let (request, response) = (schema("resource_ensure_request"), schema("response"));
    let mut requests = 0;
    for page in pages() {
        let stage = stage(&page);
        for block in page.blocks().iter().filter(|block| block.language == "json") {
            let place = page.at(block.line);
            let value: Value =
                serde_json::from_str(&block.text).unwrap_or_else(|e| panic!("{place}: {e}"));
            if block.attribute("from").is_some() {
                continue;
            }
            match value["protocol"].as_str() {
                Some("io.choria.ccm.v1.resource.ensure.request") => {
                    requests += 1;
                    assert!(request.is_valid(&value), "{place}: against its schema");
                    check_request(stage.path(), &block.text)
                        .unwrap_or_else(|e| panic!("{place}: {e}"));
                }
                Some("io.choria.ccm.v1.resource.ensure.response") => {
                    assert!(response.is_valid(&value), "{place}: against its schema");
                }
                other => panic!("{place}: neither a request nor a response: {other:?}"),
            }
        }
    }
    assert!(requests >= 6, "one for each type that is offered");
}

#[test]
fn what_events_are_said_to_hold_they_hold() {
    let text = std::fs::read_to_string(root().join("schemas/v1/event.json")).unwrap();
    let event: Value = serde_json::from_str(&text).unwrap();
    let page = pages().into_iter().find(|page| page.name == "docs/api.md").unwrap();
    let rows = page.rows(&["In `state`"]);
    assert!(!rows.is_empty());
    for (line, row) in rows {
        for name in row[0].split('`').skip(1).step_by(2) {
            assert!(event["properties"].get(name).is_some(), "{}: {name}", page.at(line));
        }
    }
}

/// The schema of that name.
fn schema(name: &str) -> jsonschema::Validator {
    let text = std::fs::read_to_string(root().join(format!("schemas/v1/{name}.json"))).unwrap();
    jsonschema::draft202012::new(&serde_json::from_str(&text).unwrap()).unwrap()
}

#[test]
fn every_template_can_be_parsed() {
    for page in pages() {
        for block in page.blocks() {
            let place = page.at(block.line);
            match &*block.language {
                "jet" => {
                    let set = jet::Set::new().with_delimiters("[[", "]]");
                    set.parse("t", &block.text).unwrap_or_else(|e| panic!("{place}: {e}"));
                }
                "gotemplate" => {
                    let nothing = |_: &[govalue::Value]| Ok(govalue::Value::Nil);
                    let ours = ["lookup", "readFile", "file", "jet", "render", "write"];
                    let engine = ours.iter().fold(gotemplate::Engine::new(), |engine, name| {
                        engine.function(*name, nothing)
                    });
                    engine.parse("t", &block.text).unwrap_or_else(|e| panic!("{place}: {e}"));
                }
                _ => {}
            }
        }
    }
}

/// A block that is part of a file of the project is what is in that file.
#[test]
fn quotes_are_current() {
    for page in pages() {
        for block in page.blocks() {
            let place = page.at(block.line);
            let Some(name) = block.attribute("from") else {
                let is_quote = ["rust", "lua", "python", "sh", "toml", "jsonc"]
                    .contains(&block.language.as_str());
                assert!(!is_quote, "{place}: where is this from?");
                continue;
            };
            let text = std::fs::read_to_string(root().join(name));
            let text = text.unwrap_or_else(|e| panic!("{place}: {name}: {e}"));
            assert!(text.contains(&block.text), "{place}: {name} says something else");
        }
    }
}
