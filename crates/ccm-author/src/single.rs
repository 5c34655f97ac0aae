//! Converts a resource of a manifest to a `ccm ensure` command or an API
//! request.

use ccm_engine::{AnyResource, AnyType};
use ccm_model::{Common, Control, Field, Fields as _, REDACTED, Request, Shape, shellquote};
use serde_json::{Map, Value, json};

/// A resource that is asked for alone.
#[derive(Clone, Debug, Default)]
pub struct SingleResource {
    /// As a `ccm ensure` command; `None` for a type that it does not offer.
    pub command: Option<String>,
    /// Properties that the command has no flag for.
    pub left_out: Vec<String>,
    /// As a request of the API.
    pub request: Value,
    /// Whether secrets were left out of both.
    pub is_redacted: bool,
}

/// How to ask for a resource that a manifest declares, its templates resolved
/// and its defaults included, secrets redacted.
pub fn single_resource(kind: &'static dyn AnyType, resource: &dyn AnyResource) -> SingleResource {
    let mut properties = match resource.properties() {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    properties.retain(|_, value| !is_unset(value));
    let request = json!({
        "protocol": Request::PROTOCOL, "type": kind.name(), "properties": &properties,
    });
    let is_redacted = request.to_string().contains(REDACTED);
    let mut words = Words::default();
    let command = kind.command_line().map(|view| {
        words.positional.push(take_text(&mut properties, "name"));
        for argument in view.arguments {
            let name = argument.trim_matches(['[', ']']);
            if properties.contains_key(name) {
                words.positional.push(take_text(&mut properties, name));
            }
        }
        for field in kind.fields() {
            let is_common = Common::FIELDS.iter().any(|common| common.name == field.name);
            let has_flag = !is_common || ["alias", "provider", "require"].contains(&field.name);
            match properties.remove(field.name) {
                Some(value) if has_flag && words.flag(field, &value) => {}
                Some(Value::Object(control)) if field.name == "control" => words.control(&control),
                Some(_) => words.left_out.push(field.name.to_owned()),
                None => {}
            }
        }
        words.line(kind.name())
    });
    SingleResource { command, left_out: words.left_out, request, is_redacted }
}

fn is_unset(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn take_text(properties: &mut Map<String, Value>, name: &str) -> String {
    properties.remove(name).as_ref().and_then(text).unwrap_or_default()
}

/// A value that is one word of a command line.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_on) => Some(is_on.to_string()),
        _ => None,
    }
}

#[derive(Default)]
struct Words {
    positional: Vec<String>,
    flags: Vec<String>,
    left_out: Vec<String>,
}

impl Words {
    /// Gives a property as a flag, if it has one that can say it.
    fn flag(&mut self, field: &Field, value: &Value) -> bool {
        let values: Option<Vec<String>> = match (field.shape, value) {
            (Shape::Data, _) => None,
            (Shape::Boolean, Value::Bool(true)) => {
                self.flags.push(format!("--{}", field.flag.long));
                return true;
            }
            (Shape::List(_) | Shape::Texts, Value::Array(items)) => {
                items.iter().map(text).collect()
            }
            (_, value) => text(value).map(|text| vec![text]),
        };
        let Some(values) = values else { return false };
        for value in values {
            self.option(field.flag.long, &value);
        }
        true
    }

    fn control(&mut self, control: &Map<String, Value>) {
        for field in Control::FIELDS {
            if let Some(expression) = control.get(field.name).and_then(text) {
                self.option(field.flag.long, &expression);
            }
        }
    }

    fn option(&mut self, long: &str, value: &str) {
        // A value that looks like a flag must be of one word with its flag.
        if value.starts_with('-') {
            self.flags.push(format!("--{long}={}", shellquote::quote(value)));
        } else {
            self.flags.extend([format!("--{long}"), shellquote::quote(value).into()]);
        }
    }

    fn line(&self, kind: &str) -> String {
        let quoted = self.positional.iter().map(|word| shellquote::quote(word).into());
        let quoted: Vec<String> = quoted.collect();
        let start = ["ccm".to_owned(), "ensure".to_owned(), kind.to_owned()].into_iter();
        let flags = self.flags.iter().cloned();
        let words: Vec<String> = if self.positional.iter().any(|word| word.starts_with('-')) {
            start.chain(flags).chain(["--".to_owned()]).chain(quoted).collect()
        } else {
            start.chain(quoted).chain(flags).collect()
        };
        words.join(" ")
    }
}
