//! Sources of documents: files and URLs.

use std::path::Path;

use ccm_host::Host;
use ccm_model::redact_credentials;

use crate::{Document, Error};

/// What people write by hand is smaller.
const MAX_SIZE: u64 = 64 << 20;

/// Where hierarchical data comes from: a path, or a URL of any scheme that the
/// [`Host`] can fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSource<'a>(&'a str);

impl<'a> DataSource<'a> {
    /// A path or URL as it is written.
    pub fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// Reads the document. As root, a file that others can change gets a warning;
    /// with `CCM_STRICT=1` it is an error.
    pub fn load(&self, host: &Host) -> Result<Document, Error> {
        let text = host.read_source(self.0, MAX_SIZE)?;
        Document::parse(&redact_credentials(self.0), &text)
    }

    /// Reads an optional file.
    pub fn load_default(host: &Host, path: &Path) -> Result<Option<Document>, Error> {
        match host.stat(path)? {
            Some(_) => {
                let text = host.read_trusted(path, MAX_SIZE)?;
                Document::parse(&path.display().to_string(), &text).map(Some)
            }
            None => Ok(None),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_asked_for_must_be_there() {
        let directory = tempfile::tempdir().unwrap();
        let host = Host::new();
        let path = directory.path().join(".hiera");
        assert!(DataSource::load_default(&host, &path).unwrap().is_none());
        assert!(DataSource::new(path.to_str().unwrap()).load(&host).is_err());
        std::fs::write(&path, "data:\n  a: 1\n").unwrap();
        let document = DataSource::load_default(&host, &path).unwrap().unwrap();
        assert!(document.is_hierarchical());
        std::fs::write(&path, "data: [\n").unwrap();
        assert!(DataSource::load_default(&host, &path).is_err());
    }

    #[test]
    fn file_urls_are_read_like_paths() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a b.yaml");
        std::fs::write(&path, "data:\n  a: 1\n").unwrap();
        let url = format!("file://{}/a%20b.yaml", directory.path().display());
        assert!(DataSource::new(&url).load(&Host::new()).unwrap().is_hierarchical());
        assert!(DataSource::new(path.to_str().unwrap()).load(&Host::new()).is_ok());
    }

    #[test]
    fn documents_come_over_http() {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/data.yaml", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\ndata:\n  port: 1\n";
            stream.write_all(answer).unwrap();
        });
        let document = DataSource::new(&url).load(&Host::new()).unwrap();
        assert!(document.is_hierarchical());
        server.join().unwrap();
    }

    #[test]
    fn what_is_out_of_reach_says_so_and_keeps_secrets() {
        for (source, wanted) in [
            ("http://me:secret@127.0.0.1:1/x", "cannot download http://127.0.0.1:1/x"),
            ("kv://B/k", "cannot download kv://B/k: `kv` is not available"),
        ] {
            let error = DataSource::new(source).load(&Host::new()).unwrap_err();
            assert!(error.to_string().starts_with(wanted), "{error}");
            if source.starts_with("kv") {
                assert_eq!(error.hint().unwrap(), "available schemes: file, http, https");
            }
        }
    }
}
