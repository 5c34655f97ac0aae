//! Templates that belong together: their delimiters, functions and loader.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use govalue::{MissingMember, Span, Str, Value};

use crate::ast::{Blocks, List};
use crate::error::{Error, ErrorKind};
use crate::lexer::Delimiters;
use crate::limits::Limits;
use crate::loader::{Loader, join};
use crate::parser;
use crate::render;
use crate::source::Source;
use crate::variables::Variables;

/// A parsed template, with the templates that it extends and imports. Cheap to
/// clone, and may be rendered by many threads at once.
#[derive(Clone, Debug)]
pub struct Template(pub(crate) Arc<Parts>);

#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) source: Arc<Source>,
    pub(crate) root: List,
    pub(crate) extends: Option<Template>,
    pub(crate) blocks: Arc<Blocks>,
}

impl Template {
    /// The name it was parsed under.
    pub fn name(&self) -> &str {
        &self.0.source.name
    }

    /// The template at the end of the row of `extends`, which is what runs.
    pub(crate) fn outermost(&self) -> &Self {
        let mut template = self;
        while let Some(parent) = &template.0.extends {
            template = parent;
        }
        template
    }
}

/// How templates are read and what they all can use.
///
/// ```
/// use jet::{MemoryLoader, Set, Variables};
///
/// let set = Set::new()
///     .with_delimiters("[[", "]]")
///     .with_loader(MemoryLoader::from_iter([
///         ("page", r#"[[ extends "layout" ]][[ block body() ]]Hi [[ name ]][[ end ]]"#),
///         ("layout", "<[[ yield body() ]]>"),
///     ]));
/// let page = set.get("page").unwrap();
/// let mut variables = Variables::new();
/// variables.set("name", "Ann");
/// assert_eq!(set.render(&page, &variables, &govalue::Value::Nil).unwrap(), "<Hi Ann>");
/// ```
pub struct Set {
    delimiters: Delimiters,
    loader: Option<Box<dyn Loader>>,
    limits: Limits,
    pub(crate) on_missing: Option<Box<OnMissing>>,
    pub(crate) interrupt: Option<Box<dyn Fn() -> bool + Send + Sync>>,
    loaded: Mutex<HashMap<String, Template>>,
}

/// What is told of members that are printed but not there.
type OnMissing = dyn Fn(&MissingMember<'_>) + Send + Sync;

/// What a path may end in without saying so.
const ENDINGS: &[&str] = &["", ".jet", ".html.jet", ".jet.html"];

/// Templates may extend and import one another this deep.
const MAX_FAMILY: usize = 30;

/// The delimiters unless others are given.
const DEFAULT: (&str, &str) = ("{{", "}}");

impl Default for Set {
    fn default() -> Self {
        Self::new()
    }
}

impl Set {
    /// Delimiters `{{` and `}}`, nothing to load, default limits.
    pub fn new() -> Self {
        Self {
            delimiters: Delimiters { left: DEFAULT.0.into(), right: DEFAULT.1.into() },
            loader: None,
            limits: Limits::default(),
            on_missing: None,
            interrupt: None,
            loaded: Mutex::default(),
        }
    }

    /// Other delimiters; an empty one means the default.
    #[must_use]
    pub fn with_delimiters(mut self, left: &str, right: &str) -> Self {
        let or = |given: &str, default: &str| {
            if given.is_empty() { default.to_owned() } else { given.to_owned() }
        };
        self.delimiters = Delimiters { left: or(left, DEFAULT.0), right: or(right, DEFAULT.1) };
        self
    }

    /// Where `extends`, `import`, `include` and `exec` find other templates.
    #[must_use]
    pub fn with_loader(mut self, loader: impl Loader + 'static) -> Self {
        self.loader = Some(Box::new(loader));
        self
    }

    /// Other bounds.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Calls `report` when an action prints a member that is not in its map,
    /// which prints nothing. An action that does more than naming a member, such
    /// as `m.a ? m.a : 1`, provides for it and is not reported.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let found = Arc::clone(&seen);
    /// let set = jet::Set::new().on_missing(move |one| {
    ///     found.lock().unwrap().push(format!("{} {:?}", one.expression(), one.position()));
    /// });
    /// let template = set.parse("t", "{{ m.port }}{{ m.prot }}{{ if m.opt }}{{ end }}").unwrap();
    /// let mut variables = jet::Variables::new();
    /// variables.set("m", govalue::Map::from_iter([("port", 80)]));
    /// assert_eq!(set.render(&template, &variables, &govalue::Value::Nil).unwrap(), "80");
    /// assert_eq!(*seen.lock().unwrap(), ["m.prot (1, 16)"]);
    /// ```
    #[must_use]
    pub fn on_missing(
        mut self,
        report: impl Fn(&MissingMember<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.on_missing = Some(Box::new(report));
        self
    }

    /// Ends a rendering with an error of the kind
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) when this says so. It is asked
    /// every few thousand steps.
    ///
    /// ```
    /// let set = jet::Set::new().interrupt_if(|| true);
    /// let template = set.parse("t", "{{ range ints(0, 100000) }}{{ . }}{{ end }}").unwrap();
    /// let error = set.render(&template, &jet::Variables::new(), &govalue::Value::Nil);
    /// assert_eq!(error.unwrap_err().message(), "interrupted");
    /// ```
    #[must_use]
    pub fn interrupt_if(mut self, interrupt: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.interrupt = Some(Box::new(interrupt));
        self
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Parses a template from text. The name is for messages, and the place
    /// that relative paths start from.
    pub fn parse(&self, name: &str, text: &str) -> Result<Template, Error> {
        self.build(name, text, &mut vec![join("/", name)])
    }

    /// The template that the loader has under a path; parsed only once.
    pub fn get(&self, path: &str) -> Result<Template, Error> {
        let path = join("/", path);
        let nowhere = Arc::new(Source { name: path.clone(), text: String::new() });
        match self.load(&path, &mut Vec::new()) {
            Ok(Some(template)) => Ok(template),
            Ok(None) => Err(not_found(&path, &nowhere, Span::default())),
            Err(Failure::Template(error)) => Err(error),
            Err(failure) => Err(failure.at(&nowhere, Span::default())),
        }
    }

    /// Renders a template. `context` is what `.` means at the top. Not all
    /// text need be UTF-8, since templates can cut strings anywhere.
    pub fn render(
        &self,
        template: &Template,
        variables: &Variables,
        context: &Value,
    ) -> Result<Str, Error> {
        render::render(self, template, variables, context)
    }

    /// A template that another one names at run time.
    pub(crate) fn find(&self, path: &str) -> Result<Option<Template>, Failure> {
        self.load(path, &mut Vec::new())
    }

    fn load(&self, path: &str, family: &mut Vec<String>) -> Result<Option<Template>, Failure> {
        let Some(loader) = &self.loader else { return Ok(None) };
        for ending in ENDINGS {
            let path = format!("{path}{ending}");
            if family.contains(&path) {
                return Err(Failure::Circle(path));
            }
            if family.len() >= MAX_FAMILY {
                return Err(Failure::TooDeep);
            }
            let known =
                self.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
            if known.is_some() {
                return Ok(known);
            }
            let Some(text) = loader.load(&path).map_err(Failure::Loader)? else { continue };
            family.push(path.clone());
            let template = self.build(&path, &text, family).map_err(Failure::Template)?;
            family.pop();
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.insert(path, template.clone());
            return Ok(Some(template));
        }
        Ok(None)
    }

    /// Parses a template and loads those it extends and imports; `family` are
    /// the paths that led here, its own last.
    fn build(&self, name: &str, text: &str, family: &mut Vec<String>) -> Result<Template, Error> {
        let source = Arc::new(Source { name: name.to_owned(), text: text.to_owned() });
        if u32::try_from(text.len()).is_err() {
            let message = "the template is larger than 4 GiB";
            return Err(Error::new(ErrorKind::Limit, message, &source, Span::default()));
        }
        let parsed = parser::parse(&source, &self.delimiters)?;
        let mut blocks = Blocks::new();
        let mut relative = |(path, span): &(String, Span)| {
            let path = join(&join("/", name), path);
            match self.load(&path, family) {
                Ok(Some(template)) => Ok(template),
                Ok(None) => Err(not_found(&path, &source, *span)),
                Err(failure) => Err(failure.at(&source, *span)),
            }
        };
        // What is nearer wins: own blocks over imported over inherited ones.
        let extends = parsed.extends.as_ref().map(&mut relative).transpose()?;
        if let Some(parent) = &extends {
            blocks
                .extend(parent.0.blocks.iter().map(|(name, block)| (name.clone(), block.clone())));
        }
        for import in &parsed.imports {
            let library = relative(import)?;
            blocks
                .extend(library.0.blocks.iter().map(|(name, block)| (name.clone(), block.clone())));
        }
        blocks.extend(parsed.blocks);
        let blocks = Arc::new(blocks);
        Ok(Template(Arc::new(Parts { source, root: parsed.root, extends, blocks })))
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Set")
            .field("delimiters", &self.delimiters)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Why a template that is named somewhere cannot be used.
pub(crate) enum Failure {
    /// It is there but wrong; the error says where.
    Template(Error),
    Loader(String),
    Circle(String),
    TooDeep,
}

impl Failure {
    /// The error, as seen from where the template is named.
    pub(crate) fn at(self, source: &Arc<Source>, span: Span) -> Error {
        match self {
            Self::Template(error) => error,
            Self::Loader(reason) => {
                let message = format!("the template cannot be loaded: {reason}");
                Error::new(ErrorKind::NotFound, message, source, span)
            }
            Self::Circle(path) => {
                let message = format!("template {path} extends or imports itself");
                Error::new(ErrorKind::Syntax, message, source, span)
            }
            Self::TooDeep => {
                let message =
                    format!("more than {MAX_FAMILY} templates extend or import each other");
                Error::new(ErrorKind::Limit, message, source, span)
            }
        }
    }
}

pub(crate) fn not_found(path: &str, source: &Arc<Source>, span: Span) -> Error {
    let message = format!("template {path} could not be found");
    Error::new(ErrorKind::NotFound, message, source, span)
}
