//! Go's maps, with the order of insertion kept.

use std::hash::{Hash, Hasher};

use indexmap::{Equivalent, IndexMap};

use crate::{Str, Value};

/// The Go type of a map: what its keys and values may be, and so what a missing
/// key yields in languages that ask for the zero value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MapShape {
    /// `map[string]interface {}`
    #[default]
    StringAny,
    /// `map[string]string`
    Strings,
    /// `map[interface {}]interface {}`
    AnyAny,
    /// `map[interface {}][]interface {}`
    AnyList,
}

impl MapShape {
    /// The zero value that Go's indexing returns for a missing key.
    pub fn zero(self) -> Value {
        match self {
            Self::StringAny | Self::AnyAny => Value::Nil,
            Self::Strings => Value::from(""),
            Self::AnyList => Value::array([]),
        }
    }

    /// Whether only strings can be keys.
    pub fn string_keys(self) -> bool {
        matches!(self, Self::StringAny | Self::Strings)
    }
}

/// A map that iterates in order of insertion and prints in order of its keys.
#[derive(Clone, Debug, Default)]
pub struct Map {
    entries: IndexMap<Key, Value>,
    shape: MapShape,
    nil: bool,
    reflected: bool,
    any_initial: bool,
    /// The members of a struct that may be missing; `None` for a map.
    optional: Option<&'static [&'static str]>,
}

/// What a member of a struct is that has no value.
static NIL: Value = Value::Nil;

/// A value that can be a key: anything but lists, maps and bytes.
#[derive(Clone, Debug)]
pub struct Key(Value);

/// The value cannot be a key, because Go cannot hash its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unhashable(pub &'static str);

impl std::fmt::Display for Unhashable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hash of unhashable type {}", self.0)
    }
}

impl std::error::Error for Unhashable {}

impl Key {
    /// The value this key stands for.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The text, if the key is a string of valid UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_str()
    }

    /// The value this key stands for.
    pub fn into_value(self) -> Value {
        self.0
    }
}

impl TryFrom<Value> for Key {
    type Error = Unhashable;

    fn try_from(value: Value) -> Result<Self, Unhashable> {
        match value {
            Value::Array(_) | Value::Map(_) | Value::Bytes(_) => Err(Unhashable(value.type_name())),
            _ => Ok(Self(value)),
        }
    }
}

impl<T: Into<Str>> From<T> for Key {
    fn from(text: T) -> Self {
        Self(Value::String(text.into()))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        crate::deep_equal(&self.0, &other.0)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            // Strings hash as bytes alone, so that a `&str` can be looked up.
            Value::String(text) => text.hash(state),
            Value::Bool(value) => (1u8, value).hash(state),
            Value::Int(value) => (2u8, value).hash(state),
            // Both zeros are one key.
            Value::Float(value) => (3u8, (value + 0.0).to_bits()).hash(state),
            Value::Duration(value) => (4u8, value.0).hash(state),
            Value::Sized(kind, value) => (kind, value).hash(state),
            Value::Time(time) => (5u8, time.unix()).hash(state),
            _ => 0u8.hash(state),
        }
    }
}

/// A borrowed key, hashed as a string [`Key`] is.
struct Borrowed<'a>(&'a [u8]);

impl Hash for Borrowed<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<Key> for Borrowed<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        matches!(&key.0, Value::String(text) if text.as_bytes() == self.0)
    }
}

impl Map {
    /// An empty `map[string]interface {}`.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty map of the given type.
    pub fn with_shape(shape: MapShape) -> Self {
        Self { shape, ..Self::default() }
    }

    /// A nil map of the given type: empty, and told from an empty map by
    /// [`is_nil`](Self::is_nil) alone.
    pub fn nil(shape: MapShape) -> Self {
        Self { nil: true, ..Self::with_shape(shape) }
    }

    /// Whether this is a nil map that nothing was added to.
    pub fn is_nil(&self) -> bool {
        self.nil && self.is_empty()
    }

    /// The same map behind a `reflect.Value`, which prints as its type.
    ///
    /// ```
    /// use govalue::{Map, Value};
    ///
    /// let map = Map::from_iter([("a", 1)]).reflected();
    /// assert_eq!(Value::from(map).to_string(), "<map[string]interface {} Value>");
    /// ```
    #[must_use]
    pub fn reflected(mut self) -> Self {
        self.reflected = true;
        self
    }

    /// The same map, in which string keys that are not there are also looked for
    /// with a first letter of the other case: what Go calls a field by and what
    /// JSON calls it differ in that.
    ///
    /// ```
    /// use govalue::Map;
    ///
    /// let map = Map::from_iter([("hostName", 1)]).with_any_initial();
    /// assert!(map.get("HostName").is_some() && map.get("hostname").is_none());
    /// ```
    #[must_use]
    pub fn with_any_initial(mut self) -> Self {
        self.any_initial = true;
        self
    }

    /// The same map as a Go struct whose members JSON calls by these keys. It
    /// keeps the order of its members, also where maps are sorted. A member is
    /// found by its Go name too: with a capital first, or all in capitals. Those
    /// that are `optional` and not there are nil.
    ///
    /// ```
    /// use govalue::{Map, Value};
    ///
    /// let entry = Map::from_iter([("name", "a"), ("id", "7")]).into_struct(&["ttl"]);
    /// assert_eq!(entry.get("Name"), entry.get("name"));
    /// assert_eq!(entry.get("ID").and_then(Value::as_str), Some("7"));
    /// assert_eq!(entry.get("TTL"), Some(&Value::Nil));
    /// assert_eq!(entry.get("Age"), None);
    /// assert_eq!(entry.sorted()[0].1, &Value::from("a"));
    /// ```
    #[must_use]
    pub fn into_struct(mut self, optional: &'static [&'static str]) -> Self {
        self.optional = Some(optional);
        self
    }

    fn find(&self, key: &[u8]) -> Option<&Value> {
        let found = self.entries.get(&Borrowed(key));
        if found.is_some() {
            return found;
        }
        if let Some(optional) = self.optional {
            let name = json_name(key);
            let is_optional = || optional.iter().any(|member| member.as_bytes() == name);
            return self.entries.get(&Borrowed(&name)).or_else(|| is_optional().then_some(&NIL));
        }
        if !self.any_initial {
            return None;
        }
        self.entries.get(&Borrowed(&with_other_initial(key)?))
    }

    /// The key as it is stored under which [`get_key`](Self::get_key) finds a
    /// value.
    ///
    /// ```
    /// use govalue::{Key, Map};
    ///
    /// let map = Map::from_iter([("hostName", 1)]).with_any_initial();
    /// assert_eq!(map.stored_key(&Key::from("HostName")), Some(&Key::from("hostName")));
    /// ```
    pub fn stored_key(&self, key: &Key) -> Option<&Key> {
        let stored = self.entries.get_key_value(key);
        let other = || match &key.0 {
            Value::String(text) if self.optional.is_some() => {
                self.entries.get_key_value(&Borrowed(&json_name(text.as_bytes())))
            }
            Value::String(text) if self.any_initial => {
                self.entries.get_key_value(&Borrowed(&with_other_initial(text.as_bytes())?))
            }
            _ => None,
        };
        stored.or_else(other).map(|(key, _)| key)
    }

    pub(crate) fn is_reflected(&self) -> bool {
        self.reflected
    }

    /// The Go type of the map.
    pub fn shape(&self) -> MapShape {
        self.shape
    }

    /// Adds or replaces a member. A key that is no string makes a map of string
    /// keys one of any keys.
    pub fn insert(&mut self, key: impl Into<Key>, value: impl Into<Value>) -> Option<Value> {
        let key = key.into();
        if self.shape.string_keys() && !matches!(key.0, Value::String(_)) {
            self.shape = MapShape::AnyAny;
        }
        self.entries.insert(key, value.into())
    }

    /// The value under a string key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.find(key.as_bytes())
    }

    /// The value under a string key.
    pub fn get_str(&self, key: &Str) -> Option<&Value> {
        self.find(key.as_bytes())
    }

    /// The value under any key.
    pub fn get_key(&self, key: &Key) -> Option<&Value> {
        match &key.0 {
            Value::String(text) => self.find(text.as_bytes()),
            _ => self.entries.get(key),
        }
    }

    /// The value under any key, to be changed.
    pub fn get_key_mut(&mut self, key: &Key) -> Option<&mut Value> {
        self.entries.get_mut(key)
    }

    /// The value under a string key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.entries.get_mut(&Borrowed(key.as_bytes()))
    }

    /// Removes a string key, keeping the order of the others.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.entries.shift_remove(&Borrowed(key.as_bytes()))
    }

    /// Whether a string key is there.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The members in order of insertion.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Key, &Value)> + ExactSizeIterator {
        self.entries.iter()
    }

    /// Whether this is a struct, which keeps the order of its members.
    pub fn is_struct(&self) -> bool {
        self.optional.is_some()
    }

    /// The members in order of their keys, as Go prints and ranges over them.
    /// Those of a struct keep their order.
    pub fn sorted(&self) -> Vec<(&Key, &Value)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        if self.is_struct() {
            return entries;
        }
        entries.sort_by(|a, b| crate::compare::order_keys(a.0.value(), b.0.value()));
        entries
    }

    /// The keys in order of insertion.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Key> + ExactSizeIterator {
        self.entries.keys()
    }

    /// The values in order of insertion.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.entries.values()
    }
}

impl<K: Into<Key>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut map = Self::new();
        for (key, value) in members {
            map.insert(key, value);
        }
        map
    }
}

impl IntoIterator for Map {
    type Item = (Key, Value);
    type IntoIter = indexmap::map::IntoIter<Key, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

/// The key with a first letter of the other case, if it begins with a letter.
fn with_other_initial(key: &[u8]) -> Option<Vec<u8>> {
    let mut other = key.to_vec();
    let initial = other.first_mut().filter(|byte| byte.is_ascii_alphabetic())?;
    *initial ^= 0x20;
    Some(other)
}

/// What JSON calls the member of a struct: `Name` is `name`, `TTL` is `ttl`.
fn json_name(member: &[u8]) -> Vec<u8> {
    let mut name = member.to_vec();
    if name.iter().all(u8::is_ascii_uppercase) {
        name.make_ascii_lowercase();
    } else if let Some(initial) = name.first_mut().filter(|byte| byte.is_ascii_uppercase()) {
        initial.make_ascii_lowercase();
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_strict_about_types() {
        let mut map = Map::with_shape(MapShape::AnyAny);
        map.insert(Key::try_from(Value::Int(2)).unwrap(), "int");
        map.insert(Key::try_from(Value::Float(2.0)).unwrap(), "float");
        map.insert("2", "string");
        assert_eq!(map.len(), 3);
        assert_eq!(map.get("2").and_then(Value::as_str), Some("string"));
        assert_eq!(Key::try_from(Value::array([])), Err(Unhashable("[]interface {}")));
    }

    #[test]
    fn order_is_kept_and_sorted_on_request() {
        let mut map = Map::from_iter([("b", 1), ("a", 2), ("c", 3)]);
        map.remove("c");
        let kept: Vec<_> = map.keys().filter_map(Key::as_str).collect();
        let sorted: Vec<_> = map.sorted().iter().filter_map(|(key, _)| key.as_str()).collect();
        assert_eq!((kept, sorted), (vec!["b", "a"], vec!["a", "b"]));
    }
}
