//! Tests with correct and with faulty servers.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccm_testkit::{Authority, Server, answer, snapshot_of_content};

use super::*;
use crate::{Attributes, Digest, Progress};

#[test]
fn documents_are_fetched_with_basic_authentication() {
    let server = Server::with_body("hello");
    let url = format!("http://me:secret@{}/data.yaml", server.address);
    assert_eq!(Host::new().fetch_text(&url, 100).unwrap(), "hello");
    let request = &server.requests()[0];
    assert!(request.starts_with("GET /data.yaml HTTP/1.1\n"), "{request}");
    assert!(request.contains("authorization: Basic bWU6c2VjcmV0\n"), "{request}");
}

#[test]
fn failures_are_told_without_credentials() {
    for (answer, words) in [
        (&b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..], "404 Not Found"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort", ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd", "not UTF-8"),
        (b"nonsense\r\n\r\n", ""),
    ] {
        let server = Server::with_bytes(answer);
        let url = format!("http://me:secret@{}/x", server.address);
        let error = Host::new().fetch_text(&url, 100).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("/x"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let server = Server::with_body("hello world");
    assert!(Host::new().fetch_text(&server.url("/"), 5).is_err());
    assert!(Host::new().fetch_text("http://127.0.0.1:1/", 5).is_err());
}

/// Downloads to `dir/f`, which holds `old`.
fn download(dir: &Path, request: &Request<'_>, expected: Option<Digest>) -> Result<()> {
    let host = Host::new();
    let (uid, gid) = host.whoami();
    let path = dir.join("f");
    host.download(request, &path, expected)?.place(&Attributes { uid, gid, mode: 0o600 })
}

/// A download that must fail: why it does. The old file stays as it is, and
/// nothing else is left.
fn failure(request: &Request<'_>) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), "old").unwrap();
    let before = snapshot_of_content(dir.path());
    let error = download(dir.path(), request, None).unwrap_err().to_string();
    assert_eq!(snapshot_of_content(dir.path()), before, "{error}");
    assert!(!error.contains("secret"), "{error}");
    error
}

fn success(request: &Request<'_>) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), "old").unwrap();
    download(dir.path(), request, None).unwrap();
    assert_eq!(snapshot_of_content(dir.path()).len(), 2);
    std::fs::read(dir.path().join("f")).unwrap()
}

#[test]
fn answers_that_are_no_file() {
    for (bytes, words) in [
        (answer("404 Not Found", "", b"no"), "the server answered 404 Not Found"),
        (answer("500 Internal Server Error", "", b"no"), "the server answered 500"),
        (answer("401 Unauthorized", "", b"no"), "the server answered 401"),
        (answer("204 No Content", "", b""), "the server answered 204"),
        (answer("206 Partial Content", "", b"part"), "the server answered 206"),
        (answer("203 Non-Authoritative Information", "", b"x"), "the server answered 203"),
        (answer("304 Not Modified", "", b""), "the server answered 304"),
        (answer("200 OK", "Content-Encoding: br\r\n", b"x"), "content encoding `br`"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort".to_vec(), ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n".to_vec(), ""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec(), ""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx".to_vec(), ""),
        (b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(), ""),
        (Vec::new(), ""),
    ] {
        let server = Server::with_bytes(bytes);
        let url = format!("http://me:secret@{}/a.tar", server.address);
        let error = failure(&Request::new(&url));
        let wanted = format!("cannot download http://{}/a.tar: ", server.address);
        assert!(error.starts_with(&wanted) && error.contains(words), "{error}");
        assert!(error.len() > wanted.len() + 5, "{error}");
    }
}

#[test]
fn what_comes_behind_the_said_length_is_not_part_of_it() {
    let server = Server::with_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello world");
    assert_eq!(success(&Request::new(&server.url("/"))), b"hello");
    let server = Server::with_bytes(b"HTTP/1.0 200 OK\r\n\r\nhello world");
    assert_eq!(success(&Request::new(&server.url("/"))), b"hello world");
}

#[test]
fn a_slow_server_is_waited_for_and_a_silent_one_is_not() {
    let slow = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n");
        for _ in 0..8 {
            // The pace of the server.
            std::thread::sleep(Duration::from_millis(100));
            let _ = stream.write_all(b"x");
            let _ = stream.flush();
        }
    });
    let silence = Duration::from_millis(400);
    let url = slow.url("/");
    assert_eq!(success(&Request::new(&url).with_idle_timeout(silence)), b"xxxxxxxx");

    for sent in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"]
    {
        let silent = Server::start(move |_, stream| {
            let _ = stream.write_all(sent);
            let _ = stream.flush();
            // Silence longer than the limit.
            std::thread::sleep(Duration::from_secs(3));
        });
        let url = silent.url("/");
        let error = failure(&Request::new(&url).with_idle_timeout(silence));
        assert!(error.ends_with("the server sent no data for 400ms"), "{error}");
    }
}

#[test]
fn a_reset_connection_is_an_error() {
    let server = Server::start(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc");
        stream.reset();
    });
    failure(&Request::new(&server.url("/")));
}

fn redirect(to: &str) -> Vec<u8> {
    answer("302 Found", &format!("Location: {to}\r\n"), b"moved")
}

#[test]
fn redirects_are_followed_within_reason() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server = Server::start(move |_, stream| {
        let so_far = counted.fetch_add(1, Ordering::Relaxed);
        let bytes = if so_far < 3 { redirect("../next") } else { answer("200 OK", "", b"there") };
        let _ = stream.write_all(&bytes);
    });
    let url = format!("http://me:secret@{}/a/b/c", server.address);
    assert_eq!(success(&Request::new(&url).with_header("X-Token", "secret")), b"there");
    for request in server.requests() {
        assert!(request.contains("authorization: Basic bWU6c2VjcmV0"), "{request}");
        assert!(request.contains("x-token: secret"), "{request}");
    }
    assert!(server.requests()[1].starts_with("GET /a/next HTTP/1.1"));

    let server = Server::with_bytes(redirect("/again"));
    let error = failure(&Request::new(&server.url("/")));
    assert!(error.contains("more than 10 redirects"), "{error}");
    assert_eq!(server.requests().len(), 11);
    for (to, words) in [
        ("ftp://example.com/x", "`ftp` is not supported"),
        ("file:///etc/passwd", "`file` is not supported"),
        ("http:///x", "it has no host"),
    ] {
        let server = Server::with_bytes(redirect(to));
        let error = failure(&Request::new(&server.url("/")));
        assert!(error.contains(words), "{error}");
    }
    let server = Server::with_bytes(answer("302 Found", "", b""));
    let error = failure(&Request::new(&server.url("/")));
    assert!(error.contains("without a `Location` header"), "{error}");
}

#[test]
fn nothing_meant_for_one_host_reaches_another() {
    let other = Server::with_body("there");
    let to = other.url("/x");
    let first = Server::with_bytes(redirect(&to));
    let url = format!("http://me:secret@{}/", first.address);
    let request = Request::new(&url)
        .with_header("X-Token", "secret")
        .with_header("Cookie", "secret")
        .with_header("Authorization", "Bearer secret");
    assert_eq!(success(&request), b"there");
    assert_eq!(success(&Request::new(&url).with_user("me", "secret")), b"there");
    for request in first.requests() {
        assert!(request.contains("authorization: "), "{request}");
    }
    for request in other.requests() {
        assert!(!request.contains("secret") && !request.contains("authorization"), "{request}");
        assert!(!request.contains("bWU6c2VjcmV0") && !request.contains("cookie"), "{request}");
    }
    let gone = Server::with_bytes(answer("404 Not Found", "", b""));
    let to = gone.url("/x");
    let first = Server::with_bytes(redirect(&to));
    let error = failure(&Request::new(&first.url("/")));
    assert!(error.contains(&format!("redirected to {to}, the server answered 404")), "{error}");
}

#[test]
fn the_users_own_header_wins_over_the_url() {
    let server = Server::with_body("x");
    let url = format!("http://me:secret@{}/", server.address);
    success(&Request::new(&url).with_header("authorization", "Bearer t"));
    let request = &server.requests()[0];
    assert_eq!(request.matches("authorization").count(), 1, "{request}");
    assert!(request.contains("authorization: Bearer t"), "{request}");
    for (name, value) in [("bad name", "secret"), ("x", "secret\r\ninjected: 1"), ("", "secret")] {
        let error = failure(&Request::new(&url).with_header(name, value));
        assert!(error.ends_with("a header or the URL is not valid"), "{error}");
    }
}

#[test]
fn compression_on_the_way_is_undone_and_that_of_the_file_is_not() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"hello").unwrap();
    let gzip = encoder.finish().unwrap();
    let server = Server::with_bytes(answer("200 OK", "Content-Encoding: gzip\r\n", &gzip));
    assert_eq!(success(&Request::new(&server.url("/a.zip"))), b"hello");
    assert_eq!(success(&Request::new(&server.url("/a.tar.gz?x"))), gzip);
    assert!(server.requests()[0].contains("accept-encoding: identity"));
    let cut = &gzip[..gzip.len() - 3];
    let server = Server::with_bytes(answer("200 OK", "Content-Encoding: gzip\r\n", cut));
    failure(&Request::new(&server.url("/a.zip")));
}

#[test]
fn certificates_that_nobody_vouches_for_are_refused() {
    let authority = Authority::new();
    let server = Server::start_secure(&authority, "localhost", |_, stream| {
        let _ = stream.write_all(&answer("200 OK", "", b"hello"));
    });
    let url = format!("https://me:secret@localhost:{}/a.zip", server.port());
    let error = failure(&Request::new(&url));
    assert!(error.contains("certificate"), "{error}");
    assert!(server.requests().is_empty());
}

#[test]
fn checksums_are_compared_before_the_old_file_goes() {
    let server = Server::with_body("hello");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f"), "old").unwrap();
    let before = snapshot_of_content(dir.path());
    let wrong = Digest::of(b"other");
    let url = format!("http://me:secret@{}/f", server.address);
    let error = download(dir.path(), &Request::new(&url), Some(wrong)).unwrap_err().to_string();
    let right = Digest::of(b"hello");
    let wanted = format!(
        "checksum mismatch, expected \"{wrong}\" got \"{right}\" from http://{}/f",
        server.address
    );
    assert_eq!(error, wanted);
    assert_eq!(snapshot_of_content(dir.path()), before);
    download(dir.path(), &Request::new(&url), Some(right)).unwrap();
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"hello");
}

#[test]
fn bounds_hold_for_what_is_said_and_for_what_comes() {
    let server = Server::with_body("hello");
    let url = server.url("/");
    assert!(failure(&Request::new(&url).with_limit(4)).ends_with("it is larger than 4 bytes"));
    assert_eq!(success(&Request::new(&url).with_limit(5)), b"hello");
    let server = Server::with_bytes(b"HTTP/1.0 200 OK\r\n\r\nhello");
    let url = server.url("/");
    assert!(failure(&Request::new(&url).with_limit(4)).ends_with("it is larger than 4 bytes"));
}

#[test]
fn the_temporary_file_is_private_and_progress_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let seen = dir.path().to_owned();
    let modes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&modes);
    let server = Server::start(move |_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
        for _ in 0..2 {
            let _ = stream.write_all(b"x");
            let _ = stream.flush();
            // Until the byte is on disk, and progress is due.
            std::thread::sleep(Duration::from_millis(150));
            noted.lock().unwrap().extend(snapshot_of_content(&seen).into_values());
        }
    });
    let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let host = Host::new();
    let sink = std::sync::Arc::clone(&told);
    host.on_progress(move |progress| sink.lock().unwrap().push(progress));
    let (uid, gid) = host.whoami();
    let wanted = Attributes { uid, gid, mode: 0o644 };
    let url = server.url("/");
    let incoming = host.download(&Request::new(&url), &dir.path().join("f"), None).unwrap();
    incoming.place(&wanted).unwrap();
    assert!(modes.lock().unwrap().iter().any(|mode| mode.starts_with("100600 ")), "{modes:?}");
    assert!(told.lock().unwrap().contains(&Progress { received: 2, total: Some(2) }), "{told:?}");
}

#[test]
fn files_without_a_name_hold_what_was_fetched() {
    use std::io::Read as _;
    let server = Server::with_body("hello");
    let mut fetched = Host::new().fetch_file(&Request::new(&server.url("/"))).unwrap();
    let mut text = String::new();
    fetched.file.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), fetched.size, fetched.digest), ("hello", 5, Digest::of(b"hello")));
    use std::os::unix::fs::MetadataExt as _;
    let meta = fetched.file.metadata().unwrap();
    assert_eq!((meta.nlink(), meta.mode() & 0o7777), (0, 0o600));
}

#[test]
fn what_the_caller_has_is_not_fetched_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(|head, stream| {
        let is_known = head.contains("if-none-match: \"v1\"\n")
            && head.contains("if-modified-since: Mon, 01 Jan 2024 00:00:00 GMT\n");
        let _ = stream.write_all(&if is_known {
            b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec()
        } else {
            let headers = "ETag: \"v1\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n";
            ccm_testkit::answer("200 OK", headers, b"hello")
        });
    });
    let url = server.url("/");
    let fetch = |known: &Validators| {
        let request = Request::new(&url).with_validators(known);
        Host::new().fetch_new(&request, directory.path()).unwrap()
    };
    let fetched = fetch(&Validators::default()).unwrap();
    assert_eq!(fetched.digest, Digest::of(b"hello"));
    assert!(fetch(&fetched.validators).is_none());
    let other = Validators { etag: Some("\"v2\"".to_owned()), last_modified: None };
    assert!(fetch(&other).is_some());
    assert!(!server.requests()[0].contains("if-"), "{:?}", server.requests());
}

#[test]
fn nothing_new_is_no_answer_to_who_has_nothing() {
    let server = Server::with_bytes(b"HTTP/1.1 304 Not Modified\r\n\r\n");
    let error = failure(&Request::new(&server.url("/")));
    assert!(error.ends_with("the server answered 304 Not Modified"), "{error}");
}
