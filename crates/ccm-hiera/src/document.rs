//! Documents: parsed to a tree of values, with the rules in comments.

use std::collections::HashMap;
use std::sync::Arc;

use ccm_yaml::{Comments, Kind, Node, Source, Span, parse_annotated, to_value};
use govalue::{Map, Value, json};

use crate::rules::Annotations;
use crate::{DATA, Error};

/// Hierarchical data as it was written.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) root: Map,
    pub(crate) annotations: Annotations,
    pub(crate) data_key: String,
    /// The source text, if it is a separate document.
    written: Option<Arc<Source>>,
}

impl Document {
    /// Reads a document: JSON when it begins with `{` or `[`, else YAML. `name`
    /// is its display name.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        Self::parse_keyed(name, text, DATA)
    }

    /// As [`Document::parse`], with the data under another key.
    pub fn parse_keyed(name: &str, text: &str, data_key: &str) -> Result<Self, Error> {
        let source = Arc::new(Source::new(name, text));
        let document = Self::read(&source, data_key)?;
        Ok(Self { written: Some(source), ..document })
    }

    /// The name and the text that it was read from, if it is a document of its
    /// own.
    pub fn written(&self) -> Option<(&str, &str)> {
        self.written.as_ref().map(|source| (source.name(), source.text()))
    }

    /// The rules in the comments of its keys.
    pub fn rules(&self) -> &[crate::Rule] {
        &self.annotations.rules
    }

    /// The same error with its position, where the text is known.
    pub(crate) fn located(&self, error: Error) -> Error {
        let Some(document) = self.written.clone() else { return error };
        let span = ccm_yaml::parse(&document).ok().and_then(|root| error.locate(&root, &document));
        let Some(span) = span else { return error };
        Error::Located { document, span, error: Box::new(error) }
    }

    /// Display name of the text it was read from.
    pub(crate) fn name(&self) -> Option<&str> {
        self.written.as_ref().map(|source| source.name())
    }

    /// The line of every key of the data and the overrides, by its path from the
    /// top; nothing where the text is not known.
    pub(crate) fn key_lines(&self) -> HashMap<Vec<String>, usize> {
        let mut lines = HashMap::new();
        let Some(source) = &self.written else { return lines };
        if let Ok(root) = ccm_yaml::parse(source) {
            add_lines(&root, source, &mut Vec::new(), &mut lines, &|key| {
                key == self.data_key || key == "overrides"
            });
        }
        lines
    }

    fn read(source: &Arc<Source>, data_key: &str) -> Result<Self, Error> {
        let text = source.text();
        let located = |span, error| Error::Located {
            document: Arc::clone(source),
            span,
            error: Box::new(error),
        };
        let wrong = |span, message, hint| located(span, Error::Syntax { message, hint });
        if text.trim_start().starts_with(['{', '[']) {
            let value = json::decode(text, json::Numbers::Ints).map_err(|error| {
                let start = error.offset as u32;
                wrong(Span { start, end: start + 1 }, error.reason.to_owned(), None)
            })?;
            let start = (text.len() - text.trim_start().len()) as u32;
            let read = Self::new(value, Annotations::default(), data_key);
            return read.map_err(|error| located(Span { start, end: start + 1 }, error));
        }
        let (root, comments) = parse_annotated(source)
            .map_err(|error| wrong(error.span, error.message, error.hint))?;
        let annotations = Annotations::read(&root, &comments, data_key);
        let read = Self::new(to_value(&root), annotations, data_key);
        read.map_err(|error| located(root.span, error))
    }

    /// The data of a manifest, or of anything else that was read already. Only
    /// the sections that matter are looked at.
    pub fn from_node(root: &Node<'_>, comments: &Comments, data_key: &str) -> Result<Self, Error> {
        let annotations = Annotations::read(root, comments, data_key);
        let value = match &root.kind {
            Kind::Mapping(entries) => entries
                .iter()
                .filter(|entry| {
                    let key = &*entry.key.text;
                    key == data_key || matches!(key, "hierarchy" | "overrides")
                })
                .map(|entry| (&*entry.key.text, to_value(&entry.value)))
                .collect::<Map>()
                .into(),
            _ => to_value(root),
        };
        Self::new(value, annotations, data_key)
    }

    fn new(value: Value, annotations: Annotations, data_key: &str) -> Result<Self, Error> {
        let described = match value {
            Value::Nil => "nothing",
            Value::Array(_) => "a list",
            _ => "a single value",
        };
        let Value::Map(root) = normalized(value) else {
            return Err(Error::NotAMap { found: described });
        };
        let root = std::sync::Arc::unwrap_or_clone(root);
        Ok(Self { root, annotations, data_key: data_key.to_owned(), written: None })
    }

    /// Whether this has the shape of hierarchical data rather than of a plain
    /// map: `data` or `hierarchy` at the top.
    pub fn is_hierarchical(&self) -> bool {
        self.root.contains_key(&self.data_key) || self.root.contains_key("hierarchy")
    }

    /// The whole document as a map.
    pub fn root(&self) -> &Map {
        &self.root
    }
}

/// Adds the lines of the keys of a map, all the way down below those at the top
/// that are `wanted`. Trees are only so deep as the parser allows.
fn add_lines(
    node: &Node<'_>,
    source: &Source,
    path: &mut Vec<String>,
    lines: &mut HashMap<Vec<String>, usize>,
    wanted: &dyn Fn(&str) -> bool,
) {
    let Kind::Mapping(entries) = &node.kind else { return };
    let is_below = !path.is_empty();
    for entry in entries.iter().filter(|entry| is_below || wanted(&entry.key.text)) {
        path.push(entry.key.text.to_string());
        lines.insert(path.clone(), source.line(entry.key.span.start));
        add_lines(&entry.value, source, path, lines, wanted);
        path.pop();
    }
}

/// Numbers that are whole become integers.
fn normalized(value: Value) -> Value {
    if is_normal(&value) { value } else { rebuilt(value) }
}

fn rebuilt(value: Value) -> Value {
    match value {
        Value::Float(number) if is_whole(number) => Value::Int(number as i64),
        Value::Array(items) => Value::array(items.iter().cloned().map(rebuilt)),
        Value::Map(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), rebuilt(value.clone())))
            .collect::<Map>()
            .into(),
        other => other,
    }
}

fn is_normal(value: &Value) -> bool {
    match value {
        Value::Float(number) => !is_whole(*number),
        Value::Array(items) => items.iter().all(is_normal),
        Value::Map(map) => map.iter().all(|(_, value)| is_normal(value)),
        _ => true,
    }
}

fn is_whole(number: f64) -> bool {
    // The upper bound itself does not fit.
    number.fract() == 0.0
        && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Document::parse("t", text) {
            Ok(document) => Value::from(document.root).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn json_and_yaml() {
        assert_eq!(shown(" \n{\"a\": [1.0, 1.5, 1e21]}"), "map[a:[1 1.5 1e+21]]");
        assert_eq!(shown("a: [1.0, 1.5, 1e21]\n"), "map[a:[1 1.5 1e21]]");
        assert_eq!(shown("a: 1\n---\nb: 2\n"), "map[a:1]");
        assert!(shown("{bad").starts_with("t:1:2: "), "{}", shown("{bad"));
        assert!(shown("a: [\n").starts_with("t:1:4: "), "{}", shown("a: [\n"));
        for text in ["5", "[]", "just text", ""] {
            assert!(Document::parse("t", text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_resolved_or_refused(text in r#"([-{}\[\]:#@&*"'| \n,~0-9a-c]|data:\n|\n  |\# @require|\# @validate |\{\{ ){0,40}"#) {
            if let Ok(document) = Document::parse("t", &text) {
                let _ = document.resolve(&ccm_host::Host::new(), &ccm_template::Facts::default(), None);
            }
        }
    }

    #[test]
    fn a_manifest_brings_its_own_data() {
        let text = "data:\n  # @require\n  a: 1.0\nccm:\n  resources: []\noverrides:\n  \
                    default: {b: 2}\n";
        let source = Source::new("m", text);
        let (root, comments) = parse_annotated(&source).unwrap();
        let document = Document::from_node(&root, &comments, DATA).unwrap();
        assert!(!document.root().contains_key("ccm"));
        let resolved = document
            .resolve(&ccm_host::Host::new(), &ccm_template::Facts::default(), None)
            .unwrap();
        assert_eq!(Value::from(resolved.data).to_string(), "map[a:1 b:2]");
        assert_eq!(resolved.rules[0].key, "a");
    }

    #[test]
    fn shapes() {
        let is = |text| Document::parse("t", text).unwrap().is_hierarchical();
        assert!(is("data: {}\n") && is("hierarchy: {order: []}\n") && !is("a: 1\n"));
    }
}
