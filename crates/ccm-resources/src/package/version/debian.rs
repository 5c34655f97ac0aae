//! Debian's versions, ordered as `dpkg --compare-versions` orders them.

use std::cmp::Ordering;
use std::fmt;

/// A version in its three parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// Above everything else; 0 when not given.
    pub epoch: i32,
    /// The version of the software.
    pub upstream: &'a str,
    /// The version of the package; empty when not given.
    pub revision: &'a str,
}

/// A text that is no version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    text: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unable to parse {:?} as a debian version identifier", self.text)
    }
}

impl std::error::Error for ParseError {}

impl<'a> Version<'a> {
    /// Reads `[epoch:]upstream[-revision]`, as strictly as packages are
    /// versioned: dpkg itself also takes blanks around it and more colons.
    pub fn parse(text: &'a str) -> Result<Self, ParseError> {
        let version = Self::split(text);
        let is_of = |part: &str, marks: &str| {
            part.chars().all(|c| c.is_ascii_alphanumeric() || marks.contains(c))
        };
        let is_valid = !version.upstream.is_empty()
            && is_of(version.upstream, ".+~-")
            && is_of(version.revision, ".+~")
            && !text.contains(|c: char| c.is_ascii_whitespace());
        if is_valid { Ok(version) } else { Err(ParseError { text: text.to_owned() }) }
    }

    /// Takes any text apart, the way dpkg does. What is no epoch stays in the
    /// upstream version, colon and all.
    fn split(text: &'a str) -> Self {
        let text = text.trim_ascii();
        let with_epoch = text
            .split_once(':')
            .filter(|(epoch, _)| epoch.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|(epoch, rest)| Some((epoch.parse().ok()?, rest)));
        let (epoch, rest) = with_epoch.unwrap_or((0, text));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        Self { epoch, upstream, revision }
    }
}

impl fmt::Display for Version<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.epoch > 0 {
            write!(f, "{}:", self.epoch)?;
        }
        f.write_str(self.upstream)?;
        if !self.revision.is_empty() {
            write!(f, "-{}", self.revision)?;
        }
        Ok(())
    }
}

/// How two versions are ordered. Any text has its place, as with dpkg.
pub fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (Version::split(a), Version::split(b));
    a.epoch
        .cmp(&b.epoch)
        .then_with(|| compare_part(a.upstream.as_bytes(), b.upstream.as_bytes()))
        .then_with(|| compare_part(a.revision.as_bytes(), b.revision.as_bytes()))
}

/// Compares what is not digits and what is, in turns, until both end.
fn compare_part(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (text_a, text_b) = (take(&mut a, false), take(&mut b, false));
        let longer = text_a.len().max(text_b.len());
        for at in 0..longer {
            let order = weight(text_a.get(at)).cmp(&weight(text_b.get(at)));
            if order.is_ne() {
                return order;
            }
        }
        let (digits_a, digits_b) = (take(&mut a, true), take(&mut b, true));
        let order = compare_digits(digits_a, digits_b);
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Takes what is digits, or is not, off the front.
fn take<'a>(from: &mut &'a [u8], digits: bool) -> &'a [u8] {
    let end = from.iter().position(|byte| byte.is_ascii_digit() != digits);
    let (taken, rest) = from.split_at(end.unwrap_or(from.len()));
    *from = rest;
    taken
}

/// A tilde comes before the end, the end before letters, letters before the
/// rest.
fn weight(byte: Option<&u8>) -> u16 {
    match byte {
        Some(b'~') => 0,
        None => 1,
        Some(letter) if letter.is_ascii_alphabetic() => u16::from(*letter) + 2,
        Some(other) => u16::from(*other) + 0x102,
    }
}

/// Numbers of any length.
fn compare_digits(a: &[u8], b: &[u8]) -> Ordering {
    let significant = |digits: &[u8]| digits.iter().skip_while(|&&d| d == b'0').count();
    let (a, b) = (&a[a.len() - significant(a)..], &b[b.len() - significant(b)..]);
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_design() {
        for (a, b, order) in [
            ("1.0", "2.0", Ordering::Less),
            ("1:1.0", "2.0", Ordering::Greater),
            ("1.0~alpha", "1.0", Ordering::Less),
            ("1.0~~", "1.0~", Ordering::Less),
            ("1.0~alpha", "1.0~beta", Ordering::Less),
            ("1.0.1", "1.0.2", Ordering::Less),
            ("1.0-1", "1.0-2", Ordering::Less),
            ("1.0a", "1.0+", Ordering::Less),
            ("9", "13", Ordering::Less),
            ("1.0", "1.0-0", Ordering::Equal),
        ] {
            assert_eq!(compare(a, b), order, "{a} and {b}");
        }
    }

    proptest! {
        #[test]
        fn order_is_antisymmetric_and_transitive(
            a in "([0-2]:)?[0-2a-b.+~-]{0,6}",
            b in "([0-2]:)?[0-2a-b.+~-]{0,6}",
            c in "([0-2]:)?[0-2a-b.+~-]{0,6}",
        ) {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            prop_assert_eq!(compare(&a, &a), Ordering::Equal);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
                let is_equal = compare(&a, &b).is_eq() && compare(&b, &c).is_eq();
                prop_assert_eq!(compare(&a, &c).is_eq(), is_equal);
            }
        }

        #[test]
        fn what_is_parsed_prints_as_its_equal(text in "([0-9]{1,3}:)?[0-9a-z.+~-]{1,12}[0-9]") {
            if let Ok(version) = Version::parse(&text) {
                prop_assert_eq!(compare(&version.to_string(), &text), Ordering::Equal);
            }
        }

        #[test]
        fn no_text_is_too_odd(a in ".*", b in ".*") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
        }
    }
}
