//! How fast compiled expressions run.
#![expect(clippy::expect_used, reason = "a benchmark that cannot start may stop")]

use expr::{Environment, Function, Program, Type};
use govalue::{Map, Value};

fn main() {
    divan::main();
}

fn environment() -> Environment {
    Environment::new()
        .member("Data", Type::map(Type::Any))
        .function("lookup", Function::new(|_, _| Ok(Value::Int(3))))
}

fn run(bencher: divan::Bencher<'_, '_>, source: &str) {
    let env = environment();
    let mut vars = env.vars();
    let list: Vec<Value> = (0..100).map(Value::Int).collect();
    vars.set(
        "Data",
        Map::from_iter([("port", Value::Int(8080)), ("list", list.into()), ("s", "hello".into())]),
    );
    let program = Program::compile(source, &env).expect("the benchmark compiles");
    bencher.bench(|| program.run(divan::black_box(&vars)));
}

#[divan::bench]
fn conditional(bencher: divan::Bencher<'_, '_>) {
    run(bencher, r#"lookup("data.a.b") == 3 ? "x" : "y""#);
}

#[divan::bench]
fn members(bencher: divan::Bencher<'_, '_>) {
    run(bencher, "Data.port > 1024 && Data.s == 'hello'");
}

#[divan::bench]
fn concatenation(bencher: divan::Bencher<'_, '_>) {
    run(bencher, r#"Data.s + "-" + string(Data.port)"#);
}

#[divan::bench]
fn predicates(bencher: divan::Bencher<'_, '_>) {
    run(bencher, "Data.list | filter(# % 2 == 0) | map(# * 2) | sum()");
}

#[divan::bench]
fn compile(bencher: divan::Bencher<'_, '_>) {
    let env = environment();
    bencher.bench(|| {
        Program::compile(divan::black_box(r#"lookup("data.a.b") == 3 ? "x" : "y""#), &env)
    });
}
