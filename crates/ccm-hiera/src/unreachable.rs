//! Overrides that no entry of the hierarchy can match, on any machine.

use std::fmt;

use ccm_model::closest;
use ccm_template::placeholder::{Openers, scan};
use ccm_yaml::{Node, Source, Span};
use govalue::Value;

use crate::Document;
use crate::error::key_span;

/// An override that no entry of `hierarchy.order` can match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Its key in `overrides`.
    pub key: String,
    /// The entry that was probably meant.
    pub meant: Option<String>,
    has_hierarchy: bool,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no entry of `hierarchy.order` can match the override `{}`", self.key)
    }
}

impl Unreached {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match &self.meant {
            Some(entry) => Some(format!("did you mean the entry `{entry}`?")),
            None if self.has_hierarchy => None,
            None => Some("without `hierarchy`, only the override `default` applies".to_owned()),
        }
    }

    /// Where the key stands in the document.
    pub fn locate(&self, root: &Node<'_>) -> Option<Span> {
        key_span(root, "overrides", &self.key)
    }
}

impl Document {
    /// The overrides that can never apply, whatever the facts are: placeholders
    /// of the hierarchy may become anything but nothing.
    ///
    /// ```
    /// let document = ccm_hiera::Document::parse("data.yaml", "
    /// hierarchy: { order: [\"os:{{ Facts.os }}\"] }
    /// overrides:
    ///   os:linux: { port: 8080 }
    ///   so:plan9: { port: 9090 }
    /// ")?;
    /// let unreached = document.unreached();
    /// assert_eq!(unreached[0].key, "so:plan9");
    /// assert_eq!(unreached[0].meant.as_deref(), Some("os:{{ Facts.os }}"));
    /// # Ok::<(), ccm_hiera::Error>(())
    /// ```
    pub fn unreached(&self) -> Vec<Unreached> {
        let Some(overrides) = self.root.get("overrides").and_then(Value::as_map) else {
            return Vec::new();
        };
        let hierarchy = self.root.get("hierarchy");
        let entries: Option<Vec<Entry<'_>>> = match hierarchy {
            Some(hierarchy) => hierarchy.get("order").and_then(Value::as_array).and_then(|order| {
                order.iter().map(|entry| Entry::parse(entry.as_str()?)).collect()
            }),
            None => Entry::parse("default").map(|entry| vec![entry]),
        };
        // What is wrong with the hierarchy itself is an error already.
        let Some(entries) = entries else { return Vec::new() };
        let keys = overrides.keys().filter_map(|key| key.as_str());
        keys.filter(|key| !entries.iter().any(|entry| entry.matches(key)))
            .map(|key| Unreached {
                key: key.to_owned(),
                meant: meant(key, &entries),
                has_hierarchy: hierarchy.is_some(),
            })
            .collect()
    }

    /// The same as warnings with the position in a document of its own.
    pub fn unreached_warnings(&self) -> Vec<String> {
        let unreached = self.unreached();
        let Some((name, text)) = self.written().filter(|_| !unreached.is_empty()) else {
            return unreached.iter().map(ToString::to_string).collect();
        };
        let source = Source::new(name, text);
        let root = ccm_yaml::parse(&source).ok();
        let shown = unreached.iter().map(|unreached| {
            let span = root.as_ref().and_then(|root| unreached.locate(root));
            let place = span.map(|span| source.position(span.start));
            let place = place.map(|place| format!(":{}:{}", place.line, place.column));
            let hint = unreached.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
            format!("{name}{}: {unreached}{hint}", place.unwrap_or_default())
        });
        shown.collect()
    }
}

/// An entry of the order: its literal parts, with a placeholder between each two.
struct Entry<'a> {
    written: &'a str,
    literals: Vec<&'a str>,
}

impl<'a> Entry<'a> {
    /// Reads an entry, unless its placeholders are wrong.
    fn parse(written: &'a str) -> Option<Self> {
        let (mut literals, mut at) = (Vec::new(), 0);
        for placeholder in scan(written, Openers::All) {
            let placeholder = placeholder.ok()?;
            literals.push(&written[at..placeholder.start]);
            at = placeholder.end;
        }
        literals.push(&written[at..]);
        Some(Self { written, literals })
    }

    /// What stands before the first placeholder and behind the last one; `None`
    /// without placeholders.
    fn ends(&self) -> Option<(&'a str, &'a str)> {
        match &*self.literals {
            [first, .., last] => Some((first, last)),
            _ => None,
        }
    }

    /// Whether the entry can become this key: placeholders may become anything,
    /// but not all of them nothing.
    fn matches(&self, key: &str) -> bool {
        let Some((first, last)) = self.ends() else { return key == self.written };
        let Some(mut rest) = key.strip_prefix(first).and_then(|rest| rest.strip_suffix(last))
        else {
            return false;
        };
        for literal in &self.literals[1..self.literals.len() - 1] {
            match rest.find(literal) {
                Some(at) => rest = &rest[at + literal.len()..],
                None => return false,
            }
        }
        key.len() > self.literals.iter().map(|literal| literal.len()).sum()
    }

    /// Whether the key has almost the literal ends that the entry has. One
    /// character is too little to tell.
    fn is_close_to(&self, key: &str) -> bool {
        let Some((first, last)) = self.ends() else { return false };
        let (before, behind) = (first.chars().count(), last.chars().count());
        let count = key.chars().count();
        let head = key.chars().take(before);
        let tail = key.chars().skip(count.saturating_sub(behind).max(before));
        let ends: String = head.chain(tail).collect();
        before + behind > 1 && closest(&ends, [&*format!("{first}{last}")]).is_some()
    }
}

/// The entry that is probably meant by a key: one called almost the same, or
/// one whose literal parts are.
fn meant(key: &str, entries: &[Entry<'_>]) -> Option<String> {
    let literal = entries.iter().filter(|entry| entry.ends().is_none());
    let called = closest(key, literal.map(|entry| entry.written));
    let similar = || entries.iter().find(|entry| entry.is_close_to(key));
    called.or_else(|| similar().map(|entry| entry.written)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unreached(order: &str, keys: &str) -> Vec<(String, Option<String>)> {
        let keys: String = keys.split(' ').map(|key| format!("  '{key}': {{a: 1}}\n")).collect();
        let text = format!("{order}\noverrides:\n{keys}");
        let found = Document::parse("h.yaml", &text).unwrap().unreached();
        found.into_iter().map(|found| (found.key, found.meant)).collect()
    }

    #[test]
    fn placeholders_match_anything_but_nothing() {
        for (order, key) in [
            ("hierarchy: {order: [a, 'b']}", "a"),
            ("hierarchy: {order: ['os:{{ Facts.os }}']}", "os:linux"),
            ("hierarchy: {order: ['{{ Facts.os }}']}", "anything"),
            ("hierarchy: {order: ['{{ Facts.a }}:${ Facts.b }']}", ":b"),
            ("hierarchy: {order: ['{{ Facts.a }}-x-{{ Facts.b }}.y']}", "1-x-2-x-3.y"),
            ("data: {}", "default"),
        ] {
            assert_eq!(unreached(order, key), [], "{order} {key}");
        }
        for (order, key) in [
            ("hierarchy: {order: ['os:{{ Facts.os }}']}", "os:"),
            ("hierarchy: {order: ['os:{{ Facts.os }}']}", "entirely"),
            ("hierarchy: {order: ['{{ Facts.a }}:${ Facts.b }']}", ":"),
            ("hierarchy: {order: ['{{ Facts.a }}-x-{{ Facts.b }}.y']}", "1-2.y"),
            ("hierarchy: {order: ['ab{{ Facts.a }}bc']}", "abc"),
            ("hierarchy: {order: []}", "a"),
            ("data: {}", "other"),
        ] {
            assert_eq!(unreached(order, key).len(), 1, "{order} {key}");
        }
    }

    #[test]
    fn the_entry_that_was_meant_is_suggested() {
        let order = "hierarchy: {order: ['os:{{ Facts.os }}', common, 'é{{ Facts.x }}']}";
        let found = unreached(order, "so:linux comon entirely_different");
        let meant: Vec<_> = found.iter().map(|(_, meant)| meant.as_deref()).collect();
        assert_eq!(meant, [Some("os:{{ Facts.os }}"), Some("common"), None]);
    }

    #[test]
    fn warnings_have_a_position_and_a_hint() {
        let text = "hierarchy: {order: ['os:{{ Facts.os }}']}\noverrides:\n  so:linux: {}\n";
        assert_eq!(
            Document::parse("h.yaml", text).unwrap().unreached_warnings(),
            ["h.yaml:3:3: no entry of `hierarchy.order` can match the override `so:linux` \
              (did you mean the entry `os:{{ Facts.os }}`?)"]
        );
        let text = "{\"overrides\": {\"web\": {}}}";
        assert_eq!(
            Document::parse("h.json", text).unwrap().unreached_warnings(),
            ["h.json:1:16: no entry of `hierarchy.order` can match the override `web` \
              (without `hierarchy`, only the override `default` applies)"]
        );
    }

    #[test]
    fn a_wrong_hierarchy_is_an_error_of_its_own() {
        for order in ["order: [1]", "order: 5", "merge: deep", "order: ['{{ a']"] {
            let found = unreached(&format!("hierarchy: {{{order}}}"), "other");
            assert_eq!(found, [], "{order}");
        }
    }
}
