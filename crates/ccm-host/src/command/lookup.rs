//! Finds the executable of a command.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use crate::{Error, Result};

/// The file to execute: the program itself when it is a path (a relative one
/// from `directory`), else the first executable of that name in `path`.
pub(super) fn find(program: &OsStr, path: &OsStr, directory: &Path) -> Result<PathBuf> {
    if is_path(program) {
        let file = directory.join(program);
        return if file.exists() { Ok(file) } else { Err(not_found(program, program)) };
    }
    let found = candidates(program, path, directory).into_iter().find(|file| is_executable(file));
    found.ok_or_else(|| not_found(program, path))
}

pub(super) fn not_found(program: &OsStr, searched: &OsStr) -> Error {
    Error::CommandNotFound {
        command: program.to_string_lossy().into_owned(),
        path: searched.to_string_lossy().into_owned(),
    }
}

/// The files that a program can be, in the order of the search.
pub(super) fn candidates(program: &OsStr, path: &OsStr, directory: &Path) -> Vec<PathBuf> {
    if is_path(program) {
        return vec![directory.join(program)];
    }
    let directories = std::env::split_paths(path).filter(|candidate| candidate.is_absolute());
    directories.map(|candidate| candidate.join(program)).collect()
}

/// Whether a program is named by its path, not looked for.
pub(super) fn is_path(program: &OsStr) -> bool {
    let program = Path::new(program);
    program.components().count() > 1 || program.is_absolute()
}

pub(super) fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::accessat(CWD, file, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}
