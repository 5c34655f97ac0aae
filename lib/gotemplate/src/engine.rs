//! The entry point: an engine parses templates, a template renders.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use govalue::{MissingMember, Span, Time, Value, Zone};

use crate::ast::Node;
use crate::error::{Error, ErrorKind, Fail};
use crate::execute::Run;
use crate::functions::{self, Function, HostFunction};
use crate::limits::{Caller, Limits};
use crate::parse::{ParseContext, blank, parse};

/// The error type of a caller's function.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Tells the time.
pub type Clock = dyn Fn() -> Time + Send + Sync;

/// Fills the bytes with random ones.
pub type Random = dyn Fn(&mut [u8]) -> Result<(), Failure> + Send + Sync;

/// Parses templates: knows the delimiters, the functions and the limits.
///
/// Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    left: String,
    right: String,
    functions: HashMap<String, Arc<HostFunction>>,
    settings: Settings,
}

/// What running a template needs of its engine.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) clock: Arc<Clock>,
    pub(crate) random: Arc<Random>,
    pub(crate) on_missing: Option<Arc<OnMissing>>,
    pub(crate) interrupt: Option<Arc<Interrupt>>,
    pub(crate) list_methods: HashMap<String, Arc<HostFunction>>,
}

/// Says whether to stop.
pub(crate) type Interrupt = dyn Fn() -> bool + Send + Sync;

/// What is told of members that are printed but not there.
type OnMissing = dyn Fn(&MissingMember<'_>) + Send + Sync;

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("left", &self.left)
            .field("right", &self.right)
            .field("functions", &self.functions.keys())
            .field("limits", &self.settings.limits)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine with the delimiters `{{` and `}}`, Go's and Sprig's functions,
    /// the system's clock and randomness, and default limits.
    pub fn new() -> Self {
        Self {
            left: "{{".to_owned(),
            right: "}}".to_owned(),
            functions: HashMap::new(),
            settings: Settings {
                limits: Limits::default(),
                clock: Arc::new(now),
                random: Arc::new(|bytes| getrandom::fill(bytes).map_err(Into::into)),
                on_missing: None,
                interrupt: None,
                list_methods: HashMap::new(),
            },
        }
    }

    /// Ends a rendering with an error of the kind
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) when this says so. It is asked
    /// every few thousand steps.
    ///
    /// ```
    /// let engine = gotemplate::Engine::new().interrupt_if(|| true);
    /// let error = engine.render("t", "{{ range until 100000 }}{{ . }}{{ end }}", &govalue::Value::Nil);
    /// assert!(error.unwrap_err().to_string().contains("interrupted"));
    /// ```
    #[must_use]
    pub fn interrupt_if(mut self, interrupt: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.settings.interrupt = Some(Arc::new(interrupt));
        self
    }

    /// Uses these delimiters; an empty one stands for the usual one.
    #[must_use]
    pub fn delimiters(mut self, left: &str, right: &str) -> Self {
        left.clone_into(&mut self.left);
        right.clone_into(&mut self.right);
        if left.is_empty() {
            "{{".clone_into(&mut self.left);
        }
        if right.is_empty() {
            "}}".clone_into(&mut self.right);
        }
        self
    }

    /// Adds a function, or replaces one.
    #[must_use]
    pub fn function(
        self,
        name: impl Into<String>,
        function: impl Fn(&[Value]) -> Result<Value, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.rendering_function(name, move |_, arguments| function(arguments))
    }

    /// Adds a function that renders templates, or replaces one: it passes its
    /// caller on to [`Template::render_within`].
    #[must_use]
    pub fn rendering_function(
        mut self,
        name: impl Into<String>,
        function: impl Fn(&Caller, &[Value]) -> Result<Value, Failure> + Send + Sync + 'static,
    ) -> Self {
        self.functions.insert(name.into(), Arc::new(function));
        self
    }

    /// Adds a method of lists: the list is its first argument.
    ///
    /// ```
    /// use govalue::Value;
    ///
    /// let go = gotemplate::Engine::new().list_method("Count", |args| {
    ///     Ok(args[0].as_array().map_or(0, <[Value]>::len).into())
    /// });
    /// let text = go.render("t", "{{ (list 1 2).Count }}", &Value::Nil)?;
    /// assert_eq!(text, "2");
    /// # Ok::<(), gotemplate::Error>(())
    /// ```
    #[must_use]
    pub fn list_method(
        mut self,
        name: impl Into<String>,
        method: impl Fn(&[Value]) -> Result<Value, Failure> + Send + Sync + 'static,
    ) -> Self {
        let method = move |_: &Caller, arguments: &[Value]| method(arguments);
        self.settings.list_methods.insert(name.into(), Arc::new(method));
        self
    }

    /// Bounds what a template may do.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Takes the time from here; the zone of what it returns is the local one.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Time + Send + Sync + 'static) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// Takes randomness from here.
    #[must_use]
    pub fn random(
        mut self,
        random: impl Fn(&mut [u8]) -> Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.settings.random = Arc::new(random);
        self
    }

    /// Calls `report` when an action prints a member that is not in its map, as
    /// the caller gave it. The action prints the member alone, or by way of
    /// functions that only print, such as `quote`. Any other use, such as `if`
    /// and `default`, may provide for it and is not reported.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let found = Arc::clone(&seen);
    /// let engine = gotemplate::Engine::new().on_missing(move |one| {
    ///     found.lock().unwrap().push(format!("{} {:?}", one.expression(), one.position()));
    /// });
    /// let data = govalue::Map::from_iter([("port", 80)]).into();
    /// let text = engine.render("t", "{{ .port }} {{ .prot }} {{ .opt | default 1 }}", &data)?;
    /// assert_eq!(text, "80 <no value> 1");
    /// assert_eq!(*seen.lock().unwrap(), [".prot (1, 16)"]);
    /// # Ok::<(), gotemplate::Error>(())
    /// ```
    #[must_use]
    pub fn on_missing(
        mut self,
        report: impl Fn(&MissingMember<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.settings.on_missing = Some(Arc::new(report));
        self
    }

    /// The names of all built-in functions, Sprig's included.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        functions::names()
    }

    fn lookup(&self, name: &str) -> Option<Function> {
        if let Some(function) = self.functions.get(name) {
            return Some(Function::Host(Arc::clone(function)));
        }
        functions::sprig(name).or_else(|| functions::builtin(name))
    }

    /// Parses a template under a name, by which errors and the template itself
    /// refer to it.
    pub fn parse(&self, name: &str, text: &str) -> Result<Template, Error> {
        self.parse_all([(name, text)])
    }

    /// Parses several templates that may invoke each other; the first one is
    /// what [`Template::render`] renders. Later definitions replace earlier
    /// ones, unless they are blank.
    pub fn parse_all<'a>(
        &self,
        sources: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Template, Error> {
        let around = ParseContext {
            left: &self.left,
            right: &self.right,
            function: &|name| self.lookup(name),
        };
        let mut set = Set {
            entry: String::new(),
            sources: Vec::new(),
            bodies: HashMap::new(),
            settings: self.settings.clone(),
        };
        for (name, text) in sources {
            if set.sources.is_empty() {
                name.clone_into(&mut set.entry);
            }
            let source = set.sources.len();
            set.sources.push(Source { name: name.to_owned(), text: text.into() });
            for (name, nodes) in parse(name, text, &around)? {
                if !blank(&nodes) || !set.bodies.contains_key(&name) {
                    set.bodies.insert(name, Body { source, nodes });
                }
            }
        }
        Ok(Template(Arc::new(set)))
    }

    /// Parses and renders in one go.
    pub fn render(&self, name: &str, text: &str, data: &Value) -> Result<String, Error> {
        self.parse(name, text)?.render(data)
    }
}

/// A parsed template, with the ones it defines.
///
/// Cheap to clone, and may be rendered from several threads at once.
#[derive(Clone)]
pub struct Template(Arc<Set>);

/// Everything that was parsed together.
pub(crate) struct Set {
    entry: String,
    pub(crate) sources: Vec<Source>,
    pub(crate) bodies: HashMap<String, Body>,
    pub(crate) settings: Settings,
}

pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: Box<str>,
}

pub(crate) struct Body {
    pub(crate) source: usize,
    pub(crate) nodes: Vec<Node>,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({:?})", self.0.entry)
    }
}

impl Template {
    /// The name it was parsed under.
    pub fn name(&self) -> &str {
        &self.0.entry
    }

    /// The names of all templates in here, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.bodies.keys().map(String::as_str)
    }

    /// Renders with this data as the dot. What is not UTF-8 becomes U+FFFD.
    ///
    /// The data is never changed: a template that sets members of it changes
    /// its own copy.
    pub fn render(&self, data: &Value) -> Result<String, Error> {
        let bytes = self.render_bytes(data)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Renders byte for byte: cutting strings may have cut characters.
    pub fn render_bytes(&self, data: &Value) -> Result<Vec<u8>, Error> {
        self.render_named(&self.0.entry, data)
    }

    /// Renders one of the templates defined in here.
    pub fn render_named(&self, name: &str, data: &Value) -> Result<Vec<u8>, Error> {
        self.run(name, data, None)
    }

    /// Renders as part of the rendering that called a function, and within its
    /// limits.
    pub fn render_within(&self, caller: &Caller, data: &Value) -> Result<Vec<u8>, Error> {
        self.run(&self.0.entry, data, Some(caller))
    }

    fn run(&self, name: &str, data: &Value, caller: Option<&Caller>) -> Result<Vec<u8>, Error> {
        if let Some(body) = self.0.bodies.get(name) {
            Run::new(&self.0, body, caller).render(data)
        } else {
            let message = format!("template {name:?} not defined");
            let fail = Fail::new(ErrorKind::UndefinedTemplate, message);
            Err(Error::new(fail, &self.0.entry, "", Span::default()))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the default clock; callers may set their own")]
fn now() -> Time {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since.as_secs() as i64, i64::from(since.subsec_nanos()), Zone::UTC)
}
