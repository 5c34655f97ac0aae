//! Go templates within the resolver.

use std::sync::Arc;

use govalue::{Map, Value};

use crate::budget::Nesting;
use crate::resolver::Call;
use crate::table::{self, Language};
use crate::{Resolver, network};

impl Resolver {
    /// The functions of Go templates, Sprig's included, and the data that they
    /// are rendered with.
    ///
    /// ```
    /// use ccm_template::{Resolver, Scope};
    ///
    /// let data = govalue::Map::from_iter([("name", "ann")]);
    /// let host = ccm_host::Host::new();
    /// let resolver = Resolver::new(Scope { data, ..Scope::new(&host) });
    /// let (go, data) = resolver.go_scope();
    /// let text = go.render("t", "{{ .data.name | upper }} {{ lookup \"data.name\" }}", &data)?;
    /// assert_eq!(text, "ANN ann");
    /// # Ok::<(), gotemplate::Error>(())
    /// ```
    pub fn go_scope(&self) -> (gotemplate::Engine, Value) {
        let call = Arc::new(Call::new(self, Nesting::default()));
        let mut go = gotemplate::Engine::new()
            .on_missing(self.warn_of_unknown())
            .interrupt_if(self.is_cancelled());
        for (name, function) in table::of(Language::Go) {
            let call = Arc::clone(&call);
            go = go.function(name, move |args| function.call(&call, args));
        }
        go = go.list_method(network::FILE_SD, network::file_sd);
        (go, self.members().into())
    }

    /// Facts, data and environment under both of their names, and the variables
    /// of loops.
    pub fn members(&self) -> Map {
        let mut members = Map::new();
        for (lower, upper, value) in [
            ("facts", "Facts", self.facts().get()),
            ("data", "Data", self.data()),
            ("environ", "Environ", self.environ()),
        ] {
            members.insert(lower, value.clone());
            members.insert(upper, value.clone());
        }
        for (name, value) in self.item().iter().flat_map(|item| &item.variables) {
            members.insert(&**name, value.clone());
        }
        members
    }
}
