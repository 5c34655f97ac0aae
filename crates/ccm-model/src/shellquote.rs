//! Splits a string into words as a shell does, without expansion, comments and
//! operators.

use std::borrow::Cow;

/// Why a text cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuoteError {
    /// A `'` without its partner.
    #[error("Unterminated single-quoted string")]
    SingleQuote,
    /// A `"` without its partner.
    #[error("Unterminated double-quoted string")]
    DoubleQuote,
    /// A `\` at the end.
    #[error("Unterminated backslash-escape")]
    Escape,
}

/// Splits a command line into words.
///
/// ```
/// use ccm_model::shellquote::split;
/// assert_eq!(split(r#"echo "it's" a\ b"#).unwrap(), ["echo", "it's", "a b"]);
/// assert!(split("echo 'oops").is_err());
/// ```
pub fn split(text: &str) -> Result<Vec<String>, QuoteError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => single_quoted(&mut chars, word.get_or_insert_default())?,
            '"' => double_quoted(&mut chars, word.get_or_insert_default())?,
            '\\' => match chars.next().ok_or(QuoteError::Escape)? {
                // A line that goes on: as if neither character were there.
                '\n' => {}
                escaped => word.get_or_insert_default().push(escaped),
            },
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The first thing in a command, outside of quotes, that only a shell understands:
/// an operator, a variable, a substitution or a pattern.
///
/// ```
/// use ccm_model::shellquote::shell_syntax;
///
/// assert_eq!(shell_syntax("ls | wc -l"), Some("|"));
/// assert_eq!(shell_syntax("echo $HOME"), Some("$"));
/// assert_eq!(shell_syntax("echo '$HOME' a\\|b 5>4"), None);
/// ```
pub fn shell_syntax(text: &str) -> Option<&str> {
    const OPERATORS: [&str; 11] = ["|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "|&"];
    let mut quote = None;
    let mut characters = text.char_indices();
    // Where the word begins, and whether any of it is quoted.
    let mut word: Option<(usize, bool)> = None;
    let is_operator = |word: Option<(usize, bool)>, end: usize| match word {
        Some((start, false)) => OPERATORS.contains(&&text[start..end]),
        _ => false,
    };
    while let Some((at, character)) = characters.next() {
        if quote.is_some() {
            // Double quotes keep variables alive in a shell.
            let is_variable =
                quote == Some('"') && character == '$' && begins_variable(&text[at..]);
            if is_variable || quote == Some('"') && character == '`' {
                return Some(&text[at..=at]);
            }
            if character == '\\' && quote == Some('"') {
                characters.next();
            } else if quote == Some(character) {
                quote = None;
            }
            continue;
        }
        match character {
            ' ' | '\t' | '\n' => {
                if is_operator(word, at) {
                    return word.map(|(start, _)| &text[start..at]);
                }
                word = None;
                continue;
            }
            '\'' | '"' => {
                quote = Some(character);
                word = Some((word.map_or(at, |(start, _)| start), true));
                continue;
            }
            '\\' => {
                characters.next();
                word = Some((word.map_or(at, |(start, _)| start), true));
                continue;
            }
            '$' if begins_variable(&text[at..]) => return Some("$"),
            '`' => return Some("`"),
            '*' => return Some("*"),
            _ => {}
        }
        word.get_or_insert((at, false));
        let ends_command = character == ';' && text[at + 1..].starts_with([' ', '\n']);
        if ends_command {
            return Some(";");
        }
    }
    if is_operator(word, text.len()) { word.map(|(start, _)| &text[start..]) } else { None }
}

/// Whether a `$` is followed by what makes it a variable or a substitution.
fn begins_variable(text: &str) -> bool {
    let next = text.chars().nth(1);
    next.is_some_and(|next| next.is_ascii_alphabetic() || "_{(".contains(next))
}

fn single_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), QuoteError> {
    loop {
        match chars.next().ok_or(QuoteError::SingleQuote)? {
            '\'' => return Ok(()),
            c => word.push(c),
        }
    }
}

fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), QuoteError> {
    loop {
        match chars.next().ok_or(QuoteError::DoubleQuote)? {
            '"' => return Ok(()),
            '\\' => match chars.next().ok_or(QuoteError::DoubleQuote)? {
                '\n' => {}
                escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            c => word.push(c),
        }
    }
}

/// Joins words so that [`split`] and a shell read them back.
///
/// ```
/// assert_eq!(ccm_model::shellquote::join(["echo", "a b", "$x"]), r"echo 'a b' \$x");
/// ```
pub fn join<S: AsRef<str>>(words: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<String> =
        words.into_iter().map(|word| quote(word.as_ref()).into_owned()).collect();
    quoted.join(" ")
}

/// One word, quoted if it needs it.
pub fn quote(word: &str) -> Cow<'_, str> {
    const SPECIAL: &str = "\\'\"`${[|&;<>()*?!";
    if word.is_empty() {
        return Cow::Borrowed("''");
    }
    if word.contains([' ', '\t', '\n']) {
        return Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")));
    }
    if !word.starts_with('~') && !word.contains(|c| SPECIAL.contains(c)) {
        return Cow::Borrowed(word);
    }
    let mut quoted = String::with_capacity(word.len() + 4);
    for (at, c) in word.char_indices() {
        if SPECIAL.contains(c) || (at == 0 && c == '~') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    Cow::Owned(quoted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_table_of_the_documentation() {
        for (text, words) in [
            ("echo hello world", vec!["echo", "hello", "world"]),
            ("echo 'hello world'", vec!["echo", "hello world"]),
            ("echo \"hello world\"", vec!["echo", "hello world"]),
            ("echo hello\\ world", vec!["echo", "hello world"]),
            ("echo \"it's a test\"", vec!["echo", "it's a test"]),
            ("a # b", vec!["a", "#", "b"]),
            ("", vec![]),
        ] {
            assert_eq!(split(text).unwrap(), words, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_joined_splits_back(words in prop::collection::vec(".*", 0..5)) {
            // A backslash before a line break vanishes by definition.
            prop_assume!(words.iter().all(|word| !word.contains('\n')));
            prop_assert_eq!(split(&join(&words)).unwrap(), words);
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = split(&text);
        }
    }
}
