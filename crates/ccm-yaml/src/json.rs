//! Builds the same tree from JSON, without positions.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};

use crate::{Entry, Key, Kind, Node, Scalar, Span};

/// Up to here, looking at all keys is the fastest way to find a second one.
const FEW: usize = 16;

/// Reads plain JSON several times as fast as [`parse`](crate::parse), without
/// the places of nodes. `None` for everything else, YAML and what is wrong
/// included: the other parser reads it, or says what is wrong with it.
///
/// ```
/// let node = ccm_yaml::parse_json(r#"{"mode": "0644", "tags": [1, true]}"#).unwrap();
/// assert_eq!(ccm_yaml::to_value(&node).to_string(), "map[mode:0644 tags:[1 true]]");
/// assert!(ccm_yaml::parse_json("mode: 0644").is_none());
/// ```
pub fn parse_json(text: &str) -> Option<Node<'_>> {
    let mut json = serde_json::Deserializer::from_str(text);
    let node = Seed.deserialize(&mut json).ok()?;
    json.end().ok()?;
    Some(node)
}

struct Seed;

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Node<'de>;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Node<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

fn scalar<'a>(text: impl Into<Cow<'a, str>>, plain: bool) -> Node<'a> {
    let scalar = Scalar { text: text.into(), plain };
    Node { span: Span::default(), kind: Kind::Scalar(scalar) }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'de>, E> {
        Ok(scalar("null", true))
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Node<'de>, E> {
        Ok(scalar(if flag { "true" } else { "false" }, true))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Node<'de>, E> {
        Ok(scalar(number.to_string(), true))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Node<'de>, E> {
        Ok(scalar(number.to_string(), true))
    }

    /// A fraction is taken as written, and that is not known here.
    fn visit_f64<E: Error>(self, _: f64) -> Result<Node<'de>, E> {
        Err(E::custom("a fraction"))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(scalar(text, false))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(scalar(text.to_owned(), false))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Node<'de>, E> {
        Ok(scalar(text, false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Seed)? {
            list.push(item);
        }
        Ok(Node { span: Span::default(), kind: Kind::Sequence(list) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut entries: Vec<Entry<'de>> = Vec::new();
        let mut many = std::collections::HashSet::new();
        while let Some(key) = map.next_key_seed(Seed)? {
            let Kind::Scalar(Scalar { text, .. }) = key.kind else {
                return Err(A::Error::custom("a key that is no text"));
            };
            if entries.len() == FEW {
                many.extend(entries.iter().map(|entry| entry.key.text.clone()));
            }
            let is_known = if entries.len() < FEW {
                entries.iter().any(|entry| entry.key.text == text)
            } else {
                !many.insert(text.clone())
            };
            // YAML's merge key means something there.
            if is_known || text == "<<" {
                return Err(A::Error::custom("a key of the other parser"));
            }
            let value = map.next_value_seed(Seed)?;
            entries.push(Entry { key: Key { text, span: Span::default() }, value });
        }
        Ok(Node { span: Span::default(), kind: Kind::Mapping(entries) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, parse, to_value};

    #[test]
    fn both_parsers_read_the_same() {
        for text in [
            "{}",
            "[]",
            "null",
            "\"a\\n\\u00e9\\\"\"",
            "{\"a\": {\"b\": [1, -2, true, null, \"5\", \"\"]}, \"c d\": \"{{ x }}\"}",
            "  [ \"null\", \"true\", \"~\" ]  ",
        ] {
            let fast = to_value(&parse_json(text).unwrap()).to_string();
            let slow = to_value(&parse(&Source::new("t", text)).unwrap()).to_string();
            assert_eq!(fast, slow, "{text}");
        }
        let pair = parse_json("\"\\ud83d\\ude00\"").unwrap();
        assert_eq!(to_value(&pair).to_string(), "😀");
    }

    #[test]
    fn what_the_other_parser_must_see_is_left_to_it() {
        let many = (0..40).map(|n| format!("\"k{n}\": 1, ")).collect::<String>();
        for text in [
            "",
            "a: b",
            "{\"a\": 1.10}",
            "{\"a\": 1, \"a\": 2}",
            "{\"<<\": {}}",
            "{\"a\": 1} x",
            "{\"a\": }",
            &format!("{{{many}\"k39\": 2}}"),
            &format!("{{{many}\"k3\": 2}}"),
            &"[".repeat(1000),
        ] {
            assert!(parse_json(text).is_none(), "{text}");
        }
        assert!(parse_json(&format!("{{{many}\"k40\": 2}}")).is_some());
    }
}
