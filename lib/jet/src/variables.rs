//! What a template can name.

use govalue::Value;

use crate::ast::Name;
use crate::function::Function;
use crate::item::Item;

/// Variables and functions for templates, by name.
///
/// ```
/// let mut variables = jet::Variables::new();
/// variables.set("port", 8080);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Variables(Vec<(Name, Item)>);

impl Variables {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a variable.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.put(name, Item::Value(value.into()))
    }

    /// Adds or replaces a function.
    pub fn set_function(&mut self, name: &str, function: Function) -> &mut Self {
        self.put(name, Item::Function(function))
    }

    fn put(&mut self, name: &str, item: Item) -> &mut Self {
        match self.0.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, known)) => *known = item,
            None => self.0.push((name.into(), item)),
        }
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Item> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, item)| item)
    }

    pub(crate) fn entries(&self) -> &[(Name, Item)] {
        &self.0
    }
}
