//! Generic versions, compared segment by segment.

use std::cmp::Ordering;

/// How two versions are ordered.
pub fn compare(a: &str, b: &str, ignore_trailing_zeroes: bool) -> Ordering {
    if ignore_trailing_zeroes {
        return compare(&without_trailing_zeroes(a), &without_trailing_zeroes(b), false);
    }
    for (a, b) in segments(a).zip(segments(b)) {
        if a == b {
            continue;
        }
        match (a, b) {
            ("-", _) => return Ordering::Less,
            (_, "-") => return Ordering::Greater,
            (".", _) => return Ordering::Less,
            (_, ".") => return Ordering::Greater,
            _ => {}
        }
        let is_numeric = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        if is_numeric(a) && is_numeric(b) {
            return if a.starts_with('0') || b.starts_with('0') {
                a.cmp(b)
            } else {
                number(a).cmp(&number(b))
            };
        }
        return a.to_uppercase().cmp(&b.to_uppercase());
    }
    a.cmp(b)
}

/// Hyphens and dots one by one, digits together, everything else together.
fn segments(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let kind = |c: char| (c.is_ascii_digit(), matches!(c, '-' | '.'));
        let first = rest.chars().next()?;
        let end = if kind(first).1 {
            1
        } else {
            rest.find(|c| kind(c) != kind(first)).unwrap_or(rest.len())
        };
        let (segment, behind) = rest.split_at(end);
        rest = behind;
        Some(segment)
    })
}

/// Numbers that are too large are all the same: the largest.
fn number(digits: &str) -> i64 {
    digits.parse().unwrap_or(i64::MAX)
}

/// Zeroes and dots before the first hyphen, or before the end, taken away.
fn without_trailing_zeroes(version: &str) -> String {
    let (front, back) = match version.find('-') {
        Some(at) => version.split_at(at),
        None => (version, ""),
    };
    format!("{}{back}", front.trim_end_matches(['.', '0']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_examples_of_the_design() {
        for (a, b, ignore, order) in [
            ("1.0", "2.0", false, Ordering::Less),
            ("1.10", "1.9", false, Ordering::Greater),
            ("1.0", "1.0.1", false, Ordering::Less),
            ("1.0-1", "1.0-2", false, Ordering::Less),
            ("1.0a", "1.0b", false, Ordering::Less),
            ("01", "1", false, Ordering::Less),
            ("1.0.0", "1.0", false, Ordering::Greater),
            ("1.0.0", "1.0", true, Ordering::Equal),
        ] {
            assert_eq!(compare(a, b, ignore), order, "{a} and {b}");
        }
        assert_eq!(without_trailing_zeroes("1.0.0-rc1"), "1-rc1");
        assert_eq!(without_trailing_zeroes("2.0.0"), "2");
    }

    proptest! {
        #[test]
        fn order_is_antisymmetric(a in ".*", b in ".*", ignore: bool) {
            prop_assert_eq!(compare(&a, &b, ignore), compare(&b, &a, ignore).reverse());
            prop_assert_eq!(compare(&a, &a, ignore), Ordering::Equal);
        }

        // Letters of one case and numbers that fit: where the rules see no
        // difference between segments that do differ, they look no further.
        #[test]
        fn order_is_transitive(
            a in "[0-2a-b.+_-]{0,6}",
            b in "[0-2a-b.+_-]{0,6}",
            c in "[0-2a-b.+_-]{0,6}",
        ) {
            let compare = |a: &str, b: &str| compare(a, b, false);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }
    }

    #[test]
    fn case_ends_the_comparison() {
        assert_eq!(compare("a1", "A2", false), Ordering::Equal);
        assert_eq!(compare("a1", "a2", false), Ordering::Less);
    }
}
