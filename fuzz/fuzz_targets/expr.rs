//! The Expr language: any text compiles and runs, or is an error.

#![no_main]

use std::sync::LazyLock;

use expr::{Environment, Limits, Program, Type};
use govalue::{Map, Value};
use libfuzzer_sys::fuzz_target;

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
    let mut limits = Limits::default();
    limits.steps = 100_000;
    Environment::new()
        .member("Data", Type::map(Type::Any))
        .member("Environ", Type::map(Type::String))
        .limits(limits)
});

fuzz_target!(|text: &str| {
    match Program::compile(text, &ENVIRONMENT) {
        Ok(program) => {
            let data = Map::from_iter([
                ("list", Value::array([Value::Int(3), Value::Float(0.5), Value::from("x")])),
                ("text", Value::from("żółw")),
                ("port", Value::Int(8080)),
            ]);
            let mut vars = ENVIRONMENT.vars();
            vars.set("Data", Value::from(data));
            if let Err(error) = program.run(&vars) {
                error.snippet(text);
            }
        }
        Err(error) => drop(error.snippet(text)),
    }
});
