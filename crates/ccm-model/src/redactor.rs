//! Redacts the secrets of a run in all output.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::redact::credentials;
use crate::{ChangeValue, Event, REDACTED, ResourceRef};

mod base64;
mod escapes;
mod values;

use values::Known;
pub use values::{SecretValues, Secrets, header_secrets};

/// Replaces known secrets, and credentials in URLs, in strings.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    /// The secrets of the run.
    run: Known,
    /// What is secret in the resource at work only.
    resource: Known,
    resource_values: Vec<String>,
}

impl Redactor {
    /// Adds values to redact from now on.
    pub fn add(&mut self, values: impl IntoIterator<Item = String>) {
        self.run.add(values, values::MIN_LENGTH);
    }

    /// Says what else is secret in the resource at work. Returns what was before.
    pub fn set_resource(&mut self, values: Vec<String>) -> Vec<String> {
        self.resource = Known::default();
        self.resource.add(values.iter().cloned(), values::MIN_VALUE);
        std::mem::replace(&mut self.resource_values, values)
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redacted(text, &[&self.run, &self.resource], true)
    }

    /// The name of a resource without secrets of the run. Others refer to it by
    /// this name, and they do not know what is secret in the resource alone.
    pub fn name<'t>(&self, name: &'t str) -> Cow<'t, str> {
        self.redacted(name, &[&self.run], true)
    }

    /// Whether a text holds a secret.
    pub fn finds_in(&self, text: &str) -> bool {
        let known = [&self.run, &self.resource];
        known.iter().any(|known| !known.is_empty()) && !find(text, &known, true).is_empty()
    }

    fn redacted<'t>(&self, text: &'t str, known: &[&Known], with_words: bool) -> Cow<'t, str> {
        let mut found = credentials(text);
        found.extend(find(text, known, with_words));
        replace(text, found)
    }

    /// Redacts every text in a value, keys included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.replace(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                map.values_mut().for_each(|item| self.value(item));
                if map.keys().any(|key| matches!(self.text(key), Cow::Owned(_))) {
                    let entries = std::mem::take(map).into_iter();
                    *map =
                        entries.map(|(key, item)| (self.text(&key).into_owned(), item)).collect();
                }
            }
            Value::Number(number) => {
                // A short secret does not make a number of every field a text.
                let number = number.to_string();
                let known = [&self.run, &self.resource];
                if let Cow::Owned(redacted) = self.redacted(&number, &known, false) {
                    *value = Value::String(redacted);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Replaces every known secret in all strings of an event.
    pub fn event(&self, event: &mut Event) {
        let name = |text: &mut String| {
            if let Cow::Owned(redacted) = self.name(text) {
                *text = redacted;
            }
        };
        let names = event.alias.iter_mut().chain(&mut event.waits_for).chain(&mut event.route);
        names.chain(&mut event.location).chain([&mut event.name]).for_each(name);
        let references = event.because.iter_mut().chain(&mut event.unmet_requirements);
        for reference in references {
            if let Cow::Owned(redacted) = self.name(&reference.name) {
                *reference = ResourceRef::new(&*reference.kind, redacted);
            }
        }
        event.error.iter_mut().for_each(|text| self.replace(text));
        event.noop_message.iter_mut().for_each(|text| self.replace(text));
        for check in &mut event.health_check {
            self.replace(&mut check.name);
            self.replace(&mut check.output);
        }
        for change in &mut event.changes {
            let removed = match &mut change.removed {
                Some(crate::Removed::Members(members)) => Some(members),
                _ => None,
            };
            let members = [Some(&mut change.created), Some(&mut change.updated), removed];
            for member in members.into_iter().flatten().flatten() {
                self.replace(member);
            }
            for value in [&mut change.from, &mut change.to].into_iter().flatten() {
                match value {
                    ChangeValue::Text(text) => self.replace(text),
                    ChangeValue::List(members) => {
                        for member in members {
                            self.replace(member);
                        }
                    }
                    ChangeValue::Switch(_) => {}
                }
            }
        }
        self.value(&mut event.properties);
        self.value(&mut event.status);
    }

    fn replace(&self, text: &mut String) {
        if let Cow::Owned(redacted) = self.text(text) {
            *text = redacted;
        }
    }
}

/// Where secrets stand in a text, as they are, escaped or encoded as Base64.
fn find(text: &str, known: &[&Known], with_words: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut has_long = false;
    for known in known {
        if with_words {
            known.find_words(text, &mut found);
        }
        known.find(text.as_bytes(), &mut found);
        has_long |= known.has_long();
    }
    if has_long {
        let find = |bytes: &[u8], into: &mut Vec<Range<usize>>| {
            for known in known {
                known.find(bytes, into);
            }
        };
        escapes::find(text, find, &mut found);
        base64::find(text, |bytes| known.iter().any(|known| known.is_in(bytes)), &mut found);
    }
    found
}

/// The text with these parts of it replaced; what overlaps counts as one.
fn replace(text: &str, mut found: Vec<Range<usize>>) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort_unstable_by_key(|range| (range.start, range.end));
    let mut replaced = String::with_capacity(text.len());
    let mut copied = 0;
    for range in found {
        if copied == 0 || range.start >= copied {
            replaced.push_str(text.get(copied..range.start).unwrap_or_default());
            replaced.push_str(REDACTED);
        }
        copied = copied.max(range.end);
    }
    replaced.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(replaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secrets_and_credentials_go() {
        let mut redactor = Redactor::default();
        assert_eq!(redactor.text("http://u:p@h x"), "http://[redacted]@h x");
        redactor.add(["hunter2".into(), "first line\n  second\n".into()]);
        assert_eq!(redactor.text("pw=hunter2, abc"), "pw=[redacted], abc");
        assert_eq!(redactor.text("a second one"), "a [redacted] one");
        assert_eq!(redactor.text("first line"), "[redacted]");
        assert!(matches!(redactor.text("nothing here"), Cow::Borrowed(_)));
    }

    #[test]
    fn short_secrets_go_where_they_stand_alone() {
        let mut redactor = Redactor::default();
        redactor.add(["abc".into(), " 42\n".into(), "x".into(), "one\nfi\n".into()]);
        for (text, wanted) in [
            ("abc", "[redacted]"),
            ("--pin=42 --pw=abc,abc", "--pin=[redacted] --pw=[redacted],[redacted]"),
            ("abcd xabc abc_1 142 éabc", "abcd xabc abc_1 142 éabc"),
            ("x fi", "x fi"),
        ] {
            assert_eq!(redactor.text(text), wanted);
        }
        let mut value = serde_json::json!({"port": 42, "pin": "42"});
        redactor.value(&mut value);
        assert_eq!(value, serde_json::json!({"port": 42, "pin": REDACTED}));
    }

    #[test]
    fn encoding_a_secret_does_not_hide_it() {
        let mut redactor = Redactor::default();
        redactor.add(["hunter2".into(), "päss wörd?>".into()]);
        for text in [
            // hunter2, me:hunter2, x:hunter2 and more, in all three alignments.
            "aHVudGVyMg==",
            "Authorization: Basic bWU6aHVudGVyMg==",
            "data=eDpodW50ZXIyIGFuZCBtb3Jl;",
            "YWI6aHVudGVyMg",
            // The other secret in both alphabets.
            "cMOkc3Mgd8O2cmQ/Pg==",
            "cMOkc3Mgd8O2cmQ_Pg==",
        ] {
            let shown = redactor.text(text);
            assert!(shown.contains(REDACTED), "{text}: {shown}");
        }
        for text in
            ["/etc/nginx/nginx.conf", "aGVsbG8gd29ybGQ=", "aHVudGVy", "sha256:0123456789abcdef"]
        {
            assert_eq!(redactor.text(text), text);
        }
    }

    #[test]
    fn escaping_a_secret_does_not_hide_it() {
        let mut redactor = Redactor::default();
        redactor.add([r#"p"ä\s w/d@1"#.into(), "😀-face".into()]);
        for (text, wanted) in [
            (r#"{"a":"p\"ä\\s w\/d@1","b":1}"#, r#"{"a":"[redacted]","b":1}"#),
            (r#""p\u0022\u00e4\\s w/d\u00401""#, r#""[redacted]""#),
            (r"\ud83d\ude00-face \ud83d", r"[redacted] \ud83d"),
            ("x?p=p%22%C3%A4%5cs%20w%2Fd%401&q", "x?p=[redacted]&q"),
            ("p%22%c3%a4%5Cs+w/d%401", "[redacted]"),
            ("100% \\ + %zz %", "100% \\ + %zz %"),
        ] {
            assert_eq!(redactor.text(text), wanted);
        }
    }

    #[test]
    fn a_secret_within_another_does_not_break_it() {
        let mut redactor = Redactor::default();
        redactor.add(["hunter2".into(), "me:hunter2-and-more".into(), "more:x".into()]);
        assert_eq!(redactor.text("a me:hunter2-and-more:x b"), "a [redacted] b");
        redactor.set_resource(vec!["postgres://me:hunter2@db/app".into()]);
        assert_eq!(redactor.text("x postgres://me:hunter2@db/app?y"), "x [redacted]?y");
    }

    #[test]
    fn secrets_of_a_resource_end_with_it() {
        let mut redactor = Redactor::default();
        redactor.add(["hunter2".into()]);
        assert!(redactor.set_resource(vec!["C.UTF-8".into(), "12345".into()]).is_empty());
        assert_eq!(redactor.text("C.UTF-8 12345 hunter2"), "[redacted] 12345 [redacted]");
        assert_eq!(redactor.name("C.UTF-8 hunter2"), "C.UTF-8 [redacted]");
        assert_eq!(redactor.set_resource(Vec::new()), ["C.UTF-8", "12345"]);
        assert_eq!(redactor.text("C.UTF-8 hunter2"), "C.UTF-8 [redacted]");
    }

    #[test]
    fn many_secrets_are_found_as_surely_as_one() {
        let mut redactor = Redactor::default();
        for number in 0..5000 {
            redactor.add([format!("secret-{number:05}-x")]);
            let text = format!("a secret-{:05}-x b secret-{number:05}-x", number / 2);
            assert_eq!(redactor.text(&text), "a [redacted] b [redacted]");
        }
        redactor.add(["secret-00001-x-and-more".into()]);
        assert!(!redactor.text("secret-00001-x-and-more").contains("00001"));
    }

    #[test]
    fn nothing_of_an_event_tells() {
        let mut redactor = Redactor::default();
        redactor.add(["hunter2".into()]);
        let mut event = Event {
            name: "/etc/hunter2".into(),
            error: vec!["said hunter2".into()],
            noop_message: Some("hunter2".into()),
            changes: vec![crate::Change::of("x").from("hunter2").to(vec!["a hunter2".to_owned()])],
            because: vec![ResourceRef::new("file", "/hunter2")],
            unmet_requirements: vec![ResourceRef::new("exec", "hunter2")],
            health_check: vec![crate::HealthCheckResult {
                name: "hunter2".into(),
                ..Default::default()
            }],
            properties: serde_json::json!({"a": ["hunter2", 1], "b": {"hunter2": 1}}),
            status: serde_json::json!({"b": {"c": "xhunter2x"}}),
            ..Event::default()
        };
        redactor.event(&mut event);
        let json = serde_json::to_string(&event).unwrap();
        assert!(!json.contains("hunter2"), "{json}");
        assert_eq!(json.matches(REDACTED).count(), 11);
    }
}
