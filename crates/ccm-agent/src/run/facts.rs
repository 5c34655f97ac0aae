//! Serialization of facts for a run.

use ccm_facts::{Facts, Layer};
use govalue::{Exact, Value};
use serde::{Deserialize, Serialize};

/// Facts by where they come from, the strongest last, as they can be sent.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FactLayers(Vec<(String, Value)>);

/// Keeps whole numbers and fractions apart, which the JSON of templates does
/// not.
impl Serialize for FactLayers {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(name, facts)| (name, Exact(facts))))
    }
}

/// What the facts of the machine itself are called.
const BUILT_IN: &str = "built-in";

impl FactLayers {
    /// Creates the layers from gathered facts.
    pub fn new(layers: Vec<Layer>) -> Self {
        let layers = layers.into_iter().map(|layer| {
            let name = layer.file.map_or(BUILT_IN.to_owned(), |file| file.display().to_string());
            (name, layer.facts.into())
        });
        Self(layers.collect())
    }

    /// The facts as templates see them.
    pub fn facts(&self) -> ccm_template::Facts {
        let layers = self.0.iter().map(|(name, layer)| {
            let facts = layer.as_map().cloned().unwrap_or_default();
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
