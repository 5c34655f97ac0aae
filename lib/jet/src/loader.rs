//! Where templates find other templates.

use std::collections::HashMap;

/// Gives the text of templates that others name.
pub trait Loader: Send + Sync {
    /// The text under a path, which starts with `/` and has no `.` or `..` in
    /// it; `None` if there is none. An error is a reason for people.
    fn load(&self, path: &str) -> Result<Option<String>, String>;
}

/// Templates kept in memory, by path.
#[derive(Clone, Debug, Default)]
pub struct MemoryLoader(HashMap<String, String>);

impl MemoryLoader {
    /// No templates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds or replaces a template.
    pub fn insert(&mut self, path: &str, text: impl Into<String>) {
        self.0.insert(join("/", path), text.into());
    }
}

impl<P: AsRef<str>, T: Into<String>> FromIterator<(P, T)> for MemoryLoader {
    fn from_iter<I: IntoIterator<Item = (P, T)>>(templates: I) -> Self {
        let mut loader = Self::new();
        for (path, text) in templates {
            loader.insert(path.as_ref(), text);
        }
        loader
    }
}

impl Loader for MemoryLoader {
    fn load(&self, path: &str) -> Result<Option<String>, String> {
        Ok(self.0.get(path).cloned())
    }
}

/// A path as seen from the template at `from`, without `.` and `..`.
pub(crate) fn join(from: &str, path: &str) -> String {
    let directory = from.rsplit_once('/').map_or("", |(directory, _)| directory);
    let directory = if path.starts_with('/') { "" } else { directory };
    let mut parts = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_template() {
        for (from, path, want) in [
            ("/", "main", "/main"),
            ("/sub/b", "c", "/sub/c"),
            ("/sub/b", "./c", "/sub/c"),
            ("/sub/b", "../c", "/c"),
            ("/sub/b", "/c", "/c"),
            ("/b", "../../c", "/c"),
        ] {
            assert_eq!(join(from, path), want);
        }
    }
}
