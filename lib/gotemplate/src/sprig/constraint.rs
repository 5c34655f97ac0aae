//! Constraints such as `>=1.2, <2 || ^3.1`.

use std::cmp::Ordering;

use govalue::semver::{Version, compare_prereleases};

/// Alternatives, each a list of constraints that must all hold.
#[derive(Debug)]
pub(crate) struct Constraints(Vec<Vec<Constraint>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterEqual,
    LessEqual,
    Tilde,
    Caret,
}

/// The longest ones first, so that a prefix does not hide them.
const OPERATORS: [(&str, Operator); 11] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterEqual),
    ("=>", Operator::GreaterEqual),
    ("<=", Operator::LessEqual),
    ("=<", Operator::LessEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::Equal),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

#[derive(Clone, Debug)]
struct Constraint {
    operator: Operator,
    version: Version,
    /// Some part is left out or a wildcard.
    open: bool,
    open_minor: bool,
    open_patch: bool,
}

impl Constraints {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let group = |group: &str| {
            Scanner { text: group, at: 0 }
                .group()
                .ok_or_else(|| format!("improper constraint: {text}"))
        };
        Ok(Self(text.split("||").map(group).collect::<Result<_, _>>()?))
    }

    pub(crate) fn allow(&self, version: &Version) -> bool {
        self.0.iter().any(|group| {
            // One prerelease among them, and all of them look at prereleases.
            let prereleases = group.iter().any(|one| !one.version.prerelease.is_empty());
            (prereleases || version.prerelease.is_empty())
                && group.iter().all(|one| one.allows(version))
        })
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Consumes what satisfies the test.
    fn take(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !test(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn blanks(&mut self) -> bool {
        !self.take(char::is_whitespace).is_empty()
    }

    fn accept(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn group(&mut self) -> Option<Vec<Constraint>> {
        let mut found = Vec::new();
        self.blanks();
        loop {
            self.one(&mut found)?;
            let apart = self.blanks();
            if self.rest().is_empty() {
                return Some(found);
            }
            let comma = self.accept(",");
            self.blanks();
            if !apart && !comma {
                return None;
            }
        }
    }

    /// One constraint, or a range `1.2 - 1.4`.
    fn one(&mut self, found: &mut Vec<Constraint>) -> Option<()> {
        let named = OPERATORS.iter().find(|(text, _)| self.rest().starts_with(text));
        let operator = named.map(|(text, operator)| {
            self.at += text.len();
            *operator
        });
        self.blanks();
        let low = self.version(operator.unwrap_or(Operator::Equal))?;
        let after = self.at;
        if self.blanks() && self.accept("-") && self.blanks() {
            if operator.is_some() {
                return None;
            }
            let high = self.version(Operator::LessEqual)?;
            found.push(Constraint { operator: Operator::GreaterEqual, ..low });
            found.push(high);
            return Some(());
        }
        self.at = after;
        found.push(low);
        Some(())
    }

    fn version(&mut self, operator: Operator) -> Option<Constraint> {
        self.accept("v");
        let mut parts: [&str; 3] = [""; 3];
        for (index, part) in parts.iter_mut().enumerate() {
            let before = self.at;
            if index > 0 && !self.accept(".") {
                break;
            }
            *part = self.take(|c| c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*'));
            if part.is_empty() {
                self.at = before;
                break;
            }
        }
        if parts[0].is_empty() {
            // Nothing at all means anything.
            return (self.text.trim().is_empty() && operator == Operator::Equal)
                .then(|| Constraint::any(operator));
        }
        let identifier = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let prerelease = if self.accept("-") { Some(self.take(identifier)) } else { None };
        let metadata = if self.accept("+") { Some(self.take(identifier)) } else { None };
        let open = |part: &str| matches!(part, "" | "x" | "X" | "*");
        let mut constraint = Constraint::any(operator);
        let mut numbers = ["0"; 3];
        match parts {
            [major, ..] if open(major) => {}
            [major, minor, _] if open(minor) => {
                numbers[0] = major;
                constraint.open_minor = true;
            }
            [major, minor, patch] if open(patch) => {
                (numbers[0], numbers[1]) = (major, minor);
                constraint.open_patch = true;
            }
            all => {
                numbers = all;
                constraint.open = false;
            }
        }
        let mut text = numbers.join(".");
        for (mark, part) in [('-', prerelease), ('+', metadata)] {
            if let Some(part) = part {
                text.push(mark);
                text.push_str(part);
            }
        }
        constraint.version = Version::parse(&text).ok()?;
        Some(constraint)
    }
}

impl Constraint {
    fn any(operator: Operator) -> Self {
        let version = Version::default();
        Self { operator, version, open: true, open_minor: false, open_patch: false }
    }

    fn allows(&self, version: &Version) -> bool {
        let own = &self.version;
        let order = version.cmp_precedence(own);
        let major = version.major.cmp(&own.major);
        let minor = version.minor.cmp(&own.minor);
        match self.operator {
            Operator::Equal if self.open => self.tilde(version, order),
            Operator::Equal => order.is_eq(),
            Operator::NotEqual => self.differs(version, order),
            Operator::Greater if !self.open => order.is_gt(),
            Operator::Greater => match major {
                Ordering::Greater => true,
                Ordering::Less => false,
                // 11.1 is not greater than 11, nor 11.1.1 than 11.1.
                Ordering::Equal if self.open_minor => false,
                Ordering::Equal if self.open_patch => minor.is_gt(),
                Ordering::Equal => order.is_gt(),
            },
            Operator::Less => order.is_lt(),
            Operator::GreaterEqual => order.is_ge(),
            Operator::LessEqual if !self.open => order.is_le(),
            Operator::LessEqual => {
                major.is_lt() || major.is_eq() && (minor.is_le() || self.open_minor)
            }
            Operator::Tilde => self.tilde(version, order),
            Operator::Caret => self.caret(version, order),
        }
    }

    fn differs(&self, version: &Version, order: Ordering) -> bool {
        let own = &self.version;
        if !self.open {
            return order.is_ne();
        }
        if own.major != version.major {
            return true;
        }
        if self.open_minor {
            return false;
        }
        if own.minor != version.minor {
            return true;
        }
        if self.open_patch {
            return compare_prereleases(&version.prerelease, &own.prerelease).is_ne();
        }
        order.is_ne()
    }

    /// The same minor version, from this one on; the same major one where the
    /// minor is open.
    fn tilde(&self, version: &Version, order: Ordering) -> bool {
        let own = &self.version;
        if order.is_lt() {
            return false;
        }
        let zero = (own.major, own.minor, own.patch) == (0, 0, 0);
        if zero && !self.open_minor && !self.open_patch {
            return true;
        }
        version.major == own.major && (version.minor == own.minor || self.open_minor)
    }

    /// Nothing left of the first number that is not zero may change.
    fn caret(&self, version: &Version, order: Ordering) -> bool {
        let own = &self.version;
        if order.is_lt() {
            return false;
        }
        if own.major > 0 || self.open_minor {
            return version.major == own.major;
        }
        if version.major > 0 {
            return false;
        }
        if own.minor > 0 || self.open_patch {
            return version.minor == own.minor;
        }
        version.minor == 0 && version.patch == own.patch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_constraints_allow() {
        for (constraint, version, want) in [
            ("1.2.3", "1.2.3", true),
            ("1.2.x", "1.2.9", true),
            ("1.x", "1.9.9", true),
            ("1", "2.0.0", false),
            ("", "9.9.9", true),
            ("*", "1.0.0-beta", false),
            (">= 1.2, < 3.0.0 || >= 4.2.3", "4.2.4", true),
            (">=1.2 <2", "1.9.0", true),
            ("1.2 - 1.4.5", "1.4.6", false),
            ("1.2 - 1.4", "1.4.6", true),
            (">11", "11.1.0", false),
            (">11.1", "11.2.1", true),
            ("!=1.2.x", "1.2.3", false),
            ("!=1.x", "2.0.0", true),
            ("~1.2.3", "1.2.9", true),
            ("~1.2.3", "1.3.0", false),
            ("~1", "1.9.9", true),
            ("~>1.2", "1.2.7", true),
            ("^0", "0.9.9", true),
            ("^0.0", "0.1.0", false),
            ("^1.2.x", "1.9.0", true),
            (">=1.0.0-0", "1.1.0-beta", true),
            (">=1.0.0-0, <2", "1.1.0-beta", true),
            ("=>1", "1.0.0", true),
            ("v1.2", "1.2.1", true),
        ] {
            let version = Version::parse(version).unwrap();
            let constraints = Constraints::parse(constraint).unwrap();
            assert_eq!(constraints.allow(&version), want, "{constraint} {version}");
        }
        for bad in ["a", ">=", ">>1", "1.2.3.4", ">=1.0<2.0", "1,", ">1 - 2", "1x", "1.2.3-"] {
            assert!(Constraints::parse(bad).is_err(), "{bad}");
        }
    }
}
