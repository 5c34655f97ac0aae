//! Who subscribes to what, in a form that costs next to nothing to make: most
//! runs change nothing and never ask.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hasher as _};

use ccm_model::ResourceRef;

/// Subscribers by what they subscribe to.
#[derive(Debug)]
pub(super) struct Subscriptions<K> {
    subscribers: Vec<K>,
    /// The hash of what is subscribed to, and who does. Should two hashes be the
    /// same, somebody reacts who need not, after a run that was killed.
    links: Vec<(u64, usize)>,
    is_sorted: bool,
}

impl<K> Default for Subscriptions<K> {
    fn default() -> Self {
        Self { subscribers: Vec::new(), links: Vec::new(), is_sorted: true }
    }
}

impl<K: Clone + Ord> Subscriptions<K> {
    pub(super) fn add(&mut self, subscriber: K, references: &[ResourceRef]) {
        let index = self.subscribers.len();
        self.subscribers.push(subscriber);
        let hashes = references.iter().map(|to| hash(&[&to.kind, "#", &to.name]));
        self.links.extend(hashes.map(|hash| (hash, index)));
        self.is_sorted = false;
    }

    /// The subscribers of a resource that is known by these names, as
    /// `type#name`.
    pub(super) fn of(&mut self, names: &[String]) -> BTreeSet<K> {
        if !self.is_sorted {
            self.links.sort_unstable();
            self.is_sorted = true;
        }
        let mut found = BTreeSet::new();
        for name in names {
            let wanted = hash(&[name]);
            let first = self.links.partition_point(|(hash, _)| *hash < wanted);
            let links = self.links.get(first..).unwrap_or_default();
            let links = links.iter().take_while(|(hash, _)| *hash == wanted);
            found.extend(links.filter_map(|(_, at)| self.subscribers.get(*at).cloned()));
        }
        found
    }
}

fn hash(parts: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        hasher.write(part.as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscribers_are_found_by_every_name() {
        let to = |name: &str| ResourceRef::new("file", name);
        let mut subscriptions = Subscriptions::default();
        subscriptions.add("one", &[to("/a"), to("b")]);
        subscriptions.add("two", &[to("/a")]);
        let mut of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            subscriptions.of(&names).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(of(&["file#/a"]), ["one", "two"]);
        assert_eq!(of(&["file#b", "file#/c"]), ["one"]);
        assert_eq!(of(&["exec#b"]), [""; 0]);
        subscriptions.add("three", &[to("/c")]);
        assert_eq!(subscriptions.of(&["file#/c".into()]).len(), 1);
    }
}
