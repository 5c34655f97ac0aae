//! No input may panic, hang or exhaust the stack.

use expr::{Environment, ErrorKind, Function, Limits, Program, Type};
use govalue::{Map, Value};
use proptest::prelude::*;

fn environment() -> Environment {
    let mut limits = Limits::default();
    limits.steps = 200_000;
    Environment::new()
        .member("Data", Type::map(Type::Any))
        .member("Environ", Type::map(Type::String))
        .function("lookup", Function::new(|_, args| Ok(args.first().cloned().unwrap_or_default())))
        .limits(limits)
}

/// Compiles and runs; what matters is that both come back.
fn evaluate(source: &str) -> Result<Value, expr::Error> {
    let env = environment();
    let mut vars = env.vars();
    let list = Value::array([1.into(), 2.5.into(), "three".into(), Value::Nil, true.into()]);
    vars.set("Data", Map::from_iter([("list", list), ("n", 3.into()), ("s", "héllo".into())]));
    let result = Program::compile(source, &env).and_then(|program| program.run(&vars));
    if let Err(error) = &result {
        // Reports must be as robust as the rest.
        assert!(!error.snippet(source).to_string().is_empty());
        assert!(!error.snippet("").to_string().is_empty());
    }
    if let Ok(value) = &result {
        let _ = value.to_string();
    }
    result
}

/// Pieces that make up expressions, good and bad.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "1",
        "0",
        "-1",
        "2.5",
        "1e3",
        "9223372036854775807",
        "\"a\"",
        "'é'",
        "`r`",
        "b\"\\xff\"",
        "true",
        "false",
        "nil",
        "Data",
        "Data.list",
        "Data.n",
        "Data.s",
        "Environ.X",
        "$env",
        "#",
        "#acc",
        "#index",
        ".x",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ";",
        ":",
        "?",
        "?.",
        "??",
        ".",
        "..",
        "|",
        "+",
        "-",
        "*",
        "/",
        "%",
        "**",
        "^",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "and",
        "or",
        "not",
        "in",
        "not in",
        "matches",
        "contains",
        "startsWith",
        "let x =",
        "x",
        "if",
        "else",
        "map(",
        "filter(",
        "reduce(",
        "sortBy(",
        "groupBy(",
        "sum(",
        "count(",
        "find(",
        "len(",
        "string(",
        "toJSON(",
        "split(",
        "join(",
        "repeat(",
        "date(",
        "duration(",
        "now()",
        "get(",
        "max(",
        "uniq(",
        "flatten(",
        "concat(",
        "lookup(",
        "::",
        " ",
        "\n",
        "//",
        "/*",
        "*/",
        "\\",
        "~",
        "\u{feff}",
    ]);
    prop_oneof![9 => fixed.prop_map(str::to_owned), 1 => any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text_comes_back(source in any::<String>()) {
        let _ = evaluate(&source);
    }

    #[test]
    fn arbitrary_pieces_come_back(pieces in prop::collection::vec(piece(), 0..24)) {
        let _ = evaluate(&pieces.join(" "));
        let _ = evaluate(&pieces.concat());
    }

    #[test]
    fn arbitrary_arguments_come_back(
        name in prop::sample::select(vec![
            "abs", "bitshl", "ceil", "concat", "date", "duration", "first", "flatten", "float", "fromBase64", "fromJSON",
            "fromPairs", "get", "indexOf", "int", "join", "keys", "last", "len", "lower", "max", "mean", "median", "repeat",
            "replace", "reverse", "round", "sort", "split", "splitAfter", "string", "take", "timezone", "toBase64", "toJSON",
            "toPairs", "trim", "trimPrefix", "type", "uniq", "upper", "values",
        ]),
        args in prop::collection::vec(piece(), 0..4),
    ) {
        let _ = evaluate(&format!("{name}({})", args.join(", ")));
    }

    #[test]
    fn arbitrary_patterns_come_back(pattern in any::<String>(), text in any::<String>()) {
        let _ = evaluate(&format!("{} matches {}", govalue::quote(text.as_bytes()), govalue::quote(pattern.as_bytes())));
    }
}

fn budget(source: &str) {
    match evaluate(source) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::Budget, "{source}: {error}"),
        Ok(_) => panic!("{source} came to an end"),
    }
}

#[test]
fn runaway_expressions_stop() {
    budget("1..10000000");
    budget("map(1..1000, map(1..1000, #))");
    budget("count(1..100000, all(1..100000, # > 0))");
    budget("repeat('x', 100000000)");
    budget("repeat(repeat('x', 1000000), 1000000)");
    budget("reduce(1..100, #acc + #acc, 'x')");
    budget("reduce(1..100, [#acc, #acc], 0)");
    budget("reduce(1..100000, [#acc], 0)");
    budget("reduce(1..100, replace(#acc, 'x', 'xx'), 'x')");
    budget("reduce(1..100, concat(#acc, #acc), [1])");
    let doubling = (1..40)
        .map(|n| format!("let a{n} = [a{}, a{}]; ", n - 1, n - 1))
        .collect::<Vec<_>>()
        .concat();
    budget(&format!("let a0 = [1]; {doubling} string(a39)"));
    let deeper = (1..40)
        .map(|n| format!("let a{n} = {}a{}{}; ", "[".repeat(100), n - 1, "]".repeat(100)))
        .collect::<Vec<_>>()
        .concat();
    budget(&format!("let a0 = [1]; {deeper} len(a39)"));
    budget("uniq(map(1..100000, [#]))");
}

/// Half of what threads usually get is enough, even without optimisation.
#[test]
fn deep_expressions_fit_a_small_stack() {
    let depth = 140;
    let nested =
        |open: &str, inner: &str, close: &str| open.repeat(depth) + inner + &close.repeat(depth);
    let sources = [
        nested("(", "1", ")"),
        nested("[", "1", "]"),
        nested("-", "1", ""),
        nested("not ", "true", ""),
        nested("{a: ", "1", "}"),
        nested("true ? 1 : ", "1", ""),
        nested("map([1], ", "#", ")"),
        nested("len(string(", "1", "))")[..].to_owned(),
        "Data".to_owned() + &"?.a".repeat(depth),
        nested("if true { 1 } else ", "if true { 1 } else { 2 }", ""),
        vec!["1"; 4_000].join(" + "),
    ];
    let run = move || {
        for source in &sources {
            if let Err(error) = evaluate(source) {
                assert_ne!(error.kind(), ErrorKind::Syntax, "{error} in {source}");
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).expect("a thread");
    thread.join().expect("no expression is too deep");
}

#[test]
fn values_of_another_environment_are_refused() {
    let env = environment();
    let program = Program::compile("Data.n", &env).expect("compiles");
    assert!(program.run(&Environment::new().vars()).is_err());
    let other = Environment::new().member("Environ", Type::Any).member("Data", Type::Any);
    assert!(program.run(&other.vars()).is_err());
    let wider = environment().function("more", Function::new(|_, _| Ok(Value::Nil)));
    let mut vars = wider.vars();
    vars.set("Data", Map::from_iter([("n", 1)]));
    assert_eq!(program.run(&vars).expect("the members are the same"), Value::Int(1));
}
