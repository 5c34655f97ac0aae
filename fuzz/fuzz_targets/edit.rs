//! Edits of YAML: any operation on any text is done or refused, never a panic.
//! What is done means what the operation says: the editor checks that itself,
//! mostly by the entries around the change. Here the whole text is read again
//! and compared with what the operation makes of the value before.

#![no_main]

use ccm_yaml::Source;
use ccm_yaml::edit::{Document, Operation, Step};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

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
    let before = document.value(&[]);
    if document.apply(std::slice::from_ref(&operation)).is_err() {
        assert_eq!(document.text(), text);
        return;
    }
    let after = Document::parse(Source::new("t", document.text())).expect("text that is YAML");
    // An anchor changes with its aliases, which only the editor knows.
    if !text.contains(['&', '*']) && !text.contains("<<") {
        let wanted = before.and_then(|before| edited(before, &operation));
        assert_eq!(after.value(&[]), wanted, "{operation:?} of {text:?}");
    }
});

/// What an operation that was done makes of a value.
fn edited(mut root: Value, operation: &Operation) -> Option<Value> {
    if let Operation::Insert { path, index, value } = operation {
        reach(&mut root, path)?.as_array_mut()?.insert(*index, value.clone());
        return Some(root);
    }
    let Some((last, above)) = operation.path().split_last() else {
        let Operation::Set { value, .. } = operation else { return None };
        return Some(value.clone());
    };
    let parent = reach(&mut root, above)?;
    match (operation, parent, last) {
        (Operation::Set { value, .. }, Value::Object(map), Step::Key(key)) => {
            map.insert(key.clone(), value.clone());
        }
        (Operation::Set { value, .. }, Value::Array(items), Step::Index(at)) => {
            *items.get_mut(*at)? = value.clone();
        }
        (Operation::Remove { .. }, Value::Object(map), Step::Key(key)) => {
            map.remove(key)?;
        }
        (Operation::Remove { .. }, Value::Array(items), Step::Index(at)) => {
            items.remove(*at);
        }
        (Operation::Rename { key: new, .. }, Value::Object(map), Step::Key(key)) => {
            let value = map.remove(key)?;
            map.insert(new.clone(), value);
        }
        // The order of keys is not compared.
        (Operation::Move { .. }, Value::Object(_), Step::Key(_)) => {}
        (Operation::Move { to, .. }, Value::Array(items), Step::Index(at)) => {
            let item = items.remove(*at);
            items.insert(*to, item);
        }
        (Operation::Copy { to, .. }, Value::Array(items), Step::Index(at)) => {
            let item = items.get(*at)?.clone();
            items.insert(*to, item);
        }
        _ => return None,
    }
    Some(root)
}

fn reach<'v>(root: &'v mut Value, path: &[Step]) -> Option<&'v mut Value> {
    path.iter().try_fold(root, |value, step| match (value, step) {
        (Value::Object(map), Step::Key(key)) => map.get_mut(key),
        (Value::Array(items), Step::Index(at)) => items.get_mut(*at),
        _ => None,
    })
}
