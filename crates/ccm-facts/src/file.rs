//! One file of facts.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use ccm_host::Host;
use ccm_model::Finding;
use ccm_yaml::{Source, Span};
use govalue::{Value, json};

use crate::{Error, Facts, Result};

/// Far more than facts anyone wrote.
pub(crate) const MAX_FILE: u64 = 16 << 20;

/// Reads a file that the caller asked for: JSON if it is called `.json`, YAML
/// if `.yaml` or `.yml`, else JSON when it begins with `{` or `[`.
///
/// As root, a file that others can change gets a warning; with `CCM_STRICT=1`
/// it is an error.
pub fn read_file(host: &Host, path: &Path) -> Result<Facts> {
    parse(path, host.read_trusted(path, MAX_FILE)?)
}

/// The facts in a text. An empty one has none.
pub(crate) fn parse(path: &Path, text: String) -> Result<Facts> {
    let source = Arc::new(Source::new(path.display().to_string(), text));
    let is_json = is_json(path, source.text());
    let (value, span) = if is_json { from_json(&source) } else { from_yaml(&source) }?;
    let found = match value {
        Value::Map(map) => return Ok(Arc::unwrap_or_clone(map)),
        Value::Nil => return Ok(Facts::new()),
        Value::Array(_) => "a list",
        _ => "a single value",
    };
    let hint = Some("write facts as `name: value`".to_owned());
    let finding = Finding::error(span, format!("facts must be a map, not {found}"));
    Err(syntax(&source, finding.hint(hint)))
}

fn is_json(path: &Path, text: &str) -> bool {
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => true,
        Some("yaml" | "yml") => false,
        _ => text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']),
    }
}

fn from_json(source: &Arc<Source>) -> Result<(Value, Span)> {
    let text = source.text();
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    if body.trim().is_empty() {
        return Ok((Value::Nil, Span::default()));
    }
    let before = text.len() - body.len();
    let start = (text.len() - body.trim_start().len()) as u32;
    let value = json::decode(body, json::Numbers::Ints).map_err(|error| {
        let start = u32::try_from(before + error.offset).unwrap_or(u32::MAX);
        syntax(source, Finding::error(Span { start, end: start + 1 }, error.reason))
    })?;
    Ok((value, Span { start, end: start + 1 }))
}

fn from_yaml(source: &Arc<Source>) -> Result<(Value, Span)> {
    let node = ccm_yaml::parse(source).map_err(|error| {
        syntax(source, Finding::error(error.span, error.message).hint(error.hint))
    })?;
    Ok((ccm_yaml::to_value(&node), node.span))
}

fn syntax(source: &Arc<Source>, finding: Finding) -> Error {
    Error::Syntax { document: Arc::clone(source), finding: Box::new(finding) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> String {
        match parse(Path::new(name), text.to_owned()) {
            Ok(facts) => Value::from(facts).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn names_and_beginnings_tell_the_format() {
        assert_eq!(read("f.json", r#"{"a": 1, "b": 1.5}"#), "map[a:1 b:1.5]");
        assert_eq!(read("f.yaml", "{a: 0x10, b: [yes]}"), "map[a:16 b:[yes]]");
        assert_eq!(read("f.yml", "a: 1"), "map[a:1]");
        assert_eq!(read("facts", " {\"a\": 1}"), "map[a:1]");
        assert_eq!(read("facts", "a: 1"), "map[a:1]");
        assert_eq!(read("f.json", "\u{feff}{}"), "map[]");
    }

    #[test]
    fn whole_numbers_of_json_are_whole() {
        let facts = parse(Path::new("f.json"), r#"{"a": 1000000, "b": 1.0}"#.to_owned()).unwrap();
        assert_eq!(facts.get("a"), Some(&Value::Int(1_000_000)));
        assert_eq!(facts.get("b"), Some(&Value::Float(1.0)));
    }

    #[test]
    fn nothing_is_no_facts() {
        for text in ["", " \n", "# nothing\n", "~"] {
            assert_eq!(read("f.yaml", text), "map[]", "{text:?}");
        }
        assert_eq!(read("f.json", "\n"), "map[]");
        assert_eq!(read("f.json", "null"), "map[]");
    }

    #[test]
    fn errors_point_at_their_place() {
        assert_eq!(read("f.yaml", "a: 1\na: 2\n"), "f.yaml:2:1: duplicate key `a`");
        assert!(read("f.json", "{\n  \"a\": ,\n}").starts_with("f.json:2:8: "));
        assert_eq!(read("f.json", "[1]"), "f.json:1:1: facts must be a map, not a list");
        assert_eq!(read("f.yaml", "text"), "f.yaml:1:1: facts must be a map, not a single value");
    }

    #[test]
    fn only_root_counts_as_root() {
        let stat = Host::new().stat(Path::new("/")).unwrap().unwrap();
        let with =
            |uid, gid, mode| ccm_host::Stat { uid, gid, mode, ..stat }.is_writable_by_others();
        assert!(!with(0, 0, 0o644) && !with(0, 0, 0o664) && !with(0, 5, 0o644));
        assert!(with(1, 0, 0o644) && with(0, 5, 0o664) && with(0, 0, 0o646));
    }
}
