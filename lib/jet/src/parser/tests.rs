use super::*;

fn parsed(text: &str) -> Result<Parsed, Error> {
    let source = Arc::new(Source { name: "t".into(), text: text.into() });
    let delimiters = Delimiters { left: "[[".into(), right: "]]".into() };
    parse(&source, &delimiters)
}

#[test]
fn what_is_not_the_language() {
    for text in [
        "[[ ]]",
        "[[ 1 2 ]]",
        "[[ 1, 2 ]]",
        "[[ x, y := 1 ]]",
        "[[ x := 1, 2 ]]",
        "[[ m[\"k\"] = 1 ]]",
        "[[ m.k := 1 ]]",
        "[[ x := 1; ]]",
        "[[ x := 1 | upper ]]",
        "[[ a | 5 ]]",
        "[[ f: g: 1 ]]",
        "[[ a | f(_, _) ]]",
        "[[ a[1:2][0] ]]",
        "[[ \"abc\"[0] ]]",
        "[[ \"abc\".x ]]",
        "[[ true ? 1 ]]",
        "[[ if true ]]",
        "[[ if true ]][[ catch ]][[ end ]]",
        "[[ range a, b, c := x ]][[ end ]]",
        "[[ end ]]",
        "[[ block () ]][[ end ]]",
        "[[ block content() ]][[ end ]]",
        "[[ yield b ]]",
        "[[ include ]]",
        "x[[ import \"a\" ]]",
        "[[ extends \"a\" ]][[ extends \"b\" ]]",
        "[[ import \"a\" ]][[ extends \"b\" ]]",
        "[[ extends x ]]",
        "[[ msg ]]",
        "[[ return ]]",
    ] {
        assert!(parsed(text).is_err(), "{text}");
    }
}

#[test]
fn leading_blanks_are_dropped_with_the_head() {
    let found = parsed(" [[ extends \"a\" ]]\n[[ import \"b\" ]] x").unwrap();
    assert_eq!(found.extends.unwrap().0, "a");
    assert_eq!(found.imports[0].0, "b");
    assert_eq!(found.root.0.len(), 1);
    assert!(parsed(" \n ").unwrap().root.0.is_empty());
}

#[test]
fn nesting_is_bounded() {
    for (open, middle, close) in
        [("[[ if x ]]", "", "[[ end ]]"), ("[[ block b() ]]", "", "[[ end ]]")]
    {
        let text = format!("{}{middle}{}", open.repeat(50_000), close.repeat(50_000));
        assert!(parsed(&text).is_err());
    }
    for (open, close) in [("(", ")"), ("!", ""), ("f(", ")"), ("x[", "]"), ("a ? b : ", "")] {
        let text = format!("[[ {}1{} ]]", open.repeat(50_000), close.repeat(50_000));
        assert!(parsed(&text).is_err(), "{open}");
    }
    for long in ["(0)", "[0]", "[0].x"] {
        assert!(parsed(&format!("[[ f{} ]]", long.repeat(50_000))).is_err(), "{long}");
    }
}

#[test]
fn long_rows_are_not_deep() {
    for row in [" + 1", ".x", " | f", " && a", " == 1"] {
        assert!(parsed(&format!("[[ a{} ]]", row.repeat(20_000))).is_ok(), "{row}");
    }
    let text = format!("[[ if a ]]{}[[ end ]]", "[[ else if b ]]".repeat(20_000));
    assert!(parsed(&text).is_ok());
}
