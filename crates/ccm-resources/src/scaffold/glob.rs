//! Patterns for file names.

/// A pattern: `*` for any characters, `?` for one, `[a-z]` and `[^a-z]` for one
/// of a class, a backslash before what is meant as it stands.
#[derive(Clone, Debug)]
pub(super) struct Glob(Vec<Token>);

#[derive(Clone, Debug)]
enum Token {
    Any,
    One,
    Literal(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Literal(literal) => *literal == c,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|&(low, high)| (low..=high).contains(&c)) != *negated
            }
        }
    }
}

impl Glob {
    /// Reads a pattern; what is wrong with it is said in words.
    pub(super) fn parse(pattern: &str) -> Result<Self, &'static str> {
        let mut tokens = Vec::new();
        let mut rest = pattern.chars();
        while let Some(c) = rest.next() {
            tokens.push(match c {
                '*' if matches!(tokens.last(), Some(Token::Any)) => continue,
                '*' => Token::Any,
                '?' => Token::One,
                '[' => class(&mut rest)?,
                '\\' => Token::Literal(rest.next().ok_or("nothing follows the backslash")?),
                c => Token::Literal(c),
            });
        }
        Ok(Self(tokens))
    }

    /// Whether the whole name is of this pattern.
    pub(super) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut token, mut at) = (0, 0);
        // Where to go on when a later token fails: one character more for the
        // last `*`.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            match (self.0.get(token), name.get(at)) {
                (None, None) => return true,
                (Some(Token::Any), _) => {
                    retry = Some((token + 1, at));
                    token += 1;
                    continue;
                }
                (Some(wanted), Some(&c)) if wanted.takes(c) => {
                    token += 1;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            match &mut retry {
                Some((next, from)) if *from < name.len() => {
                    *from += 1;
                    (token, at) = (*next, *from);
                }
                _ => return false,
            }
        }
    }
}

/// What stands between `[` and `]`.
fn class(rest: &mut std::str::Chars<'_>) -> Result<Token, &'static str> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        if rest.as_str().starts_with(']') && !ranges.is_empty() {
            rest.next();
            return Ok(Token::Class { negated, ranges });
        }
        let low = member(rest)?;
        let is_range = rest.as_str().starts_with('-');
        if is_range {
            rest.next();
        }
        let high = if is_range { member(rest)? } else { low };
        ranges.push((low, high));
    }
}

/// One character of a class.
fn member(rest: &mut std::str::Chars<'_>) -> Result<char, &'static str> {
    const OPEN: &str = "a `[` is not closed";
    match rest.next().ok_or(OPEN)? {
        '-' | ']' => Err("`-` and `]` need a backslash inside of `[…]`"),
        '\\' => rest.next().ok_or(OPEN),
        c => Ok(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, wanted) in [
            ("*.go", "main.go", true),
            ("*.go", "main.gox", false),
            ("*.go", ".go", true),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
            ("?.txt", "a.txt", true),
            ("?.txt", "ab.txt", false),
            ("[ab].txt", "b.txt", true),
            ("[^ab].txt", "b.txt", false),
            ("[a-cx]*", "c1", true),
            ("[a-cx]*", "d1", false),
            ("a*b*c", "a--b--b-c", true),
            ("a*b*c", "a--c--b", false),
            ("**x", "aax", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("[\\]]", "]", true),
            ("é*", "éa", true),
            ("sub/*.txt", "b.txt", false),
            ("{a,b}", "a", false),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().matches(name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn wrong_patterns_are_told() {
        for pattern in ["[", "[]", "[]a]", "[a", "[a-", "[a-]", "[-a]", "\\", "[^]", "[\\"] {
            assert!(Glob::parse(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let glob = Glob::parse(&"*a".repeat(50)).unwrap();
        assert!(!glob.matches(&format!("{}b", "a".repeat(5000))));
    }
}
