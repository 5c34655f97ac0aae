//! Merges layers of facts.

use std::sync::Arc;

use govalue::{Map, Value};

use crate::{Error, Facts, Result};

/// Overrides `facts` with `over`: maps merge at all depths, other values
/// replace. Lists do not grow, so that a layer can take something out of one.
///
/// ```
/// use govalue::{Map, Value};
/// let layer = |text| ccm_yaml::to_value(&ccm_yaml::parse(text).unwrap());
/// let under = ccm_yaml::Source::new("a", "net: {mtu: 1500, dns: [a, b]}");
/// let over = ccm_yaml::Source::new("b", "net: {dns: [c]}");
/// let mut facts = layer(&under).as_map().unwrap().clone();
/// ccm_facts::merge(&mut facts, layer(&over).as_map().unwrap().clone());
/// assert_eq!(Value::from(facts).to_string(), "map[net:map[dns:[c] mtu:1500]]");
/// ```
pub fn merge(facts: &mut Facts, over: Facts) {
    for (key, value) in over {
        match (facts.get_key_mut(&key), value) {
            (Some(Value::Map(below)), Value::Map(above)) => {
                merge(Arc::make_mut(below), Arc::unwrap_or_clone(above));
            }
            (Some(below), value) => *below = value,
            (None, value) => {
                facts.insert(key, value);
            }
        }
    }
}

/// Sets one fact from `name=value`. The value is text, whatever it looks like;
/// a name with dots, `a.b=value`, sets a fact within another one and makes a
/// map of what is in the way.
pub fn set(facts: &mut Facts, argument: &str) -> Result<()> {
    let wrong = || Error::Argument { argument: argument.to_owned() };
    let (name, value) = argument.split_once('=').ok_or_else(wrong)?;
    if name.split('.').any(str::is_empty) {
        return Err(wrong());
    }
    let path: Vec<_> = name.split('.').collect();
    let layer = path
        .into_iter()
        .rev()
        .fold(Value::from(value), |value, key| Map::from_iter([(key, value)]).into());
    if let Value::Map(layer) = layer {
        merge(facts, Arc::unwrap_or_clone(layer));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ccm_yaml::{Source, parse, to_value};
    use proptest::prelude::*;

    use super::*;

    fn facts(text: &str) -> Facts {
        to_value(&parse(&Source::new("t", text)).unwrap()).as_map().unwrap().clone()
    }

    fn merged(below: &str, above: &str) -> String {
        let mut found = facts(below);
        merge(&mut found, facts(above));
        Value::from(found).to_string()
    }

    #[test]
    fn maps_merge_and_the_rest_is_replaced() {
        assert_eq!(
            merged("{a: {b: 1, c: {d: 2}}}", "{a: {c: {e: 3}}}"),
            "map[a:map[b:1 c:map[d:2 e:3]]]"
        );
        assert_eq!(merged("{a: [1, 2], b: 1}", "{a: [3]}"), "map[a:[3] b:1]");
        assert_eq!(merged("{a: {b: 1}}", "{a: 5}"), "map[a:5]");
        assert_eq!(merged("{a: 5}", "{a: {b: 1}}"), "map[a:map[b:1]]");
        assert_eq!(merged("{a: {b: 1}}", "{a: ~}"), "map[a:<nil>]");
        assert_eq!(merged("{a: 1}", "{}"), "map[a:1]");
    }

    #[test]
    fn order_is_kept() {
        let mut found = facts("{b: 1, a: 2}");
        merge(&mut found, facts("{c: 3, b: 4}"));
        let keys: Vec<_> = found.keys().filter_map(|key| key.as_str()).collect();
        assert_eq!(keys, ["b", "a", "c"]);
    }

    #[test]
    fn single_facts_are_text() {
        let mut found = facts("{site: {name: x, floor: 2}, port: 1}");
        for argument in ["site.name=berlin", "port=8080", "a.b.c=x=y", "empty=", "port.in=1"] {
            set(&mut found, argument).unwrap();
        }
        let value = Value::from(found);
        assert_eq!(
            value.to_string(),
            "map[a:map[b:map[c:x=y]] empty: port:map[in:1] site:map[floor:2 name:berlin]]"
        );
        assert_eq!(value.get("port").unwrap().get("in"), Some(&Value::from("1")));
    }

    #[test]
    fn arguments_need_a_name() {
        for argument in ["", "name", "=value", "a..b=1", ".a=1", "a.=1"] {
            let error = set(&mut Facts::new(), argument).unwrap_err();
            assert_eq!(error.to_string(), format!("`{argument}` is not a fact"));
            assert!(error.hint().is_some());
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Nil), any::<i64>().prop_map(Value::from)];
        leaf.prop_recursive(3, 16, 4, |inner| {
            let members = prop::collection::vec(("[abc]", inner.clone()), 0..4);
            prop_oneof![
                members.prop_map(|members| members.into_iter().collect::<Map>().into()),
                prop::collection::vec(inner, 0..3).prop_map(Value::array),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_layer_over_itself_changes_nothing(value in any_value()) {
            if let Value::Map(map) = &value {
                let mut facts = Map::clone(map);
                merge(&mut facts, Map::clone(map));
                prop_assert_eq!(Value::from(facts), value);
            }
        }

        #[test]
        fn what_the_upper_layer_says_holds(below in any_value(), above in any_value()) {
            if let (Value::Map(below), Value::Map(above)) = (below, above) {
                let mut facts = Map::clone(&below);
                merge(&mut facts, Map::clone(&above));
                for (key, value) in above.iter().filter(|(_, value)| value.as_map().is_none()) {
                    prop_assert_eq!(facts.get_key(key), Some(value));
                }
            }
        }
    }
}
