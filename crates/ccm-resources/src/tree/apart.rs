//! A source and a target that are not in each other.

use std::path::Path;

use ccm_engine::{Error, Result};
use ccm_host::Host;

/// A source in the target would be purged, a target in the source copied into
/// itself. `hint` says what to do.
pub(crate) fn check_apart(host: &Host, source: &Path, target: &Path, hint: &str) -> Result<()> {
    let Ok(source) = host.canonicalize(source) else { return Ok(()) };
    let mut ancestors = target.ancestors();
    // What is not there yet has no links in it.
    let real = ancestors.find_map(|path| {
        let rest = target.strip_prefix(path).ok()?;
        Some(host.canonicalize(path).ok()?.join(rest))
    });
    let Some(target) = real else { return Ok(()) };
    if source.starts_with(&target) || target.starts_with(&source) {
        return Err(Error::Refused {
            reason: format!(
                "the source {} and the target {} overlap",
                source.display(),
                target.display()
            ),
            hint: Some(hint.to_owned()),
        });
    }
    Ok(())
}
