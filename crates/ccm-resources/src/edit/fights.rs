//! Edits of one file that undo each other.
//!
//! Each would change the file again in every run. So before an edit changes a
//! file, the edits that this run made of it before are tried on the new text. One
//! that would change something is in a fight with it, and the later one fails.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ccm_engine::{Error, Result};
use ccm_host::Host;
use ccm_textedit::Edit;

/// The edits of a run by file, each with the name of its resource.
#[derive(Debug, Default)]
struct Edits(Mutex<HashMap<PathBuf, Vec<(String, Edit)>>>);

/// Notes that a file is as an edit wants it.
pub(super) fn note(host: &Host, path: &Path, name: &str, edit: &Edit) {
    let edits = host.cached::<Edits>();
    let mut edits = edits.0.lock().unwrap_or_else(PoisonError::into_inner);
    let known = edits.entry(path.to_owned()).or_default();
    known.retain(|(other, _)| other != name);
    known.push((name.to_owned(), edit.clone()));
}

/// Fails if an earlier edit of this run would change a text that this one makes.
pub(super) fn check(host: &Host, path: &Path, name: &str, text: &[u8]) -> Result<()> {
    let edits = host.cached::<Edits>();
    let edits = edits.0.lock().unwrap_or_else(PoisonError::into_inner);
    let others = edits.get(path).into_iter().flatten().filter(|(other, _)| other != name);
    for (other, edit) in others {
        let is_kept = ccm_textedit::apply(text, edit).is_ok_and(|edited| edited.text == text);
        if !is_kept {
            return Err(Error::Refused {
                reason: format!("this edit undoes edit#{other} of {}", path.display()),
                hint: Some(
                    "declare one of them only; both would change the file in every run".to_owned(),
                ),
            });
        }
    }
    Ok(())
}
