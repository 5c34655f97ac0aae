//! What the recorded cases need around the language.

pub(crate) mod placeholders;

use expr::{Context, Environment, Function, FunctionError, Type, Vars};
use gjson::Document;
use govalue::{Map, MapShape, Value};

/// The world of a case: members, files and the document behind `lookup`.
pub(crate) struct World {
    pub(crate) environment: Environment,
    pub(crate) values: Vec<(&'static str, Value)>,
    document: Document,
    files: Map,
    default_on_missing: bool,
}

impl World {
    /// Reads one entry of the environments' file.
    pub(crate) fn new(recorded: &Value) -> Self {
        let member = |name: &str, shape: MapShape| match recorded.get(name) {
            Some(Value::Map(map)) => {
                let mut typed = Map::with_shape(shape);
                for (key, value) in map.iter() {
                    typed.insert(key.clone(), value.clone());
                }
                Value::from(typed)
            }
            _ => Map::nil(shape).into(),
        };
        let flag = |name: &str| recorded.get(name) == Some(&Value::Bool(true));
        let (facts, data) =
            (member("facts", MapShape::StringAny), member("data", MapShape::StringAny));
        let environ = member("environ", MapShape::Strings);
        // JSON knows no nil maps.
        let shown = |value: &Value| {
            let is_nil = value.as_map().is_some_and(Map::is_nil);
            if is_nil { Value::Nil } else { value.clone() }
        };
        let members =
            [("facts", shown(&facts)), ("data", shown(&data)), ("environ", shown(&environ))];
        let document = Document::new(Map::from_iter(members).into());
        Self {
            environment: environment(flag("restrict")),
            values: vec![
                ("Facts", facts),
                ("Data", data),
                ("Environ", environ),
                ("WorkingDir", "".into()),
                ("DefaultOnMissing", flag("default_on_missing").into()),
                ("RestrictFunctions", flag("restrict").into()),
            ],
            document,
            files: recorded.get("files").and_then(Value::as_map).cloned().unwrap_or_default(),
            default_on_missing: flag("default_on_missing"),
        }
    }

    pub(crate) fn vars(&self) -> Vars<'_> {
        let mut vars = self.environment.vars();
        for (name, value) in &self.values {
            assert!(vars.set(name, value.clone()), "{name} is declared");
        }
        vars.with_user(self)
    }

    /// Compiles and runs one expression.
    pub(crate) fn evaluate(&self, source: &str) -> Result<Value, expr::Error> {
        expr::Program::compile(source, &self.environment)?.run(&self.vars())
    }

    fn file(&self, name: &str) -> Result<Value, FunctionError> {
        self.files.get(name).cloned().ok_or_else(|| format!("no file {name}").into())
    }
}

fn environment(restricted: bool) -> Environment {
    let base = Environment::new()
        .type_name("github.com/choria-io/ccm/templates.Env")
        .member("Facts", Type::map(Type::Any))
        .member("Data", Type::map(Type::Any))
        .member("Environ", Type::map(Type::String))
        .member("WorkingDir", Type::String)
        .member("DefaultOnMissing", Type::Bool)
        .member("RestrictFunctions", Type::Bool)
        .function("lookup", Function::new(lookup));
    if restricted {
        return base;
    }
    let unavailable = || Function::new(|_, _| Err("not available here".into()));
    base.function("readFile", Function::new(read_file))
        .function("file", Function::new(read_file))
        .function("template", Function::new(template))
        .function("jet", unavailable())
        .function("registrations", unavailable())
        .function("kvGet", unavailable())
}

fn world(context: Context<'_>) -> Result<&World, FunctionError> {
    context.user().ok_or_else(|| "no world".into())
}

fn lookup(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    let world = world(context)?;
    let (key, default) = match args {
        [Value::String(key)] => (key, &Value::Nil),
        [Value::String(key), default] => (key, default),
        _ => return Err("lookup takes a string and a default".into()),
    };
    let path = gjson::Path::compile(&key.to_str_lossy());
    match world.document.lookup(&path).map_err(|error| error.to_string())? {
        Some(value) => Ok(value),
        None if !default.is_nil() => Ok(default.clone()),
        None if world.default_on_missing => Ok("".into()),
        None => Err(format!("missing key {key}").into()),
    }
}

fn read_file(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    match args {
        [Value::String(name)] => world(context)?.file(&name.to_str_lossy()),
        _ => Err("a file name is a string".into()),
    }
}

fn template(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    let [Value::String(text)] = args else {
        return Err("template takes a string".into());
    };
    let world = world(context)?;
    let text = text.to_str_lossy();
    if !text.ends_with(".templ") {
        return placeholders::resolve(&text, world).map_err(Into::into);
    }
    let body = world.file(&text)?;
    placeholders::resolve(body.as_str().unwrap_or_default(), world).map_err(Into::into)
}
