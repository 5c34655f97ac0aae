//! Jet templates within the resolver.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use expr::FunctionError;
use govalue::{Map, Str, Value};
use jet::{Function, Limits, Loader, Param, Set, Variables};

use crate::budget::Nesting;
use crate::functions::names_jet;
use crate::placeholder::{Openers, scan};
use crate::references::roots_of_text;
use crate::resolver::Call;
use crate::table::{self, Language};
use crate::{Error, Resolver, network};

/// What Jet's actions stand between, unless a template says otherwise.
pub(crate) const DELIMITERS: (&str, &str) = ("[[", "]]");

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
        let rendered = self.render_jet(name, text, DELIMITERS, &Nesting::default().deeper()?)?;
        self.warn_of_placeholders(text, |found, right| {
            format!("{name}: `{found}` is resolved after the template; in it, write `{right}`")
        });
        Ok(rendered)
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
        let delimiters = delimiters.unwrap_or(DELIMITERS);
        let rendered = self.render_jet(name, text, delimiters, &deeper)?;
        if delimiters == DELIMITERS {
            self.warn_of_placeholders(text, |found, right| {
                format!("{name}: a Jet template does not resolve `{found}`; write `{right}`")
            });
        }
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
            .with_loader(Files::beside(self, name, nesting))
            .on_missing(self.warn_of_unknown())
            .interrupt_if(self.is_cancelled());
        let template = set.parse(name, text)?;
        let (variables, context) = self.nested_scope(nesting);
        let rendered = set.render(&template, &variables, &context);
        // Taken in any case: it is not the fault of the next template.
        let checked = self.check_rendered();
        let rendered = rendered?;
        checked?;
        Ok(rendered)
    }

    /// Warns of expressions between the delimiters of the other language, which
    /// stay as they are. `told` makes the warning, of what was found and what is
    /// right.
    fn warn_of_placeholders(&self, text: &str, told: impl Fn(&str, &str) -> String) {
        let is_known = |root: &String| {
            ["Data", "Facts", "Environ"].contains(&&**root)
                || self.item().is_some_and(|item| item.get(root).is_some())
        };
        for placeholder in scan(text, Openers::All).filter_map(Result::ok) {
            let found = &text[placeholder.start..placeholder.end];
            if roots_of_text(found).iter().any(is_known) {
                let right = format!("[[ {} ]]", placeholder.inner.trim());
                self.host().warn(told(found, &right));
                return;
            }
        }
    }

    /// The same resolver for a template that is given its data by its caller.
    pub(crate) fn for_template(&self, data: Option<&Value>) -> Result<Self, FunctionError> {
        match data {
            None => Ok(self.clone()),
            Some(Value::Map(data)) => Ok(self.with_data(Map::clone(data))),
            Some(other) => Err(format!("the data must be a map, not {}", other.type_name()).into()),
        }
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
            let is_of_loop = self.item().is_some_and(|item| item.get(name).is_some());
            if is_of_loop || name.starts_with(char::is_uppercase) {
                context.insert(name, value.clone());
            }
        }
        context.insert("WorkingDir", self.directory().to_string_lossy().as_ref());
        context.insert("RestrictFunctions", self.is_restricted());
        (variables, context.into())
    }

    fn nested_functions(&self, nesting: &Nesting) -> Variables {
        let mut variables = Variables::new();
        let shared = Arc::new(Call::new(self, nesting.clone()));
        for (name, function) in table::of(Language::Jet) {
            let call = Arc::clone(&shared);
            let body = move |args: &[Value]| function.call(&call, args);
            let (least, most) = function.arity;
            let function = match function.param {
                Param::Any => Function::new(least..=most, body),
                param => Function::typed(&vec![param; most], body),
            };
            variables.set_function(name, function);
        }
        variables.set_list_method(network::FILE_SD, Function::new(1..=1, network::file_sd));
        variables
    }
}

/// Templates that a template includes, extends, imports or executes: files beside
/// it. Where a template is no file, they are looked for in the directory of the
/// resolver.
struct Files {
    resolver: Resolver,
    nesting: Nesting,
    /// What the paths of the template language begin with, and the directory
    /// that this is.
    root: (String, PathBuf),
}

impl Files {
    fn beside(resolver: &Resolver, name: &str, nesting: &Nesting) -> Self {
        let file = Path::new(name);
        let climbs = file.components().any(|part| part == Component::ParentDir);
        let root = if climbs {
            // The language has nothing above its root: that is the template's
            // own directory then.
            let mut parts: Vec<&str> = Vec::new();
            for part in name.split('/') {
                match part {
                    "" | "." => {}
                    ".." => drop(parts.pop()),
                    part => parts.push(part),
                }
            }
            parts.pop();
            let directory = resolver.directory().join(file);
            let directory = directory.parent().map(Path::to_path_buf).unwrap_or_default();
            (parts.iter().map(|part| format!("/{part}")).collect(), directory)
        } else if file.is_absolute() {
            (String::new(), PathBuf::from("/"))
        } else {
            (String::new(), resolver.directory().to_owned())
        };
        Self { resolver: resolver.clone(), nesting: nesting.clone(), root }
    }
}

impl Loader for Files {
    fn load(&self, path: &str) -> Result<Option<String>, String> {
        let (root, directory) = &self.root;
        let Some(inner) = path.strip_prefix(&**root).and_then(|rest| rest.strip_prefix('/')) else {
            return Ok(None);
        };
        let file = directory.join(inner);
        if !matches!(self.resolver.host().stat(&file), Ok(Some(_))) {
            return Ok(None);
        }
        let text = self.resolver.counted_file(&file.to_string_lossy(), &self.nesting);
        text.map(Some).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use ccm_host::Host;
    use govalue::{Map, Value};

    use crate::{Resolver, Scope};

    fn resolver(directory: &std::path::Path) -> Resolver {
        let host = Host::new();
        let data = Map::from_iter([("name", "outer")]);
        Resolver::new(Scope { data, directory: directory.to_owned(), ..Scope::new(&host) })
    }

    #[test]
    fn a_template_is_given_its_data_by_its_caller() {
        let stage = tempfile::tempdir().unwrap();
        std::fs::write(stage.path().join("a.jet"), "[[ Data.name ]]").unwrap();
        std::fs::write(stage.path().join("a.templ"), "{{ Data.name }}").unwrap();
        let resolver = resolver(stage.path());
        for (expression, result) in [
            ("jet('a.jet')", "outer"),
            ("jet('a.jet', {'name': 'inner'})", "inner"),
            ("jet('<% data.name %>', '<%', '%>', {'name': 'inner'})", "inner"),
            ("template('a.jet', {'name': 'inner'})", "inner"),
            ("template('a.templ', {'name': 'inner'})", "inner"),
            ("map(['x', 'y'], jet('a.jet', {'name': #})) | join(' ')", "x y"),
        ] {
            assert_eq!(resolver.evaluate(expression).unwrap(), Value::from(result), "{expression}");
        }
        let error = resolver.evaluate("jet('a.jet', 'x')").unwrap_err().to_string();
        assert!(error.contains("the data must be a map, not string"), "{error}");
    }

    #[test]
    fn templates_find_others_beside_them() {
        let stage = tempfile::tempdir().unwrap();
        let inner = stage.path().join("manifest/templates");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir_all(stage.path().join("shared")).unwrap();
        std::fs::write(inner.join("a.jet"), "a [[ include \"b.jet\" ]]").unwrap();
        std::fs::write(inner.join("b.jet"), "b [[ data.name ]]").unwrap();
        std::fs::write(inner.join("up.jet"), "[[ include \"../top.jet\" ]]").unwrap();
        std::fs::write(stage.path().join("manifest/top.jet"), "top").unwrap();
        std::fs::write(stage.path().join("shared/c.jet"), "c [[ include \"d.jet\" ]]").unwrap();
        std::fs::write(stage.path().join("shared/d.jet"), "d").unwrap();
        let resolver = resolver(&stage.path().join("manifest"));
        let jet = |body: &str| resolver.jet(body, None).map(|text| text.to_string());
        assert_eq!(jet("templates/a.jet").unwrap(), "a b outer");
        assert_eq!(jet("templates/up.jet").unwrap(), "top");
        assert_eq!(jet("../shared/c.jet").unwrap(), "c d");
        assert_eq!(jet(inner.join("a.jet").to_str().unwrap()).unwrap(), "a b outer");
        assert_eq!(jet("[[ include \"templates/b.jet\" ]]").unwrap(), "b outer");
        assert!(jet("[[ include \"templates/none.jet\" ]]").is_err());
        // One that includes itself ends with an error, not with the stack.
        std::fs::write(inner.join("loop.jet"), "[[ include \"loop.jet\" ]]").unwrap();
        assert!(jet("templates/loop.jet").is_err());
    }
}
