//! Variables and functions of expressions.

use std::path::Path;

use expr::{Context, Environment, Function, FunctionError, Type};
use govalue::Value;

use crate::budget::{Nesting, size};
use crate::resolver::Call;
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
        .member("RestrictFunctions", Type::Bool)
        .function("lookup", Function::new(lookup).arity(1, 2));
    if restricted {
        return base;
    }
    base.function("readFile", Function::new(read_file).arity(1, 1))
        .function("file", Function::new(read_file).arity(1, 1))
        .function("template", Function::new(template).arity(1, 2))
        .function("jet", Function::new(jet))
        .function("registrations", Function::new(registrations).arity(4, 4))
        .function("kvGet", Function::new(kv_get).arity(2, 2))
        .list_method(
            network::FILE_SD,
            Function::new(|_, args| network::file_sd(args)).arity(1, 1).returns(Type::String),
        )
}

fn registrations(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    network::registrations(&call(context)?.resolver, args)
}

fn kv_get(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    network::kv_get(&call(context)?.resolver, args)
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

fn lookup(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    let key = string(args.first().unwrap_or(&Value::Nil), "the key")?;
    find(&call(context)?.resolver, key, args.get(1))
}

/// What `lookup` gives in all languages.
pub(crate) fn find(
    resolver: &Resolver,
    key: &str,
    default: Option<&Value>,
) -> Result<Value, FunctionError> {
    match (resolver.lookup(key).map_err(|error| nested(&error))?, default) {
        (Some(found), _) => Ok(found),
        (None, Some(default)) if !default.is_nil() => Ok(default.clone()),
        (None, _) if resolver.is_restricted() => Ok("".into()),
        (None, _) => Err(nested(&Error::Missing {
            key: key.to_owned(),
            suggestion: resolver.meant_key(key),
        })),
    }
}

fn read_file(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    let path = string(args.first().unwrap_or(&Value::Nil), "the path")?;
    let call = call(context)?;
    call.resolver
        .counted_file(path, call.nesting())
        .map(Value::from)
        .map_err(|error| nested(&error))
}

fn template(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    let text = string(args.first().unwrap_or(&Value::Nil), "the template")?;
    let call = call(context)?;
    let resolver = call.resolver.for_template(args.get(1))?;
    resolver.template(text, call.nesting()).map_err(|error| nested(&error))
}

fn jet(context: Context<'_>, args: &[Value]) -> Result<Value, FunctionError> {
    let call = call(context)?;
    nested_jet(&call.resolver, args, call.nesting())
}

/// What `jet()` gives in all languages: a template, optional delimiters, and
/// optional data in the place of the manifest's.
pub(crate) fn nested_jet(
    resolver: &Resolver,
    args: &[Value],
    nesting: &Nesting,
) -> Result<Value, FunctionError> {
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
    let rendered =
        resolver.for_template(data)?.nested_jet(string(body, "the body")?, delimiters, nesting);
    rendered.map(Value::from).map_err(|error| nested(&error))
}

impl Resolver {
    /// The text of a file, found from the resolver's directory. As root, a file
    /// that others can change gets a warning; with `CCM_STRICT=1` it is an error.
    pub fn read_file(&self, path: &str) -> Result<String, Error> {
        let path = self.directory().join(Path::new(path));
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
