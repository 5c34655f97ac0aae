//! Objects and arrays as dynamic values.

use govalue::{Map, Value};

use crate::found::{Kind, body};
use crate::scan::Cursor;
use crate::{Error, Found, text};

/// As deep as values may be nested: far more than sensible, far from the end
/// of the stack.
pub(crate) const MAX_DEPTH: usize = 1_000;

/// The value of a text that begins with a bracket, every number a float.
pub(crate) fn container(json: &str) -> Result<Value, Error> {
    let object = json.starts_with('{');
    read(&mut Cursor::new(json, 1), object, 1)
}

fn read(cursor: &mut Cursor<'_>, object: bool, depth: usize) -> Result<Value, Error> {
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    if object {
        let mut map = Map::new();
        while let Some(key) = cursor.key() {
            let Some(value) = next(cursor, b'}', depth)? else { break };
            let key = text::unescape(body(key));
            if !map.contains_key(&key) {
                map.insert(&*key, value);
            }
        }
        close(cursor, b'}');
        Ok(map.into())
    } else {
        let mut items = Vec::new();
        while let Some(value) = next(cursor, b']', depth)? {
            items.push(value);
        }
        close(cursor, b']');
        Ok(items.into())
    }
}

/// The next value before the closing bracket.
fn next(cursor: &mut Cursor<'_>, close: u8, depth: usize) -> Result<Option<Value>, Error> {
    let Some(head) = cursor.head(close) else { return Ok(None) };
    if head.kind == Kind::Json {
        let object = cursor.text.as_bytes()[head.at] == b'{';
        cursor.at += 1;
        return read(cursor, object, depth + 1).map(Some);
    }
    let Some(piece) = cursor.take(head) else {
        // Nothing can follow a string that has no end.
        cursor.at = cursor.text.len();
        return Ok(None);
    };
    Found::from(piece).value().map(Some)
}

fn close(cursor: &mut Cursor<'_>, bracket: u8) {
    if cursor.text.as_bytes().get(cursor.at) == Some(&bracket) {
        cursor.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let value = container(r#"{"b":[1,{"x":null}],"a":"\u00e9","b":2,"t":true}"#).unwrap();
        assert_eq!(value.to_string(), "map[a:é b:[1 map[x:<nil>]] t:true]");
        assert_eq!(container("[[],{}]  x").unwrap().to_string(), "[[] map[]]");
    }

    #[test]
    fn broken_texts() {
        for (json, want) in [
            ("[1,[2,3", "[1 [2 3]]"),
            ("[1,\"x", "[1]"),
            (r#"{"a":[1,{"b":"x"#, "map[a:[1 map[]]]"),
            (r#"{"a"}"#, "map[]"),
            (r#"{"sadf":sdf"asdf"}"#, "map[sadf:false]"),
        ] {
            assert_eq!(container(json).unwrap().to_string(), want, "{json}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        assert!(container(&"[".repeat(MAX_DEPTH)).is_ok());
        assert_eq!(container(&"[".repeat(1_000_000)), Err(Error::TooDeep));
    }
}
