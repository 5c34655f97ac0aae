//! Packages that are installed already: nothing is to be done about them.

use std::fmt::Write as _;
use std::io::{self, Error};
use std::process::Command;

/// A manifest of the first `n` packages that dpkg has; `None` where there is
/// no dpkg, or it has fewer.
pub(crate) fn manifest(n: usize) -> io::Result<Option<String>> {
    let format = "-f=${Package} ${db:Status-Status}\\n";
    let Ok(output) = Command::new("dpkg-query").args(["-W", format]).output() else {
        return Ok(None);
    };
    let text = String::from_utf8(output.stdout).map_err(Error::other)?;
    let mut names: Vec<&str> =
        text.lines().filter_map(|line| line.strip_suffix(" installed")).collect();
    names.dedup();
    if names.len() < n {
        return Ok(None);
    }
    let mut manifest = String::from("ccm:\n  resources:\n    - package:\n");
    for name in &names[..n] {
        let _ = writeln!(manifest, "        - {name}: {{ensure: present}}");
    }
    Ok(Some(manifest))
}
