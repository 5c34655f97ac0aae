//! Values for serde.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{MAX_DEPTH, Unsupported, finite_number, rfc3339};
use crate::{Map, Value};

/// The deepest value that is serialized: what reads it, such as `serde_json`,
/// reads no more.
const DEPTH: usize = 127;
const _: () = assert!(DEPTH < MAX_DEPTH);

/// Serializes as Go's `json.Marshal` writes the value: keys are sorted, whole
/// floats are integers, bytes are base64. What Go refuses, such as NaN, is an
/// error.
///
/// ```
/// use govalue::{Map, Value};
/// let value = Value::from(Map::from_iter([("b", Value::from(1.0)), ("a", Value::from(2.5))]));
/// assert_eq!(serde_json::to_value(&value)?.to_string(), r#"{"a":2.5,"b":1}"#);
/// assert!(serde_json::to_value(&Value::from(f64::NAN)).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nested { value: self, form: Form::Go, depth: 0 }.serialize(serializer)
    }
}

/// A value that is deserialized with the types it has: keys keep their order,
/// and whole floats stay floats. What JSON has no form for is the text that Go
/// prints.
///
/// ```
/// use govalue::{Exact, Value};
/// let text = serde_json::to_string(&Exact(&Value::from(1.0)))?;
/// assert!(matches!(serde_json::from_str(&text)?, Value::Float(_)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Exact<'a>(pub &'a Value);

impl Serialize for Exact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Nested { value: self.0, form: Form::Exact, depth: 0 }.serialize(serializer)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Go,
    Exact,
}

struct Nested<'a> {
    value: &'a Value,
    form: Form,
    depth: usize,
}

impl Nested<'_> {
    fn deeper<'b>(&self, value: &'b Value) -> Nested<'b> {
        Nested { value, form: self.form, depth: self.depth + 1 }
    }

    fn map<S: Serializer>(&self, map: &Map, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(Some(map.len()))?;
        if self.form == Form::Exact {
            for (key, value) in map.iter() {
                out.serialize_entry(&key.value().to_string(), &self.deeper(value))?;
            }
            return out.end();
        }
        if !map.shape().string_keys() {
            return Err(S::Error::custom(Unsupported::map(map)));
        }
        for (key, value) in map.sorted() {
            out.serialize_entry(&key.value().to_string(), &self.deeper(value))?;
        }
        out.end()
    }

    /// A float as Go writes it: without a fraction, it is an integer.
    fn go_float<S: Serializer>(float: f64, serializer: S) -> Result<S::Ok, S::Error> {
        let text = finite_number(float).map_err(S::Error::custom)?;
        if let Ok(whole) = text.parse::<i64>()
            && text != "-0"
        {
            return serializer.serialize_i64(whole);
        }
        match text.parse::<u64>() {
            Ok(whole) => serializer.serialize_u64(whole),
            Err(_) => serializer.serialize_f64(float),
        }
    }
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_go = self.form == Form::Go;
        if self.depth > DEPTH {
            return Err(S::Error::custom("value: nested too deeply"));
        }
        match self.value {
            Value::Nil => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::String(text) => serializer.serialize_str(&text.to_str_lossy()),
            Value::Float(float) if is_go => Self::go_float(*float, serializer),
            Value::Float(float) if float.is_finite() => serializer.serialize_f64(*float),
            Value::Sized(kind, number) if is_go && kind.is_unsigned() => {
                serializer.serialize_u64(*number as u64)
            }
            Value::Sized(_, number) if is_go => serializer.serialize_i64(*number),
            Value::Duration(duration) if is_go => serializer.serialize_i64(duration.0),
            Value::Bytes(bytes) if is_go => serializer.serialize_str(&crate::base64::encode(bytes)),
            Value::Time(time) if is_go => {
                serializer.serialize_str(&rfc3339(time).map_err(S::Error::custom)?)
            }
            Value::Location(_) if is_go => serializer.serialize_map(Some(0))?.end(),
            Value::Array(items) => {
                let mut out = serializer.serialize_seq(Some(items.len()))?;
                for item in items.iter() {
                    out.serialize_element(&self.deeper(item))?;
                }
                out.end()
            }
            Value::Map(map) => self.map(map, serializer),
            other => serializer.serialize_str(&other.to_string()),
        }
    }
}

/// Numbers without a fraction are ints where they fit one. Of repeated keys the
/// last one counts.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values)
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_map(Values)? {
            Value::Map(map) => Ok(std::sync::Arc::unwrap_or_clone(map)),
            _ => Ok(Self::new()),
        }
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(flag.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Value, E> {
        Ok(Value::bytes(bytes))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(list.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = members.next_entry::<String, Value>()? {
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value as Json;

    use super::*;
    use crate::json::{self, Numbers, Options};
    use crate::{Duration, IntType, Key, MapShape, Time, Zone};

    /// Go's JSON as text, read again.
    fn by_text(value: &Value) -> Json {
        let text = json::encode(value, Options::default());
        text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Nil),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // The two readers of JSON differ in what `-0` is.
            any::<f64>().prop_map(|number| Value::from(number + 0.0)),
            any::<i64>().prop_map(|whole| Value::from(whole as f64)),
            any::<i64>().prop_map(|bits| Value::Sized(IntType::Uint64, bits)),
            any::<i64>().prop_map(|nanos| Value::Duration(Duration(nanos))),
            any::<Vec<u8>>().prop_map(|bytes| Value::String(bytes.into())),
            any::<Vec<u8>>().prop_map(Value::bytes),
        ];
        leaf.prop_recursive(4, 30, 5, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::array),
                proptest::collection::vec((".{0,3}", inner), 0..5)
                    .prop_map(|members| members.into_iter().collect::<Map>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn serde_and_gos_json_agree(value in values()) {
            prop_assert_eq!(serde_json::to_value(&value).unwrap_or_default(), by_text(&value));
        }

        #[test]
        fn json_is_read_alike(value in values()) {
            if let Ok(text) = json::encode(&value, Options::default()) {
                let read: Value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(read, json::decode(&text, Numbers::Ints).unwrap());
            }
        }
    }

    #[test]
    fn what_go_writes_in_its_own_way() {
        let mut members = Map::with_shape(MapShape::AnyAny);
        members.insert(Key::from("a"), 1);
        for value in [
            Value::from(-0.0),
            Value::from(1e20),
            Value::from(1e21),
            Value::from(1.8e19),
            Value::from(2f64.powi(60)),
            Value::from(f64::INFINITY),
            Time::zero().into(),
            Value::Location(Zone::UTC),
            members.into(),
            Value::array([f64::NAN.into()]),
        ] {
            assert_eq!(
                serde_json::to_value(&value).unwrap_or_default(),
                by_text(&value),
                "{value}"
            );
        }
    }

    #[test]
    fn depth_is_bounded() {
        let mut value = Value::from(1);
        for depth in 1..200 {
            value = Value::array([value]);
            let found = serde_json::to_value(&value).unwrap_or_default();
            assert_eq!(found, by_text(&value), "{depth}");
        }
    }

    #[test]
    fn exact_values_come_back() {
        let value = Value::from(Map::from_iter([
            ("b", Value::from(12.0)),
            ("a", Value::array([Value::from(12), Value::Nil, "x".into(), (-0.5).into()])),
        ]));
        let text = serde_json::to_string(&Exact(&value)).unwrap();
        assert_eq!(text, r#"{"b":12.0,"a":[12,null,"x",-0.5]}"#);
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
        assert!(matches!(read.get("b"), Some(Value::Float(_))));
        let odd = Value::array([f64::NAN.into(), Value::bytes(*b"a")]);
        assert_eq!(serde_json::to_string(&Exact(&odd)).unwrap(), r#"["NaN","[97]"]"#);
    }
}
