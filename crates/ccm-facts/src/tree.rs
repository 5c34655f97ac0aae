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

/// A name in a table of the kernel, as text.
pub(crate) fn name_of(text: &str) -> String {
    ccm_host::kernel_name(text).to_string_lossy().into_owned()
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
    fn what_is_not_there_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let tree = Tree::at(&host, dir.path());
        assert_eq!(tree.text("x"), None);
        assert_eq!(tree.names("x"), Vec::<String>::new());
        assert!(!tree.exists("x") && tree.exists(""));
    }
}
