//! Whatever is thrown at it, the engine answers: it neither panics nor hangs,
//! and what it writes stays within bounds.

use govalue::{Map, Value};
use jet::{Limits, MemoryLoader, Set, Variables};
use proptest::prelude::*;

const LIMITS: Limits = Limits { depth: 60, steps: 20_000, output: 20_000 };

/// Parses and renders, with the text itself to load as well.
fn run(text: &str, left: &str, right: &str) -> Option<String> {
    let loader = MemoryLoader::from_iter([("self", text), ("leaf", "leaf")]);
    let set = Set::new().with_delimiters(left, right).with_limits(LIMITS).with_loader(loader);
    let inner = Map::from_iter([("k", Value::from(1)), ("n", Value::Nil)]);
    let list = Value::array([3.into(), "two".into(), 1.5.into(), inner.clone().into()]);
    let data = Map::from_iter([("list", list), ("map", inner.into()), ("s", "héllo".into())]);
    let mut variables = Variables::new();
    variables.set("data", data.clone()).set("s", "text").set("i", 7).set("f", 0.5);
    let template = set.parse("test", text).map_err(|error| check(&error)).ok()?;
    let rendered = set.render(&template, &variables, &data.into());
    let rendered = rendered.map_err(|error| check(&error)).ok()?;
    assert!(rendered.len() <= LIMITS.output);
    Some(rendered.to_string())
}

/// Errors can always be shown, and point into the text.
fn check(error: &jet::Error) {
    assert!(!error.to_string().is_empty());
    let excerpt = error.excerpt();
    assert!(excerpt.line() >= 1 && excerpt.column() >= 1);
    assert!(excerpt.text().is_none_or(|text| excerpt.column() <= text.chars().count() + 2));
}

/// Pieces that make near-valid templates when strung together.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "[[ ", " ]]", "[[- ", " -]]", "{*", "*}", "if ", "else", "else if ", "end", "range ", "try",
    "catch", "catch e", "block b() ", "block b(x=1) ", "yield b() ", "yield content", "content",
    "include ", "import ", "extends ", "return ", "\"self\"", "\"leaf\"", "nil", "true", "not ",
    "and ", "or ", "data", "data.list", "data.map", ".list", ".", ".k", "[0]", "[1:2]", "[\"k\"]",
    "s", "i", "f", "x", "e", "x := ", "x = ", "data.map.z = ", "_", ", ", "; ", "1", "2.5",
    "1e300", "-3", "'a'", "\"t\"", "`r`", " + ", " - ", " * ", " / ", " % ", " == ", " != ",
    " < ", " >= ", " && ", " || ", "!", " ? ", " : ", " | ", "(", ")", "upper", "len", "slice(",
    "map(", "isset(", "ints(", "repeat(", "replace(", "split(", "json(", "writeJson", "dump(",
    "exec(", "raw: ", "safeHtml: ", "includeIfExists(", "\n", " text ", "é",
];

/// Whole statements, which nest properly.
fn template(depth: u32) -> BoxedStrategy<String> {
    let expression = prop_oneof![
        Just("data.list"),
        Just("data.map"),
        Just("i + f"),
        Just("s + data.list"),
        Just("."),
        Just("x"),
        Just("1 / i"),
        Just("slice(i, s, data.map)"),
        Just("ints(0, 5)"),
        Just("data.s[1:3]"),
        Just("isset(x) ? x : s"),
        Just("data.list[i]"),
        Just("exec(\"self\")"),
        Just("map(\"a\", data.list)"),
        Just("repeat(s, 30)"),
        Just("split(data.s, \"\")"),
    ];
    let leaf = prop_oneof![
        Just(" text ".to_owned()),
        expression.clone().prop_map(|e| format!("[[ {e} ]]")),
        expression.clone().prop_map(|e| format!("[[ x := {e} ]]")),
        expression.clone().prop_map(|e| format!("[[ x = {e} ]]")),
        expression.clone().prop_map(|e| format!("[[ data.map.z = {e} ]]")),
        expression.clone().prop_map(|e| format!("[[ {e} | json ]]")),
        Just("[[ yield b() ]]".to_owned()),
        Just("[[ yield content ]]".to_owned()),
        Just("[[ include \"self\" ]]".to_owned()),
    ];
    leaf.prop_recursive(depth, 24, 4, move |inner| {
        let body = proptest::collection::vec(inner, 0..4).prop_map(|parts| parts.concat());
        let both = (expression.clone(), body);
        prop_oneof![
            both.clone().prop_map(|(e, b)| format!("[[ if {e} ]]{b}[[ else ]]{b}[[ end ]]")),
            both.clone().prop_map(|(e, b)| format!("[[ range {e} ]]{b}[[ end ]]")),
            both.clone().prop_map(|(e, b)| format!("[[ range k, x := {e} ]]{b}[[ end ]]")),
            both.clone().prop_map(|(_, b)| format!("[[ try ]]{b}[[ catch e ]][[ e ]][[ end ]]")),
            both.clone().prop_map(|(e, b)| format!("[[ block b(x=1) {e} ]]{b}[[ end ]]")),
            both.prop_map(|(e, b)| format!("[[ yield b() {e} content ]]{b}[[ end ]]")),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        run(&text, "[[", "]]");
        run(&format!("[[{text}]]"), "[[", "]]");
    }

    #[test]
    fn any_delimiters_are_answered(text in "\\PC{0,40}", left in "\\PC{0,3}", right in "\\PC{0,3}") {
        run(&text, &left, &right);
        run(&format!("{left} data.s {right}{text}"), &left, &right);
    }

    #[test]
    fn any_row_of_pieces_is_answered(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40)
    ) {
        run(&pieces.concat(), "[[", "]]");
        run(&format!("[[ {} ]]", pieces.concat()), "[[", "]]");
    }

    #[test]
    fn any_statement_is_answered(text in template(5)) {
        run(&text, "[[", "]]");
    }

    #[test]
    fn text_is_copied(text in "[^\\[]{0,60}") {
        let want = if text.trim().is_empty() { "" } else { &text };
        prop_assert_eq!(run(&text, "[[", "]]"), Some(want.to_owned()));
    }

    #[test]
    fn integers_print_as_they_are(number in any::<i64>()) {
        let set = Set::new();
        let template = set.parse("t", "{{ n }} {{ n + 0 == n }} {{ n - m }}").unwrap();
        let mut variables = Variables::new();
        variables.set("n", number).set("m", number);
        let text = set.render(&template, &variables, &Value::Nil).unwrap();
        let words: Vec<_> = text.to_string().split(' ').map(str::to_owned).collect();
        prop_assert_eq!((&words[0], words[2].as_str()), (&number.to_string(), "0"));
    }
}
