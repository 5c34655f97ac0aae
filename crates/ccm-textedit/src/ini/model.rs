//! The meaning of an ini file, for the third law.

use super::Wanted;
use super::parse::{Document, Text};

/// Keys with their values, in the order of the file.
type Keys = Vec<(Vec<u8>, Text)>;

/// Sections in order. Where a new key stands among the others has no meaning.
#[derive(Debug)]
pub(super) struct Model(Vec<(Vec<u8>, Keys)>);

impl Model {
    pub(super) fn of(document: &Document<'_>) -> Self {
        let keys = |entries: &[super::parse::Entry<'_>]| -> Keys {
            entries.iter().map(|entry| (entry.key.to_vec(), entry.text.clone())).collect()
        };
        let sections = document.sections.iter();
        Self(sections.map(|section| (section.name.to_vec(), keys(&section.entries))).collect())
    }

    /// Gives a key these values.
    pub(super) fn set(&mut self, wanted: &Wanted) {
        let Wanted { section, key, values } = wanted;
        let has = |keys: &Keys| keys.iter().any(|(name, _)| name == key);
        // The part before the first section has no name, and is no `[]`.
        let is_meant =
            |index: usize, name: &Vec<u8>| name == section && (index > 0 || section.is_empty());
        let named =
            || self.0.iter().enumerate().filter(|(index, (name, _))| is_meant(*index, name));
        let target = named().find(|(_, (_, keys))| has(keys)).or_else(|| named().next_back());
        let index = target.map(|(index, _)| index);
        let index = match index {
            Some(index) => index,
            None if values.is_empty() => return,
            None => {
                self.0.push((section.clone(), Keys::new()));
                self.0.len() - 1
            }
        };
        let keys = &mut self.0[index].1;
        keys.retain(|(name, _)| name != key);
        keys.extend(values.iter().map(|value| (key.clone(), value.clone())));
    }

    pub(super) fn remove(&mut self, section: &[u8], key: &[u8]) {
        for (_, keys) in self.0.iter_mut().filter(|(name, _)| name == section) {
            keys.retain(|(name, _)| name != key);
        }
    }

    pub(super) fn remove_section(&mut self, section: &[u8]) {
        self.0.retain(|(name, _)| name != section || name.is_empty());
    }
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        // A stable sort keeps the order of the values of one key.
        let sorted = |keys: &Keys| {
            let mut keys = keys.clone();
            keys.sort_by(|one, other| one.0.cmp(&other.0));
            keys
        };
        self.0.len() == other.0.len()
            && self.0.iter().zip(&other.0).all(|((name, keys), (other_name, other_keys))| {
                name == other_name && sorted(keys) == sorted(other_keys)
            })
    }
}
