//! Whatever the text and the data: no panic, no hang.

use gotemplate::{Engine, Limits};
use govalue::{Duration, Map, Str, Time, Value};
use proptest::prelude::*;

fn engine() -> Engine {
    // The slow hashes would make this test slow, and are tested elsewhere.
    let quiet = |_: &[Value]| Ok(Value::Nil);
    Engine::new()
        .limits(Limits { output: 1 << 16, steps: 20_000, depth: 200 })
        .function("bcrypt", quiet)
        .function("htpasswd", quiet)
        .function("derivePassword", quiet)
        .function("genPrivateKey", quiet)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Nil),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-9..99i64).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..8).prop_map(|bytes| Str::from(bytes).into()),
        prop::collection::vec(any::<u8>(), 0..8).prop_map(Value::bytes),
        any::<i64>().prop_map(|nanos| Duration(nanos).into()),
        Just(Time::zero().into()),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..4)
                .prop_map(|map| map.into_iter().collect::<Map>().into()),
        ]
    })
}

/// Pieces of templates, so that more of them parse than of random text.
fn piece() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = Engine::builtin_names().collect();
    prop_oneof![
        4 => prop::sample::select(names).prop_map(str::to_owned),
        4 => prop::sample::select(vec![
            "{{", "}}", "{{-", "-}}", " ", "|", "(", ")", ".", ".a", ".b.c", "$", "$x", ":=", "=",
            ",", "if", "else", "end", "range", "with", "template", "define", "block", "break",
            "continue", "nil", "true", "1", "-1", "0", "2.5", "1e9", "\"x\"", "\"t\"", "`%v`",
            "'a'", "\"2006-01-02\"", "\"[a\"", "\"(.)\"", "9223372036854775807", "{{/*", "*/}}",
        ])
        .prop_map(str::to_owned),
        1 => "\\PC{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,60}") {
        let _ = engine().render("t", &text, &Value::Nil);
        let _ = engine().render("t", &format!("{{{{{text}}}}}"), &Value::Nil);
    }

    #[test]
    fn any_soup_of_tokens(pieces in prop::collection::vec(piece(), 0..24), data in value()) {
        let _ = engine().render("t", &pieces.join(" "), &data);
        let _ = engine().render("t", &format!("{{{{ {} }}}}", pieces.join(" ")), &data);
    }

    #[test]
    fn any_function_of_any_values(
        name in prop::sample::select(Engine::builtin_names().collect::<Vec<_>>()),
        arguments in prop::collection::vec(value(), 0..5),
    ) {
        let operands: Vec<_> = (0..arguments.len()).map(|at| format!("(index $ {at})")).collect();
        let text = format!("{{{{ {name} {} }}}}", operands.join(" "));
        let _ = engine().render("t", &text, &Value::from(arguments));
    }

    #[test]
    fn any_function_of_what_it_may_take(
        name in prop::sample::select(Engine::builtin_names().collect::<Vec<_>>()),
        texts in prop::collection::vec("\\PC{0,9}", 4),
        numbers in prop::collection::vec(prop_oneof![any::<i64>(), -3..40i64], 4),
        shape in prop::collection::vec(0..4usize, 0..5),
    ) {
        let data = Value::array(texts.into_iter().map(Value::from).chain(numbers.into_iter().map(Value::from)));
        let operands: String = shape
            .iter()
            .enumerate()
            .map(|(at, shape)| match shape {
                0 => format!(" (index $ {})", at % 4),
                1 => format!(" (index $ {})", 4 + at % 4),
                2 => " $".to_owned(),
                _ => " (dict \"a\" 1 \"b\" (dict \"c\" $))".to_owned(),
            })
            .collect();
        let _ = engine().render("t", &format!("{{{{ {name}{operands} }}}}"), &data);
    }

    #[test]
    fn delimiters_may_be_any_text(left in "\\PC{0,3}", right in "\\PC{0,3}", inside in "\\PC{0,9}") {
        let engine = engine().delimiters(&left, &right);
        let _ = engine.render("t", &format!("a{left}{inside}{right}b"), &Value::Nil);
        let _ = engine.render("t", &format!("a{left}- .x -{right} b"), &Value::Nil);
    }
}

#[test]
fn templates_are_shared_between_threads() {
    let template =
        Engine::new().parse("t", "{{ $_ := set . \"n\" 1 }}{{ .n }}{{ .text }}").unwrap();
    let data = Value::from(Map::from_iter([("text", "x")]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(template.render(&data).unwrap(), "1x"));
        }
    });
    assert_eq!(data.get("n"), None, "the caller's data stays as it was");
}
