//! Edits of configuration files: any edit of any bytes is made or refused, never
//! a panic, and what is made is stable.

#![no_main]

use ccm_textedit::{BlockEdit, Dialect, Edit, Entries, LineEdit, Pattern, Pointer, apply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&[u8], u8, &str, &str, &str)| {
    let (text, format, key, value, more) = input;
    let set = match serde_json::from_str(more) {
        Ok(serde_json::Value::Object(map)) => map,
        _ => serde_json::Map::from_iter([(key.to_owned(), serde_json::json!({ more: value }))]),
    };
    let remove: Vec<Pointer> = Pointer::new(value).into_iter().collect();
    let entries = Entries { set, add: Vec::new(), remove };
    if entries.check().is_err() {
        return;
    }
    let edit = match format % 8 {
        0 => Edit::Line(LineEdit {
            line: Some(value.to_owned()),
            pattern: Pattern::new(key).ok(),
            absent: format & 8 != 0,
            ..LineEdit::default()
        }),
        1 => Edit::Block(BlockEdit {
            name: key.to_owned(),
            block: value.to_owned(),
            absent: format & 8 != 0,
            ..BlockEdit::default()
        }),
        2 => Edit::Ini(entries),
        3 => Edit::Json(entries),
        4 => Edit::Yaml(entries, usize::from(format >> 6)),
        5 => Edit::Toml(entries),
        6 => Edit::Properties(entries, Dialect::Java),
        _ => Edit::Properties(entries, Dialect::Shell),
    };
    if let Ok(edited) = apply(text, &edit) {
        let again = apply(&edited.text, &edit).expect("stable");
        assert_eq!(again.text, edited.text);
    }
});
