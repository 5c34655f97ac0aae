//! What is wrong with the properties of an edit.

use ccm_engine::Findings;
use ccm_model::{Stage, has_placeholder};
use ccm_textedit::Edit;

use super::{Properties, convert};
use crate::file::{mode, validate};

/// A property, whether it is set, and the formats that have it.
fn of_formats(want: &Properties) -> [(&'static str, bool, &'static [&'static str]); 12] {
    const STRUCTURED: &[&str] = &["ini", "json", "yaml", "toml", "properties"];
    [
        ("line", want.line.is_some(), &["line"]),
        ("match", want.r#match.is_some(), &["line"]),
        ("which", want.which.is_some(), &["line"]),
        ("if_missing", want.if_missing.is_some(), &["line"]),
        ("after", want.after.is_some(), &["line", "block"]),
        ("before", want.before.is_some(), &["line", "block"]),
        ("block", want.block.is_some(), &["block"]),
        ("comment", want.comment.is_some(), &["block"]),
        ("set", want.set.is_some(), STRUCTURED),
        ("add", want.add.is_some(), &["json", "yaml", "toml"]),
        ("dialect", want.dialect.is_some(), &["properties"]),
        ("document", want.document.is_some(), &["yaml"]),
    ]
}

pub(super) fn check(want: &Properties, stage: Stage, findings: &mut Findings) {
    let name = &want.common.name;
    match &want.path {
        Some(path) => findings.check_path("path", path),
        None if name.is_empty() => {}
        None if !name.starts_with('/') => findings.add_with_hint(
            "name",
            format!("the name `{name}` is no absolute path"),
            "set `path` to the file",
        ),
        None => findings.check_path_of("name", "file path", name),
    }
    if !super::FORMATS.contains(&want.format.as_str()) {
        if !want.format.is_empty() {
            let message = format!("unknown format `{}`", want.format);
            let hint = format!("allowed: {}", super::FORMATS.join(", "));
            findings.add_with_hint("format", message, hint);
        }
        return;
    }
    for (property, is_set, formats) in of_formats(want) {
        if is_set && !formats.contains(&want.format.as_str()) {
            findings.add(property, format!("the format `{}` does not have it", want.format));
        }
    }
    if !want.remove.is_empty() && !want.is_structured() {
        findings.add("remove", format!("the format `{}` does not have it", want.format));
    }
    match want.format.as_str() {
        "line" => line(want, findings),
        "block" => block(want, findings),
        _ => entries(want, findings),
    }
    creation(want, findings);
    if let Some(command) = want.validate.as_deref() {
        validate::check(command, findings);
    }
    if want.write_method().is_none() {
        let word = want.write.as_deref().unwrap_or_default();
        let message = format!("unknown way to write `{word}`");
        findings.add_with_hint("write", message, "allowed: replace, in_place");
    }
    content(want, stage, findings);
}

fn line(want: &Properties, findings: &mut Findings) {
    if want.is_removal() {
        for (property, is_set) in [
            ("which", want.which.is_some()),
            ("if_missing", want.if_missing.is_some()),
            ("after", want.after.is_some()),
            ("before", want.before.is_some()),
        ] {
            if is_set {
                findings.add(property, "`ensure: absent` removes all lines and inserts none");
            }
        }
        if want.line.is_none() && want.r#match.is_none() {
            let hint = "`line` removes lines that are equal to it, `match` those that it matches";
            findings.add_with_hint("line", "`line` or `match` is required", hint);
        }
        return;
    }
    if want.line.is_none() {
        findings.add("line", "property `line` is required");
    }
    for (property, is_set) in
        [("which", want.which.is_some()), ("if_missing", want.if_missing.is_some())]
    {
        if is_set && want.r#match.is_none() {
            findings.add(property, "it has no meaning without `match`");
        }
    }
}

fn block(want: &Properties, findings: &mut Findings) {
    if want.common.name.chars().any(char::is_control) {
        findings.add("name", "the markers of a block have the name, so it must be one line");
    }
    if !want.is_removal() {
        if want.block.is_none() {
            findings.add("block", "property `block` is required");
        }
        return;
    }
    for (property, is_set) in [
        ("block", want.block.is_some()),
        ("after", want.after.is_some()),
        ("before", want.before.is_some()),
    ] {
        if is_set {
            findings.add(property, "`ensure: absent` removes the block by its markers");
        }
    }
}

fn entries(want: &Properties, findings: &mut Findings) {
    if want.is_removal() {
        for (property, is_set) in [("set", want.set.is_some()), ("add", want.add.is_some())] {
            if is_set {
                let message = "`ensure: absent` removes what `remove` names and sets nothing";
                findings.add(property, message);
            }
        }
        if want.remove.is_empty() {
            findings.add("remove", "property `remove` is required");
        }
    } else if want.set.is_none() && want.add.is_none() && want.remove.is_empty() {
        findings.add("set", "`set`, `add` or `remove` is required");
    }
}

fn creation(want: &Properties, findings: &mut Findings) {
    let attributes = [
        ("owner", want.owner.as_deref()),
        ("group", want.group.as_deref()),
        ("mode", want.mode.as_deref()),
    ];
    for (property, value) in attributes {
        match value {
            None | Some("") if want.create && !want.is_removal() => {
                findings.add(property, format!("`create: true` needs `{property}`"));
            }
            Some(_) if !want.create => findings.add_with_hint(
                property,
                "it has no meaning without `create: true`",
                "a `file` with this path and no content manages owner, group and mode",
            ),
            _ => {}
        }
    }
    if want.create && want.is_removal() {
        findings.add("create", "`ensure: absent` makes no file");
    }
    if let Some(Err(reason)) = want.mode.as_deref().map(mode::parse) {
        findings.add("mode", reason);
    }
}

/// What can be said once the content is known.
fn content(want: &Properties, stage: Stage, findings: &mut Findings) {
    let text = |property: &Option<String>| property.as_deref().is_some_and(has_placeholder);
    if stage == Stage::Parse && (text(&want.line) || text(&want.block)) {
        return;
    }
    if let Some(line) = &want.line {
        if line.is_empty() {
            findings.add("line", "a line cannot be empty");
        } else if line.contains(['\n', '\r', '\0']) {
            let hint = "use `format: block` for several lines";
            findings.add_with_hint("line", "a line cannot contain a line end", hint);
        }
    }
    if want.block.as_deref().is_some_and(|block| block.contains('\0')) {
        findings.add("block", "a block cannot contain a NUL character");
    }
    match convert::edit(want) {
        Err((property, reason)) => findings.add(property, reason),
        Ok(Edit::Block(edit)) => {
            if let Some(line) = edit.own_marker() {
                findings.add("block", format!("the block contains its own marker line `{line}`"));
            }
        }
        Ok(Edit::Line(edit)) => {
            if let (Some(line), Some(pattern), false) = (&edit.line, &edit.pattern, edit.absent)
                && !pattern.is_match(line.as_bytes())
            {
                findings.warn(
                    "match",
                    "`match` does not match `line`: a later change of this line would not be \
                     recognised",
                    "write `match` so that it matches the old and the new line",
                );
            }
        }
        Ok(_) => {}
    }
}
