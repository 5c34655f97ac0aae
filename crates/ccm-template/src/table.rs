//! The functions that ccm adds to the template languages, each listed once.

use std::fmt;

use expr::FunctionError;
use govalue::Value;
use jet::Param;

use crate::resolver::Call;
use crate::{functions, network};

/// A template language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Expressions in placeholders.
    Expr,
    /// Jet templates.
    Jet,
    /// Go templates.
    Go,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

type Body = fn(&Call, &[Value]) -> Result<Value, FunctionError>;

/// A function of ccm's own.
#[derive(Clone, Copy, Debug)]
pub struct TemplateFunction {
    /// What it can be called by.
    pub names: &'static [&'static str],
    /// Its arguments as the documentation shows them.
    pub arguments: &'static str,
    /// What it gives, in Markdown.
    pub documentation: &'static str,
    /// The languages that have it.
    pub languages: &'static [Language],
    /// The least and the most arguments.
    pub(crate) arity: (usize, usize),
    /// What Jet converts every argument to.
    pub(crate) param: Param,
    /// The result is always a string.
    pub(crate) gives_string: bool,
    /// Hierarchical data has it too.
    pub(crate) is_in_data: bool,
    /// It reads files or asks a server, or may: the answer may change.
    pub(crate) asks_elsewhere: bool,
    pub(crate) body: Body,
}

const ALL: &[Language] = &[Language::Expr, Language::Jet, Language::Go];

const fn function(
    names: &'static [&'static str],
    (least, most): (usize, usize),
    arguments: &'static str,
    documentation: &'static str,
    body: Body,
) -> TemplateFunction {
    TemplateFunction {
        names,
        arguments,
        documentation,
        languages: ALL,
        arity: (least, most),
        param: Param::Any,
        gives_string: false,
        is_in_data: false,
        asks_elsewhere: true,
        body,
    }
}

/// All of them, as the documentation lists them.
pub const FUNCTIONS: [TemplateFunction; 7] = [
    TemplateFunction {
        is_in_data: true,
        asks_elsewhere: false,
        ..function(
            &["lookup"],
            (1, 2),
            "key[, default]",
            "GJSON path over `{\"facts\": …, \"data\": …, \"environ\": …}`; a missing key without \
             default is an error. An empty variable gives the default too",
            functions::lookup,
        )
    },
    function(
        &["readFile", "file"],
        (1, 1),
        "path",
        "Content of a file, relative to the manifest",
        functions::read_file,
    ),
    TemplateFunction {
        languages: &[Language::Expr, Language::Jet],
        ..function(
            &["template"],
            (1, 2),
            "x[, data]",
            "Content of the file `x` if it ends in `.templ`, otherwise `x` itself, with its \
             placeholders resolved; `data` replaces `Data` in it",
            functions::template,
        )
    },
    TemplateFunction {
        languages: &[Language::Expr, Language::Go],
        ..function(
            &["jet"],
            (1, 4),
            "body[, left, right][, data]",
            "Rendered Jet template; a body that ends in `.jet` names a file; `data` replaces \
             `data` in it",
            functions::jet,
        )
    },
    TemplateFunction {
        param: Param::String,
        ..function(
            &["registrations"],
            (4, 4),
            "cluster, protocol, service, address",
            "The [registered services](register-services.md) that match; `*` matches anything. \
             `PrometheusFileSD()` turns the list into a target file for Prometheus",
            network::registrations,
        )
    },
    TemplateFunction {
        param: Param::String,
        ..function(
            &["kvGet"],
            (2, 2),
            "bucket, key",
            "The value of a key in [NATS](nats.md)",
            network::kv_get,
        )
    },
    TemplateFunction {
        languages: &[Language::Expr],
        gives_string: true,
        asks_elsewhere: false,
        ..function(
            &["shellQuote"],
            (1, 1),
            "value",
            "The value as one word of a POSIX shell, in single quotes where it needs them",
            functions::shell_quote,
        )
    },
];

/// The functions of a language, by each of their names.
pub(crate) fn of(
    language: Language,
) -> impl Iterator<Item = (&'static str, &'static TemplateFunction)> {
    let functions = const { &FUNCTIONS }.iter();
    functions
        .filter(move |function| function.languages.contains(&language))
        .flat_map(|function| function.names.iter().map(move |name| (*name, function)))
}

impl TemplateFunction {
    /// Refuses a wrong number of arguments, for languages that pass on any.
    pub(crate) fn call(&self, call: &Call, args: &[Value]) -> Result<Value, FunctionError> {
        let (least, most) = self.arity;
        if (least..=most).contains(&args.len()) {
            return (self.body)(call, args);
        }
        let takes = match most {
            1 => "1 argument".to_owned(),
            _ if least == most => format!("{least} arguments"),
            _ => format!("{least} to {most} arguments"),
        };
        Err(format!("takes {takes} ({}), not {}", self.arguments, args.len()).into())
    }
}
