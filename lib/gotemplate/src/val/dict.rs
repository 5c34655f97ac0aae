//! Dictionaries that are shared and changed in place.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use govalue::{Key, Map, MapShape, Str, Value};
use indexmap::IndexMap;

use super::Val;

/// A map. Clones are the same map, as in Go: what one holder sets, all see.
///
/// The caller's maps are taken over only when somebody looks inside, one level
/// at a time, so that handing a template much data costs nothing.
#[derive(Clone)]
pub(crate) struct Dict(Rc<Cell>);

struct Cell {
    shape: MapShape,
    /// A map that was never made: it can be read but not written.
    nil: bool,
    /// The caller's map that this one was made from.
    origin: Option<Arc<Map>>,
    state: RefCell<State>,
}

enum State {
    Host(Arc<Map>),
    Own(IndexMap<Key, Val>),
}

impl Dict {
    /// An empty `map[string]interface {}`.
    pub(crate) fn new() -> Self {
        Self::with(MapShape::StringAny, IndexMap::new())
    }

    /// The `map[string]interface {}` that was never made.
    pub(crate) fn nil() -> Self {
        let state = RefCell::new(State::Own(IndexMap::new()));
        Self(Rc::new(Cell { shape: MapShape::StringAny, nil: true, origin: None, state }))
    }

    pub(crate) fn with(shape: MapShape, entries: IndexMap<Key, Val>) -> Self {
        let state = RefCell::new(State::Own(entries));
        Self(Rc::new(Cell { shape, nil: false, origin: None, state }))
    }

    pub(crate) fn from_map(map: &Arc<Map>) -> Self {
        let state = RefCell::new(State::Host(Arc::clone(map)));
        let origin = Some(Arc::clone(map));
        Self(Rc::new(Cell { shape: map.shape(), nil: false, origin, state }))
    }

    /// The caller's map, if nobody has looked inside yet.
    pub(crate) fn untouched(&self) -> Option<Arc<Map>> {
        match &*self.0.state.borrow() {
            State::Host(map) => Some(Arc::clone(map)),
            State::Own(_) => None,
        }
    }

    /// The caller's map that this one was made from, perhaps changed since.
    pub(crate) fn origin(&self) -> Option<&Arc<Map>> {
        self.0.origin.as_ref()
    }

    /// The key under which a member is found: the caller's maps may know it
    /// under another name.
    fn stored<'a>(&'a self, key: &'a Key) -> &'a Key {
        self.0.origin.as_ref().and_then(|origin| origin.stored_key(key)).unwrap_or(key)
    }

    pub(crate) fn shape(&self) -> MapShape {
        self.0.shape
    }

    pub(crate) fn is_nil(&self) -> bool {
        self.0.nil
    }

    pub(crate) fn type_name(&self) -> &'static str {
        Map::with_shape(self.0.shape).type_name()
    }

    /// Whether both are the very same map.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn len(&self) -> usize {
        match &*self.0.state.borrow() {
            State::Host(map) => map.len(),
            State::Own(entries) => entries.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn get(&self, key: &str) -> Option<Val> {
        self.get_key(&Key::from(key))
    }

    pub(crate) fn get_key(&self, key: &Key) -> Option<Val> {
        if let State::Host(map) = &*self.0.state.borrow() {
            match map.get_key(key)? {
                // Only these have an identity that must be kept.
                Value::Map(_) | Value::Array(_) => {}
                plain => return Some(Val::from(plain)),
            }
        }
        let found =
            self.own(|entries| entries.get(key).or_else(|| entries.get(self.stored(key))).cloned());
        // A member of a struct is there even if it has no value.
        found.or_else(|| match self.0.origin.as_ref()?.get_key(key)? {
            Value::Nil => Some(Val::Nil),
            _ => None,
        })
    }

    pub(crate) fn contains(&self, key: &Key) -> bool {
        match &*self.0.state.borrow() {
            State::Host(map) => map.get_key(key).is_some(),
            State::Own(entries) => {
                entries.contains_key(key) || entries.contains_key(self.stored(key))
            }
        }
    }

    pub(crate) fn insert(&self, key: impl Into<Key>, value: Val) {
        // In a map nothing is missing: it is null.
        let value = if matches!(value, Val::Missing) { Val::Nil } else { value };
        self.own(|entries| entries.insert(key.into(), value));
    }

    pub(crate) fn remove(&self, key: &Key) {
        self.own(|entries| entries.shift_remove(key));
    }

    /// The members in the order in which they were put in.
    pub(crate) fn entries(&self) -> Vec<(Key, Val)> {
        self.own(|entries| {
            entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
        })
    }

    /// The members in order of their keys.
    pub(crate) fn sorted(&self) -> Vec<(Key, Val)> {
        let mut entries = self.entries();
        if self.0.origin.as_ref().is_some_and(|origin| origin.is_struct()) {
            return entries;
        }
        if entries.iter().all(|(key, _)| matches!(key.value(), Value::String(_))) {
            entries.sort_by(|(a, _), (b, _)| text(a).cmp(&text(b)));
            return entries;
        }
        // Keys of mixed types have an order of their own, which maps know.
        let order: Map = entries.iter().map(|(key, _)| (key.clone(), Value::Nil)).collect();
        order
            .sorted()
            .into_iter()
            .filter_map(|(key, _)| Some((key.clone(), self.get_key(key)?)))
            .collect()
    }

    pub(crate) fn clear(&self) {
        // Taken out first: dropping a member may come back to this map.
        let state = self.0.state.replace(State::Own(IndexMap::new()));
        if let State::Own(entries) = state {
            super::dismantle(entries.into_values().collect());
        }
    }

    /// The members, if nobody else holds the map.
    pub(super) fn into_members(self) -> Vec<Val> {
        let Some(cell) = Rc::into_inner(self.0) else { return Vec::new() };
        match cell.state.replace(State::Own(IndexMap::new())) {
            State::Own(entries) => entries.into_values().collect(),
            State::Host(_) => Vec::new(),
        }
    }

    fn own<T>(&self, work: impl FnOnce(&mut IndexMap<Key, Val>) -> T) -> T {
        let mut state = self.0.state.borrow_mut();
        if let State::Host(map) = &*state {
            let entries = map.iter().map(|(key, value)| (key.clone(), Val::from(value)));
            *state = State::Own(entries.collect());
        }
        match &mut *state {
            State::Own(entries) => work(entries),
            // Just replaced; an empty map keeps the types happy.
            State::Host(_) => work(&mut IndexMap::new()),
        }
    }
}

fn text(key: &Key) -> Option<&Str> {
    match key.value() {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Not what is inside: a dictionary may hold itself.
impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dict({} members)", self.len())
    }
}

impl<K: Into<Key>> FromIterator<(K, Val)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, Val)>>(members: I) -> Self {
        let entries = members.into_iter().map(|(key, value)| (key.into(), value));
        Self::with(MapShape::StringAny, entries.collect())
    }
}

/// As with lists: a deep one is taken apart in a loop.
impl Drop for Cell {
    fn drop(&mut self) {
        if let State::Own(entries) = self.state.get_mut()
            && entries.values().any(Val::holds_others)
        {
            super::dismantle(std::mem::take(entries).into_values().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_are_the_same_map() {
        let dict = Dict::new();
        let other = dict.clone();
        other.insert("a", Val::Int(1));
        assert!(matches!(dict.get("a"), Some(Val::Int(1))));
        assert!(dict.same(&other));
    }

    #[test]
    fn members_of_the_callers_maps_keep_their_identity() {
        let inner = Value::from(Map::from_iter([("x", 1)]));
        let map = Arc::new(Map::from_iter([("inner", inner), ("plain", 2.into())]));
        let dict = Dict::from_map(&map);
        assert!(matches!(dict.get("plain"), Some(Val::Int(2))));
        assert!(dict.untouched().is_some());
        let (Some(Val::Dict(a)), Some(Val::Dict(b))) = (dict.get("inner"), dict.get("inner"))
        else {
            panic!("two maps");
        };
        a.insert("x", Val::Int(5));
        assert!(matches!(b.get("x"), Some(Val::Int(5))));
        assert!(dict.untouched().is_none());
    }

    #[test]
    fn a_map_that_holds_itself_can_be_freed() {
        let dict = Dict::new();
        dict.insert("self", Val::list(vec![dict.clone().into()]));
        let watch = Rc::downgrade(&dict.0);
        dict.clear();
        drop(dict);
        assert!(watch.upgrade().is_none());
    }
}
