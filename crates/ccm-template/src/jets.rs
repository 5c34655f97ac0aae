//! Jet templates within the resolver.

use govalue::{Map, Str, Value};
use jet::{Function, Limits, Param, Set, Variables};

use crate::budget::Nesting;
use crate::functions::{find, names_jet, nested, string};
use crate::{Error, Resolver, network};

/// What Jet's actions stand between, unless a template says otherwise.
const DELIMITERS: (&str, &str) = ("[[", "]]");

impl Resolver {
    /// Renders a Jet template between `[[` and `]]`, or other delimiters. A body
    /// that ends in `.jet` names a file.
    ///
    /// ```
    /// use ccm_template::{Resolver, Scope};
    ///
    /// let data = govalue::Map::from_iter([("name", "Ann")]);
    /// let host = ccm_host::Host::new();
    /// let resolver = Resolver::new(Scope { data, ..Scope::new(&host) });
    /// assert_eq!(resolver.jet("Hello [[ data.name ]]", None)?, "Hello Ann");
    /// assert_eq!(resolver.jet("Hello <% .Data.name %>", Some(("<%", "%>")))?, "Hello Ann");
    /// # Ok::<(), ccm_template::Error>(())
    /// ```
    pub fn jet(&self, body: &str, delimiters: Option<(&str, &str)>) -> Result<Str, Error> {
        self.nested_jet(body, delimiters, &Nesting::default())
    }

    /// Renders a Jet template of this name between `[[` and `]]`; the name is for
    /// messages.
    pub fn jet_text(&self, name: &str, text: &str) -> Result<Str, Error> {
        self.render_jet(name, text, DELIMITERS, &Nesting::default().deeper()?)
    }

    /// The variables and functions of Jet templates, and their context, for
    /// those who render Jet by themselves.
    pub fn jet_scope(&self) -> (Variables, Value) {
        self.nested_scope(&Nesting::default())
    }

    pub(crate) fn nested_jet(
        &self,
        body: &str,
        delimiters: Option<(&str, &str)>,
        nesting: &Nesting,
    ) -> Result<Str, Error> {
        let deeper = nesting.deeper()?;
        let file;
        let (name, text) = if names_jet(body) {
            file = self.counted_file(body, nesting)?;
            (body, file.as_str())
        } else {
            ("template", body)
        };
        let rendered = self.render_jet(name, text, delimiters.unwrap_or(DELIMITERS), &deeper)?;
        nesting.made(rendered.len())?;
        Ok(rendered)
    }

    fn render_jet(
        &self,
        name: &str,
        text: &str,
        (left, right): (&str, &str),
        nesting: &Nesting,
    ) -> Result<Str, Error> {
        // Templates inside of templates share one stack.
        let depth = Limits::default().depth / nesting.depth.max(1) as usize;
        let limits = Limits { depth, ..Limits::default() };
        let set = Set::new()
            .with_delimiters(left, right)
            .with_limits(limits)
            .on_missing(self.warn_of_unknown());
        let template = set.parse(name, text)?;
        let (variables, context) = self.nested_scope(nesting);
        Ok(set.render(&template, &variables, &context)?)
    }

    /// The functions of Jet templates alone, without the variables.
    pub fn jet_functions(&self) -> Variables {
        self.nested_functions(&Nesting::default())
    }

    fn nested_scope(&self, nesting: &Nesting) -> (Variables, Value) {
        let mut variables = self.nested_functions(nesting);
        let mut context = Map::new();
        for (name, value) in self.members().iter() {
            let Some(name) = name.as_str() else { continue };
            variables.set(name, value.clone());
            if name.starts_with(char::is_uppercase) {
                context.insert(name, value.clone());
            }
        }
        context.insert("WorkingDir", self.directory().to_string_lossy().as_ref());
        context.insert("RestrictFunctions", self.is_restricted());
        (variables, context.into())
    }

    fn nested_functions(&self, nesting: &Nesting) -> Variables {
        let mut variables = Variables::new();
        let resolver = self.clone();
        variables.set_function(
            "lookup",
            Function::new(1..=2, move |args| {
                find(&resolver, string(&args[0], "the key")?, args.get(1))
            }),
        );
        for name in ["file", "readFile"] {
            let (resolver, nesting) = (self.clone(), nesting.clone());
            let read = move |args: &[Value]| {
                let path = string(&args[0], "the path")?;
                let text = resolver.counted_file(path, &nesting);
                text.map(Value::from).map_err(|error| nested(&error))
            };
            variables.set_function(name, Function::new(1..=1, read));
        }
        let (resolver, nesting) = (self.clone(), nesting.clone());
        variables.set_function(
            "template",
            Function::new(1..=1, move |args| {
                let text = string(&args[0], "the template")?;
                resolver.template(text, &nesting).map_err(|error| nested(&error))
            }),
        );
        let resolver = self.clone();
        let registrations = move |args: &[Value]| network::registrations(&resolver, args);
        let resolver = self.clone();
        let kv_get = move |args: &[Value]| network::kv_get(&resolver, args);
        variables
            .set_function("registrations", Function::typed(&[Param::String; 4], registrations))
            .set_function("kvGet", Function::typed(&[Param::String; 2], kv_get))
            .set_list_method(network::FILE_SD, Function::new(1..=1, network::file_sd));
        variables
    }
}
