//! The values that are secret.

use std::collections::HashSet;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use crate::is_secret_name;

/// Shorter secrets stand in the middle of other words, so they are found only
/// where they stand alone.
pub(super) const MIN_LENGTH: usize = 4;

/// Even shorter ones are not found at all: nothing would be left of a text.
const MIN_WORD: usize = 2;

/// Values that may be secret or not, such as those of variables, count from
/// this length on.
pub(super) const MIN_VALUE: usize = 6;

/// The secret values of a resource.
#[derive(Clone, Debug, Default)]
pub struct SecretValues {
    /// Secret in the whole run.
    pub run: Vec<String>,
    /// Secret in what belongs to the resource: they may be harmless elsewhere.
    pub resource: Vec<String>,
}

/// Types that can contain secrets.
pub trait Secrets {
    /// Adds the values that are.
    fn secrets(&self, into: &mut SecretValues);
}

impl Secrets for String {
    fn secrets(&self, into: &mut SecretValues) {
        into.run.push(self.clone());
    }
}

impl<T: Secrets> Secrets for Option<T> {
    fn secrets(&self, into: &mut SecretValues) {
        if let Some(value) = self {
            value.secrets(into);
        }
    }
}

impl<T: Secrets> Secrets for Vec<T> {
    fn secrets(&self, into: &mut SecretValues) {
        for value in self {
            value.secrets(into);
        }
    }
}

/// What is secret in a header: its value, and the part behind the word that says
/// what kind of credentials they are, as in `Bearer x`. A short value counts only
/// if the name says that it is secret.
///
/// ```
/// let found = |name, value| ccm_model::header_secrets(name, value).collect::<Vec<_>>();
/// assert_eq!(found("X-Any", "Bearer abcdef"), ["Bearer abcdef", "abcdef"]);
/// assert_eq!(found("Accept", "*/*"), [""; 0]);
/// assert_eq!(found("X-Api-Key", "k"), ["k"]);
/// ```
pub fn header_secrets<'h>(name: &str, value: &'h str) -> impl Iterator<Item = &'h str> {
    let name = name.to_ascii_lowercase();
    let is_named =
        name.ends_with("authorization") || name.ends_with("cookie") || is_secret_name(&name);
    let value = value.trim();
    let behind = value.split_once(' ').filter(|(scheme, _)| {
        is_named
            || ["basic", "bearer", "token", "digest"]
                .iter()
                .any(|it| scheme.eq_ignore_ascii_case(it))
    });
    let parts = [Some(value), behind.map(|(_, behind)| behind.trim())];
    parts
        .into_iter()
        .flatten()
        .filter(move |part| part.len() >= MIN_VALUE || is_named && !part.is_empty())
}

/// Secrets, and what finds them.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// All that are found anywhere.
    long: HashSet<String>,
    /// Finds most of them at once.
    searcher: Option<AhoCorasick>,
    /// The others: a searcher for each new one would take too long to make.
    recent: Vec<String>,
    /// Secrets of few characters, which are found as whole words.
    words: Vec<String>,
}

impl Known {
    /// Adds values. Lines of fewer bytes than `min` are not found anywhere.
    pub(super) fn add(&mut self, values: impl IntoIterator<Item = String>, min: usize) {
        for value in values {
            let word = value.trim();
            let is_word = (MIN_WORD..MIN_LENGTH).contains(&word.len()) && min == MIN_LENGTH;
            if is_word && !self.words.iter().any(|known| known == word) {
                self.words.push(word.to_owned());
            }
            // Each line of a key is as secret as all of it.
            let parts = value.lines().map(str::trim).filter(|line| line.len() >= min);
            for part in parts.map(str::to_owned).collect::<Vec<_>>() {
                if self.long.insert(part.clone()) {
                    self.recent.push(part);
                }
            }
        }
        // Made anew only when there are many, so that the work stays in
        // proportion to their number.
        if self.recent.len() > self.long.len() / 2 + 8 {
            let longest = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).clone();
            self.searcher = longest.build(&self.long).ok();
            if self.searcher.is_some() {
                self.recent.clear();
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.long.is_empty() && self.words.is_empty()
    }

    /// Whether there are any that are found anywhere.
    pub(super) fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// Adds where the long ones stand in a text.
    pub(super) fn find(&self, text: &[u8], into: &mut Vec<Range<usize>>) {
        if let Some(searcher) = &self.searcher {
            into.extend(searcher.find_iter(text).map(|found| found.range()));
        }
        for secret in &self.recent {
            let finder = memchr::memmem::find_iter(text, secret);
            into.extend(finder.map(|at| at..at + secret.len()));
        }
    }

    /// Whether bytes hold one of them.
    pub(super) fn is_in(&self, bytes: &[u8]) -> bool {
        self.searcher.as_ref().is_some_and(|searcher| searcher.is_match(bytes))
            || self
                .recent
                .iter()
                .any(|secret| memchr::memmem::find(bytes, secret.as_bytes()).is_some())
    }

    /// Adds where the short ones stand that are not part of a longer word.
    pub(super) fn find_words(&self, text: &str, into: &mut Vec<Range<usize>>) {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        for word in &self.words {
            let found = text.match_indices(word.as_str()).map(|(at, _)| at..at + word.len());
            into.extend(found.filter(|range| {
                !text[..range.start].ends_with(is_part) && !text[range.end..].starts_with(is_part)
            }));
        }
    }
}
