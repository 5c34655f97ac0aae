//! Custom facts from files of the administrator.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use ccm_host::{Folder, Host, Refuse};

use crate::file::{MAX_FILE, parse};
use crate::{Layer, Result};

/// Where everybody's facts are.
const SYSTEM: &str = "/etc/choria/ccm";
/// Where a user's are, below the directory for configuration.
const USER: &str = "choria/ccm";

/// The directories of facts files, the winning one last.
pub(crate) fn directories(host: &Host) -> Vec<PathBuf> {
    directories_of(host.env("XDG_CONFIG_HOME").map(PathBuf::from), || host.home())
}

fn directories_of(config: Option<PathBuf>, home: impl FnOnce() -> Option<PathBuf>) -> Vec<PathBuf> {
    // A relative path there is to be ignored, says the standard.
    let config = config
        .filter(|config| config.is_absolute())
        .or_else(|| home().map(|home| home.join(".config")));
    let user = config.map(|config| config.join(USER));
    std::iter::once(PathBuf::from(SYSTEM)).chain(user).collect()
}

/// What the files in a directory say, or why they are not believed, in the
/// order in which they are to be merged.
pub(crate) fn read_directory(host: &Host, directory: &Path) -> Vec<Result<Layer>> {
    // Facts that others wrote are never believed: they would speak for root.
    let folder = match host.open_trusted_folder(directory, Refuse::Always) {
        Ok(Some(folder)) => folder,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![Err(error.into())],
    };
    let mut layers: Vec<_> = ["facts.json", "facts.yaml"]
        .into_iter()
        .filter_map(|name| read(&folder, OsStr::new(name)).transpose())
        .collect();
    match parts(&folder) {
        Ok(Some((folder, names))) => {
            layers.extend(names.iter().filter_map(|name| read(&folder, name).transpose()));
        }
        Ok(None) => {}
        Err(error) => layers.push(Err(error)),
    }
    layers
}

/// `facts.d` and the names of the files in it that count.
fn parts(folder: &Folder) -> Result<Option<(Folder, Vec<OsString>)>> {
    let Some(folder) = folder.folder(OsStr::new("facts.d"))? else { return Ok(None) };
    let mut names = folder.names()?;
    names.retain(|name| is_facts_file(Path::new(name)));
    Ok(Some((folder, names)))
}

/// As a shell would match `*.{json,yaml}`: what editors hide is left alone.
fn is_facts_file(name: &Path) -> bool {
    let hidden = name.as_os_str().as_encoded_bytes().starts_with(b".");
    !hidden && name.extension().is_some_and(|end| end == "json" || end == "yaml")
}

fn read(folder: &Folder, name: &OsStr) -> Result<Option<Layer>> {
    let Some((text, _)) = folder.read_text(name, MAX_FILE)? else { return Ok(None) };
    let path = folder.path().join(name);
    let facts = parse(&path, text)?;
    Ok(Some(Layer { file: Some(path), facts }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_count() {
        for name in ["a.json", "10-b.yaml", "a.b.yaml"] {
            assert!(is_facts_file(Path::new(name)), "{name}");
        }
        for name in ["a.yml", "a", ".a.json", ".json", "a.json~", "a.JSON", "README"] {
            assert!(!is_facts_file(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn the_user_comes_after_the_system() {
        let found = |config: Option<&str>, home: Option<&str>| {
            let found = directories_of(config.map(PathBuf::from), || home.map(PathBuf::from));
            found.into_iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        let system = "/etc/choria/ccm";
        assert_eq!(found(Some("/x"), Some("/h")), [system, "/x/choria/ccm"]);
        assert_eq!(found(None, Some("/h")), [system, "/h/.config/choria/ccm"]);
        assert_eq!(found(Some("rel"), Some("/h")), [system, "/h/.config/choria/ccm"]);
        assert_eq!(found(None, None), [system]);
    }
}
