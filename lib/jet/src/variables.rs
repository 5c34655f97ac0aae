//! What a template can name.

use std::collections::BTreeMap;

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
pub struct Variables(BTreeMap<Name, Item>);

impl Variables {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a variable.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) -> &mut Self {
        self.0.insert(name.into(), Item::Value(value.into()));
        self
    }

    /// Adds or replaces a function.
    pub fn set_function(&mut self, name: &str, function: Function) -> &mut Self {
        self.0.insert(name.into(), Item::Function(function));
        self
    }

    pub(crate) fn all(&self) -> &BTreeMap<Name, Item> {
        &self.0
    }
}
