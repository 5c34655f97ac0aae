//! Trees over HTTP.

use ccm_archive::{Error, Limits, fetch_tree};
use ccm_host::Host;
use ccm_testkit::Server;

use crate::build::{Tar, gzip};

#[test]
fn a_tree_is_private_and_goes_with_its_value() {
    use std::os::unix::fs::MetadataExt as _;
    let bytes =
        gzip(&Tar::default().file("top/manifest.yaml", "x").mode("top/run", b'0', 0o755).end());
    let server = Server::with_body(bytes);
    let url = format!("http://me:secret@{}/m.tar.gz", server.address);
    let tree = fetch_tree(&Host::new(), &url, &Limits::TREE).unwrap();
    let path = tree.path().to_owned();
    let mode = |name: &str| std::fs::metadata(path.join(name)).unwrap().mode() & 0o7777;
    assert_eq!(std::fs::read_to_string(path.join("top/manifest.yaml")).unwrap(), "x");
    assert_eq!((mode(""), mode("top/manifest.yaml"), mode("top/run")), (0o700, 0o600, 0o700));
    assert!(server.requests()[0].contains("authorization: Basic bWU6c2VjcmV0"));
    drop(tree);
    assert!(!path.exists());
}

#[test]
fn what_no_tree_needs_is_refused() {
    let tight = Limits { entries: 2, bytes: 100, ratio: 0 };
    let link = Tar::default().file("f", "x").symlink("l", "f");
    let hard = Tar::default().file("f", "x").hard_link("h", "f");
    let many = Tar::default().file("a", "").file("b", "").file("c", "");
    let large = Tar::default().file("a", &"x".repeat(101));
    let out = Tar::default().file("../a", "x");
    for (tar, words) in [
        (link, "only regular files and directories"),
        (hard, "only regular files and directories"),
        (many, "more than 2 entries"),
        (large, "more than 100 bytes"),
        (out, "`..`"),
    ] {
        let server = Server::with_body(gzip(&tar.end()));
        let url = format!("http://me:secret@{}/m.tgz", server.address);
        let error = fetch_tree(&Host::new(), &url, &tight).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("secret"), "{error}");
        assert!(error.contains(&server.address), "{error}");
    }
}

#[test]
fn only_tarballs_are_asked_for() {
    let server = Server::with_body("x");
    for path in ["/m.zip", "/m.yaml", "/", ""] {
        let url = format!("http://me:secret@{}{path}", server.address);
        let error = fetch_tree(&Host::new(), &url, &Limits::TREE).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    assert!(server.requests().is_empty());
    let server = Server::with_bytes(ccm_testkit::answer("404 Not Found", "", b""));
    let error = fetch_tree(&Host::new(), &server.url("/m.tgz"), &Limits::TREE).unwrap_err();
    assert!(error.to_string().contains("404"), "{error}");
}
