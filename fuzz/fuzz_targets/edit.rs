//! Edits of YAML: any operation on any text is done or refused, never a panic.
//! What is done means what the operation says: the editor checks that itself,
//! and here the text must still be read.

#![no_main]

use ccm_yaml::Source;
use ccm_yaml::edit::{Document, Operation, Step};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, Vec<(u8, u8)>, u8, &str)| {
    let (text, steps, verb, new) = input;
    let Ok(mut document) = Document::parse(Source::new("t", text)) else { return };
    // Steps choose keys and items of what is there.
    let mut path: Vec<Step> = Vec::new();
    for (choice, stop) in steps {
        let Some(value) = document.value(&path) else { break };
        let step = match &value {
            serde_json::Value::Array(items) if !items.is_empty() => {
                Step::Index(usize::from(choice) % items.len())
            }
            serde_json::Value::Object(map) if !map.is_empty() => {
                let key = map.keys().nth(usize::from(choice) % map.len());
                Step::Key(key.cloned().unwrap_or_default())
            }
            _ => break,
        };
        path.push(step);
        if stop % 4 == 0 {
            break;
        }
    }
    let to = usize::from(verb >> 4);
    let value = serde_json::from_str(new).unwrap_or_else(|_| new.into());
    let operation = match verb % 6 {
        0 => Operation::Set { path, value, beside: None },
        1 => Operation::Remove { path },
        2 => Operation::Insert { path, index: to, value },
        3 => Operation::Move { path, to },
        4 => Operation::Copy { path, to },
        _ => Operation::Rename { path, key: new.to_owned() },
    };
    if document.apply(&[operation]).is_ok() {
        assert!(Document::parse(Source::new("t", document.text())).is_ok());
    } else {
        assert_eq!(document.text(), text);
    }
});
