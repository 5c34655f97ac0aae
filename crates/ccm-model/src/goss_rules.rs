//! Goss rules as written in a manifest. `ccm-goss` evaluates them.

use ccm_yaml::{Entry, Kind, Node};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Serialize, Serializer};

use crate::{
    FromNode, REDACTED, Reader, Resolve, Shape, TemplateError, Templates, redact_credentials,
};

/// Attributes whose values never leave a run.
const SECRET: [&str; 2] = ["password", "request-headers"];

/// A map of rules, or a text that becomes one, with the place of every part.
#[derive(Clone, Debug)]
pub struct GossRules {
    /// The rules, before any placeholder in them is resolved.
    pub node: Node<'static>,
}

impl Default for GossRules {
    fn default() -> Self {
        Self { node: Node::mapping(Vec::new()) }
    }
}

impl FromNode for GossRules {
    const SHAPE: Shape = Shape::Rules;

    fn from_node(node: Node<'_>, reader: &mut Reader) -> Option<Self> {
        match &node.kind {
            Kind::Mapping(_) | Kind::Scalar(_) => Some(Self { node: node.into_owned() }),
            Kind::Sequence(_) => reader.wrong_type(&node, "a map of rules"),
        }
    }

    fn is_set(&self) -> bool {
        true
    }
}

/// They are resolved when the check runs.
impl Resolve for GossRules {
    fn resolve(&mut self, _: &dyn Templates, _: bool) -> Result<(), TemplateError> {
        Ok(())
    }
}

impl Serialize for GossRules {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Redacted(&self.node).serialize(to)
    }
}

/// A part of the rules as it may be shown.
struct Redacted<'a>(&'a Node<'static>);

impl Serialize for Redacted<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0.kind {
            Kind::Scalar(scalar) if scalar.is_null() => to.serialize_unit(),
            Kind::Scalar(scalar) => match ccm_yaml::to_value(self.0) {
                govalue::Value::Bool(flag) => to.serialize_bool(flag),
                govalue::Value::Int(number) => to.serialize_i64(number),
                govalue::Value::Float(number) => to.serialize_f64(number),
                _ => to.serialize_str(&redact_credentials(&scalar.text)),
            },
            Kind::Sequence(items) => {
                let mut list = to.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Self(item))?;
                }
                list.end()
            }
            Kind::Mapping(entries) => {
                let mut map = to.serialize_map(Some(entries.len()))?;
                for Entry { key, value } in entries {
                    let name = redact_credentials(&key.text);
                    if SECRET.contains(&&*key.text) && !value.is_null() {
                        map.serialize_entry(&name, REDACTED)?;
                    } else {
                        map.serialize_entry(&name, &Self(value))?;
                    }
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ccm_yaml::Source;

    use super::*;

    fn read(text: &str) -> (Option<GossRules>, Vec<String>) {
        let source = Source::new("t", text);
        let mut reader = Reader::default();
        let rules = reader.read(ccm_yaml::parse(&source).unwrap());
        (rules, reader.findings.into_iter().map(|finding| finding.message).collect())
    }

    #[test]
    fn rules_keep_their_types_and_no_secrets() {
        let text = "{file: {/a: {exists: true, size: {gt: 5}, mode: '0644', title: ~}}, \
                    http: {'http://u:pw@h/': {status: 200, password: s3cret, \
                    request-headers: ['X-Token: s3cret']}}}";
        let json = serde_json::to_string(&read(text).0.unwrap()).unwrap();
        assert_eq!(
            json,
            r#"{"file":{"/a":{"exists":true,"size":{"gt":5},"mode":"0644","title":null}},\
            "http":{"http://[redacted]@h/":{"status":200,"password":"[redacted]",\
            "request-headers":"[redacted]"}}}"#
                .replace("\\\n            ", "")
        );
        assert_eq!(serde_json::to_string(&read("'{{ x }}'").0.unwrap()).unwrap(), r#""{{ x }}""#);
    }

    #[test]
    fn a_list_is_no_rules() {
        let (rules, findings) = read("[a]");
        assert!(rules.is_none());
        assert_eq!(findings, ["expected a map of rules, found a list"]);
    }
}
