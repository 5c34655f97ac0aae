//! Patterns: what the lines of a text must or must not contain.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ccm_host::Host;
use govalue::Str;
use govalue::regexp::{self, Regex};

use super::lines::read_lines;

/// `foo`, `!foo`, `/re/` or `!/re/`.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    is_negated: bool,
    search: Search,
}

#[derive(Clone, Debug)]
enum Search {
    /// Holds in whatever there is, even nothing.
    Anything,
    Plain(Vec<u8>),
    Regexp(Regexp),
}

/// A regular expression that is compiled when it is first needed, within the
/// time limit of the tests: it may take long.
#[derive(Clone, Debug)]
pub(crate) struct Regexp {
    text: Str,
    compiled: Arc<OnceLock<Result<Regex, String>>>,
}

/// Expressions of more states are not compiled just to see whether they are
/// right.
const QUICK: u64 = 1_000;

impl Regexp {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.into(), compiled: Arc::default() }
    }

    /// Why it is none, as far as that can be told quickly.
    pub(crate) fn check(&self) -> Result<(), String> {
        if regexp::cost(&self.text) > QUICK { Ok(()) } else { self.get().map(drop) }
    }

    /// The expression, compiled.
    pub(crate) fn get(&self) -> Result<&Regex, String> {
        let compiled = self.compiled.get_or_init(|| regexp::compile(&self.text));
        compiled.as_ref().map_err(Clone::clone)
    }
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Self {
        if text.is_empty() {
            return Self { is_negated: false, search: Search::Anything };
        }
        let (is_negated, rest) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let inner = rest.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
        let search = match inner {
            Some(expression) => Search::Regexp(Regexp::new(expression)),
            None => Search::Plain(rest.trim_start_matches(['\\', '/', '!']).into()),
        };
        Self { is_negated, search }
    }

    /// Why it is none, as far as that can be told quickly.
    pub(crate) fn check(&self) -> Result<(), String> {
        match &self.search {
            Search::Regexp(regexp) => regexp.check(),
            _ => Ok(()),
        }
    }

    /// Makes it ready to look at lines.
    fn prepare(&self) -> Result<(), String> {
        match &self.search {
            Search::Regexp(regexp) => regexp.get().map(drop),
            _ => Ok(()),
        }
    }

    fn is_in(&self, line: &[u8]) -> bool {
        match &self.search {
            Search::Anything => true,
            Search::Plain(text) => memchr::memmem::find(line, text).is_some(),
            Search::Regexp(regexp) => regexp.get().is_ok_and(|regexp| regexp.is_match(line)),
        }
    }
}

/// Looks through lines until everything is known.
struct Scan<'a> {
    patterns: &'a [Pattern],
    /// Whether each was found in some line.
    found: Vec<bool>,
    missing: usize,
}

impl<'a> Scan<'a> {
    fn new(patterns: &'a [Pattern]) -> Result<Self, String> {
        patterns.iter().try_for_each(Pattern::prepare)?;
        let is_found = |pattern: &Pattern| matches!(pattern.search, Search::Anything);
        let found: Vec<bool> = patterns.iter().map(is_found).collect();
        let missing = found.iter().filter(|found| !**found).count();
        Ok(Self { patterns, found, missing })
    }

    fn line(&mut self, line: &[u8]) -> ControlFlow<()> {
        for (pattern, found) in self.patterns.iter().zip(&mut self.found) {
            if !*found && pattern.is_in(line) {
                *found = true;
                self.missing -= 1;
                if pattern.is_negated {
                    return ControlFlow::Break(());
                }
            }
        }
        if self.missing == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn holds(&self) -> bool {
        self.patterns.iter().zip(&self.found).all(|(pattern, found)| pattern.is_negated != *found)
    }
}

/// Whether all patterns hold in the lines of a text.
pub(super) fn hold_in_text(patterns: &[Pattern], text: &[u8]) -> Result<bool, String> {
    let mut scan = Scan::new(patterns)?;
    let lines = text.strip_suffix(b"\n").unwrap_or(text).split(|&byte| byte == b'\n');
    for line in lines.filter(|_| !text.is_empty()) {
        if scan.line(line.strip_suffix(b"\r").unwrap_or(line)).is_break() {
            break;
        }
    }
    Ok(scan.holds())
}

/// Whether all patterns hold in the lines of a file, which is not held in memory.
pub(super) fn hold_in_file(patterns: &[Pattern], host: &Host, path: &Path) -> Result<bool, String> {
    let mut scan = Scan::new(patterns)?;
    read_lines(host, path, &mut |line| scan.line(line))?;
    Ok(scan.holds())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test sets its stage by itself")]
mod tests {
    use super::*;

    #[test]
    fn patterns_look_at_lines() {
        for (text, patterns, wanted) in [
            ("foo\nbar\n", &["foo", "ba"][..], true),
            ("foo\nbar", &["foo", "foo"], true),
            ("foo\r\nbar\r\n", &["/^foo$/", "/r$/"], true),
            ("foo\nbar", &["o\nb"], false),
            ("foo", &["!bar", "!/^b/"], true),
            ("foo", &["!fo"], false),
            ("!foo", &["\\!foo"], true),
            ("foo", &["\\\\/!foo"], true),
            ("foo", &["!!foo"], false),
            ("", &[""], true),
            ("", &["x"], false),
            ("", &["!x"], true),
            ("a", &["!"], false),
            ("x", &["/"], true),
            ("x", &["//"], true),
        ] {
            let patterns: Vec<_> = patterns.iter().map(|text| Pattern::new(text)).collect();
            let held = hold_in_text(&patterns, text.as_bytes());
            assert_eq!(held, Ok(wanted), "{text:?} {patterns:?}");
        }
        for wrong in ["/(/", "!/(/"] {
            assert!(hold_in_text(&[Pattern::new(wrong)], b"x").is_err(), "{wrong}");
        }
        assert_eq!(hold_in_text(&[Pattern::new("a")], b"\xff\xfea\x00"), Ok(true), "not text");
    }

    #[test]
    fn files_are_read_only_as_far_as_needed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "first\nsecond\n").unwrap();
        let hold = |patterns: &[&str]| {
            let patterns: Vec<_> = patterns.iter().map(|text| Pattern::new(text)).collect();
            hold_in_file(&patterns, &Host::new(), &path)
        };
        assert_eq!(hold(&["first", "/^sec/"]), Ok(true));
        assert_eq!(hold(&["first", "!second"]), Ok(false));
        assert_eq!(hold(&["third"]), Ok(false));
        assert!(hold_in_file(&[Pattern::new("x")], &Host::new(), dir.path()).is_err());
    }
}
