//! How a type declares its resources.

use std::path::Path;

use ccm_host::{Fetchers, Host, Reach};
use ccm_model::{Properties, ResourceRef, Severity, Stage};
use ccm_template::Resolver;

use crate::cli::CommandLine;
use crate::declared::ManagedPath;
use crate::manifest_run::{Child, Mode};
use crate::{Error, Result};

/// The declaration of a type: its name, its properties, and their validation.
/// Does no I/O.
pub trait Declare: Sized + 'static {
    /// What can be wanted.
    type Properties: Properties + Send;

    /// Its name in manifests.
    const NAME: &'static str;
    /// What it is for, one line.
    const ABOUT: &'static str;
    /// What the name of a resource of this type is, such as a path.
    const NAME_DOC: &'static str = "Name of the resource";
    /// The states that can be asked for.
    const ENSURE: Ensure;
    /// How it looks at the command line. A type without a view is for
    /// manifests only: `ccm ensure` and the API do not offer it.
    const COMMAND_LINE: Option<CommandLine>;
    /// Why `ccm status` cannot show one, where it cannot.
    const NO_STATUS: Option<&'static str> = None;

    /// What one may change beyond what a preview records of it.
    const REACH: Reach = Reach::Files;

    /// Finds what the field table cannot know to be wrong. At
    /// [`Stage::Parse`] deferred properties may still hold templates.
    fn validate(want: &Self::Properties, stage: Stage, findings: &mut Findings);

    /// Whether the `defaults` of a block set this property of a resource with
    /// this `ensure`.
    fn takes_default(_property: &str, _ensure: &str) -> bool {
        true
    }

    /// Puts properties into their usual form after each phase of templates, and
    /// takes note of what those of the first phase say about the others.
    fn settle(_want: &mut Self::Properties) {}

    /// The properties that are secret in this resource, beside those that always
    /// are. Events, reports and rendered manifests show them redacted.
    fn secrets(_want: &Self::Properties) -> &'static [&'static str] {
        &[]
    }

    /// The resources whose change this one reacts to.
    fn subscribe(_want: &Self::Properties) -> &[ResourceRef] {
        &[]
    }

    /// Whether it acts only when a resource changes that it subscribes to.
    fn is_refresh_only(_want: &Self::Properties) -> bool {
        false
    }

    /// How much a resource may do in a manifest that may do this much.
    fn mode(_want: &Self::Properties, above: Mode) -> Mode {
        above
    }

    /// The manifest that a resource applies, if it applies one. Its resources
    /// can be referred to from then on.
    fn child(_want: &Self::Properties) -> Option<Child<'_>> {
        None
    }

    /// Whether applying a resource can create a file at this absolute path, as
    /// far as its properties tell, the child manifest of the resource aside.
    /// `ccm validate` does not report a child manifest as missing that an earlier
    /// resource can create.
    fn can_create(_want: &Self::Properties, _path: &Path) -> bool {
        false
    }

    /// The paths that a resource manages, for other resources that purge what
    /// nobody declares.
    fn managed_paths(_want: &Self::Properties) -> Vec<ManagedPath> {
        Vec::new()
    }

    /// The file whose whole content a resource writes.
    fn whole_file(_want: &Self::Properties) -> Option<&Path> {
        None
    }

    /// The file of which a resource changes a part. What another resource of the
    /// manifest writes as a whole would lose that part.
    fn part_of(_want: &Self::Properties) -> Option<&Path> {
        None
    }

    /// Whether a resource removes what no resource declares. Only then is
    /// [`Context::declared`](crate::Context::declared) filled.
    fn purges(_want: &Self::Properties) -> bool {
        false
    }

    /// The file or directory that a resource reads, as written, relative to its
    /// manifest; no URL. `ccm validate` reports one that does not exist.
    fn source(_want: &Self::Properties) -> Option<&str> {
        None
    }

    /// The errors in what [`Declare::source`] names, as far as they can be found
    /// without the run.
    fn check_source(_want: &Self::Properties, _templates: &Resolver, _path: &Path) -> Vec<String> {
        Vec::new()
    }
}

/// The states that a type can be asked for.
#[derive(Clone, Copy, Debug)]
pub enum Ensure {
    /// These, the first when none is given.
    OneOf(&'static [&'static str]),
    /// Any text, this when none is given.
    Any(&'static str),
}

impl Ensure {
    /// The state when none is given.
    pub fn default(self) -> &'static str {
        match self {
            Self::OneOf(words) => words.first().copied().unwrap_or_default(),
            Self::Any(word) => word,
        }
    }
}

/// Collects what is wrong with properties.
#[derive(Debug, Default)]
pub struct Findings {
    fetchers: Fetchers,
    found: Vec<PropertyFinding>,
}

#[derive(Debug)]
pub(crate) struct PropertyFinding {
    pub(crate) property: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) severity: Severity,
}

impl PropertyFinding {
    fn error(property: &'static str, message: String, hint: Option<String>) -> Self {
        Self { property, message, hint, severity: Severity::Error }
    }

    fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl Findings {
    /// Nothing is wrong yet. URLs are checked against what this host can fetch.
    pub(crate) fn new(host: &Host) -> Self {
        Self { fetchers: host.fetchers().clone(), found: Vec::new() }
    }

    /// Reports an error in a property.
    pub fn add(&mut self, property: &'static str, message: impl Into<String>) {
        self.found.push(PropertyFinding::error(property, message.into(), None));
    }

    /// Reports a likely mistake in a property as a warning, with a hint.
    pub fn warn(
        &mut self,
        property: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let finding = PropertyFinding::error(property, message.into(), Some(hint.into()));
        self.found.push(PropertyFinding { severity: Severity::Warning, ..finding });
    }

    /// Reports an error in a property, with a hint.
    pub fn add_with_hint(
        &mut self,
        property: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.found.push(PropertyFinding::error(property, message.into(), Some(hint.into())));
    }

    /// A path must be absolute, and written without detours.
    pub fn check_path(&mut self, property: &'static str, path: &str) {
        self.check_path_of(property, "path", path);
    }

    /// The same, where the message says what the path is of.
    pub fn check_path_of(&mut self, property: &'static str, what: &str, path: &str) {
        if !path.starts_with('/') {
            self.add(property, format!("{what} must be absolute, `{path}` is not"));
        } else if path.contains('\0') {
            self.add(property, "a path cannot contain a NUL character");
        } else if let Some(clean) = clean(path) {
            let message = "path must be clean: without `.`, `..`, `//` or a trailing `/`";
            self.add_with_hint(property, message, format!("write it as `{clean}`"));
        }
    }

    /// Checks that a URL has a known scheme and is well-formed. Returns whether
    /// it is.
    pub fn check_url(&mut self, property: &'static str, url: &str) -> bool {
        let Err((message, hint)) = self.fetchers.check_written(url) else { return true };
        self.found.push(PropertyFinding::error(property, message, hint));
        false
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        !self.found.iter().any(PropertyFinding::is_error)
    }

    pub(crate) fn into_inner(self) -> Vec<PropertyFinding> {
        self.found
    }

    /// The first finding as a resource's failure.
    pub(crate) fn into_result(self) -> Result<()> {
        match self.found.into_iter().find(PropertyFinding::is_error) {
            Some(PropertyFinding { property, message, .. }) => {
                Err(Error::Invalid { property: property.to_owned(), message })
            }
            None => Ok(()),
        }
    }
}

/// An absolute path without detours, if it has any.
fn clean(path: &str) -> Option<String> {
    let is_detour = |part: &str| matches!(part, "" | "." | "..");
    if path == "/" || !path[1..].split('/').any(is_detour) {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detours_are_found_and_removed() {
        for (path, wanted) in [
            ("/", None),
            ("/a/b", None),
            ("/a/b.c..d", None),
            ("/a/", Some("/a")),
            ("//a", Some("/a")),
            ("/a/./b", Some("/a/b")),
            ("/a/../b", Some("/b")),
            ("/../..", Some("/")),
        ] {
            assert_eq!(clean(path).as_deref(), wanted, "{path}");
        }
    }
}
