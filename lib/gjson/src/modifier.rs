//! Modifiers: `@reverse`, `@pretty:{"width":20}`.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::found::{Found, Kind, body};
use crate::run::{List, Output, Run};
use crate::scan::{self, Children, Piece};
use crate::{Error, pretty, step, text, valid};

/// What a modifier does to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Modifier {
    Dig,
    Flatten,
    FromStr,
    Group,
    Join,
    Keys,
    Pretty,
    Reverse,
    This,
    ToStr,
    Ugly,
    Valid,
    Values,
}

impl Modifier {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "dig" => Self::Dig,
            "flatten" => Self::Flatten,
            "fromstr" => Self::FromStr,
            "group" => Self::Group,
            "join" => Self::Join,
            "keys" => Self::Keys,
            "pretty" => Self::Pretty,
            "reverse" => Self::Reverse,
            "this" => Self::This,
            "tostr" => Self::ToStr,
            "ugly" => Self::Ugly,
            "valid" => Self::Valid,
            "values" => Self::Values,
            _ => return None,
        })
    }

    /// The modifier that a path begins with.
    pub(crate) fn at_start(path: &str) -> Option<Self> {
        split_name(path).and_then(|(name, _)| Self::named(name))
    }
}

fn split_name(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('@')?;
    Some(path.split_at(path.find([':', '.', '|']).unwrap_or(path.len())))
}

/// A modifier with its argument.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call<'p> {
    modifier: Modifier,
    argument: &'p str,
}

impl<'p> Call<'p> {
    /// Reads the modifier that a path begins with; says what follows it.
    pub(crate) fn parse(path: &'p str) -> Option<(Self, &'p str)> {
        let (name, rest) = split_name(path)?;
        let modifier = Modifier::named(name)?;
        let (argument, rest) = match rest.strip_prefix(':') {
            Some(rest) => rest.split_at(argument_end(rest)),
            None => ("", rest),
        };
        Some((Self { modifier, argument }, rest))
    }

    /// The text that the modifier makes of another.
    pub(crate) fn apply<'j>(&self, run: &Run, json: &'j str) -> Result<Cow<'j, str>, Error> {
        run.spend(json.len())?;
        let made = match self.modifier {
            Modifier::This => return Ok(Cow::Borrowed(json)),
            Modifier::Valid if valid::is_valid(json) => return Ok(Cow::Borrowed(json)),
            Modifier::Valid => return Ok(Cow::Borrowed("")),
            Modifier::FromStr if !valid::is_valid(json) => return Ok(Cow::Borrowed("")),
            Modifier::FromStr => Found::from(Piece::first(json)).text().into_owned(),
            Modifier::ToStr => text::quote(json),
            Modifier::Ugly => ugly(json),
            Modifier::Pretty => {
                let style = pretty::Style::from_argument(self.argument);
                pretty::write(run, Piece::first(json), &style)?
            }
            Modifier::Dig => dig(run, json, self.argument)?,
            Modifier::Keys => keys(run, json)?,
            Modifier::Values => return values(run, json),
            Modifier::Reverse => return reverse(run, json),
            Modifier::Flatten => return flatten(run, json, self.flag("deep")),
            Modifier::Join => return join(run, json, self.flag("preserve")),
            Modifier::Group => group(run, json)?,
        };
        run.spend(made.len())?;
        Ok(Cow::Owned(made))
    }

    /// Whether the argument is an object that switches something on.
    fn flag(&self, name: &str) -> bool {
        options(self.argument).any(|(key, value)| key == name && value.is_trueish())
    }
}

/// The members of an argument that is an object.
pub(crate) fn options(argument: &str) -> impl Iterator<Item = (Cow<'_, str>, Found<'_>)> {
    Children::of(argument.trim_start())
        .filter_map(|(key, value)| Some((text::unescape(body(key?)), value.into())))
}

/// Where an argument ends: with the JSON it begins with, or before a pipe.
fn argument_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let json = match bytes.first() {
        Some(b'"') => Some(scan::string_end(bytes, 0)),
        Some(b'{' | b'[') => Some(scan::group_end(bytes, 0)),
        _ => None,
    };
    match json {
        Some(end) => end.unwrap_or(text.len()),
        None => step::find_pipe(text).unwrap_or(text.len()),
    }
}

/// The value a text begins with, and the children to go through: of a value
/// that is no container, that value itself.
fn parse(json: &str) -> (Piece<'_>, Vec<(Option<&str>, Piece<'_>)>) {
    let piece = Piece::first(json);
    let children = match piece.kind {
        Kind::Json => Children::of(piece.raw).collect(),
        _ if piece.raw.is_empty() => Vec::new(),
        _ => vec![(None, piece)],
    };
    (piece, children)
}

/// Without the blanks between values.
fn ugly(json: &str) -> String {
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => scan::string_end(bytes, at).unwrap_or(bytes.len()),
            0..=b' ' => {
                at += 1;
                continue;
            }
            _ => {
                let run = bytes[at..].iter().take_while(|byte| **byte > b' ' && **byte != b'"');
                at + run.count()
            }
        };
        out.push_str(&json[at..end]);
        at = end;
    }
    out
}

/// The keys of an object; an array has a `null` for each element.
fn keys(run: &Run, json: &str) -> Result<String, Error> {
    let (_, children) = parse(json);
    let mut list = List::new(run);
    for (key, _) in children {
        list.push(key.unwrap_or("null"))?;
    }
    Ok(list.into_json())
}

fn values<'j>(run: &Run, json: &'j str) -> Result<Cow<'j, str>, Error> {
    let (piece, children) = parse(json);
    if piece.is_array() {
        return Ok(Cow::Borrowed(json));
    }
    let mut list = List::new(run);
    for (_, value) in children {
        list.push(value.raw)?;
    }
    Ok(Cow::Owned(list.into_json()))
}

fn reverse<'j>(run: &Run, json: &'j str) -> Result<Cow<'j, str>, Error> {
    let (piece, children) = parse(json);
    let (open, close) = match (piece.is_object(), piece.is_array()) {
        (true, _) => ("{", "}"),
        (_, true) => ("[", "]"),
        _ => return Ok(Cow::Borrowed(json)),
    };
    let mut out = Output::new(run);
    out.push(open)?;
    for (key, value) in children.iter().rev() {
        separate(&mut out)?;
        if let Some(key) = key {
            out.push(key)?;
            out.push(":")?;
        }
        out.push(value.raw)?;
    }
    out.push(close)?;
    Ok(Cow::Owned(out.finish()))
}

/// What is between the brackets of a container; `None` if there is nothing.
fn inside(raw: &str) -> Option<&str> {
    let inside = raw.get(1..raw.len().saturating_sub(1))?;
    (!inside.trim().is_empty()).then_some(inside)
}

/// The elements of arrays in an array in their place; with `deep` at any depth.
fn flatten<'j>(run: &Run, json: &'j str, deep: bool) -> Result<Cow<'j, str>, Error> {
    let piece = Piece::first(json);
    if !piece.is_array() {
        return Ok(Cow::Borrowed(json));
    }
    let mut list = List::new(run);
    let mut open = vec![Children::of(piece.raw)];
    while let Some(children) = open.last_mut() {
        let Some((_, value)) = children.next() else {
            open.pop();
            continue;
        };
        run.spend(value.raw.len())?;
        if !value.is_array() {
            list.push(value.raw)?;
        } else if deep {
            open.push(Children::of(value.raw));
        } else if let Some(inside) = inside(value.raw) {
            list.push(inside.trim())?;
        }
    }
    Ok(Cow::Owned(list.into_json()))
}

/// The objects of an array in one: of repeated keys the last value counts, in
/// the place of the first, unless `preserve` keeps all of them.
fn join<'j>(run: &Run, json: &'j str, preserve: bool) -> Result<Cow<'j, str>, Error> {
    let (piece, children) = parse(json);
    if !piece.is_array() {
        return Ok(Cow::Borrowed(json));
    }
    let objects = children.iter().map(|(_, value)| *value).filter(|value| value.is_object());
    let mut out = Output::new(run);
    out.push("{")?;
    if preserve {
        for members in objects.filter_map(|object| inside(object.raw)) {
            separate(&mut out)?;
            out.push(members)?;
        }
    } else {
        for (key, value) in distinct_members(objects) {
            separate(&mut out)?;
            out.push(key)?;
            out.push(":")?;
            out.push(value)?;
        }
    }
    out.push("}")?;
    Ok(Cow::Owned(out.finish()))
}

/// A comma, unless only the bracket was written.
fn separate(out: &mut Output<'_>) -> Result<(), Error> {
    out.push(if out.as_str().len() > 1 { "," } else { "" })
}

/// The members of several objects, in order of their keys' first appearance.
fn distinct_members<'j>(objects: impl Iterator<Item = Piece<'j>>) -> Vec<(&'j str, &'j str)> {
    let mut members: Vec<(&str, &str)> = Vec::new();
    let mut places = HashMap::new();
    for (key, value) in objects.flat_map(|object| Children::of(object.raw)) {
        let Some(key) = key else { continue };
        let place = *places.entry(text::unescape(body(key))).or_insert(members.len());
        match members.get_mut(place) {
            Some((_, last)) => *last = value.raw,
            None => members.push((key, value.raw)),
        }
    }
    members
}

/// An object of arrays as an array of objects; nothing for anything else.
fn group(run: &Run, json: &str) -> Result<String, Error> {
    let (piece, children) = parse(json);
    if !piece.is_object() {
        return Ok(String::new());
    }
    let mut objects: Vec<Output<'_>> = Vec::new();
    for (key, array) in children.iter().filter(|(_, value)| value.is_array()) {
        for (index, (_, value)) in Children::of(array.raw).enumerate() {
            if index == objects.len() {
                objects.push(Output::new(run));
            }
            let object = &mut objects[index];
            object.push(if object.as_str().is_empty() { "{" } else { "," })?;
            object.push(key.unwrap_or_default())?;
            object.push(":")?;
            object.push(value.raw)?;
        }
    }
    let mut list = List::new(run);
    for mut object in objects {
        object.push("}")?;
        list.push(object.as_str())?;
    }
    Ok(list.into_json())
}

/// What a path finds in the value and in everything inside of it.
fn dig(run: &Run, json: &str, path: &str) -> Result<String, Error> {
    let mut list = List::new(run);
    let mut waiting = vec![Piece::first(json)];
    while let Some(value) = waiting.pop() {
        run.spend(value.raw.len())?;
        let found = run.get(value.raw, path)?;
        if found.exists() {
            list.push(found.raw())?;
        }
        let first = waiting.len();
        waiting.extend(Children::of(value.raw).map(|(_, child)| child));
        // The last one in is the next one out.
        waiting[first..].reverse();
    }
    Ok(list.into_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls() {
        let call = |modifier, argument| Call { modifier, argument };
        for (path, want) in [
            ("@this", Some((call(Modifier::This, ""), ""))),
            ("@keys.0", Some((call(Modifier::Keys, ""), ".0"))),
            ("@dig:a.b|c", Some((call(Modifier::Dig, "a.b"), "|c"))),
            ("@dig:#(a==\"|\")|c", Some((call(Modifier::Dig, "#(a==\"|\")"), "|c"))),
            ("@join:{\"a\":[1]}.b", Some((call(Modifier::Join, "{\"a\":[1]}"), ".b"))),
            ("@join:", Some((call(Modifier::Join, ""), ""))),
            ("@nope:x", None),
            ("@", None),
        ] {
            assert_eq!(Call::parse(path), want, "{path}");
        }
    }

    #[test]
    fn modifiers() {
        for (json, path, want) in [
            ("[1, [2], []]", "@reverse", "[[],[2],1]"),
            (r#"{"a":1,"b":{}}"#, "@reverse", r#"{"b":{},"a":1}"#),
            ("5", "@reverse", "5"),
            (" { \"a b\" : [ 1 , 2 ] } ", "@ugly", r#"{"a b":[1,2]}"#),
            ("[1,[2, [3]],[]]", "@flatten", "[1,2, [3]]"),
            ("[1,[2, [3]],[]]", r#"@flatten:{"deep":true}"#, "[1,2,3]"),
            (r#"[{"a":1,"b":1},{"b":2},5]"#, "@join", r#"{"a":1,"b":2}"#),
            (
                r#"[{"a":1,"b":1},{}, {"b": 2}]"#,
                r#"@join:{"preserve":true}"#,
                r#"{"a":1,"b":1,"b": 2}"#,
            ),
            (r#"{"a":1,"b":2}"#, "@keys", r#"["a","b"]"#),
            ("[1,2]", "@keys", "[null,null]"),
            ("7", "@keys", "[null]"),
            ("", "@keys", "[]"),
            (r#"{"a":1,"b":[2]}"#, "@values", "[1,[2]]"),
            ("7", "@values", "[7]"),
            ("[1, 2]", "@tostr", "\"[1, 2]\""),
            ("\"[1, 2]\"", "@fromstr", "[1, 2]"),
            ("[1, 2", "@fromstr", ""),
            ("[1,2", "@valid", ""),
            (r#"{"a":[1,2],"b":[3],"c":4}"#, "@group", r#"[{"a":1,"b":3},{"a":2}]"#),
            ("[1]", "@group", ""),
            (r#"{"a":{"x":1},"b":[{"x":2},3]}"#, "@dig:x", "[1,2]"),
        ] {
            let (call, _) = Call::parse(path).unwrap();
            assert_eq!(call.apply(&Run::new(json), json).unwrap(), want, "{path} {json}");
        }
    }
}
