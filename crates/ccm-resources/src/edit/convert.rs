//! The properties as an edit of a text.

use ccm_textedit::{
    Anchor, BlockEdit, Comment, Edit, Entries, IfMissing, LineEdit, Pattern, Pointer, Which,
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
        add: Vec::new(),
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
