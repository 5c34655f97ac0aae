//! Finding the file of a command.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use crate::{Error, Result};

/// The file to execute: the program itself when it is a path (a relative one
/// from `directory`), else the first executable of that name in `path`.
pub(super) fn find(program: &OsStr, path: &OsStr, directory: &Path) -> Result<PathBuf> {
    let not_found = |searched: &OsStr| Error::CommandNotFound {
        command: program.to_string_lossy().into_owned(),
        path: searched.to_string_lossy().into_owned(),
    };
    let as_path = Path::new(program);
    if as_path.components().count() > 1 || as_path.is_absolute() {
        let file = directory.join(as_path);
        return if file.exists() { Ok(file) } else { Err(not_found(program)) };
    }
    std::env::split_paths(path)
        .filter(|candidate| candidate.is_absolute())
        .map(|candidate| candidate.join(as_path))
        .find(|file| is_executable(file))
        .ok_or_else(|| not_found(path))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}
