//! The part of GJSON's paths that the recorded cases use.

use govalue::{Key, Map, Value};

/// What `lookup` searches: maps with their keys in order, as JSON from Go has.
pub(crate) struct Document(Value);

impl Document {
    pub(crate) fn new<'a>(members: impl IntoIterator<Item = (&'a str, &'a Value)>) -> Self {
        Self(sorted(&Value::from(
            members.into_iter().map(|(name, value)| (name, value.clone())).collect::<Map>(),
        )))
    }

    pub(crate) fn lookup(&self, path: &str) -> Option<Value> {
        Some(match find(&self.0, path)? {
            // A whole number is an integer, however it was written.
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e21 => {
                Value::Int(value as i64)
            }
            value @ (Value::Array(_) | Value::Map(_)) => floats(&value),
            value => value,
        })
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Map(map) if map.is_nil() => Value::Nil,
        Value::Map(map) => map
            .sorted()
            .into_iter()
            .map(|(key, value)| (key.clone(), sorted(value)))
            .collect::<Map>()
            .into(),
        Value::Array(items) => Value::array(items.iter().map(sorted)),
        _ => value.clone(),
    }
}

/// Numbers inside of lists and maps are always floats.
fn floats(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            map.iter().map(|(key, value)| (key.clone(), floats(value))).collect::<Map>().into()
        }
        Value::Array(items) => Value::array(items.iter().map(floats)),
        Value::Int(value) => Value::Float(*value as f64),
        _ => value.clone(),
    }
}

fn find(value: &Value, path: &str) -> Option<Value> {
    if let Some(rest) = path.strip_prefix("..") {
        return find(&Value::array([value.clone()]), rest);
    }
    if path.starts_with('[') || path.starts_with('{') {
        return multiple(value, path);
    }
    let (part, separator, rest) = cut(path);
    let next = match part.as_str() {
        "" => return None,
        "#" if separator == Some('.') => return Some(each(value.as_array()?, rest)),
        "#" => Value::Int(value.as_array()?.len() as i64),
        _ if part.starts_with('@') => modify(value, &part)?,
        _ if part.starts_with("#(") => {
            let all = part.ends_with(")#");
            let query = part[2..].trim_end_matches('#').trim_end_matches(')');
            let mut hits = value.as_array()?.iter().filter(|item| holds(item, query)).cloned();
            if all {
                let hits: Vec<_> = hits.collect();
                return if separator == Some('.') {
                    Some(each(&hits, rest))
                } else {
                    Some(hits.into())
                };
            }
            hits.next()?
        }
        _ => member(value, &part)?,
    };
    if separator.is_some() { find(&next, rest) } else { Some(next) }
}

fn each(items: &[Value], path: &str) -> Value {
    Value::array(items.iter().filter_map(|item| find(item, path)))
}

/// The first part of a path, what separates it from the rest, and the rest.
fn cut(path: &str) -> (String, Option<char>, &str) {
    let (mut part, mut depth) = (String::new(), 0);
    let mut chars = path.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => part.extend(chars.next().map(|(_, c)| c)),
            '.' | '|' if depth == 0 => return (part, Some(c), &path[at + 1..]),
            _ => {
                depth += i32::from(c == '(') - i32::from(c == ')');
                part.push(c);
            }
        }
    }
    (part, None, "")
}

fn member(value: &Value, part: &str) -> Option<Value> {
    match value {
        Value::Map(map) if part.contains(['*', '?']) => map
            .iter()
            .find(|(key, _)| key.as_str().is_some_and(|key| glob(part, key)))
            .map(|(_, value)| value.clone()),
        Value::Map(map) => map.get(part).cloned(),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?).cloned(),
        _ => None,
    }
}

fn glob(pattern: &str, text: &str) -> bool {
    match (pattern.chars().next(), text.chars().next()) {
        (None, None) => true,
        (Some('*'), _) => {
            glob(&pattern[1..], text) || !text.is_empty() && glob(pattern, &text[1..])
        }
        (Some('?'), Some(c)) => glob(&pattern[1..], &text[c.len_utf8()..]),
        (Some(p), Some(c)) if p == c => glob(&pattern[p.len_utf8()..], &text[c.len_utf8()..]),
        _ => false,
    }
}

fn holds(item: &Value, query: &str) -> bool {
    let operators = ["==", "!=", ">=", "<=", "!%", "%", ">", "<", "="];
    let Some((at, op)) = operators
        .iter()
        .filter_map(|op| query.find(op).map(|at| (at, *op)))
        .min_by_key(|(at, op)| (*at, -(op.len() as i64)))
    else {
        return find(item, query).is_some();
    };
    let left = if at == 0 { Some(item.clone()) } else { find(item, query[..at].trim()) };
    let Some(left) = left else { return false };
    let right = query[at + op.len()..].trim();
    let right = govalue::json::decode(right, govalue::json::Numbers::Floats)
        .unwrap_or_else(|_| right.into());
    let order = govalue::compare(&left, &right);
    match op {
        "==" | "=" => govalue::equal(&left, &right),
        "!=" => !govalue::equal(&left, &right),
        ">" => order.is_some_and(std::cmp::Ordering::is_gt),
        ">=" => order.is_some_and(std::cmp::Ordering::is_ge),
        "<" => order.is_some_and(std::cmp::Ordering::is_lt),
        "<=" => order.is_some_and(std::cmp::Ordering::is_le),
        _ => {
            let fits = glob(right.as_str().unwrap_or_default(), left.as_str().unwrap_or_default());
            fits == (op == "%")
        }
    }
}

fn modify(value: &Value, modifier: &str) -> Option<Value> {
    Some(match modifier {
        "@keys" => Value::array(value.as_map()?.keys().map(|key| key.value().clone())),
        "@values" => Value::array(value.as_map()?.values().cloned()),
        "@reverse" => Value::array(value.as_array()?.iter().rev().cloned()),
        "@flatten" => Value::array(value.as_array()?.iter().flat_map(|item| match item {
            Value::Array(inner) => inner.to_vec(),
            other => vec![other.clone()],
        })),
        "@pretty" | "@ugly" | "@this" => value.clone(),
        _ => return None,
    })
}

/// `[a,b]` and `{"name":a}`.
fn multiple(value: &Value, path: &str) -> Option<Value> {
    let inner = &path[1..path.len() - 1];
    if path.starts_with('[') {
        return Some(Value::array(inner.split(',').filter_map(|path| find(value, path))));
    }
    let mut map = Map::new();
    for pair in inner.split(',') {
        let (name, path) = pair.split_once(':')?;
        map.insert(Key::from(name.trim_matches('"')), find(value, path)?);
    }
    Some(map.into())
}
