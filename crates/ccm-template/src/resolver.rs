//! The resolver: its scope, and how it evaluates expressions.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ccm_host::Host;
use ccm_model::{TemplateError, Templates, has_placeholder, is_secret_name};
use expr::{Environment, Program, Type, Vars};
use gjson::Document;
use govalue::{Map, Value};

use crate::budget::Nesting;
use crate::error::beginning;
use crate::placeholder::{Openers, Placeholder, scan};
use crate::references::{ReadKind, asks_elsewhere, reads_of_text};
use crate::{Error, Facts, LoopItem, Resolved, Scope, functions};

/// Distinct expressions that are kept compiled. Texts that templates make up
/// while running could be endless.
const MAX_PROGRAMS: usize = 20_000;

/// Resolves templates within one [`Scope`]. Clones are the same resolver.
#[derive(Clone)]
pub struct Resolver(Arc<Inner>);

struct Inner {
    shared: Shared,
    language: Arc<Language>,
    /// The members of the environment, without facts as long as nobody needs
    /// them.
    vars: Vars<'static>,
    vars_with_facts: OnceLock<Vars<'static>>,
    /// The same members in the language of the loop whose items came last, which
    /// differ in the variables of the loop alone.
    vars_of_loop: Mutex<Option<LoopVars>>,
}

type LoopVars = (Arc<Language>, Vars<'static>);

/// What a resolver hands on to those made from it, at next to no cost: a
/// `for_each` makes two for each item.
#[derive(Clone)]
struct Shared {
    facts: Facts,
    data: Value,
    environ: Value,
    /// The variables as expressions see them.
    environ_with_nil: Value,
    directory: Arc<Path>,
    host: Host,
    beneath: Option<Arc<Path>>,
    documents: Arc<Documents>,
    item: Option<Arc<LoopItem>>,
    /// The first unknown member that a template printed, with `CCM_STRICT=1`.
    unknown: Arc<Mutex<Option<String>>>,
}

/// What `lookup` looks through.
#[derive(Default)]
struct Documents {
    plain: OnceLock<Document>,
    with_facts: OnceLock<Document>,
}

/// What resolvers of different data share: the names, and compiled expressions.
pub(crate) struct Language {
    environment: Environment,
    pub(crate) restricted: bool,
    programs: Mutex<HashMap<Box<str>, Arc<Compiled>>>,
}

struct Compiled {
    program: Program,
    reads_facts: bool,
}

/// What functions find behind the expression that calls them.
pub(crate) struct Call {
    pub(crate) resolver: Resolver,
    nesting: OnceLock<Nesting>,
}

impl Call {
    pub(crate) fn new(resolver: &Resolver, nesting: Nesting) -> Self {
        Self { resolver: resolver.clone(), nesting: nesting.into() }
    }

    /// Made when the first function needs it: most expressions call none.
    pub(crate) fn nesting(&self) -> &Nesting {
        self.nesting.get_or_init(Nesting::default)
    }
}

impl Resolver {
    /// A resolver with all members and functions.
    pub fn new(scope: Scope) -> Self {
        Self::with_language(scope, Language::new(false))
    }

    /// A resolver for hierarchical data: of the functions only `lookup`, which
    /// gives the empty string for a missing key, and only facts in reach.
    pub fn facts_only(host: &Host, facts: Facts) -> Self {
        Self::restricted(Scope { facts, ..Scope::new(host) })
    }

    /// As [`Resolver::facts_only`], with more than facts in reach.
    pub fn restricted(scope: Scope) -> Self {
        Self::with_language(scope, Language::new(true))
    }

    /// The same resolver over other data; facts and compiled expressions stay.
    #[must_use]
    pub fn with_data(&self, data: Map) -> Self {
        let documents = Arc::default();
        self.derived(Shared { data: data.into(), documents, ..self.0.shared.clone() })
    }

    /// The same resolver, which reads only files in a directory.
    #[must_use]
    pub fn confined(&self, beneath: &Path) -> Self {
        self.derived(Shared { beneath: Some(beneath.into()), ..self.0.shared.clone() })
    }

    /// The same resolver, which reads files through another handle.
    #[must_use]
    pub fn with_host(&self, host: Host) -> Self {
        self.derived(Shared { host, ..self.0.shared.clone() })
    }

    /// The same resolver within an item of a loop, with its variables.
    #[must_use]
    pub fn with_item(&self, item: &Arc<LoopItem>) -> Self {
        let shared = Shared { item: Some(Arc::clone(item)), ..self.0.shared.clone() };
        let mut vars = self.vars_of_loop(&item.language);
        for (name, value) in &item.variables {
            vars.set(name, value.clone());
        }
        Self::with_vars(shared, Arc::clone(&item.language), vars)
    }

    fn vars_of_loop(&self, language: &Arc<Language>) -> Vars<'static> {
        let mut last = self.0.vars_of_loop.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, vars)) if Arc::ptr_eq(known, language) => vars.clone(),
            _ => {
                let vars = vars(&self.0.shared, language);
                *last = Some((Arc::clone(language), vars.clone()));
                vars
            }
        }
    }

    /// The item of a loop that it is in, if it is in one.
    pub fn item(&self) -> Option<&Arc<LoopItem>> {
        self.0.shared.item.as_ref()
    }

    pub(crate) fn unknown(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.0.shared.unknown.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Whether a file may be read.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        let Some(beneath) = &self.0.shared.beneath else { return true };
        let host = self.host();
        // A file that is not there says so when it is opened.
        let real =
            host.canonicalize(path).or_else(|_| host.canonicalize(path.parent().unwrap_or(path)));
        let beneath = host.canonicalize(beneath);
        real.is_ok_and(|real| beneath.is_ok_and(|beneath| real.starts_with(beneath)))
    }

    fn with_language(scope: Scope, language: Language) -> Self {
        let environ = Value::from(scope.environ);
        let shared = Shared {
            facts: scope.facts,
            data: scope.data.into(),
            environ_with_nil: with_nil(&environ),
            environ,
            directory: scope.directory.into(),
            host: scope.host,
            beneath: scope.beneath.map(Arc::from),
            documents: Arc::default(),
            item: None,
            unknown: Arc::default(),
        };
        Self::build(shared, Arc::new(language))
    }

    fn derived(&self, shared: Shared) -> Self {
        Self::build(shared, Arc::clone(&self.0.language))
    }

    fn build(shared: Shared, language: Arc<Language>) -> Self {
        let mut vars = vars(&shared, &language);
        for (name, value) in shared.item.iter().flat_map(|item| &item.variables) {
            vars.set(name, value.clone());
        }
        Self::with_vars(shared, language, vars)
    }

    fn with_vars(shared: Shared, language: Arc<Language>, vars: Vars<'static>) -> Self {
        let (vars_with_facts, vars_of_loop) = (OnceLock::new(), Mutex::default());
        Self(Arc::new(Inner { shared, language, vars, vars_with_facts, vars_of_loop }))
    }

    /// The facts of the scope, gathered when something first reads them.
    pub fn facts(&self) -> &Facts {
        &self.0.shared.facts
    }

    /// The data, a map.
    pub fn data(&self) -> &Value {
        &self.0.shared.data
    }

    /// The variables of the environment, a map.
    pub fn environ(&self) -> &Value {
        &self.0.shared.environ
    }

    /// The directory that the paths of files start from.
    pub fn directory(&self) -> &Path {
        &self.0.shared.directory
    }

    /// The host that files are read through.
    pub fn host(&self) -> &Host {
        &self.0.shared.host
    }

    /// Asks whether the run is cancelled, for the languages to stop then.
    pub fn is_cancelled(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        is_cancelled(self.host())
    }

    /// Whether a missing key is the empty string.
    pub(crate) fn is_restricted(&self) -> bool {
        self.0.language.restricted
    }

    /// Evaluates an expression without delimiters; its program is cached.
    pub fn evaluate(&self, expression: &str) -> Result<Value, Error> {
        self.run(expression, None)
    }

    /// Compiles an expression without running it.
    pub fn check(&self, expression: &str) -> Result<(), Error> {
        self.compiled(expression).map(drop)
    }

    /// Compiles an expression that must be true or false, without running it:
    /// finds what is wrong with it whatever the data are.
    ///
    /// ```
    /// let host = ccm_host::Host::new();
    /// let resolver = ccm_template::Resolver::new(ccm_template::Scope::new(&host));
    /// assert!(resolver.check_condition("Data.port").is_ok(), "it may be true");
    /// assert_eq!(
    ///     resolver.check_condition("1 + 1").unwrap_err().message,
    ///     "`1 + 1` must be true or false, but is of type int",
    /// );
    /// ```
    pub fn check_condition(&self, expression: &str) -> Result<(), TemplateError> {
        let checked = match self.compiled(expression) {
            Ok(compiled) => match compiled.program.result_type() {
                Type::Bool | Type::Any => Ok(()),
                Type::Nil => Err(not_boolean(expression, "nothing (nil)".to_owned())),
                known => Err(not_boolean(expression, format!("of type {known}"))),
            },
            Err(error) => Err(error),
        };
        checked.map_err(|error| {
            let is_placeholder = has_placeholder(expression);
            let hint = is_placeholder
                .then(|| "write the expression without `{{ }}` or `${ }` around it".to_owned());
            let error = error.in_template(expression);
            TemplateError { hint: hint.or(error.hint), ..error }
        })
    }

    /// Checks a text that is resolved later, as far as that can be told now.
    /// Expressions that read files or ask a server are only compiled: the answer
    /// may be another one by then.
    ///
    /// ```
    /// use ccm_template::placeholder::Openers;
    ///
    /// let host = ccm_host::Host::new();
    /// let resolver = ccm_template::Resolver::new(ccm_template::Scope::new(&host));
    /// let check = |text| resolver.check_later(text, Openers::All);
    /// assert!(check("{{ readFile('/made/later') }}").is_ok());
    /// assert!(check("{{ readFile('/made/later' }}").is_err());
    /// assert!(check("{{ readFile('/made/later') }} {{ Data.port }}").is_err());
    /// ```
    pub fn check_later(&self, text: &str, openers: Openers) -> Result<(), TemplateError> {
        let mut known = text.to_owned();
        for placeholder in scan(text, openers).filter_map(Result::ok) {
            let Placeholder { start, end, inner } = placeholder;
            if asks_elsewhere(inner) {
                let checked = self.check(inner).and_then(|()| self.check_files(inner));
                checked.map_err(|error| error.in_template(text))?;
                // As long as before, so that places stay where they are.
                known.replace_range(start..end, &" ".repeat(end - start));
            }
        }
        let resolved = self.text_with(&known, openers);
        resolved.map(drop).map_err(|error| error.in_template(text))
    }

    /// Evaluates an expression that must be true or false. Nil is
    /// [`Error::NoValue`].
    pub fn condition(&self, expression: &str) -> Result<bool, Error> {
        match self.evaluate(expression)? {
            Value::Bool(holds) => Ok(holds),
            Value::Nil => Err(self.no_value(expression)),
            other => {
                let found = format!("{:?}", beginning(&functions::printed(&other)));
                Err(not_boolean(expression, found))
            }
        }
    }

    pub(crate) fn run(&self, expression: &str, nesting: Option<&Nesting>) -> Result<Value, Error> {
        let compiled = self.compiled(expression)?;
        let vars = if compiled.reads_facts {
            self.0.vars_with_facts.get_or_init(|| {
                let mut vars = self.0.vars.clone();
                vars.set("Facts", self.facts().get().clone());
                vars
            })
        } else {
            &self.0.vars
        };
        let nesting = nesting.map_or_else(OnceLock::new, |nesting| nesting.clone().into());
        let call = Call { resolver: self.clone(), nesting };
        compiled
            .program
            .run(&vars.clone().with_user(&call))
            .map_err(|error| self.failed(expression, error))
    }

    fn compiled(&self, expression: &str) -> Result<Arc<Compiled>, Error> {
        let language = &self.0.language;
        let lock = || language.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(expression) {
            return Ok(Arc::clone(known));
        }
        // In this language a list in a list, which nobody means here.
        if let Some(inner) = expression.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"))
        {
            let inner = inner.trim();
            let is_plain = inner.chars().all(|c| c.is_alphanumeric() || "._".contains(c));
            if is_plain && inner.contains('.') {
                let message = format!("`{{{{ {expression} }}}}` is a list in a list");
                self.host().warn(format!("{message}; write `{{{{ {inner} }}}}`"));
            }
        }
        let program = Program::compile(expression, &language.environment)
            .map_err(|error| Error::expression(expression, error))?;
        let compiled = Arc::new(Compiled { reads_facts: program.reads("Facts"), program });
        let mut programs = lock();
        if programs.len() < MAX_PROGRAMS {
            programs.insert(expression.into(), Arc::clone(&compiled));
        }
        Ok(compiled)
    }

    /// Evaluates a GJSON path over `facts`, `data` and `environ`; `None` if it
    /// matches nothing.
    pub fn lookup(&self, key: &str) -> Result<Option<Value>, Error> {
        let documents = &*self.0.shared.documents;
        // The short name that the original's documentation has.
        let long = key.strip_prefix("env.").map(|rest| format!("environ.{rest}"));
        let key = long.as_deref().unwrap_or(key);
        // Facts cost time: paths that begin elsewhere do without.
        let first = key.split(['.', '|']).next().unwrap_or_default();
        let document = if matches!(first, "data" | "environ") {
            documents.plain.get_or_init(|| self.document([]))
        } else {
            let facts = || ("facts", self.facts().get().clone());
            documents.with_facts.get_or_init(|| self.document([facts()]))
        };
        document
            .lookup(&gjson::Path::compile(key))
            .map_err(|source| Error::Path { key: key.to_owned(), source })
    }

    fn document<const N: usize>(&self, more: [(&str, Value); N]) -> Document {
        let members = [("data", self.data().clone()), ("environ", self.environ().clone())];
        let members = members.into_iter().chain(more).map(|(name, value)| {
            // JSON knows no nil maps.
            let is_nil = value.as_map().is_some_and(Map::is_nil);
            (name, if is_nil { Value::Nil } else { value })
        });
        Document::new(members.collect::<Map>().into())
    }
}

/// The variables as expressions see them: one that is not set is nil there, the
/// empty string in Jet and Go templates.
fn with_nil(environ: &Value) -> Value {
    let Some(variables) = environ.as_map().filter(|map| !map.is_nil()) else {
        return environ.clone();
    };
    variables.iter().map(|(name, value)| (name.clone(), value.clone())).collect::<Map>().into()
}

/// The members of the environment, but for facts and the variables of loops.
fn vars(shared: &Shared, language: &Language) -> Vars<'static> {
    let mut vars = language.environment.vars();
    vars.set("Data", shared.data.clone());
    vars.set("Environ", shared.environ_with_nil.clone());
    vars.set("WorkingDir", shared.directory.to_string_lossy().as_ref());
    vars.set("DefaultOnMissing", language.restricted);
    vars.set("RestrictFunctions", language.restricted);
    vars.interrupt_if(is_cancelled(&shared.host));
    vars
}

/// Tells the languages when the run is cancelled.
fn is_cancelled(host: &Host) -> impl Fn() -> bool + Send + Sync + use<> {
    let cancel = host.cancel().clone();
    move || cancel.reason().is_some()
}

fn not_boolean(expression: &str, found: String) -> Error {
    Error::NotBoolean { expression: expression.to_owned(), found }
}

impl Language {
    fn new(restricted: bool) -> Self {
        Self::with_variables(restricted, [])
    }

    /// A language with more variables.
    pub(crate) fn with_variables<'a>(
        restricted: bool,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let base = functions::environment(restricted);
        Self {
            environment: names.into_iter().fold(base, |all, name| all.member(name, Type::Any)),
            restricted,
            programs: Mutex::default(),
        }
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("directory", &self.directory())
            .field("restricted", &self.0.language.restricted)
            .finish_non_exhaustive()
    }
}

impl Templates for Resolver {
    fn text(&self, text: &str) -> Result<String, TemplateError> {
        text_of(text, self.text_with(text, Openers::All))
    }

    fn script(&self, text: &str) -> Result<String, TemplateError> {
        text_of(text, self.text_with(text, Openers::Shell))
    }

    fn value(&self, text: &str) -> Result<Value, TemplateError> {
        Resolver::value(self, text).map_err(|error| error.in_template(text))
    }

    fn reads_secret(&self, text: &str) -> bool {
        let is_secret = |value: &Value| self.host().redactor().finds_in(&value.to_string());
        let found = reads_of_text(text, Openers::All);
        found.iter().flat_map(|found| &found.reads).any(|read| {
            let mut keys = read.path.iter();
            let root = match read.kind {
                ReadKind::Data => Some(self.data()),
                ReadKind::Fact => Some(self.facts().get()),
                ReadKind::Environment => Some(self.environ()),
                ReadKind::Variable => {
                    keys.next().and_then(|name| self.item().and_then(|item| item.get(name)))
                }
                ReadKind::File => None,
            };
            let Some(root) = root else { return false };
            let is_named = read.kind == ReadKind::Environment
                && read.path.last().is_some_and(|name| is_secret_name(name));
            let value = keys.try_fold(root, |value, key| value.get(key));
            is_named || value.is_some_and(is_secret)
        })
    }
}

fn text_of(template: &str, resolved: Result<Resolved, Error>) -> Result<String, TemplateError> {
    let resolved = resolved.map_err(|error| error.in_template(template))?;
    match resolved.text.as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Error::NotText { template: beginning(template) }.into()),
    }
}
