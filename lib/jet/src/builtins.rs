//! The functions that every template has.

mod escape;
mod strings;

use govalue::Value;

use crate::function::Param;

pub(crate) use escape::Writer;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// A function of values alone.
    Plain(Plain),
    /// Writes its arguments to the output, escaped in its own way.
    Writer(Writer),
    Len,
    /// Looks at its arguments before they are evaluated.
    IsSet,
    Map,
    Slice,
    Ints,
    WriteJson,
    Dump,
    Exec,
    IncludeIfExists,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    Lower,
    Upper,
    HasPrefix,
    HasSuffix,
    Repeat,
    Replace,
    Split,
    TrimSpace,
    Html,
    Url,
    Json,
}

const ALL: &[(&str, Builtin)] = &[
    ("array", Builtin::Slice),
    ("dump", Builtin::Dump),
    ("exec", Builtin::Exec),
    ("hasPrefix", Builtin::Plain(Plain::HasPrefix)),
    ("hasSuffix", Builtin::Plain(Plain::HasSuffix)),
    ("html", Builtin::Plain(Plain::Html)),
    ("includeIfExists", Builtin::IncludeIfExists),
    ("ints", Builtin::Ints),
    ("isset", Builtin::IsSet),
    ("json", Builtin::Plain(Plain::Json)),
    ("len", Builtin::Len),
    ("lower", Builtin::Plain(Plain::Lower)),
    ("map", Builtin::Map),
    ("raw", Builtin::Writer(Writer::Raw)),
    ("repeat", Builtin::Plain(Plain::Repeat)),
    ("replace", Builtin::Plain(Plain::Replace)),
    ("safeHtml", Builtin::Writer(Writer::Html)),
    ("safeJs", Builtin::Writer(Writer::JavaScript)),
    ("slice", Builtin::Slice),
    ("split", Builtin::Plain(Plain::Split)),
    ("trimSpace", Builtin::Plain(Plain::TrimSpace)),
    ("unsafe", Builtin::Writer(Writer::Raw)),
    ("upper", Builtin::Plain(Plain::Upper)),
    ("url", Builtin::Plain(Plain::Url)),
    ("writeJson", Builtin::WriteJson),
];

/// The names of the functions that every template has.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|(name, _)| *name)
}

pub(crate) fn find(name: &str) -> Option<Builtin> {
    let at = ALL.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(ALL[at].1)
}

/// Why a plain function gives no answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The arguments make no sense.
    Arguments(String),
    /// The answer would be larger than allowed.
    TooLarge,
}

impl Plain {
    pub(crate) fn params(self) -> &'static [Param] {
        match self {
            Self::Lower | Self::Upper | Self::TrimSpace | Self::Html | Self::Url => {
                &[Param::String]
            }
            Self::HasPrefix | Self::HasSuffix | Self::Split => &[Param::String, Param::String],
            Self::Repeat => &[Param::String, Param::Int],
            Self::Replace => &[Param::String, Param::String, Param::String, Param::Int],
            Self::Json => &[Param::Any],
        }
    }

    /// Runs the function on arguments that were converted to its parameters.
    pub(crate) fn call(self, args: &[Value], largest: usize) -> Result<Value, Refusal> {
        let text = |index: usize| match args.get(index) {
            Some(Value::String(text)) => text.clone(),
            _ => govalue::Str::default(),
        };
        let number = |index: usize| args.get(index).and_then(Value::as_int).unwrap_or(0);
        match self {
            Self::Lower => Ok(strings::lower(&text(0)).into()),
            Self::Upper => Ok(strings::upper(&text(0)).into()),
            Self::HasPrefix => Ok(text(0).as_bytes().starts_with(text(1).as_bytes()).into()),
            Self::HasSuffix => Ok(text(0).as_bytes().ends_with(text(1).as_bytes()).into()),
            Self::Repeat => strings::repeat(&text(0), number(1), largest),
            Self::Replace => strings::replace(&text(0), &text(1), &text(2), number(3), largest),
            Self::Split => strings::split(&text(0), &text(1), largest),
            Self::TrimSpace => Ok(strings::trim(&text(0)).into()),
            Self::Html => Ok(escape::html(&text(0)).into()),
            Self::Url => Ok(escape::url(&text(0)).into()),
            Self::Json => json(args.first().unwrap_or(&Value::Nil))
                .map(|text| Value::bytes(text.into_bytes())),
        }
    }
}

/// JSON with sorted keys and `<`, `>`, `&` escaped.
pub(crate) fn json(value: &Value) -> Result<String, Refusal> {
    govalue::json::encode(value, govalue::json::Options::default())
        .map_err(|error| Refusal::Arguments(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(ALL.is_sorted_by_key(|(name, _)| *name));
        assert_eq!(find("upper"), Some(Builtin::Plain(Plain::Upper)));
        assert_eq!(find("Upper"), None);
    }
}
