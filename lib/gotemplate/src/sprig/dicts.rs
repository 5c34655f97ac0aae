//! Dictionaries, which are changed in place: every holder sees it.

use govalue::Key;

use crate::error::Fail;
use crate::functions::Type::{Any, Dict as D, String};
use crate::functions::{Arguments, Context, Native, Outcome};
use crate::val::{Dict, Items, Val};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("deepCopy", &[Any], deep_copy),
    Native::new("dict", &[], dict).rest(Any),
    Native::new("dig", &[], dig).rest(Any),
    Native::new("get", &[D, String], |_, a| {
        Ok(a.dict(0).get_key(&key(a, 1)).unwrap_or_else(|| "".into()))
    }),
    Native::new("hasKey", &[D, String], |_, a| Ok(a.dict(0).contains(&key(a, 1)).into())),
    Native::new("keys", &[], keys).rest(D),
    Native::new("merge", &[D], |context, a| merge(context, a, false)).rest(D),
    Native::new("mergeOverwrite", &[D], |context, a| merge(context, a, true)).rest(D),
    Native::new("mustDeepCopy", &[Any], deep_copy),
    Native::new("mustMerge", &[D], |context, a| merge(context, a, false)).rest(D),
    Native::new("mustMergeOverwrite", &[D], |context, a| merge(context, a, true)).rest(D),
    Native::new("omit", &[D], |context, a| picked(context, a, false)).rest(String),
    Native::new("pick", &[D], |context, a| picked(context, a, true)).rest(String),
    Native::new("pluck", &[String], pluck).rest(D),
    Native::new("set", &[D, String, Any], |context, a| {
        let dict = a.dict(0);
        if dict.is_nil() {
            return Err("assignment to entry in nil map".into());
        }
        context.put(&dict, key(a, 1), a.get(2).clone());
        Ok(dict.into())
    }),
    Native::new("unset", &[D, String], |_, a| {
        let dict = a.dict(0);
        dict.remove(&key(a, 1));
        Ok(dict.into())
    }),
    Native::new("values", &[D], |context, a| {
        let entries = a.dict(0).entries();
        context.budget.spend_items(entries.len())?;
        Ok(Val::list(entries.into_iter().map(|(_, value)| value).collect()))
    }),
];

fn key(arguments: &Arguments<'_>, index: usize) -> Key {
    Key::from(arguments.string(index))
}

fn dict(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let dict = Dict::new();
    context.budget.spend_items(arguments.0.len())?;
    for pair in arguments.0.chunks(2) {
        let key = pair[0].to_text(context.budget)?;
        dict.insert(key, pair.get(1).cloned().unwrap_or_else(|| "".into()));
    }
    Ok(dict.into())
}

fn keys(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let mut keys = Vec::new();
    for index in 0..arguments.0.len() {
        let entries = arguments.dict(index).entries();
        context.budget.spend_items(entries.len())?;
        keys.extend(entries.into_iter().map(|(key, _)| Val::from(key.value())));
    }
    Ok(Val::list_of(Items::Strings, keys))
}

fn pluck(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let key = key(arguments, 0);
    context.budget.spend_items(arguments.0.len())?;
    let found =
        (1..arguments.0.len()).filter_map(|index| arguments.dict(index).get_key(&key)).collect();
    Ok(Val::list(found))
}

/// The members whose names are given, or all others.
fn picked(context: &mut Context<'_>, arguments: &Arguments<'_>, wanted: bool) -> Outcome {
    let names: std::collections::HashSet<Key> =
        (1..arguments.0.len()).map(|index| key(arguments, index)).collect();
    let entries = arguments.dict(0).entries();
    context.budget.spend_items(entries.len() + names.len())?;
    let kept = entries.into_iter().filter(|(key, _)| names.contains(key) == wanted);
    Ok(kept.collect::<Dict>().into())
}

/// Follows the names; what is on the way must be dictionaries.
fn dig(_: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let [names @ .., default, root] = arguments.0 else {
        return Err("dig needs at least three arguments".into());
    };
    if names.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let mut value = root.clone();
    for name in names {
        let Val::Str(name) = name else {
            return Err(format!("a name must be a string, not {}", name.type_name()).into());
        };
        let Some(dict) = value.as_dict() else {
            return Err(format!("cannot dig into {}", value.type_name()).into());
        };
        match dict.get_key(&Key::from(name.clone())) {
            Some(found) => value = found,
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}

/// How deep copies and merges go.
const MAX_DEPTH: usize = 200;

fn too_deep(depth: usize) -> Result<(), Fail> {
    if depth > MAX_DEPTH {
        return Err(Fail::limit(format!("a value is nested more than {MAX_DEPTH} deep")));
    }
    Ok(())
}

fn deep_copy(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    match arguments.get(0) {
        Val::Nil | Val::Missing => Err("cannot copy nil".into()),
        value => copy(context, value, 0),
    }
}

fn copy(context: &mut Context<'_>, value: &Val, depth: usize) -> Outcome {
    too_deep(depth)?;
    context.budget.spend(1)?;
    Ok(match value {
        Val::List(list) => {
            let items = list.items.iter().map(|item| copy(context, item, depth + 1));
            let items = items.collect::<Result<_, _>>()?;
            Val::List(crate::val::List { of: list.of, items, nil: list.nil }.into())
        }
        Val::Dict(dict) => {
            if let Some(map) = dict.untouched() {
                Dict::from_map(&map).into()
            } else {
                let entries = dict.entries().into_iter();
                let entries =
                    entries.map(|(key, value)| Ok((key, copy(context, &value, depth + 1)?)));
                Dict::with(dict.shape(), entries.collect::<Result<_, Fail>>()?).into()
            }
        }
        plain => plain.clone(),
    })
}

fn merge(context: &mut Context<'_>, arguments: &Arguments<'_>, overwrite: bool) -> Outcome {
    let mut into = arguments.dict(0);
    if into.is_nil() {
        into = Dict::new();
    }
    for index in 1..arguments.0.len() {
        merge_into(context, &into, &arguments.dict(index), overwrite, 0)?;
    }
    Ok(into.into())
}

/// Members are taken over where there is none, an empty one, or when
/// overwriting; dictionaries on both sides are merged.
fn merge_into(
    context: &mut Context<'_>,
    into: &Dict,
    from: &Dict,
    overwrite: bool,
    depth: usize,
) -> Result<(), Fail> {
    too_deep(depth)?;
    if into.same(from) {
        return Ok(());
    }
    for (key, value) in from.entries() {
        context.budget.spend(1)?;
        let present = into.get_key(&key);
        match (&present, &value) {
            (_, Val::Nil) => {
                if overwrite {
                    context.put(into, key, value);
                }
            }
            (Some(Val::Dict(inner)), Val::Dict(value)) => {
                if inner.is_empty() && value.is_empty() {
                    context.put(into, key, value.clone().into());
                } else {
                    merge_into(context, inner, value, overwrite, depth + 1)?;
                }
            }
            (None, _) => context.put(into, key, value),
            (Some(present), _) => {
                if overwrite || present.is_empty() {
                    context.put(into, key, value);
                }
            }
        }
    }
    Ok(())
}

/// Used by functions that take a dictionary of texts.
pub(super) fn text_member(dict: &Dict, name: &str) -> Result<std::string::String, Fail> {
    match dict.get(name) {
        None => Ok(std::string::String::new()),
        Some(Val::Str(text)) => Ok(text.to_str_lossy().into_owned()),
        Some(other) => Err(format!(
            "unable to parse {name} key, must be of type string, but {} found",
            other.kind_name()
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use crate::Engine;
    use govalue::{Map, Value};

    fn render(text: &str) -> String {
        let inner = Value::from(Map::from_iter([("x", 1)]));
        let data = Value::from(Map::from_iter([("m", inner)]));
        Engine::new().render("t", text, &data).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn every_holder_sees_a_change() {
        assert_eq!(
            render("{{ $d := dict }}{{ $e := $d }}{{ $_ := set $e \"a\" 1 }}{{ $d }}"),
            "map[a:1]"
        );
        assert_eq!(render("{{ $_ := set .m \"y\" 2 }}{{ .m }}{{ $.m.y }}"), "map[x:1 y:2]2");
        assert_eq!(
            render("{{ range list .m .m }}{{ $_ := set . \"x\" 5 }}{{ end }}{{ . }}"),
            "map[m:map[x:5]]"
        );
    }

    #[test]
    fn a_dictionary_may_hold_itself_but_not_be_printed() {
        let text = "{{ $d := dict }}{{ $_ := set $d \"d\" $d }}{{ hasKey $d \"d\" }}";
        assert_eq!(render(text), "true");
        for end in [
            "{{ $d }}",
            "{{ toJson $d }}",
            "{{ deepCopy $d }}",
            "{{ merge (deepCopy (dict \"d\" (dict))) $d }}",
        ] {
            let error = Engine::new().render("t", &format!("{text}{end}"), &Value::Nil);
            assert_eq!(error.unwrap_err().kind(), crate::ErrorKind::Limit, "{end}");
        }
    }

    #[test]
    fn merging_keeps_references() {
        assert_eq!(
            render(
                "{{ $one := dict \"a\" (dict \"b\" 1) }}{{ $to := merge (dict) $one }}{{ $_ := set $to.a \"c\" 2 }}{{ $one }}"
            ),
            "map[a:map[b:1 c:2]]"
        );
    }
}
