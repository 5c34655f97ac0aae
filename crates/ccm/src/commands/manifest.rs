//! Where a manifest comes from: a local file, or the URL of a tarball.

use std::path::{Path, PathBuf};

use ccm_archive::{Limits, TempTree};
use ccm_engine::Served;
use ccm_host::{FileKind, Host};
use ccm_model::redact_credentials;
use clap::{Arg, ArgMatches, ValueHint};

use super::Result;
use crate::error::Error;

/// The manifest in a tarball, at its top or one level down.
const NAME: &str = "manifest.yaml";

pub(super) fn argument() -> Arg {
    Arg::new("manifest")
        .value_name("MANIFEST")
        .required(true)
        .value_parser(clap::value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Manifest to read: a file, or the URL of a .tar.gz that holds a manifest.yaml")
}

/// A manifest that can be read, as long as this value lasts.
pub(super) struct Origin {
    /// The file.
    pub(super) path: PathBuf,
    /// What people call it: never with credentials.
    pub(super) name: String,
    tree: Option<TempTree>,
}

impl Origin {
    /// How files of a tarball are shown.
    pub(super) fn served(&self) -> Option<Served> {
        let directory = self.tree.as_ref()?.path().to_owned();
        Some(Served { directory, name: self.name.clone() })
    }
}

/// What people call the manifest that was asked for, without credentials.
pub(super) fn name(matches: &ArgMatches) -> String {
    let path = matches.get_one::<PathBuf>("manifest").map(|path| path.to_string_lossy());
    redact_credentials(&path.unwrap_or_default()).into_owned()
}

/// Finds the manifest that was asked for; fetches it if it is elsewhere.
pub(super) fn locate(host: &Host, matches: &ArgMatches) -> Result<Origin> {
    let path: &PathBuf =
        matches.get_one("manifest").ok_or_else(|| Error::usage("no manifest", ""))?;
    let name = name(matches);
    let Some(url) = path.to_str().filter(|text| ccm_host::url_scheme(text).is_some()) else {
        return Ok(Origin { path: path.clone(), name, tree: None });
    };
    let tree = ccm_archive::fetch_tree(host, url, &Limits::TREE);
    let tree = tree.map_err(|error| match host.cancel().reason() {
        Some(reason) => Error::Interrupted { name: name.clone(), reason },
        None => error.into(),
    })?;
    let path = find(host, tree.path(), &name)?;
    Ok(Origin { path, name, tree: Some(tree) })
}

/// The manifest in an unpacked tarball.
fn find(host: &Host, top: &Path, name: &str) -> Result<PathBuf> {
    let is_file = |path: &Path| -> Result<bool> {
        Ok(host.stat(path)?.is_some_and(|found| found.kind == FileKind::File))
    };
    let direct = top.join(NAME);
    if is_file(&direct)? {
        return Ok(direct);
    }
    let mut found = Vec::new();
    for directory in host.list(top)? {
        let path = top.join(directory).join(NAME);
        if is_file(&path).unwrap_or(false) {
            found.push(path);
        }
    }
    found.sort();
    let reason = match found.len() {
        1 => return Ok(found.swap_remove(0)),
        0 => format!("there is no {NAME} in it"),
        _ => {
            let shown = found.iter().filter_map(|path| path.strip_prefix(top).ok());
            let shown: Vec<String> = shown.map(|path| path.display().to_string()).collect();
            format!("it holds several: {}", shown.join(", "))
        }
    };
    let message = format!("cannot find the manifest in {name}: {reason}");
    let hint = format!("put one {NAME} at its top or one directory down");
    Err(Error::Invalid { message, hint: Some(hint) })
}
