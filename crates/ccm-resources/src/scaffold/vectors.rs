//! The recorded cases of the reference implementation.
#![expect(clippy::disallowed_methods, reason = "tests set their stage by themselves")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use ccm_engine::{Context, Declare as _, Detail, Findings, ResourceType as _, Trigger};
use ccm_host::Host;
use ccm_model::{Reader, Stage};
use ccm_template::{Facts, Resolver, Scope};
use govalue::{Map, MapShape};
use serde_json::{Map as JsonMap, Value as Json, json};
use vectors::{Vectors, typed};

use super::choria::Choria;
use super::compare::FileStatus;
use super::{FileState, Properties, Provider as _, Scaffold};

/// Makes a tree from paths and contents.
fn make(root: &Path, files: &Json) {
    for (path, content) in files.as_object().into_iter().flatten() {
        let (path, content) = (root.join(path), content.as_str().unwrap());
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            fs::create_dir_all(&path).unwrap();
            continue;
        }
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content.strip_prefix("$symlink:") {
            Some(target) => symlink(target, &path).unwrap(),
            None => fs::write(&path, content).unwrap(),
        }
    }
}

/// The tree as the cases write it down.
fn tree(root: &Path) -> Json {
    fn add(root: &Path, path: &Path, into: &mut JsonMap<String, Json>) {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            let mode = format!("{:04o}", meta.permissions().mode() & 0o7777);
            if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                into.insert(name, json!({"symlink": target.to_str().unwrap()}));
            } else if meta.is_dir() {
                into.insert(format!("{name}/"), json!({"mode": mode}));
                add(root, &path, into);
            } else {
                let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                into.insert(name, json!({"content": content, "mode": mode}));
            }
        }
    }
    if !root.exists() {
        return Json::Null;
    }
    let mut map = JsonMap::new();
    add(root, root, &mut map);
    map.into()
}

fn engine(environments: &Json, name: &str) -> Resolver {
    let part = |name: &str, part: &str| {
        typed::decode(&environments[name][part]).as_map().cloned().unwrap_or_default()
    };
    let mut environ = Map::with_shape(MapShape::Strings);
    for (key, value) in part(name, "environ").iter() {
        environ.insert(key.clone(), value.clone());
    }
    Resolver::new(Scope {
        facts: Facts::known(part(name, "facts")),
        data: part(name, "data"),
        environ,
        directory: "/".into(),
        ..Scope::new(&ccm_host::Host::new())
    })
}

/// The properties of a case; `Err` if they are invalid.
fn properties(input: &Json, target: &Path, source: &Path) -> Result<Properties, String> {
    let mut wanted = json!({
        "name": target.to_str().unwrap(),
        "ensure": "present",
        "source": source.to_str().unwrap(),
        "engine": input["engine"],
    });
    // The library's own defaults are those of Go templates in both languages.
    let is_bare = input.get("left").is_none() && input.get("right").is_none();
    let default = |text| if is_bare { json!(text) } else { Json::Null };
    wanted["left_delimiter"] = input.get("left").cloned().unwrap_or_else(|| default("{{"));
    wanted["right_delimiter"] = input.get("right").cloned().unwrap_or_else(|| default("}}"));
    for name in ["skip_empty", "post"] {
        if let Some(value) = input.get(name) {
            wanted[name] = value.clone();
        }
    }
    let text = wanted.to_string();
    let yaml = ccm_yaml::Source::new("case", text);
    let ccm_yaml::Kind::Mapping(entries) = ccm_yaml::parse(&yaml).unwrap().kind else { panic!() };
    let (mut reader, mut properties) = (Reader::default(), Properties::default());
    reader.fill(&mut properties, entries);
    assert!(reader.findings.is_empty(), "{:?}", reader.findings);
    let mut findings = Findings::default();
    Scaffold::validate(&properties, Stage::Apply, &mut findings);
    if findings.is_empty() { Ok(properties) } else { Err(format!("{findings:?}")) }
}

/// Renders and compares, and acts unless it is a preview.
fn step(
    properties: &Properties,
    engine: &Resolver,
    directory: &Path,
    is_preview: bool,
) -> ccm_engine::Result<Vec<Json>> {
    let host = Host::new();
    let mut provider = Choria { host, stage: None };
    let mut cx = Context {
        working_directory: directory,
        templates: engine,
        trigger: Trigger::Turn,
        awaited: None,
        unsettled: None,
        skips_post: false,
        at_apply: Vec::new(),
        declared: &ccm_engine::DeclaredPaths::default(),
        detail: Detail::Decide,
        offline: false,
        decisions: &ccm_engine::DecisionPolicy::Free,
        key: "",
        extractions: None,
        recorder: &mut ccm_engine::NoRecorder,
        output: &mut |_| {},
    };
    let state = provider.observe(properties, &mut cx)?;
    let action = |file: &FileState| {
        let word = match file.status {
            FileStatus::Added => "add",
            FileStatus::Updated => "update",
            FileStatus::Uncompared => unreachable!("commands are run here"),
            FileStatus::Equal => "equal",
            FileStatus::Foreign => "remove",
        };
        json!({"action": word, "path": file.place.to_str().unwrap()})
    };
    let actions = state.files.iter().map(action).collect();
    if !is_preview {
        for step in Scaffold::decide(properties, &state, Trigger::Turn)? {
            Scaffold::act(&mut provider, &step.action, &mut cx)?;
        }
    }
    Ok(actions)
}

fn run_case(case: &Json, environments: &Json) -> Result<(), String> {
    let input = &case["input"];
    let directory = tempfile::tempdir().unwrap();
    let (source, target) = (directory.path().join("src"), directory.path().join("target"));
    fs::create_dir(&source).unwrap();
    make(&source, &input["source"]);
    if let Some(files) = input.get("target") {
        fs::create_dir(&target).unwrap();
        make(&target, files);
    }
    let mut engine_now = engine(environments, case["env_ref"].as_str().unwrap());
    let mut wanted = case["want"].as_array().unwrap().iter();
    let text = |step: &Json, name: &str| step[name].as_str().unwrap_or_default().to_owned();
    for (number, one) in input["steps"].as_array().unwrap().iter().enumerate() {
        let at = |root: &Path| root.join(text(one, "path"));
        let remove = |path: &Path| {
            let removed =
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed.unwrap();
        };
        let write = |path: &Path| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text(one, "content")).unwrap();
        };
        let op = text(one, "op");
        match op.as_str() {
            "write" => write(&at(&target)),
            "remove" => remove(&at(&target)),
            "chmod" => {
                let mode = u32::from_str_radix(&text(one, "mode"), 8).unwrap();
                fs::set_permissions(at(&target), fs::Permissions::from_mode(mode)).unwrap();
            }
            "source_write" => write(&at(&source)),
            "source_remove" => remove(&at(&source)),
            "env" => engine_now = engine(environments, &text(one, "env_ref")),
            "noop" | "render" => {
                let want = wanted.next().unwrap();
                let got = properties(input, &target, &source).and_then(|mut properties| {
                    properties.purge = one["purge"] == true;
                    step(&properties, &engine_now, directory.path(), op == "noop")
                        .map_err(|error| ccm_engine::chain(&error))
                });
                let fail = |got: String| Err(format!("step {number}: {got}"));
                match (got, want["want_error"] == true) {
                    (Err(error), false) => return fail(error),
                    (Ok(actions), true) => return fail(format!("no error: {actions:?}")),
                    (Ok(actions), false) if Json::from(actions.clone()) != want["actions"] => {
                        return fail(format!("{actions:?}"));
                    }
                    (Err(_), true) | (Ok(_), false) => {}
                }
                if tree(&target) != want["tree"] {
                    return fail(format!("tree {}", tree(&target)));
                }
            }
            other => panic!("unknown step {other}"),
        }
    }
    Ok(())
}

#[test]
fn conformance_scaffold() {
    let vectors = Vectors::new("scaffold.jsonl", env!("CARGO_MANIFEST_DIR"));
    let environments = vectors.environment("scaffold.env.json");
    vectors.run(|case| run_case(case, &environments));
}
