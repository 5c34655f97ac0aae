//! The [Expr](https://expr-lang.org) expression language: a parser with
//! positions, a type checker, a compiler and a fast evaluator.
//!
//! An [`Environment`] declares what expressions can see, a [`Program`] is an
//! expression compiled for it, and [`Vars`] are the values of one run.
//!
//! ```
//! use expr::{Environment, Function, Program, Type};
//! use govalue::{Map, Value};
//!
//! let env = Environment::new()
//!     .member("facts", Type::map(Type::Any))
//!     .function("double", Function::new(|_, args| {
//!         Ok(args[0].as_int().ok_or("double needs an integer")?.wrapping_mul(2).into())
//!     }).arity(1, 1).returns(Type::Int));
//!
//! let program = Program::compile("double(facts.cpus) > 8 ? 'large' : 'small'", &env)?;
//! let mut vars = env.vars();
//! vars.set("facts", Map::from_iter([("cpus", 6)]));
//! assert_eq!(program.run(&vars)?, Value::from("large"));
//!
//! // What cannot be right does not compile.
//! assert!(Program::compile("1 + 'a'", &env).is_err());
//! # Ok::<(), expr::Error>(())
//! ```
#![deny(missing_docs)]

mod ast;
mod builtins;
mod check;
mod compile;
mod environment;
mod error;
mod functions;
mod lexer;
mod methods;
mod parser;
mod program;
mod references;
mod types;
mod vm;

pub use builtins::names as function_names;
pub use environment::{Context, Environment, Function, FunctionError, Limits, Vars};
pub use error::{Error, ErrorKind, Snippet};
pub use program::Program;
pub use references::{FunctionCall, MemberPath, References, references};
pub use types::Type;

/// The examples of the README must work as well.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
