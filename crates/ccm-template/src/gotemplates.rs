//! Go templates within the resolver.

use gotemplate::Failure;
use govalue::{Map, Value};

use crate::budget::Nesting;
use crate::functions::{find, nested, nested_jet, string};
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
        let nesting = Nesting::default();
        let resolver = self.clone();
        let mut go = gotemplate::Engine::new().on_missing(self.warn_of_unknown()).function(
            "lookup",
            move |args| {
                let (key, default) = match args {
                    [key] => (key, None),
                    [key, default] => (key, Some(default)),
                    _ => return Err(wrong_count("lookup", "a key, or a key and a default")),
                };
                find(&resolver, string(key, "the key")?, default)
            },
        );
        for name in ["file", "readFile"] {
            let (resolver, nesting) = (self.clone(), nesting.clone());
            go = go.function(name, move |args| {
                let [path] = args else { return Err(wrong_count(name, "a path")) };
                let text = resolver.counted_file(string(path, "the path")?, &nesting);
                text.map(Value::from).map_err(|error| nested(&error))
            });
        }
        let resolver = self.clone();
        go = go.function("jet", move |args| nested_jet(&resolver, args, &nesting));
        let resolver = self.clone();
        go = go.function("registrations", move |args| network::registrations(&resolver, args));
        let resolver = self.clone();
        go = go.function("kvGet", move |args| network::kv_get(&resolver, args));
        go = go.list_method(network::FILE_SD, network::file_sd);
        (go, self.members().into())
    }

    /// Facts, data and environment under both of their names.
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
        members
    }
}

fn wrong_count(name: &str, takes: &str) -> Failure {
    format!("{name} takes {takes}").into()
}
