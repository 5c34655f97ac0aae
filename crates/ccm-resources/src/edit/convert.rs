//! The properties as an edit of a text.

use ccm_textedit::{
    Anchor, BlockEdit, Comment, Dialect, Edit, Entries, IfMissing, LineEdit, Pattern, Pointer,
    Which,
};
use serde_json::{Map, Value};

use super::Properties;

/// A property that is wrong, and why.
pub(super) type Wrong = (&'static str, String);

/// What the properties say about the text of the file.
pub(super) fn edit(want: &Properties) -> Result<Edit, Wrong> {
    match want.format.as_str() {
        "line" => line(want).map(Edit::Line),
        "block" => block(want).map(Edit::Block),
        "ini" => entries(want).map(Edit::Ini),
        "json" => entries(want).map(Edit::Json),
        "yaml" => {
            let document = usize::try_from(want.document.unwrap_or(0));
            let document = document.map_err(|_| ("document", "must be 0 or more".to_owned()))?;
            Ok(Edit::Yaml(entries(want)?, document))
        }
        "toml" => entries(want).map(Edit::Toml),
        "properties" => {
            let dialect = match want.dialect.as_deref() {
                None | Some("java") => Dialect::Java,
                Some("shell") => Dialect::Shell,
                Some(word) => return Err(("dialect", format!("unknown dialect `{word}`"))),
            };
            Ok(Edit::Properties(entries(want)?, dialect))
        }
        other => Err(("format", format!("unknown format `{other}`"))),
    }
}

fn line(want: &Properties) -> Result<LineEdit, Wrong> {
    Ok(LineEdit {
        absent: want.is_removal(),
        line: want.line.clone(),
        pattern: want.r#match.as_deref().map(|text| pattern("match", text)).transpose()?,
        which: match want.which.as_deref() {
            None => None,
            Some("first") => Some(Which::First),
            Some("last") => Some(Which::Last),
            Some("only") => Some(Which::Only),
            Some(word) => return Err(("which", format!("unknown word `{word}`"))),
        },
        if_missing: match want.if_missing.as_deref() {
            None | Some("insert") => IfMissing::Insert,
            Some("skip") => IfMissing::Skip,
            Some("error") => IfMissing::Error,
            Some(word) => return Err(("if_missing", format!("unknown word `{word}`"))),
        },
        anchor: anchor(want)?,
    })
}

fn block(want: &Properties) -> Result<BlockEdit, Wrong> {
    let comment = match want.comment.as_deref() {
        None => Comment::Hash,
        Some(word) => Comment::ALL
            .into_iter()
            .find(|comment| comment.as_str() == word)
            .ok_or_else(|| ("comment", format!("unknown comment `{word}`")))?,
    };
    Ok(BlockEdit {
        absent: want.is_removal(),
        name: want.common.name.clone(),
        block: want.block.clone().unwrap_or_default(),
        comment,
        anchor: anchor(want)?,
    })
}

fn anchor(want: &Properties) -> Result<Anchor, Wrong> {
    let place = |property, text: &str, of: fn(Pattern) -> Anchor| match text {
        "start" => Ok(Anchor::Start),
        "end" => Ok(Anchor::End),
        text => pattern(property, text).map(of),
    };
    match (want.after.as_deref(), want.before.as_deref()) {
        (Some(text), _) => place("after", text, Anchor::After),
        (None, Some(text)) => place("before", text, Anchor::Before),
        (None, None) => Ok(Anchor::End),
    }
}

fn pattern(property: &'static str, text: &str) -> Result<Pattern, Wrong> {
    Pattern::new(text).map_err(|reason| (property, reason))
}

fn entries(want: &Properties) -> Result<Entries, Wrong> {
    let remove = want.remove.iter().map(|text| Pointer::new(text));
    let entries = Entries {
        set: want.set.as_ref().map(map).unwrap_or_default(),
        add: members(want)?,
        remove: remove.collect::<Result<_, _>>().map_err(|reason| ("remove", reason))?,
    };
    entries.check().map_err(|reason| ("remove", reason))?;
    Ok(entries)
}

fn map(data: &ccm_model::Data) -> Map<String, Value> {
    match serde_json::to_value(data) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

/// The members by the list that must have them.
fn members(want: &Properties) -> Result<Vec<(Pointer, Vec<Value>)>, Wrong> {
    let lists = want.add.as_ref().map(map).unwrap_or_default();
    let list = |(text, value): (String, Value)| match value {
        Value::Array(members) => {
            let pointer = Pointer::new(&text).map_err(|reason| ("add", reason))?;
            Ok((pointer, members))
        }
        _ => Err(("add", format!("`{text}` needs a list of members"))),
    };
    lists.into_iter().map(list).collect()
}
