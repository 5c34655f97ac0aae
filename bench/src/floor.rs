//! The floor: the system calls that the work needs, and nothing else.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use crate::generate;
use rustix::fs::{CWD, Mode, OFlags};
use sha2::{Digest as _, Sha256};

/// Opens, inspects and reads every file, and compares it with what it should
/// hold.
pub(crate) fn check(directory: &Path, n: usize) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    for n in 0..n {
        let mut file = File::open(generate::path(directory, n))?;
        let size = rustix::fs::fstat(&file)?.st_size;
        let count = file.read(&mut buffer)?;
        let content = generate::content(n);
        if size != content.len() as i64 || &buffer[..count] != content.as_bytes() {
            return Err(io::Error::other(format!("file {n} is not as it should be")));
        }
    }
    Ok(())
}

/// Opens, inspects, reads and hashes every file.
pub(crate) fn read(directory: &Path, n: usize) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    for n in 0..n {
        let mut file = File::open(generate::path(directory, n))?;
        rustix::fs::fstat(&file)?;
        let count = file.read(&mut buffer)?;
        std::hint::black_box(Sha256::digest(&buffer[..count]));
    }
    Ok(())
}

/// Looks for every file, writes it under a temporary name, then renames it.
pub(crate) fn create(directory: &Path, n: usize) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    for n in 0..n {
        let target = generate::path(directory, n);
        if rustix::fs::stat(&target).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let temporary = directory.join(format!(".floor-{n:06}"));
        let mut file: File =
            rustix::fs::openat(CWD, &temporary, flags, Mode::RUSR | Mode::WUSR)?.into();
        file.write_all(generate::content(n).as_bytes())?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))?;
        rustix::fs::renameat(CWD, &temporary, CWD, &target)?;
    }
    Ok(())
}
