//! Free data in properties: maps with any keys and values.

use ccm_yaml::{Kind, Node};
use govalue::{Map, Value, json};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::{FromNode, Reader, Resolve, Shape, TemplateError, Templates};

/// A map with any keys and values, as templates see data.
#[derive(Clone, Debug, Default)]
pub struct Data(pub Map);

impl FromNode for Data {
    const SHAPE: Shape = Shape::Map;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        match (&node.kind, ccm_yaml::to_value(&node)) {
            (Kind::Mapping(_), Value::Map(map)) => Some(Self(map.as_ref().clone())),
            _ => reader.wrong_type(&node, "a map"),
        }
    }

    fn is_set(&self) -> bool {
        true
    }
}

impl Resolve for Data {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        let mut value = Value::from(std::mem::take(&mut self.0));
        let resolved = value.resolve(templates, keys);
        if let Value::Map(map) = value {
            self.0 = map.as_ref().clone();
        }
        resolved
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0.iter() {
            let options = json::Options { escape_html: false, ..json::Options::default() };
            let text = json::encode(value, options).ok();
            let json = text.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
            // What JSON has no form for is shown as it prints.
            let json = json.unwrap_or_else(|| value.to_string().into());
            map.serialize_entry(&key.value().to_string(), &json)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use ccm_yaml::Source;

    use super::*;
    use crate::PlainText;

    fn read(text: &str) -> (Option<Data>, Vec<String>) {
        let source = Source::new("t", text);
        let mut reader = Reader::default();
        let data = reader.read(ccm_yaml::parse(&source).unwrap());
        (data, reader.findings.into_iter().map(|finding| finding.message).collect())
    }

    #[test]
    fn values_keep_their_types() {
        let (data, _) = read("{n: 1, f: 1.5, t: '1', l: [a, ~], m: {x: true}, 5: e, i: .inf}");
        assert_eq!(
            serde_json::to_string(&data.unwrap()).unwrap(),
            r#"{"n":1,"f":1.5,"t":"1","l":["a",null],"m":{"x":true},"5":"e","i":"+Inf"}"#
        );
    }

    #[test]
    fn only_maps_are_data() {
        assert_eq!(read("[a]").1, ["expected a map, found a list"]);
        assert_eq!(read("a").1, ["expected a map, found text"]);
    }

    #[test]
    fn texts_inside_are_templates() {
        let mut data = read("{a: [{b: '{{ c }}'}]}").0.unwrap();
        assert!(data.resolve(&PlainText, false).is_err());
        let mut data = read("{a: [{b: c}], '{{ k }}': 1}").0.unwrap();
        data.resolve(&PlainText, false).unwrap();
        assert_eq!(serde_json::to_string(&data).unwrap(), r#"{"a":[{"b":"c"}],"{{ k }}":1}"#);
    }
}
