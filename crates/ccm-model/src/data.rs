//! Properties that hold arbitrary data.

use ccm_yaml::{Kind, Node};
use govalue::{Map, Value};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

use crate::{FromNode, Reader, Resolve, Shape, TemplateError, Templates};

/// A map of anything. Strings in it may be templates, and then become values
/// of any type.
///
/// ```
/// use ccm_model::{Data, Reader};
///
/// let source = ccm_yaml::Source::new("d", "{port: 8080, tags: [a, ~]}");
/// let data: Data = Reader::default().read(ccm_yaml::parse(&source)?).unwrap();
/// assert_eq!(serde_json::to_string(&data).unwrap(), r#"{"port":8080,"tags":["a",null]}"#);
/// # Ok::<(), ccm_yaml::SyntaxError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Data(pub Map);

impl FromNode for Data {
    const SHAPE: Shape = Shape::Data;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        if !matches!(node.kind, Kind::Mapping(_)) {
            return reader.wrong_type(&node, "a map");
        }
        ccm_yaml::to_value(&node).as_map().cloned().map(Self)
    }

    fn is_set(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Resolve for Data {
    fn resolve(&mut self, templates: &dyn Templates, keys: bool) -> Result<(), TemplateError> {
        let mut value = Value::from(std::mem::take(&mut self.0));
        let result = value.resolve(templates, keys);
        if let Value::Map(map) = value {
            self.0 = std::sync::Arc::unwrap_or_clone(map);
        }
        result
    }
}

impl Serialize for Data {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0.iter() {
            map.serialize_entry(&key.value().to_string(), &RedactedValue(value))?;
        }
        map.end()
    }
}

/// A value as JSON shows it.
struct RedactedValue<'a>(&'a Value);

impl Serialize for RedactedValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Nil => to.serialize_unit(),
            Value::Bool(flag) => to.serialize_bool(*flag),
            Value::Int(number) => to.serialize_i64(*number),
            Value::Float(number) => to.serialize_f64(*number),
            Value::Array(items) => {
                let mut list = to.serialize_seq(Some(items.len()))?;
                for item in items.iter() {
                    list.serialize_element(&Self(item))?;
                }
                list.end()
            }
            Value::Map(map) => {
                let mut shown = to.serialize_map(Some(map.len()))?;
                for (key, value) in map.iter() {
                    shown.serialize_entry(&key.value().to_string(), &Self(value))?;
                }
                shown.end()
            }
            other => to.collect_str(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use ccm_yaml::Source;

    use super::*;
    use crate::resolve::PlainText;

    fn read(text: &str) -> (Option<Data>, Vec<String>) {
        let source = Source::new("t", text);
        let mut reader = Reader::default();
        let data = reader.read(ccm_yaml::parse(&source).unwrap());
        (data, reader.findings.into_iter().map(|finding| finding.message).collect())
    }

    #[test]
    fn values_keep_their_types() {
        let (data, _) = read("{n: 1, f: 1.5, t: '1', l: [a, ~], m: {x: true}, 5: e}");
        assert_eq!(
            serde_json::to_string(&data.unwrap()).unwrap(),
            r#"{"n":1,"f":1.5,"t":"1","l":["a",null],"m":{"x":true},"5":"e"}"#
        );
    }

    #[test]
    fn only_maps_are_data() {
        assert_eq!(read("[a]").1, ["expected a map, found a list"]);
        assert_eq!(read("a").1, ["expected a map, found a string"]);
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
