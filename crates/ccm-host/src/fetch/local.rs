//! `file` URLs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use super::{Body, Fetch, Request};
use crate::http::percent_decoded;
use crate::{Host, Result};

/// Reads local files, with the trust checks that paths get.
#[derive(Debug)]
pub(super) struct File;

impl Fetch for File {
    fn schemes(&self) -> &'static [&'static str] {
        &["file"]
    }

    fn check(&self, url: &str) -> Result<(), String> {
        path(url).map(drop)
    }

    fn open(&self, request: &Request<'_>, host: &Host) -> Result<Body> {
        let path = path(request.url()).map_err(|reason| request.failed(reason))?;
        let (file, stat) = host.open_trusted(&path)?;
        Ok(Body::new(file).with_length(Some(stat.size)))
    }

    fn open_preview(&self, request: &Request<'_>, host: &Host) -> Result<Option<Body>> {
        self.open(request, host).map(Some)
    }
}

/// The path that a `file` URL names.
pub(super) fn path(url: &str) -> Result<PathBuf, String> {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let slash = rest.find('/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(slash);
    if path.is_empty() || !(host.is_empty() || host.eq_ignore_ascii_case("localhost")) {
        return Err("its path is not absolute; write file:///path".to_owned());
    }
    if path.contains(['?', '#']) {
        return Err(
            "a file URL has no query or fragment; write `?` as %3F and `#` as %23".to_owned()
        );
    }
    let bytes = percent_decoded(path);
    if bytes.contains(&0) {
        return Err("a path cannot contain a NUL character".to_owned());
    }
    Ok(OsString::from_vec(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_absolute_and_decoded() {
        for (url, wanted) in [
            ("file:///a/b.yaml", "/a/b.yaml"),
            ("FILE://localhost/a", "/a"),
            ("file:///a%20b%3Fc", "/a b?c"),
            ("file:///a b", "/a b"),
            ("file:///", "/"),
        ] {
            assert_eq!(path(url), Ok(wanted.into()), "{url}");
        }
        for (url, words) in [
            ("file://a/b", "write file:///path"),
            ("file://", "write file:///path"),
            ("file:///a?b", "%3F"),
            ("file:///a#b", "%23"),
            ("file:///a%00b", "NUL"),
        ] {
            let reason = path(url).unwrap_err();
            assert!(reason.contains(words), "{url}: {reason}");
        }
    }
}
