//! Makes a directory a copy of another, or predicts it.

use ccm_engine::{Error, Result};
use ccm_host::{Attributes, Content, Host, NewContent};

use super::{Copy, Member, SourceTree};
use crate::tree::check_kept;

impl Copy {
    fn attributes(&self, mode: u32) -> Attributes {
        Attributes { uid: self.owner, gid: self.group, mode }
    }
}

/// Writes what differs, then removes what is foreign.
pub(crate) fn apply(host: &Host, source: &SourceTree, copy: &Copy) -> Result<()> {
    let gone = || Error::refused(format!("{} has disappeared", copy.path.display()));
    let tree = host.open_tree(&copy.path)?.ok_or_else(gone)?.without_symlinks();
    check_kept(host, &tree, &copy.remove)?;
    for (place, member) in &copy.write {
        match member {
            Member::Directory { mode } => tree.create_directory(place, &copy.attributes(*mode))?,
            Member::Link { target } => tree.symlink(place, target, (copy.owner, copy.group))?,
            Member::File { mode } => {
                let content = Content::Copy(source.folder().open_beneath(place)?.0);
                tree.replace(place, content, &copy.attributes(*mode))?;
            }
        }
    }
    let _kept = host.must_keep();
    for place in &copy.remove {
        tree.remove_file(place)?;
    }
    for place in &copy.remove_directories {
        if !tree.remove_left_empty(place)? {
            let path = copy.path.join(place);
            return Err(ccm_host::Error::NotEmpty { path }.into());
        }
    }
    Ok(())
}

/// Records what [`apply`] would leave behind.
pub(crate) fn predict(host: &Host, copy: &Copy) -> Result<()> {
    for (place, member) in &copy.write {
        let path = copy.path.join(place);
        match member {
            Member::Directory { mode } => {
                host.predict_directory(&path, &copy.attributes(*mode))?;
            }
            Member::Link { target } => {
                host.predict_symlink(&path, target, (copy.owner, copy.group))?;
            }
            Member::File { mode } => {
                let from = copy.source.join(place);
                let content = NewContent::CopyOf(&from);
                host.predict_file(&path, content, &copy.attributes(*mode))?;
            }
        }
    }
    let _kept = host.must_keep();
    let places = copy.remove.iter().chain(&copy.remove_directories);
    for place in places {
        host.predict_removal(&copy.path.join(place), false)?;
    }
    Ok(())
}
