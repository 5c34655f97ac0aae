//! Merging maps.

use std::sync::Arc;

use govalue::{Map, Value};

/// Overrides one map with another: maps merge at all depths, lists append,
/// other values replace.
///
/// ```
/// use govalue::{Map, Value, json};
///
/// let value = |text| json::decode(text, json::Numbers::Ints).unwrap();
/// let mut target = value(r#"{"a": {"b": [1], "c": 2}}"#).as_map().unwrap().clone();
/// let over = value(r#"{"a": {"b": [3], "c": null}}"#);
/// ccm_hiera::mapmerge::deep(&mut target, over.as_map().unwrap());
/// assert_eq!(Value::from(target).to_string(), "map[a:map[b:[1 3] c:<nil>]]");
/// ```
pub fn deep(target: &mut Map, over: &Map) {
    for (key, value) in over.iter() {
        match (target.get_key_mut(key), value) {
            (Some(Value::Map(below)), Value::Map(above)) => deep(Arc::make_mut(below), above),
            (Some(Value::Array(below)), Value::Array(above)) => {
                Arc::make_mut(below).extend(above.iter().cloned());
            }
            (Some(below), above) => *below = above.clone(),
            (None, above) => {
                target.insert(key.clone(), above.clone());
            }
        }
    }
}

/// Takes lists that [`deep`] would append out of where they already are, so that
/// doing so again does not repeat them.
///
/// ```
/// use govalue::{Map, Value, json};
///
/// let value = |text| json::decode(text, json::Numbers::Ints).unwrap();
/// let mut seen = value(r#"{"a": [1, 2], "b": {"c": [3]}, "d": [4]}"#).as_map().unwrap().clone();
/// let over = value(r#"{"a": [2], "b": {"c": [3]}, "d": [5]}"#);
/// ccm_hiera::mapmerge::without_appended(&mut seen, over.as_map().unwrap());
/// assert_eq!(Value::from(seen).to_string(), "map[a:[1] b:map[c:[]] d:[4]]");
/// ```
pub fn without_appended(target: &mut Map, over: &Map) {
    for (key, value) in over.iter() {
        match (target.get_key_mut(key), value) {
            (Some(Value::Map(below)), Value::Map(above)) => {
                without_appended(Arc::make_mut(below), above);
            }
            (Some(Value::Array(below)), Value::Array(above)) if !above.is_empty() => {
                if let Some(start) = below.windows(above.len()).rposition(|run| run == &above[..]) {
                    Arc::make_mut(below).drain(start..start + above.len());
                }
            }
            _ => {}
        }
    }
}

/// Overrides the keys of one map with those of another.
pub fn shallow(target: &mut Map, over: &Map) {
    for (key, value) in over.iter() {
        target.insert(key.clone(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shared_stays_as_it_was() {
        let inner = Value::from(Map::from_iter([("x", 1)]));
        let mut target = Map::from_iter([("m", inner.clone())]);
        deep(&mut target, &Map::from_iter([("m", Value::from(Map::from_iter([("y", 2)])))]));
        assert_eq!(inner.to_string(), "map[x:1]");
        assert_eq!(target.get("m").unwrap().to_string(), "map[x:1 y:2]");
        shallow(&mut target, &Map::from_iter([("m", Value::Nil)]));
        assert_eq!(target.get("m"), Some(&Value::Nil));
    }
}
