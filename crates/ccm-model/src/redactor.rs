//! Redacts the secrets of a run in all output.

use std::borrow::Cow;
use std::collections::HashSet;

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;

use crate::{ChangeValue, Event, REDACTED, redact_credentials};

mod base64;

/// Shorter secrets stand in the middle of other words, so they are found only
/// where they stand alone.
const MIN_LENGTH: usize = 4;

/// Even shorter ones are not found at all: nothing would be left of a text.
const MIN_WORD: usize = 2;

/// Types that can contain secrets.
pub trait Secrets {
    /// Adds the values that are.
    fn secrets(&self, into: &mut Vec<String>);
}

impl Secrets for String {
    fn secrets(&self, into: &mut Vec<String>) {
        into.push(self.clone());
    }
}

impl<T: Secrets> Secrets for Option<T> {
    fn secrets(&self, into: &mut Vec<String>) {
        if let Some(value) = self {
            value.secrets(into);
        }
    }
}

impl<T: Secrets> Secrets for Vec<T> {
    fn secrets(&self, into: &mut Vec<String>) {
        for value in self {
            value.secrets(into);
        }
    }
}

/// Replaces known secrets, and credentials in URLs, in strings.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    known: HashSet<String>,
    /// Finds most of them at once.
    searcher: Option<AhoCorasick>,
    /// The others: a searcher for each new one would take too long to make.
    recent: Vec<String>,
    /// Secrets of few characters, which are found as whole words.
    words: Vec<String>,
}

impl Redactor {
    /// Adds values to redact from now on.
    pub fn add(&mut self, values: impl IntoIterator<Item = String>) {
        for value in values {
            let word = value.trim();
            let is_word = (MIN_WORD..MIN_LENGTH).contains(&word.len());
            if is_word && !self.words.iter().any(|known| known == word) {
                self.words.push(word.to_owned());
            }
            // Each line of a key is as secret as all of it.
            let parts = value.lines().map(str::trim).filter(|line| line.len() >= MIN_LENGTH);
            for part in parts.map(str::to_owned).collect::<Vec<_>>() {
                if self.known.insert(part.clone()) {
                    self.recent.push(part);
                }
            }
        }
        // Made anew only when there are many, so that the work stays in
        // proportion to their number.
        if self.recent.len() > self.known.len() / 2 + 8 {
            let longest = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).clone();
            self.searcher = longest.build(&self.known).ok();
            if self.searcher.is_some() {
                self.recent.clear();
            }
        }
    }

    /// The text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = self.long_secrets(text);
        for word in &self.words {
            if let Some(replaced) = replace_word(&shown, word) {
                shown = Cow::Owned(replaced);
            }
        }
        shown
    }

    /// The text without secrets that are long enough to be found anywhere, also
    /// encoded as Base64.
    fn long_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = redact_credentials(text);
        if self.known.is_empty() {
            return shown;
        }
        if let Some(searcher) = &self.searcher
            && searcher.is_match(&*shown)
        {
            let mut replaced = String::with_capacity(shown.len());
            searcher.replace_all_with(&shown, &mut replaced, |_, _, out| {
                out.push_str(REDACTED);
                true
            });
            shown = Cow::Owned(replaced);
        }
        for secret in &self.recent {
            if shown.contains(secret.as_str()) {
                shown = Cow::Owned(shown.replace(secret.as_str(), REDACTED));
            }
        }
        if let Some(replaced) = base64::replace(&shown, |bytes| self.is_in(bytes)) {
            shown = Cow::Owned(replaced);
        }
        shown
    }

    /// Whether bytes hold a secret.
    fn is_in(&self, bytes: &[u8]) -> bool {
        let is_recent = || {
            let text = String::from_utf8_lossy(bytes);
            self.recent.iter().any(|secret| text.contains(secret.as_str()))
        };
        self.searcher.as_ref().is_some_and(|searcher| searcher.is_match(bytes))
            || !self.recent.is_empty() && is_recent()
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
                if let Cow::Owned(redacted) = self.long_secrets(&number.to_string()) {
                    *value = Value::String(redacted);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Replaces every known secret in all strings of an event.
    pub fn event(&self, event: &mut Event) {
        self.replace(&mut event.name);
        event.alias.iter_mut().for_each(|text| self.replace(text));
        event.waits_for.iter_mut().for_each(|text| self.replace(text));
        event.error.iter_mut().for_each(|text| self.replace(text));
        event.noop_message.iter_mut().for_each(|text| self.replace(text));
        event.health_check.iter_mut().for_each(|check| self.replace(&mut check.output));
        for change in &mut event.changes {
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

/// The text with every occurrence of a word replaced that is not part of a longer
/// one; `None` if there is none.
fn replace_word(text: &str, word: &str) -> Option<String> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut replaced = String::new();
    let mut copied = 0;
    for (at, _) in text.match_indices(word) {
        let end = at + word.len();
        let is_longer =
            text[..at].ends_with(is_part) || text[end..].starts_with(is_part) || at < copied;
        if !is_longer {
            replaced.push_str(&text[copied..at]);
            replaced.push_str(REDACTED);
            copied = end;
        }
    }
    (copied > 0).then(|| replaced + &text[copied..])
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
            properties: serde_json::json!({"a": ["hunter2", 1], "b": {"hunter2": 1}}),
            status: serde_json::json!({"b": {"c": "xhunter2x"}}),
            ..Event::default()
        };
        redactor.event(&mut event);
        let json = serde_json::to_string(&event).unwrap();
        assert!(!json.contains("hunter2"), "{json}");
        assert_eq!(json.matches(REDACTED).count(), 8);
    }
}
