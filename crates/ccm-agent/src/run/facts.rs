//! Serialization of facts for a run.

use ccm_facts::{Facts, Layer};
use govalue::{Map, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Facts by where they come from, the strongest last, as they can be sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FactLayers(Vec<(String, Json)>);

/// What the facts of the machine itself are called.
const BUILT_IN: &str = "built-in";

impl FactLayers {
    /// Creates the layers from gathered facts.
    pub fn new(layers: Vec<Layer>) -> Self {
        let layers = layers.into_iter().map(|layer| {
            let name = layer.file.map_or(BUILT_IN.to_owned(), |file| file.display().to_string());
            (name, to_json(&layer.facts.into()))
        });
        Self(layers.collect())
    }

    /// The facts as templates see them.
    pub fn facts(&self) -> ccm_template::Facts {
        let layers = self.0.iter().map(|(name, layer)| {
            let facts = match from_json(layer) {
                Value::Map(map) => std::sync::Arc::unwrap_or_clone(map),
                _ => Map::new(),
            };
            let is_built_in = name == BUILT_IN;
            let facts = if is_built_in { ccm_facts::with_any_initial(facts) } else { facts };
            (name.clone(), facts)
        });
        let layers: Vec<(String, Facts)> = layers.collect();
        ccm_template::Facts::layered(move || {
            (ccm_facts::merged(layers.iter().map(|(_, layer)| layer.clone())), layers)
        })
    }
}

/// Keeps whole numbers and fractions apart, which the JSON of templates does
/// not.
fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => Json::from(*number),
        Value::Float(number) => Json::from(*number),
        Value::Array(items) => Json::Array(items.iter().map(to_json).collect()),
        Value::Map(map) => {
            let members = map
                .iter()
                .map(|(key, value)| (key.clone().into_value().to_string(), to_json(value)));
            Json::Object(members.collect())
        }
        Value::Nil => Json::Null,
        other => Json::String(other.to_string()),
    }
}

fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => Value::array(items.iter().map(from_json)),
        Json::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.as_str(), from_json(value)));
            members.collect::<Map>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use ccm_host::Host;

    use super::*;

    #[test]
    fn facts_arrive_as_they_were_gathered() {
        let host = Host::new();
        let mut layers = ccm_facts::gather_layers(&host, &ccm_facts::Options::new(&host));
        let mut own = Facts::new();
        for fact in ["share=12.0", "whole=12", "word=12a", "site.name=berlin"] {
            ccm_facts::set(&mut own, fact).unwrap();
        }
        own.insert("fraction", 12.0);
        layers.push(Layer { file: Some("/etc/choria/ccm/facts.yaml".into()), facts: own });
        let wanted = Value::from(ccm_facts::merged(layers.iter().map(|layer| layer.facts.clone())));
        let sent = serde_json::to_string(&FactLayers::new(layers)).unwrap();
        let received: FactLayers = serde_json::from_str(&sent).unwrap();
        let facts = received.facts();
        assert_eq!(*facts.get(), wanted);
        let fraction = facts.get().get("fraction").unwrap();
        assert!(matches!(fraction, Value::Float(_)), "{fraction:?}");
        let by_go_name = facts.get().get("host").and_then(|host| host.get("Info"));
        assert!(by_go_name.is_some());
        let path = ["site".to_owned(), "name".to_owned()];
        assert_eq!(facts.origins(&path), ["/etc/choria/ccm/facts.yaml"]);
    }
}
