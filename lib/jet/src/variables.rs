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

    /// Adds or replaces a method of lists: the list is its first argument.
    ///
    /// ```
    /// use govalue::Value;
    ///
    /// let mut variables = jet::Variables::new();
    /// variables.set_list_method("Count", jet::Function::new(1..=1, |args| {
    ///     Ok(args[0].as_array().map_or(0, <[Value]>::len).into())
    /// }));
    /// let set = jet::Set::new();
    /// let template = set.parse("t", "{{ slice(1, 2).Count() }}").unwrap();
    /// assert_eq!(set.render(&template, &variables, &Value::Nil).unwrap(), "2");
    /// ```
    pub fn set_list_method(&mut self, name: &str, method: Function) -> &mut Self {
        self.0.insert(method_name(name).as_str().into(), Item::Function(method));
        self
    }

    pub(crate) fn all(&self) -> &BTreeMap<Name, Item> {
        &self.0
    }
}

/// What a method of lists is kept under: a name that no template can write.
pub(crate) fn method_name(name: &str) -> String {
    format!(".{name}")
}
