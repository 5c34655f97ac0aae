//! Patterns with `*`, `?` and `\`.

use crate::Error;
use crate::run::Run;

/// A step takes about as long as reading so many bytes.
const COST_OF_STEP: usize = 4;

/// Whether the whole text matches: `*` stands for any text, `?` for any one
/// character, `\` takes away the meaning of the character after it.
///
/// Only the last star seen is ever retried, so the time is at most the product
/// of both lengths, and paid for.
pub(crate) fn matches(run: &Run, text: &str, pattern: &str) -> Result<bool, Error> {
    let (mut text, mut pattern) = (text.chars(), pattern.chars());
    let (mut retry, mut steps) = (None, 0);
    loop {
        steps += 1;
        let mut rest = pattern.clone();
        let mut ahead = text.clone();
        let fits = match rest.next() {
            Some('*') => {
                retry = Some((rest.clone(), text.clone()));
                pattern = rest;
                continue;
            }
            None if ahead.next().is_none() => return Ok(true),
            None => false,
            Some('?') => ahead.next().is_some(),
            Some('\\') => ahead.next() == Some(rest.next().unwrap_or('\\')),
            Some(wanted) => ahead.next() == Some(wanted),
        };
        if fits {
            (text, pattern) = (ahead, rest);
            continue;
        }
        // Let the last star swallow one more character.
        let Some((after_star, swallowed)) = &mut retry else { return Ok(false) };
        if swallowed.next().is_none() {
            return Ok(false);
        }
        run.spend(steps * COST_OF_STEP)?;
        steps = 0;
        (text, pattern) = (swallowed.clone(), after_star.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (text, pattern, want) in [
            ("", "", true),
            ("", "*", true),
            ("", "?", false),
            ("abc", "abc", true),
            ("abc", "a?c", true),
            ("abc", "ab", false),
            ("ab", "abc", false),
            ("abc", "*", true),
            ("abc", "a*", true),
            ("abc", "*c", true),
            ("abc", "*b*", true),
            ("abc", "*d*", false),
            ("abcabd", "*ab?", true),
            ("日本", "??", true),
            ("日本", "?", false),
            ("a*c", r"a\*c", true),
            ("abc", r"a\*c", false),
            (r"a\", r"a\", true),
            ("mississippi", "m*iss*p*", true),
        ] {
            assert_eq!(matches(&Run::new(""), text, pattern), Ok(want), "{text} {pattern}");
        }
    }

    #[test]
    fn many_stars_are_quick() {
        let text = "a".repeat(2_000);
        let run = Run::new("");
        assert_eq!(matches(&run, &text, &format!("{}b", "*a".repeat(500))), Ok(false));

        let pattern = format!("*{}b", "a".repeat(1_000));
        let run = Run::with_fuel(1_000_000);
        assert_eq!(matches(&run, &text, &pattern), Err(Error::TooMuchWork));
    }
}
