//! `snakecase`, `kebabcase` and `camelcase`: words found in names.

use super::strings::{lower, upper};
use crate::functions::Type::String;
use crate::functions::{Arguments, Context, Native, Outcome};

pub(super) const FUNCTIONS: &[Native] = &[
    Native::new("camelcase", &[String], camel),
    Native::new("kebabcase", &[String], |context, a| lowered(context, a, '-')),
    Native::new("snakecase", &[String], |context, a| lowered(context, a, '_')),
];

fn is_connector(c: char) -> bool {
    matches!(c, '-' | '_') || c.is_whitespace()
}

/// Letters of scripts with words; ideographs are not.
fn is_letter(c: char) -> bool {
    c.is_alphabetic()
        && !matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn is_punctuation(c: char) -> bool {
    if !c.is_ascii() {
        return matches!(
            c,
            '\u{a1}' | '\u{a7}' | '\u{ab}' | '\u{b6}' | '\u{b7}' | '\u{bb}' | '\u{bf}'
                | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}'
                | '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{ff01}'..='\u{ff0f}'
        );
    }
    c.is_ascii_punctuation() && !matches!(c, '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~')
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Connectors,
    Punctuation,
    /// Starts with an upper case letter.
    Upper,
    /// Lower case letters.
    Lower,
    Number,
    Other,
}

fn kind(c: char) -> Word {
    match c {
        _ if is_connector(c) => Word::Connectors,
        _ if is_punctuation(c) => Word::Punctuation,
        _ if c.is_uppercase() => Word::Upper,
        _ if is_letter(c) => Word::Lower,
        _ if c.is_numeric() => Word::Number,
        _ => Word::Other,
    }
}

/// The pieces of a name: `HTTPStatus20x` is `HTTP`, `Status`, `20` and `x`.
fn words(name: &str) -> Vec<(Word, std::string::String)> {
    let chars: Vec<char> = name.chars().collect();
    let mut found = Vec::new();
    let mut start = 0;
    while start < chars.len() {
        let first = kind(chars[start]);
        let run = |from: usize, wanted: Word| {
            chars[from..].iter().take_while(|c| kind(**c) == wanted).count()
        };
        let mut length = run(start, first);
        if first == Word::Upper {
            let lower = run(start + length, Word::Lower);
            match (length, lower) {
                // The last capital of many starts the next word.
                (2.., 1..) => length -= 1,
                _ => length += lower,
            }
        }
        found.push((first, chars[start..start + length].iter().collect()));
        start += length;
    }
    found
}

/// Words in lower case with a connector between them. A number sticks to the
/// word before it (`bld4_floor`), unless lower case letters follow: then these
/// belong to the number (`http_2xx`).
fn lowered(context: &mut Context<'_>, arguments: &Arguments<'_>, connector: char) -> Outcome {
    let words = words(&arguments.text(0));
    let mut out = std::string::String::new();
    let mut index = 0;
    while let Some((word, text)) = words.get(index) {
        let next = words.get(index + 1).map(|(word, _)| *word);
        let after = words.get(index + 2).map(|(word, _)| *word);
        index += 1;
        match word {
            Word::Connectors => out.extend(text.chars().map(|_| connector)),
            _ => out.extend(text.chars().map(lower)),
        }
        let mut starts_word = next;
        match (word, next, after) {
            (Word::Connectors | Word::Punctuation, ..) | (_, None, _) => continue,
            (Word::Number, ..) => {
                index = with_number(&words, index, &mut out);
                starts_word = words.get(index).map(|(word, _)| *word);
            }
            (_, Some(Word::Number), Some(Word::Lower)) => {
                out.push(connector);
                index = with_number(&words, index, &mut out);
                starts_word = words.get(index).map(|(word, _)| *word);
            }
            (_, Some(Word::Number), _) => {
                out.push_str(&words[index].1);
                index += 1;
                starts_word = after;
            }
            _ => {}
        }
        if !matches!(starts_word, None | Some(Word::Connectors | Word::Punctuation)) {
            out.push(connector);
        }
    }
    context.budget.spend_bytes(out.len())?;
    Ok(out.into())
}

/// Numbers and the lower case letters among them, which make one word.
fn with_number(
    words: &[(Word, std::string::String)],
    mut index: usize,
    out: &mut std::string::String,
) -> usize {
    while let Some((Word::Number | Word::Lower, text)) = words.get(index) {
        out.push_str(text);
        index += 1;
    }
    index
}

/// Connectors go and the letter after them is upper case; doubled and outer
/// ones stay. A word all in capitals loses them.
fn camel(context: &mut Context<'_>, arguments: &Arguments<'_>) -> Outcome {
    let name = arguments.text(0);
    let mut out = std::string::String::new();
    let body = name.trim_start_matches(is_connector);
    out.push_str(&name[..name.len() - body.len()]);
    let mut previous = None;
    let mut capitals = false;
    for c in body.chars() {
        let shown = match previous {
            None => {
                capitals = c.is_uppercase();
                upper(c)
            }
            Some(before) if is_connector(before) => {
                if is_connector(c) {
                    out.push(before);
                } else {
                    capitals = c.is_uppercase();
                }
                upper(c)
            }
            Some(_) if capitals && c.is_uppercase() => lower(c),
            Some(_) => {
                capitals = false;
                c
            }
        };
        if !is_connector(c) {
            out.push(shown);
        }
        previous = Some(c);
    }
    out.extend(previous.filter(|c| is_connector(*c)));
    context.budget.spend_bytes(out.len())?;
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use crate::Engine;
    use govalue::Value;

    fn check(function: &str, cases: &[(&str, &str)]) {
        for (name, want) in cases {
            let got =
                Engine::new().render("t", &format!("{{{{ {function} {name:?} }}}}"), &Value::Nil);
            assert_eq!(got.unwrap(), *want, "{function} {name}");
        }
    }

    #[test]
    fn snakes() {
        check(
            "snakecase",
            &[
                ("FirstName", "first_name"),
                ("HTTPServer", "http_server"),
                ("NoHTTPS", "no_https"),
                ("GO PATH", "go_path"),
                ("GO-PATH", "go_path"),
                ("http2xx", "http_2xx"),
                ("HTTP20xOK", "http_20x_ok"),
                ("Duration2m3s", "duration_2m3s"),
                ("Bld4Floor3rd", "bld4_floor_3rd"),
                ("a1B2c", "a1_b_2c"),
                ("_Complex__Case_", "_complex__case_"),
                ("already_snake", "already_snake"),
            ],
        );
    }

    #[test]
    fn camels() {
        check(
            "camelcase",
            &[
                ("some_words", "SomeWords"),
                ("http_server", "HttpServer"),
                ("_complex__case_", "_Complex_Case_"),
                ("GOLANG_IS_GREAT", "GolangIsGreat"),
                ("a-b c", "ABC"),
                ("", ""),
                ("_", "_"),
            ],
        );
    }
}
