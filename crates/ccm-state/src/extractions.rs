//! What was extracted last: the digest of an archive, by its path and the
//! directory that it was extracted into.
//!
//! With `cleanup`, nothing else tells which version of an archive is in place.
//! A record that is lost costs no more than that: ccm cannot tell any more.

use std::path::{Path, PathBuf};

use ccm_host::{Attributes, Content, Digest, Error, Host, Result, StateDir};
use serde::{Deserialize, Serialize};

use crate::records::{decode, encode, set_aside};

/// Where the records are.
const FOLDER: &str = "extracted";
/// The version of the format.
const FORMAT: u32 = 1;
/// Paths are short; more than this was not written by ccm.
const MAX_SIZE: u64 = 1 << 20;

/// The records of extractions in a state directory.
#[derive(Clone, Debug)]
pub struct Extractions {
    state: StateDir,
    /// Damage is reported and left alone.
    is_read_only: bool,
}

#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    archive: String,
    #[serde(with = "ccm_host::path_text")]
    into: PathBuf,
    digest: Digest,
}

impl Extractions {
    /// The records in a state directory; a preview only reads them.
    pub fn new(state: &StateDir, is_read_only: bool) -> Self {
        Self { state: state.clone(), is_read_only }
    }

    /// The digest of what was extracted last; `None` if there is no record, or
    /// only a damaged one, which is set aside.
    ///
    /// # Errors
    ///
    /// Fails if the record cannot be read or set aside.
    pub fn find(&self, archive: &str, into: &Path) -> Result<Option<Digest>> {
        let Some(folder) = self.state.folder(FOLDER, false)? else { return Ok(None) };
        let name = name_of(archive, into);
        let bytes = match folder.read(&name, MAX_SIZE) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(Error::NotAFile { .. } | Error::TooLarge { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        let decoded = decode::<Record>(&bytes);
        if let [record] = &decoded.records[..]
            && !decoded.is_damaged
            && record.format == FORMAT
            && (record.archive.as_str(), record.into.as_path()) == (archive, into)
        {
            return Ok(Some(record.digest));
        }
        let path = folder.path().join(&name);
        let what = "ccm cannot tell which version of the archive was extracted";
        folder.host().warn(format!("{} is damaged; ccm renames it: {what}", path.display()));
        if !self.is_read_only {
            set_aside(&folder, &name, "damaged")?;
        }
        Ok(None)
    }

    /// Records the digest of what is extracted. An undo of the run brings the
    /// former record back, as it does with files.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be recorded.
    pub fn record(&self, host: &Host, archive: &str, into: &Path, digest: Digest) -> Result<()> {
        let folder = self.state.make_folder(FOLDER)?;
        let record =
            Record { format: FORMAT, archive: archive.to_owned(), into: into.to_owned(), digest };
        let (uid, gid) = host.whoami();
        let attributes = Attributes { uid, gid, mode: 0o600 };
        let path = folder.path().join(name_of(archive, into));
        host.replace(&path, Content::Bytes(&encode(&record)), &attributes)
    }
}

/// The name of a record.
fn name_of(archive: &str, into: &Path) -> String {
    let key = [archive.as_bytes(), into.as_os_str().as_encoded_bytes()].join(&0);
    let mut name = Digest::of(&key).to_string();
    name.truncate(32);
    name
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_by_archive_and_directory() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let state = host.state_dir(&dir.path().join("state"), true).unwrap().unwrap();
        let known = Extractions::new(&state, false);
        let (one, two) = (Digest::of(b"1"), Digest::of(b"2"));
        let find = |archive: &str, into: &str| known.find(archive, Path::new(into)).unwrap();
        assert_eq!(find("/a.tar", "/opt"), None);
        known.record(&host, "/a.tar", Path::new("/opt"), one).unwrap();
        known.record(&host, "/a.tar", Path::new("/srv"), two).unwrap();
        known.record(&host, "/b.tar", Path::new("/opt"), two).unwrap();
        assert_eq!(find("/a.tar", "/opt"), Some(one));
        assert_eq!((find("/a.tar", "/srv"), find("/b.tar", "/opt")), (Some(two), Some(two)));
        known.record(&host, "/a.tar", Path::new("/opt"), two).unwrap();
        assert_eq!(find("/a.tar", "/opt"), Some(two));
    }

    /// Cut, changed or of something else, it says nothing, and stays for whoever
    /// wants to look at it.
    #[test]
    fn a_damaged_record_is_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let path = dir.path().join("state");
        let state = host.state_dir(&path, true).unwrap().unwrap();
        let known = Extractions::new(&state, false);
        let into = Path::new("/opt");
        let file = path.join(FOLDER).join(name_of("/a.tar", into));
        known.record(&host, "/a.tar", into, Digest::of(b"1")).unwrap();
        let whole = std::fs::read(&file).unwrap();
        known.record(&host, "/b.tar", into, Digest::of(b"1")).unwrap();
        let other = std::fs::read(path.join(FOLDER).join(name_of("/b.tar", into))).unwrap();
        let cases = [&b""[..], b"x", b"\n", &whole[..20], &whole[..whole.len() - 1], &other];
        for damaged in cases {
            // A host gives each warning once.
            let host = Host::new();
            let state = host.state_dir(&path, true).unwrap().unwrap();
            let known = Extractions::new(&state, false);
            let preview = Extractions::new(&state, true);
            std::fs::write(&file, damaged).unwrap();
            assert_eq!(preview.find("/a.tar", into).unwrap(), None);
            assert!(file.exists(), "a preview leaves it alone");
            assert_eq!(known.find("/a.tar", into).unwrap(), None, "{damaged:?}");
            assert!(!file.exists());
            let aside = file.with_extension("damaged");
            assert_eq!(std::fs::read(&aside).unwrap(), *damaged);
            std::fs::remove_file(&aside).unwrap();
            let warnings = host.take_warnings().join("; ");
            assert!(warnings.contains("is damaged"), "{warnings}");
        }
    }
}
