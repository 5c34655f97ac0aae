//! The two languages, with the functions that only scaffolds have:
//! `render(path, data)` gives another template of the source, rendered, and
//! `write(path, text)` makes a file.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ccm_engine::{Error, Result};
use ccm_host::{Cancel, Folder};
use ccm_template::Resolver;
use govalue::{Map, Value};

use super::Language;
use super::render::{Output, RenderedFile, Rules, is_blank};

/// Templates that render templates, at most.
const MAX_DEPTH: usize = 12;
/// Templates that are rendered for one file, at most.
const MAX_PARTIALS: usize = 10_000;
/// Bytes of one rendered file, at most.
const MAX_OUTPUT: usize = 64 << 20;
/// All that is rendered, in bytes.
const MAX_TOTAL: usize = 256 << 20;
/// The largest template.
const MAX_FILE: u64 = 64 << 20;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Renders templates of one source.
pub(super) struct Templates(Arc<Inner>);

struct Inner {
    source: Arc<Folder>,
    skip_empty: bool,
    calls: Mutex<Calls>,
    cancel: Cancel,
    language: TemplateEngine,
    resolver: Resolver,
}

/// What templates have done.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) outputs: Vec<Output>,
    directories: BTreeSet<PathBuf>,
    total: usize,
    /// The templates that render one another now.
    chain: Vec<PathBuf>,
    /// How many templates were rendered for the file at work.
    partials: usize,
    /// Why they do not stop.
    too_deep: Option<String>,
    /// A partial came out empty, and with it the file that wanted it.
    skip: bool,
}

impl Calls {
    /// Forgets what the last template did beside its output.
    fn begin(&mut self) {
        self.chain.clear();
        self.partials = 0;
        self.too_deep = None;
        self.skip = false;
    }

    pub(super) fn push(&mut self, output: Output) -> Result<()> {
        match &output {
            Output::Directory(place) => drop(self.directories.insert(place.clone())),
            Output::File(place, file) => {
                self.total += file.bytes.len();
                if self.total > MAX_TOTAL {
                    return Err(Error::refused(format!(
                        "cannot render {}: the scaffold is larger than {} MiB",
                        place.display(),
                        MAX_TOTAL >> 20
                    )));
                }
            }
        }
        self.outputs.push(output);
        Ok(())
    }
}

enum TemplateEngine {
    Jet {
        set: jet::Set,
        variables: jet::Variables,
        /// Functions for templates rendered with their own data.
        functions: jet::Variables,
        context: Value,
        partials: Mutex<HashMap<PathBuf, jet::Template>>,
    },
    Go {
        engine: gotemplate::Engine,
        data: Value,
        partials: Mutex<HashMap<PathBuf, gotemplate::Template>>,
    },
}

impl Templates {
    pub(super) fn new(
        source: Arc<Folder>,
        rules: Rules<'_>,
        engine: &Resolver,
        cancel: Cancel,
    ) -> Self {
        Self(Arc::new_cyclic(|inner| Inner {
            source,
            skip_empty: rules.skip_empty,
            calls: Mutex::default(),
            cancel,
            resolver: engine.clone(),
            language: match rules.language {
                Language::Jet => jet_language(rules, engine, inner),
                Language::Go => go_language(rules, engine, inner),
            },
        }))
    }

    pub(super) fn calls(&self) -> MutexGuard<'_, Calls> {
        self.0.calls()
    }

    /// What keeps a file from being parsed.
    pub(super) fn error_in(&self, place: &Path, text: &str) -> Option<String> {
        let name = place.to_string_lossy();
        match &self.0.language {
            TemplateEngine::Jet { set, .. } => {
                set.parse(&name, text).err().map(|error| error.to_string())
            }
            TemplateEngine::Go { engine, .. } => {
                engine.parse(&name, text).err().map(|error| error.to_string())
            }
        }
    }

    /// What a file prints that does not exist, if that is an error. Whatever else
    /// is wrong with it is left to the run.
    pub(super) fn unknown_in(&self, place: &Path, text: &str) -> Option<String> {
        let _ = self.render_bytes(&place.to_string_lossy(), text);
        self.check_rendered().err()
    }

    fn check_rendered(&self) -> Result<(), String> {
        self.0.resolver.check_rendered().map_err(|error| error.to_string())
    }

    fn render_bytes(&self, name: &str, text: &str) -> Result<Vec<u8>, String> {
        self.calls().begin();
        match &self.0.language {
            TemplateEngine::Jet { set, variables, context, .. } => set
                .parse(name, text)
                .and_then(|template| set.render(&template, variables, context))
                .map(|text| text.as_bytes().to_vec())
                .map_err(|error| error.to_string()),
            TemplateEngine::Go { engine, data, .. } => engine
                .parse(name, text)
                .and_then(|template| template.render_bytes(data))
                .map_err(|error| error.to_string()),
        }
    }

    /// Renders one file; `None` if a partial of it came out empty and empty
    /// files are left out.
    pub(super) fn render(&self, place: &Path, text: &str) -> Result<Option<Vec<u8>>> {
        let name = place.to_string_lossy();
        let rendered = self.render_bytes(&name, text);
        let checked = self.check_rendered();
        match rendered.and_then(|bytes| checked.map(|()| bytes)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(_) if let Some(chain) = self.calls().too_deep.take() => Err(Error::refused(
                format!("cannot render {name}: templates render one another without end: {chain}"),
            )),
            Err(_) if std::mem::take(&mut self.calls().skip) => Ok(None),
            Err(error) => Err(Error::refused(format!("cannot render {name}: {error}"))),
        }
    }
}

impl Inner {
    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `render` gives.
    fn partial(
        &self,
        path: &str,
        data: &Value,
        caller: Option<&gotemplate::Caller>,
    ) -> Result<Value, Failure> {
        let place = below(path).ok_or_else(|| {
            format!("{path} is not in source directory {}", self.source.path().display())
        })?;
        self.enter(&place)?;
        let rendered = self.render_partial(&place, data, caller);
        self.calls().chain.pop();
        let bytes = rendered?;
        if self.skip_empty && is_blank(&bytes) {
            self.calls().skip |= matches!(self.language, TemplateEngine::Go { .. });
            return Err(format!("{path} renders empty, and `skip_empty` is set").into());
        }
        Ok(Value::String(bytes.into()))
    }

    fn enter(&self, place: &Path) -> Result<(), Failure> {
        if self.cancel.is_cancelled() {
            return Err("rendering was interrupted".into());
        }
        let mut calls = self.calls();
        calls.partials += 1;
        if calls.partials > MAX_PARTIALS {
            return Err(
                format!("more than {MAX_PARTIALS} templates are rendered for one file").into()
            );
        }
        if calls.chain.len() < MAX_DEPTH {
            calls.chain.push(place.to_owned());
            return Ok(());
        }
        let names = calls.chain.iter().map(|place| place.to_string_lossy());
        calls.too_deep = Some(names.collect::<Vec<_>>().join(" renders "));
        Err("templates render one another too deeply".into())
    }

    fn render_partial(
        &self,
        place: &Path,
        data: &Value,
        caller: Option<&gotemplate::Caller>,
    ) -> Result<Vec<u8>, Failure> {
        let name = place.to_string_lossy();
        match &self.language {
            TemplateEngine::Jet { set, variables, functions, context, partials } => {
                let parse = |text: &str| set.parse(&name, text);
                let template = cached(partials, place, || Ok(parse(&self.read(place)?)?))?;
                let variables = if is_same(data, context) { variables } else { functions };
                Ok(set.render(&template, variables, data)?.as_bytes().to_vec())
            }
            TemplateEngine::Go { engine, partials, .. } => {
                let parse = |text: &str| engine.parse(&name, text);
                let template = cached(partials, place, || Ok(parse(&self.read(place)?)?))?;
                Ok(match caller {
                    Some(caller) => template.render_within(caller, data)?,
                    None => template.render_bytes(data)?,
                })
            }
        }
    }

    /// The text of a template in the source.
    fn read(&self, place: &Path) -> Result<String, Failure> {
        Ok(self.source.read_beneath(place, MAX_FILE)?)
    }

    /// What `write` does.
    fn write(&self, path: &str, text: &Value) -> Result<Value, Failure> {
        let place = below(path).ok_or_else(|| format!("{path} is not in the target directory"))?;
        let Value::String(text) = text else {
            return Err(format!("the content must be a string, not {}", text.type_name()).into());
        };
        let mut calls = self.calls();
        let parent = place.parent().unwrap_or(Path::new(""));
        if place.as_os_str().is_empty() || calls.directories.contains(&place) {
            return Err(format!("{path} is a directory").into());
        }
        if !parent.as_os_str().is_empty() && !calls.directories.contains(parent) {
            let parent = parent.display();
            return Err(format!(
                "the directory {parent} of {path} is not rendered yet: the source must have it, \
                 under a name that sorts before this template's"
            )
            .into());
        }
        let file = RenderedFile { bytes: text.as_bytes().into(), mode: 0o644 };
        calls.push(Output::File(place, file)).map_err(|error| error.to_string())?;
        Ok("".into())
    }
}

/// A template that is parsed when it is first wanted.
fn cached<T: Clone>(
    known: &Mutex<HashMap<PathBuf, T>>,
    place: &Path,
    parse: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(template) = lock().get(place) {
        return Ok(template.clone());
    }
    let template = parse()?;
    lock().insert(place.to_owned(), template.clone());
    Ok(template)
}

/// Normalizes a path; `None` if it is outside its base directory.
fn below(path: &str) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => place.push(name),
            Component::ParentDir if !place.pop() => return None,
            Component::ParentDir | Component::CurDir | Component::RootDir => {}
            Component::Prefix(_) => return None,
        }
    }
    (!path.contains('\0')).then_some(place)
}

/// Whether both are one and the same map.
fn is_same(a: &Value, b: &Value) -> bool {
    matches!((a, b), (Value::Map(a), Value::Map(b)) if Arc::ptr_eq(a, b))
}

fn gone() -> Failure {
    "called outside of a scaffold".into()
}

fn path_argument(value: &Value) -> Result<&str, Failure> {
    value
        .as_str()
        .ok_or_else(|| format!("the path must be a string, not {}", value.type_name()).into())
}

type Body = fn(&Inner, &[Value], Option<&gotemplate::Caller>) -> Result<Value, Failure>;

/// The functions that only templates of scaffolds have.
const FUNCTIONS: [(&str, Body); 2] = [
    ("render", |inner, args, caller| {
        let [path, data] = args else { return Err("render takes a path and data".into()) };
        inner.partial(path_argument(path)?, data, caller)
    }),
    ("write", |inner, args, _| {
        let [path, text] = args else { return Err("write takes a path and a text".into()) };
        inner.write(path_argument(path)?, text)
    }),
];

fn jet_language(rules: Rules<'_>, engine: &Resolver, inner: &Weak<Inner>) -> TemplateEngine {
    let (left, right) = rules.delimiters;
    let (mut variables, mut functions) = (engine.jet_scope().0, engine.jet_functions());
    let mut context = Map::new();
    for (name, value) in engine.members().iter() {
        if let (Some(name), Some(map)) = (name.as_str(), value.as_map()) {
            context.insert(name, map.clone().reflected());
        }
    }
    for (name, body) in FUNCTIONS {
        for scope in [&mut variables, &mut functions] {
            let weak = inner.clone();
            let call = move |args: &[Value]| body(&*weak.upgrade().ok_or_else(gone)?, args, None);
            scope.set_function(name, jet::Function::new(2..=2, call));
        }
    }
    TemplateEngine::Jet {
        set: jet::Set::new()
            .interrupt_if(engine.is_cancelled())
            .with_delimiters(left, right)
            .with_limits(jet::Limits { output: MAX_OUTPUT, ..jet::Limits::default() })
            .on_missing(engine.warn_of_unknown()),
        variables,
        functions,
        context: context.into(),
        partials: Mutex::default(),
    }
}

fn go_language(rules: Rules<'_>, engine: &Resolver, inner: &Weak<Inner>) -> TemplateEngine {
    let (left, right) = rules.delimiters;
    let (engine, data) = engine.go_scope();
    let limits = gotemplate::Limits { output: MAX_OUTPUT, ..gotemplate::Limits::default() };
    let mut engine = engine.delimiters(left, right).limits(limits);
    for (name, body) in FUNCTIONS {
        let weak = inner.clone();
        engine = engine.rendering_function(name, move |caller, args| {
            body(&*weak.upgrade().ok_or_else(gone)?, args, Some(caller))
        });
    }
    TemplateEngine::Go { engine, data, partials: Mutex::default() }
}
