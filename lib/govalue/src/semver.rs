//! Semantic versions. Languages differ in how they write constraints on them.

use std::cmp::Ordering;
use std::fmt;

/// A semantic version; parts left out in its text are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// What follows `-`; empty for a release.
    pub prerelease: String,
    /// What follows `+`.
    pub metadata: String,
    /// The text it was read from.
    pub original: String,
}

const INVALID: &str = "invalid semantic version";

impl Version {
    /// Reads `1.2.3-beta.1+build`, with or without a `v`; `1` and `1.2` do too.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body = text.strip_prefix('v').unwrap_or(text);
        let (body, metadata) = match body.split_once('+') {
            Some((body, metadata)) => (body, Some(metadata)),
            None => (body, None),
        };
        let (numbers, prerelease) = match body.split_once('-') {
            Some((numbers, prerelease)) => (numbers, Some(prerelease)),
            None => (body, None),
        };
        let mut parts = [0; 3];
        for (index, number) in numbers.split('.').enumerate() {
            if index > 2 || number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
                return Err(INVALID.to_owned());
            }
            parts[index] = number.parse().map_err(|_| INVALID.to_owned())?;
        }
        if let Some(prerelease) = prerelease {
            check_prerelease(prerelease)?;
        }
        if let Some(metadata) = metadata {
            check_identifiers(metadata)?;
        }
        Ok(Self {
            major: parts[0],
            minor: parts[1],
            patch: parts[2],
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        })
    }

    /// Reads a version of three numbers that is written as it prints: no `v`, no
    /// leading zeros.
    ///
    /// ```
    /// use govalue::semver::Version;
    ///
    /// assert!(Version::parse_strict("1.2.3-rc.1").is_ok());
    /// assert!(Version::parse_strict("v1.2").is_err());
    /// ```
    pub fn parse_strict(text: &str) -> Result<Self, String> {
        let version = Self::parse(text)?;
        if version.to_string() == text { Ok(version) } else { Err(INVALID.to_owned()) }
    }

    /// The release of these numbers.
    pub fn release(major: u64, minor: u64, patch: u64) -> Self {
        let version = Self { major, minor, patch, ..Self::default() };
        Self { original: version.to_string(), ..version }
    }

    /// The order of precedence: metadata does not count.
    pub fn cmp_precedence(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }

    fn renamed(mut self, from: &Self) -> Self {
        let prefix = if from.original.starts_with('v') { "v" } else { "" };
        self.original = format!("{prefix}{self}");
        self
    }

    /// The next major release.
    #[must_use]
    pub fn next_major(&self) -> Self {
        Self::release(self.major.wrapping_add(1), 0, 0).renamed(self)
    }

    /// The next minor release.
    #[must_use]
    pub fn next_minor(&self) -> Self {
        Self::release(self.major, self.minor.wrapping_add(1), 0).renamed(self)
    }

    /// The next release: a prerelease is followed by its release.
    #[must_use]
    pub fn next_patch(&self) -> Self {
        let step = u64::from(self.prerelease.is_empty());
        Self::release(self.major, self.minor, self.patch.wrapping_add(step)).renamed(self)
    }

    /// The same version with another prerelease.
    pub fn with_prerelease(&self, prerelease: &str) -> Result<Self, String> {
        if !prerelease.is_empty() {
            check_prerelease(prerelease)?;
        }
        let version = Self { prerelease: prerelease.to_owned(), ..self.clone() };
        Ok(version.renamed(self))
    }

    /// The same version with other metadata.
    pub fn with_metadata(&self, metadata: &str) -> Result<Self, String> {
        if !metadata.is_empty() {
            check_identifiers(metadata)?;
        }
        let version = Self { metadata: metadata.to_owned(), ..self.clone() };
        Ok(version.renamed(self))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn check_identifiers(text: &str) -> Result<(), String> {
    if text.split('.').all(is_identifier) { Ok(()) } else { Err(INVALID.to_owned()) }
}

fn check_prerelease(text: &str) -> Result<(), String> {
    check_identifiers(text)?;
    let padded = |part: &str| {
        part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if text.split('.').any(padded) {
        return Err("version segment starts with 0".to_owned());
    }
    Ok(())
}

/// The order of two prereleases; an empty one is a release.
pub fn compare_prereleases(a: &str, b: &str) -> Ordering {
    if a.is_empty() || b.is_empty() {
        // A release comes after all of its prereleases.
        return a.is_empty().cmp(&b.is_empty());
    }
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn texts() {
        for (text, want) in [
            ("1.2.3", "1.2.3"),
            ("v1.2", "1.2.0"),
            ("1", "1.0.0"),
            ("1.2.3-beta.1+c0ff33", "1.2.3-beta.1+c0ff33"),
            ("01.02.03", "1.2.3"),
        ] {
            assert_eq!(version(text).to_string(), want);
        }
        for text in
            ["", "bad", "1.2.3.4", "1.2.", "1.2.3-", "1.2.3-01", "1.2.3+", "1.2.3-a_b", "V1"]
        {
            assert!(Version::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn precedence() {
        let order = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
        ];
        for pair in order.windows(2) {
            assert!(version(pair[0]).cmp_precedence(&version(pair[1])).is_lt(), "{pair:?}");
        }
        assert!(version("1.0.0+a").cmp_precedence(&version("1.0.0+b")).is_eq());
    }

    #[test]
    fn increments() {
        assert_eq!(version("v1.2.3-rc").next_patch().original, "v1.2.3");
        assert_eq!(version("1.2.3").next_patch().to_string(), "1.2.4");
        assert_eq!(version("1.2.3-x+y").next_minor().to_string(), "1.3.0");
        assert_eq!(version("1.2.3").next_major().to_string(), "2.0.0");
    }

    #[test]
    fn strict_texts() {
        assert!(Version::parse_strict("1.2.3-rc.1+build").is_ok());
        for text in ["1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0.0", "", "é"] {
            assert!(Version::parse_strict(text).is_err(), "{text}");
        }
    }
}
