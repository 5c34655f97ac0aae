//! The tables of Goss rules.

use ccm_goss::{KINDS, MATCHERS, SettingType};

use super::{code, table};

/// Every kind with what can be asked and how.
pub(super) fn kinds() -> String {
    let rows = KINDS.iter().map(|kind| {
        let names = |names: Vec<String>| names.join(", ");
        let (first, further) = if kind.has_first {
            (code(kind.tests[0].name), &kind.tests[1..])
        } else {
            (String::new(), kind.tests)
        };
        let further = further.iter().map(|test| match test.alias {
            Some(alias) => format!("{} (or {})", code(test.name), code(alias)),
            None => code(test.name),
        });
        let settings = kind.settings.iter().map(|setting| match setting.value {
            SettingType::Milliseconds(default) => {
                format!("{} in ms ({default})", code(setting.name))
            }
            _ => code(setting.name),
        });
        let kind_name = match kind.subject {
            Some(subject) => format!("{} ({})", code(kind.name), code(subject)),
            None => code(kind.name),
        };
        vec![
            kind_name,
            first,
            names(further.collect()),
            names(settings.collect()),
            kind.notes.to_owned(),
        ]
    });
    table(&["Kind", "First test", "Further tests", "Settings", "Notes"], rows)
}

/// Every matcher that is written as a map.
pub(super) fn matchers() -> String {
    let rows = MATCHERS.iter().map(|matcher| {
        vec![code(matcher.name), matcher.argument.to_owned(), matcher.doc.to_owned()]
    });
    table(&["Matcher", "Takes", "Holds when"], rows)
}
