//! How a type looks at the command line, in plain data: the binary renders
//! flags from it and from the field table, and hands the values back.

use std::collections::BTreeMap;

use ccm_host::Host;
use ccm_model::Request;
use ccm_yaml::{Entry, Key, Node};

/// How a type looks at the command line.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine {
    /// Placeholder of the name in the help.
    pub name_value: &'static str,
    /// Other names of the command.
    pub aliases: &'static [&'static str],
    /// Properties that are arguments behind the name, in order; those in
    /// brackets are optional.
    pub arguments: &'static [&'static str],
    /// Properties that `ccm status` needs to show the state of one.
    pub status: &'static [&'static str],
    /// Flags beyond the properties.
    pub extra: &'static [ExtraFlag],
    /// An example for the help, one command.
    pub example: &'static str,
    /// Turns what was given into properties: extra flags and defaults.
    pub prepare: fn(&mut Arguments, &Host) -> Result<(), String>,
}

/// A flag that is not a property.
#[derive(Clone, Copy, Debug)]
pub struct ExtraFlag {
    /// `--long`, without the dashes.
    pub long: &'static str,
    /// Placeholder of the value in the help; empty for a switch.
    pub value: &'static str,
    /// One-line description.
    pub doc: &'static str,
    /// Flags that cannot be given together with it.
    pub conflicts: &'static [&'static str],
}

/// The arguments of the command line: values by property or extra flag.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    values: BTreeMap<String, Given>,
}

#[derive(Clone, Debug)]
enum Given {
    One(String),
    Many(Vec<String>),
    Pairs(Vec<(String, String)>),
    Within(BTreeMap<String, String>),
    ManyWithin(Vec<Vec<(&'static str, String)>>),
    Switch(bool),
    Data(Node<'static>),
}

impl Arguments {
    /// Gives a property a value.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.values.insert(name.to_owned(), Given::One(value.into()));
    }

    /// Gives a property a list.
    pub fn set_list(&mut self, name: &str, values: Vec<String>) {
        self.values.insert(name.to_owned(), Given::Many(values));
    }

    /// Gives a property a list of maps with one key each.
    pub fn set_pairs(&mut self, name: &str, pairs: Vec<(String, String)>) {
        self.values.insert(name.to_owned(), Given::Pairs(pairs));
    }

    /// Gives a property within a property a value.
    pub fn set_in(&mut self, name: &str, inner: &str, value: impl Into<String>) {
        let given = self.values.entry(name.to_owned());
        let given = given.or_insert_with(|| Given::Within(BTreeMap::new()));
        if let Given::Within(map) = given {
            map.insert(inner.to_owned(), value.into());
        }
    }

    /// Gives a property a list of maps.
    pub fn set_maps(&mut self, name: &str, maps: Vec<Vec<(&'static str, String)>>) {
        self.values.insert(name.to_owned(), Given::ManyWithin(maps));
    }

    /// Gives a property any value, as a manifest would.
    pub fn set_data(&mut self, name: &str, value: Node<'static>) {
        self.values.insert(name.to_owned(), Given::Data(value));
    }

    /// Turns a property on.
    pub fn switch_on(&mut self, name: &str) {
        self.values.insert(name.to_owned(), Given::Switch(true));
    }

    /// Turns a property off.
    pub fn switch_off(&mut self, name: &str) {
        self.values.insert(name.to_owned(), Given::Switch(false));
    }

    /// The value of a property or flag, if it was given.
    pub fn get(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(Given::One(value)) => Some(value),
            _ => None,
        }
    }

    /// Takes the value of a property or flag away.
    pub fn take(&mut self, name: &str) -> Option<String> {
        match self.values.remove(name) {
            Some(Given::One(value)) => Some(value),
            _ => None,
        }
    }

    /// Takes a switch away, and says whether it was on.
    pub fn take_switch(&mut self, name: &str) -> bool {
        matches!(self.values.remove(name), Some(Given::Switch(true)))
    }

    /// Takes a list away.
    pub fn take_list(&mut self, name: &str) -> Option<Vec<String>> {
        match self.values.remove(name) {
            Some(Given::Many(values)) => Some(values),
            _ => None,
        }
    }

    /// The request for a resource of this type.
    pub fn into_request(self, kind: &'static str) -> Request<'static> {
        Request { kind: kind.into(), properties: self.into_entries() }
    }

    /// The arguments as a manifest would give them.
    pub fn into_entries(self) -> Vec<Entry<'static>> {
        let entry = |(name, given): (String, Given)| {
            let value = match given {
                Given::One(value) => Node::text(value),
                Given::Many(values) => Node::sequence(values.into_iter().map(Node::text).collect()),
                Given::Pairs(pairs) => {
                    Node::sequence(pairs.into_iter().map(|pair| mapping([pair])).collect())
                }
                Given::Within(map) => mapping(map),
                Given::ManyWithin(maps) => Node::sequence(maps.into_iter().map(mapping).collect()),
                Given::Data(value) => value,
                Given::Switch(is_on) => Node::plain(if is_on { "true" } else { "false" }),
            };
            named(name, value)
        };
        self.values.into_iter().map(entry).collect()
    }
}

fn mapping<K: Into<String>>(map: impl IntoIterator<Item = (K, String)>) -> Node<'static> {
    let entries = map.into_iter().map(|(name, value)| named(name.into(), Node::text(value)));
    Node::mapping(entries.collect())
}

fn named(name: String, value: Node<'static>) -> Entry<'static> {
    Entry { key: Key { text: name.into(), span: value.span }, value }
}
