//! Where documents come from.

use std::path::{Path, PathBuf};

use ccm_host::Host;
use ccm_model::redact_credentials;

use crate::{Document, Error};

/// What people write by hand is smaller.
const MAX_SIZE: u64 = 64 << 20;

/// Where hierarchical data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// `http://` or `https://`.
    Http(String),
    /// `kv://BUCKET/key`.
    Kv {
        /// The bucket.
        bucket: String,
        /// The key in it.
        key: String,
    },
}

impl Source {
    /// Tells the kind of a source from how it is written.
    ///
    /// ```
    /// use ccm_hiera::Source;
    ///
    /// assert_eq!(Source::new("data.yaml"), Source::File("data.yaml".into()));
    /// let (bucket, key) = ("CONFIG".to_owned(), "web/data".to_owned());
    /// assert_eq!(Source::new("kv://CONFIG/web/data"), Source::Kv { bucket, key });
    /// ```
    pub fn new(text: &str) -> Self {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Self::Http(text.to_owned());
        }
        if let Some(rest) = text.strip_prefix("kv://") {
            let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
            return Self::Kv { bucket: bucket.to_owned(), key: key.to_owned() };
        }
        Self::File(text.into())
    }

    /// Reads the document. As root, a file that others can change gets a warning;
    /// with `CCM_STRICT=1` it is an error.
    pub fn load(&self, host: &Host) -> Result<Document, Error> {
        let unavailable = |source_name: String, kind| Error::NotAvailable { source_name, kind };
        match self {
            Self::File(path) => {
                let text = host.read_trusted(path, MAX_SIZE)?;
                Document::parse(&path.display().to_string(), &text)
            }
            Self::Http(url) => {
                let text = host.fetch_text(url, MAX_SIZE)?;
                Document::parse(&redact_credentials(url), &text)
            }
            Self::Kv { bucket, key } => {
                Err(unavailable(format!("kv://{bucket}/{key}"), "key-value"))
            }
        }
    }

    /// Reads a file that need not be there.
    pub fn load_default(host: &Host, path: &Path) -> Result<Option<Document>, Error> {
        match host.stat(path)? {
            Some(_) => Self::File(path.to_owned()).load(host).map(Some),
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
        assert!(Source::load_default(&host, &path).unwrap().is_none());
        assert!(Source::File(path.clone()).load(&host).is_err());
        std::fs::write(&path, "data:\n  a: 1\n").unwrap();
        let document = Source::load_default(&host, &path).unwrap().unwrap();
        assert!(document.is_hierarchical());
        std::fs::write(&path, "data: [\n").unwrap();
        assert!(Source::load_default(&host, &path).is_err());
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
        let document = Source::new(&url).load(&Host::new()).unwrap();
        assert!(document.is_hierarchical());
        server.join().unwrap();
    }

    #[test]
    fn what_is_out_of_reach_says_so_and_keeps_secrets() {
        for (source, wanted) in [
            ("http://me:secret@127.0.0.1:1/x", "cannot fetch http://127.0.0.1:1/x"),
            ("kv://B/k", "kv://B/k: key-value sources are not available"),
        ] {
            let error = Source::new(source).load(&Host::new()).unwrap_err().to_string();
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
