use super::*;

fn lex(text: &str) -> Result<Vec<String>, String> {
    let source = Arc::new(Source { name: "t".into(), text: text.into() });
    let delimiters = Delimiters { left: "[[".into(), right: "]]".into() };
    let tokens = tokens(&source, &delimiters).map_err(|error| error.message().to_owned())?;
    Ok(tokens
        .iter()
        .map(|token| text[token.span.start as usize..token.span.end as usize].to_owned())
        .collect())
}

fn numbers(text: &str) -> Option<f64> {
    let source = Arc::new(Source { name: "t".into(), text: format!("[[{text}]]") });
    let delimiters = Delimiters { left: "[[".into(), right: "]]".into() };
    match tokens(&source, &delimiters).ok()?[1].kind {
        TokenKind::Number(number) => Some(number),
        _ => None,
    }
}

#[test]
fn trimming_needs_the_space() {
    assert_eq!(lex("a [[- 1 -]] b").unwrap(), ["a", "[[- ", "1", " -]]", "b", ""]);
    assert_eq!(lex("a [[-1 ]] b").unwrap(), ["a ", "[[", "-1", "]]", " b", ""]);
    assert_eq!(lex("[[ 1  -]] \n\t b").unwrap(), ["[[", "1", " -]]", "b", ""]);
}

#[test]
fn comments_vanish_except_in_the_tail() {
    assert_eq!(lex("a{* x [[ 1 ]] *}b[[ 1 ]]").unwrap(), ["a", "b", "[[", "1", "]]", ""]);
    assert_eq!(lex("[[ 1 ]]{* x *}").unwrap(), ["[[", "1", "]]", "{* x *}", ""]);
    assert_eq!(lex("{* x *}").unwrap(), ["{* x *}", ""]);
    assert_eq!(lex("{* x *} [").unwrap(), [" [", ""]);
    assert!(lex("{* [[ 1 ]]").is_err());
}

#[test]
fn signs_stick_to_numbers_after_a_space() {
    assert_eq!(lex("[[5 -3]]").unwrap(), ["[[", "5", "-3", "]]", ""]);
    assert_eq!(lex("[[5-3]]").unwrap(), ["[[", "5", "-", "3", "]]", ""]);
    assert_eq!(lex("[[f(1)-3]]").unwrap(), ["[[", "f", "(", "1", ")", "-", "3", "]]", ""]);
}

#[test]
fn numbers_are_floats() {
    for (text, want) in [
        ("0", 0.0),
        ("+5", 5.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("017", 15.0),
        ("0x1F", 31.0),
        ("1e3", 1000.0),
        ("18446744073709551615", 18_446_744_073_709_551_615.0),
        ("'a'", 97.0),
        (r"'\n'", 10.0),
        (r"'\x41'", 65.0),
        ("'日'", 26085.0),
    ] {
        assert_eq!(numbers(text), Some(want), "{text}");
    }
    for text in ["0x", "089", "12a", "1_000", "0b11", "1e400", "18446744073709551616", "''", "'ab'"]
    {
        assert_eq!(numbers(text), None, "{text}");
    }
}

#[test]
fn strings_follow_go() {
    let source =
        Arc::new(Source { name: "t".into(), text: r#"[["\x41\u00e9\101\"" `\n`]]"#.into() });
    let delimiters = Delimiters { left: "[[".into(), right: "]]".into() };
    let tokens = tokens(&source, &delimiters).unwrap();
    assert_eq!(tokens[1].kind, TokenKind::Quoted("AéA\"".into()));
    assert_eq!(tokens[2].kind, TokenKind::Quoted("\\n".into()));
    for bad in [r#"[["\q"]]"#, "[[\"a\nb\"]]", "[[\"a]]", "[[`a]]", r#"[["\'"]]"#, r#"[["\xZZ"]]"#]
    {
        assert!(lex(bad).is_err(), "{bad}");
    }
}

#[test]
fn unknown_characters_are_refused() {
    for bad in ["[[ $ ]]", "[[ 1 & 2 ]]", "[[ a\"b\" ]]", "[[ a@ ]]", "[[ ) ]]", "[[ (1 ]]", "[[ 1"]
    {
        assert!(lex(bad).is_err(), "{bad}");
    }
}
