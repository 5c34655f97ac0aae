//! Variables and functions of expressions.

use std::path::Path;

use expr::{Context, Environment, Function, FunctionError, Type};
use govalue::Value;

use crate::budget::{Nesting, size};
use crate::resolver::Call;
use crate::table::{self, Language};
use crate::{Error, Resolver, network};

/// What a template reads is text that people write.
const MAX_FILE: u64 = 16 << 20;

/// The names of all expressions.
pub(crate) fn environment(restricted: bool) -> Environment {
    let base = Environment::new()
        .type_name("github.com/choria-io/ccm/templates.Env")
        .member("Facts", Type::map(Type::Any))
        .member("Data", Type::map(Type::Any))
        .member("Environ", Type::map(Type::String))
        .member("WorkingDir", Type::String)
        .member("DefaultOnMissing", Type::Bool)
        .member("RestrictFunctions", Type::Bool);
    let functions = table::of(Language::Expr).filter(|(_, known)| !restricted || known.is_in_data);
    let environment = functions.fold(base, |environment, (name, known)| {
        let body = |context: Context<'_>, args: &[Value]| (known.body)(call(context)?, args);
        let function = Function::new(body).arity(known.arity.0, known.arity.1);
        let result = if known.gives_string { Type::String } else { Type::Any };
        environment.function(name, function.returns(result))
    });
    if restricted {
        return environment;
    }
    environment.list_method(
        network::FILE_SD,
        Function::new(|_, args| network::file_sd(args)).arity(1, 1).returns(Type::String),
    )
}

/// One word of a POSIX shell, whatever is in it.
pub(crate) fn shell_quote(_: &Call, args: &[Value]) -> Result<Value, FunctionError> {
    let value = args.first().unwrap_or(&Value::Nil);
    size(value).map_err(|error| nested(&error))?;
    let text = value.to_string();
    if text.contains('\0') {
        return Err("a word of a shell cannot contain a NUL character".into());
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return Ok(text.into());
    }
    Ok(format!("'{}'", text.replace('\'', r"'\''")).into())
}

fn call(context: Context<'_>) -> Result<&Call, FunctionError> {
    context.user().ok_or_else(|| "called from outside of a resolver".into())
}

/// An argument that must be a string of UTF-8.
pub(crate) fn string<'v>(value: &'v Value, what: &str) -> Result<&'v str, FunctionError> {
    match value {
        Value::String(text) => text.as_str().ok_or_else(|| format!("{what} is not UTF-8").into()),
        other => Err(format!("{what} must be a string, not {}", other.type_name()).into()),
    }
}

/// A value as people see it, with what is not UTF-8 replaced.
pub(crate) fn printed(value: &Value) -> String {
    match size(value) {
        Ok(_) => value.to_string(),
        Err(error) => error.to_string(),
    }
}

/// An error as the cause of another one.
pub(crate) fn nested(error: &Error) -> FunctionError {
    error.nested().into()
}

pub(crate) fn lookup(call: &Call, args: &[Value]) -> Result<Value, FunctionError> {
    let key = string(args.first().unwrap_or(&Value::Nil), "the key")?;
    let (resolver, default) = (&call.resolver, args.get(1));
    let found = resolver.lookup(key).map_err(|error| nested(&error))?;
    // An empty variable counts as one that is not set.
    let is_unset = |value: &Value| {
        value.as_str() == Some("") && ["environ.", "env."].iter().any(|at| key.starts_with(at))
    };
    let found = found.filter(|value| default.is_none_or(Value::is_nil) || !is_unset(value));
    match (found, default) {
        (Some(found), _) => Ok(found),
        (None, Some(default)) if !default.is_nil() => Ok(default.clone()),
        (None, _) if resolver.is_restricted() => Ok("".into()),
        (None, _) => Err(nested(&Error::Missing {
            key: key.to_owned(),
            suggestion: resolver.meant_key(key),
        })),
    }
}

pub(crate) fn read_file(call: &Call, args: &[Value]) -> Result<Value, FunctionError> {
    let path = string(args.first().unwrap_or(&Value::Nil), "the path")?;
    call.resolver
        .counted_file(path, call.nesting())
        .map(Value::from)
        .map_err(|error| nested(&error))
}

pub(crate) fn template(call: &Call, args: &[Value]) -> Result<Value, FunctionError> {
    let text = string(args.first().unwrap_or(&Value::Nil), "the template")?;
    let resolver = call.resolver.for_template(args.get(1))?;
    resolver.template(text, call.nesting()).map_err(|error| nested(&error))
}

/// A template, optional delimiters, and optional data in the place of the
/// manifest's.
pub(crate) fn jet(call: &Call, args: &[Value]) -> Result<Value, FunctionError> {
    let (body, delimiters, data) = match args {
        [body] => (body, None, None),
        [body, data] => (body, None, Some(data)),
        [body, left, right] => (body, Some((left, right)), None),
        [body, left, right, data] => (body, Some((left, right)), Some(data)),
        _ => return Err(format!("takes 1 to 4 arguments, not {}", args.len()).into()),
    };
    let delimiters = match delimiters {
        None => None,
        Some((left, right)) => {
            Some((string(left, "the left delimiter")?, string(right, "the right delimiter")?))
        }
    };
    let resolver = call.resolver.for_template(data)?;
    let rendered = resolver.nested_jet(string(body, "the body")?, delimiters, call.nesting());
    rendered.map(Value::from).map_err(|error| nested(&error))
}

impl Resolver {
    /// The text of a file, found from the resolver's directory. As root, a file
    /// that others can change gets a warning; with `CCM_STRICT=1` it is an error.
    pub fn read_file(&self, path: &str) -> Result<String, Error> {
        let path = self.directory().join(Path::new(path));
        if !self.may_read(&path) {
            let message = format!("{} is outside the directory", path.display());
            return Err(Error::File { message });
        }
        self.host().read_trusted(&path, MAX_FILE).map_err(|error| {
            let mut message = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                message.push_str(": ");
                message.push_str(&error.to_string());
                cause = error.source();
            }
            Error::File { message }
        })
    }

    pub(crate) fn counted_file(&self, path: &str, nesting: &Nesting) -> Result<String, Error> {
        nesting.call()?;
        let text = self.read_file(path)?;
        nesting.made(text.len())?;
        Ok(text)
    }

    /// What `template()` gives: the text, or the file that it names by its
    /// ending, resolved in typed mode.
    pub(crate) fn template(&self, text: &str, nesting: &Nesting) -> Result<Value, Error> {
        if names_jet(text) {
            return self.nested_jet(text, None, nesting).map(Value::from);
        }
        let deeper = nesting.deeper()?;
        let file;
        let text = if ending(text) == Some("templ") {
            file = self.counted_file(text, nesting)?;
            &file
        } else {
            text
        };
        let value = self.resolve_value(text, Some(&deeper))?;
        nesting.made(size(&value)?)?;
        Ok(value)
    }
}

/// Whether a text names a Jet template rather than being one.
pub(crate) fn names_jet(text: &str) -> bool {
    ending(text) == Some("jet")
}

/// Whether the argument of `template` names a file.
pub(crate) fn names_file(text: &str) -> bool {
    names_jet(text) || ending(text) == Some("templ")
}

fn ending(text: &str) -> Option<&str> {
    text.rsplit_once('.').map(|(_, ending)| ending)
}
