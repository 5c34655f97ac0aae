//! Reads the files in which the kernel and the distribution describe the
//! machine.

use std::path::{Path, PathBuf};

use ccm_host::Host;

/// More than any of these files has; `/proc/cpuinfo` of the largest machines
/// comes to a few MiB.
const MAX_FILE: u64 = 16 << 20;

/// The machine's file tree, in tests another one. What cannot be read is not
/// there.
pub(crate) struct Tree<'a> {
    pub(crate) host: &'a Host,
    root: PathBuf,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(host: &'a Host) -> Self {
        Self { host, root: PathBuf::from("/") }
    }

    #[cfg(test)]
    pub(crate) fn at(host: &'a Host, root: &Path) -> Self {
        Self { host, root: root.to_owned() }
    }

    /// The text of a file, its path given without the leading `/`.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let (bytes, _) = self.host.read_bytes(&self.root.join(path), MAX_FILE).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The text of a file of one line, without surrounding blanks; `None` when
    /// nothing is left.
    pub(crate) fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path)?;
        let line = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!line.is_empty()).then(|| line.to_owned())
    }

    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        matches!(self.host.stat(&self.root.join(path)), Ok(Some(_)))
    }

    /// The names in a directory.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let names = self.host.list(&self.root.join(path)).unwrap_or_default();
        names.into_iter().filter_map(|name| name.into_string().ok()).collect()
    }
}

/// `key: value` lines, as most files in `/proc` have them.
pub(crate) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        Some((key.trim(), value.trim()))
    })
}

/// Undoes the kernel's escapes of blanks in file names: `\040` and so on.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = match rest {
            [b'\\', digits @ ..] if digits.len() >= 3 => std::str::from_utf8(&digits[..3])
                .ok()
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
                .and_then(|digits| u8::from_str_radix(digits, 8).ok()),
            _ => None,
        };
        out.push(code.unwrap_or(byte));
        rest = if code.is_some() { &rest[4..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A directory with these files, for a [`Tree`] of its own.
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test builds what the host then reads")]
pub(crate) fn planted(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescape(r"/a\040b\134c\011"), "/a b\\c\t");
        assert_eq!(unescape(r"\303\244"), "ä");
        for text in ["", "\\", r"\04", r"\0x0", r"\999", "plain"] {
            assert_eq!(unescape(text), text);
        }
    }

    #[test]
    fn what_is_not_there_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let tree = Tree::at(&host, dir.path());
        assert_eq!(tree.text("x"), None);
        assert_eq!(tree.names("x"), Vec::<String>::new());
        assert!(!tree.exists("x") && tree.exists(""));
    }
}
