//! Schemes: those that are there, those that are not, and one that is added.

use std::io::{Cursor, Read as _};
use std::sync::Arc;

use super::*;
use crate::{Attributes, Cancel, CancelReason, Digest, System};

/// Serves `hello` under any name.
#[derive(Debug)]
struct Memory;

impl Fetch for Memory {
    fn schemes(&self) -> &'static [&'static str] {
        &["mem"]
    }

    fn check(&self, _url: &str) -> Result<(), String> {
        Ok(())
    }

    fn open(&self, request: &Request<'_>, _host: &Host) -> Result<Body> {
        match request.url() {
            url if url.ends_with("/broken") => Ok(Body::new(Broken)),
            url if url.ends_with("/none") => Err(request.failed("there is no such object")),
            _ => Ok(Body::new(Cursor::new("hello"))),
        }
    }
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("the bucket leaks"))
    }
}

fn host() -> Host {
    System::default().with_fetch(Arc::new(Memory)).begin(Cancel::default())
}

#[test]
fn an_added_scheme_has_limits_digests_and_errors_like_the_others() {
    let host = host();
    assert_eq!(host.fetch_text("mem://b/x", 5).unwrap(), "hello");
    assert_eq!(host.fetch_text("MEM://b/x", 5).unwrap(), "hello");
    let error = |url: &str, limit| host.fetch_text(url, limit).unwrap_err().to_string();
    assert_eq!(
        error("mem://u:secret@b/x", 4),
        "cannot download mem://b/x: it is larger than 4 bytes"
    );
    assert_eq!(error("mem://b/broken", 9), "cannot download mem://b/broken: the bucket leaks");
    assert_eq!(error("mem://b/none", 9), "cannot download mem://b/none: there is no such object");
    let mut fetched = host.fetch_file(&Request::new("mem://b/x")).unwrap();
    let mut text = String::new();
    fetched.file.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), fetched.digest), ("hello", Digest::of(b"hello")));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f");
    let wrong = host.download(&Request::new("mem://b/x"), &path, Some(Digest::of(b"other")));
    assert!(matches!(wrong, Err(Error::Checksum { .. })), "{wrong:?}");
    let (uid, gid) = host.whoami();
    let incoming = host.download(&Request::new("mem://b/x"), &path, None).unwrap();
    incoming.place(&Attributes { uid, gid, mode: 0o600 }).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"hello");
}

#[test]
fn a_cancelled_run_fetches_nothing_more() {
    let cancel = Cancel::new().unwrap();
    let host = System::default().with_fetch(Arc::new(Memory)).begin(cancel.clone());
    assert!(host.fetch_text("mem://b/x", 5).is_ok());
    cancel.cancel(CancelReason::Requested);
    for url in ["mem://b/x", "mem://b/broken"] {
        let error = host.fetch_text(url, 5).unwrap_err().to_string();
        assert!(error.ends_with("the run was interrupted"), "{error}");
    }
}

#[test]
fn unknown_schemes_have_one_error() {
    let url = "OBJ://me:hunter2@BUCKET/m.tgz?token=hunter2&v=1";
    for (host, schemes) in [(Host::new(), "file, http, https"), (host(), "file, http, https, mem")]
    {
        let request = Request::new(url);
        let directory = tempfile::tempdir().unwrap();
        for error in [
            host.fetchers().check(url).unwrap_err(),
            host.fetch_text(url, 9).unwrap_err(),
            host.read_source(url, 9).unwrap_err(),
            host.fetch_file(&request).unwrap_err(),
            host.download(&request, &directory.path().join("f"), None).unwrap_err(),
        ] {
            let wanted = "cannot download OBJ://BUCKET/m.tgz?token=[redacted]&v=1: `OBJ` is not \
                          available in this version";
            assert_eq!(error.to_string(), wanted);
            assert_eq!(error.hint().unwrap(), format!("available schemes: {schemes}"));
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}

#[test]
fn an_offline_system_knows_the_schemes_and_connects_to_nothing() {
    let host = System::default().with_fetch(Arc::new(Memory)).offline().begin(Cancel::default());
    for url in ["mem://x", "http://127.0.0.1:9/x"] {
        assert!(host.fetchers().check(url).is_ok(), "{url}");
        let error = host.fetch_text(url, 100).unwrap_err().to_string();
        assert!(error.ends_with(": ccm makes no connection in a check"), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), "text").unwrap();
    let url = format!("file://{}/f", dir.path().display());
    assert_eq!(host.fetch_text(&url, 100).unwrap(), "text");
}

#[test]
fn the_last_implementation_of_a_scheme_wins() {
    #[derive(Debug)]
    struct Other;
    impl Fetch for Other {
        fn schemes(&self) -> &'static [&'static str] {
            &["mem", "http"]
        }
        fn check(&self, _url: &str) -> Result<(), String> {
            Err("not like this".to_owned())
        }
        fn open(&self, request: &Request<'_>, _host: &Host) -> Result<Body> {
            Err(request.failed("never opened"))
        }
    }
    let system = System::default().with_fetch(Arc::new(Memory));
    let other = system.clone().with_fetch(Arc::new(Other)).begin(Cancel::default());
    for url in ["mem://x", "http://h"] {
        let error = other.fetchers().check(url).unwrap_err().to_string();
        assert_eq!(error, format!("cannot download {url}: not like this"));
    }
    assert!(system.begin(Cancel::default()).fetchers().check("mem://x").is_ok(), "no other has it");
}

#[test]
fn paths_are_told_from_urls() {
    for (text, scheme) in [
        ("http://h", Some("http")),
        ("svn+ssh://h", Some("svn+ssh")),
        ("/a://b", None),
        ("a b://c", None),
        ("://x", None),
        ("1a://x", None),
        ("a:/b", None),
        ("é://x", None),
        ("", None),
    ] {
        assert_eq!(url_scheme(text), scheme, "{text}");
    }
    let error = Host::new().fetchers().check("/a.tgz").unwrap_err().to_string();
    assert_eq!(error, "cannot download /a.tgz: it is not a URL");
}

#[test]
fn file_urls_are_regular_files_with_the_limits_of_others() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a b");
    std::fs::write(&path, "hello").unwrap();
    let at = |name: &str| format!("file://{}/{name}", directory.path().display());
    let host = Host::new();
    assert_eq!(host.fetch_text(&at("a%20b"), 5).unwrap(), "hello");
    assert_eq!(host.read_source(&at("a%20b"), 5).unwrap(), "hello");
    assert_eq!(host.read_source(path.to_str().unwrap(), 5).unwrap(), "hello");
    let error = host.fetch_text(&at("a%20b"), 4).unwrap_err().to_string();
    assert!(error.ends_with("it is larger than 4 bytes"), "{error}");
    assert!(host.fetch_text(&at("none"), 5).unwrap_err().is_missing());
    let fifo = directory.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for name in ["fifo", ""] {
        let error = host.fetch_text(&at(name), 5).unwrap_err();
        assert!(matches!(error, Error::NotAFile { .. }), "{error}");
    }
    std::fs::write(&path, b"\xff").unwrap();
    let error = host.fetch_text(&at("a%20b"), 5).unwrap_err().to_string();
    assert!(error.ends_with("it is not UTF-8"), "{error}");
}
