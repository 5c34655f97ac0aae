//! Changes that templates make to maps.
//!
//! Go's maps are references: after `m.a = 1` everyone who holds `m` sees the
//! change. The values here are immutable and shared with the caller, so a
//! changed map is kept beside its original, found by the original's identity.

use std::collections::HashMap;
use std::sync::Arc;

use govalue::{Key, Map, Str, Value};

/// Deeper values than this are refused: whoever walks one recurses.
pub(super) const MAX_VALUE_DEPTH: usize = 200;

#[derive(Default)]
pub(super) struct Edits {
    /// By address. The original is kept alive, so no other map can take it.
    maps: HashMap<usize, (Arc<Map>, Map)>,
}

/// A value is too deep or too large to go on with.
#[derive(Debug)]
pub(super) struct TooLarge;

fn address(map: &Arc<Map>) -> usize {
    Arc::as_ptr(map).addr()
}

impl Edits {
    /// The map as it is now.
    pub(super) fn view<'a>(&'a self, map: &'a Arc<Map>) -> &'a Map {
        if self.maps.is_empty() {
            return map;
        }
        self.maps.get(&address(map)).map_or(&**map, |(_, edited)| edited)
    }

    fn edited(&mut self, map: &Arc<Map>) -> &mut Map {
        let entry = self.maps.entry(address(map));
        &mut entry.or_insert_with(|| (Arc::clone(map), Map::clone(map))).1
    }

    pub(super) fn is_edited(&self, map: &Arc<Map>) -> bool {
        self.maps.contains_key(&address(map))
    }

    pub(super) fn insert(&mut self, map: &Arc<Map>, key: &str, value: Value) {
        self.edited(map).insert(Key::from(Str::from(key)), value);
    }

    pub(super) fn remove(&mut self, map: &Arc<Map>, key: &str) {
        self.edited(map).remove(key);
    }

    /// The value with all changes in it, no larger than `room` bytes.
    pub(super) fn applied(&self, value: &Value, room: usize) -> Result<Value, TooLarge> {
        if self.maps.is_empty() || !matches!(value, Value::Array(_) | Value::Map(_)) {
            return Ok(value.clone());
        }
        self.rebuild(value, MAX_VALUE_DEPTH, &mut { room })
    }

    fn rebuild(&self, value: &Value, depth: usize, room: &mut usize) -> Result<Value, TooLarge> {
        spend(room, cost(value))?;
        let depth = depth.checked_sub(1).ok_or(TooLarge)?;
        match value {
            Value::Array(items) => {
                let items = items.iter().map(|item| self.rebuild(item, depth, room));
                Ok(Value::from(items.collect::<Result<Vec<_>, _>>()?))
            }
            Value::Map(map) => {
                let map = self.view(map);
                let mut rebuilt = Map::with_shape(map.shape());
                for (key, value) in map.iter() {
                    spend(room, cost(key.value()))?;
                    rebuilt.insert(key.clone(), self.rebuild(value, depth, room)?);
                }
                Ok(rebuilt.into())
            }
            _ => Ok(value.clone()),
        }
    }
}

/// Bytes that a value takes when written out, about; fails where that exceeds
/// `room` or the value is too deep.
///
/// A list can hold the same list twice, and that one another twice: without a
/// look at the whole, forty steps would make a value that takes years to print.
pub(super) fn weigh(value: &Value, room: usize) -> Result<usize, TooLarge> {
    let mut left = room;
    walk(value, MAX_VALUE_DEPTH, &mut left)?;
    Ok(room - left)
}

fn walk(value: &Value, depth: usize, room: &mut usize) -> Result<(), TooLarge> {
    spend(room, cost(value))?;
    let depth = depth.checked_sub(1).ok_or(TooLarge)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| walk(item, depth, room)),
        Value::Map(map) => map.iter().try_for_each(|(key, value)| {
            spend(room, cost(key.value()))?;
            walk(value, depth, room)
        }),
        _ => Ok(()),
    }
}

fn spend(room: &mut usize, cost: usize) -> Result<(), TooLarge> {
    *room = room.checked_sub(cost).ok_or(TooLarge)?;
    Ok(())
}

fn cost(value: &Value) -> usize {
    let text = match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len().saturating_mul(4),
        _ => 0,
    };
    text.saturating_add(size_of::<Value>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_all_holders() {
        let inner = Arc::new(Map::from_iter([("a", 1)]));
        let outer = Value::array([Value::Map(Arc::clone(&inner)), Value::Map(Arc::clone(&inner))]);
        let mut edits = Edits::default();
        edits.insert(&inner, "b", Value::from(2));
        edits.remove(&inner, "a");
        assert_eq!(edits.applied(&outer, 1000).unwrap().to_string(), "[map[b:2] map[b:2]]");
        assert_eq!(outer.to_string(), "[map[a:1] map[a:1]]");
    }

    #[test]
    fn a_map_that_holds_itself_is_refused() {
        let map = Arc::new(Map::new());
        let mut edits = Edits::default();
        edits.insert(&map, "me", Value::Map(Arc::clone(&map)));
        assert!(edits.applied(&Value::Map(map), usize::MAX).is_err());
    }

    #[test]
    fn doubling_is_noticed() {
        let mut value = Value::array([]);
        for _ in 0..60 {
            value = Value::array([value.clone(), value]);
        }
        assert!(weigh(&value, 1 << 20).is_err());
    }
}
