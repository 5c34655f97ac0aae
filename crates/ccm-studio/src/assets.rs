//! The files of the page.

use std::io::Read as _;
use std::path::Path;

use ccm_host::{Digest, Tree, tree_place};
use ccm_http::{Bytes, Method, Request, Response, StatusCode, header};

use crate::error::{ApiError, ApiResult};

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// A file of the page that is larger was not made by us.
const MAX_SIZE: u64 = 4 << 20;

/// Answers a request for a file of the page, from `disk` if there is one.
pub(crate) fn serve(request: &Request, disk: Option<&Tree>) -> ApiResult<Response> {
    if request.method != Method::GET && request.method != Method::HEAD {
        return Err(method("GET, HEAD"));
    }
    let name = match request.path.strip_prefix('/') {
        Some("") => "index.html",
        Some(name) => name,
        None => return Err(ApiError::not_found("such page")),
    };
    let content_type = content_type(name).ok_or_else(|| ApiError::not_found("such page"))?;
    let (bytes, is_packed) = match disk {
        None => {
            let found = EMBEDDED.iter().find(|(known, _)| *known == name);
            let (_, packed) = found.ok_or_else(|| ApiError::not_found("such page"))?;
            if takes_gzip(request) {
                (Bytes::from_static(packed), true)
            } else {
                (unpack(packed)?.into(), false)
            }
        }
        Some(tree) => {
            let place = tree_place(name);
            let read = place.and_then(|place| tree.read(&place, MAX_SIZE).ok().flatten());
            (read.ok_or_else(|| ApiError::not_found("such page"))?.0.into(), false)
        }
    };
    // Of packed and plain bytes the digests differ, and so do the tags, as they must.
    let tag = format!("\"{}\"", Digest::of(&bytes));
    let is_known = request.header(header::IF_NONE_MATCH).is_some_and(|known| known == tag);
    let mut response = if is_known {
        Response::empty(StatusCode::NOT_MODIFIED)
    } else {
        Response::new(StatusCode::OK, content_type, bytes)
    };
    if is_packed && !is_known {
        response = response.with(header::CONTENT_ENCODING, "gzip");
    }
    let response = response.with(header::VARY, "accept-encoding");
    Ok(response.with(header::ETAG, &tag).with(header::CACHE_CONTROL, "no-cache"))
}

/// Whether the answer may be gzip. All browsers take it.
fn takes_gzip(request: &Request) -> bool {
    let accepted = request.header(header::ACCEPT_ENCODING).unwrap_or_default();
    accepted.split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

fn unpack(packed: &[u8]) -> ApiResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(packed).take(MAX_SIZE);
    match reader.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(ApiError::internal(format!("cannot unpack a file of the page: {error}"))),
    }
}

pub(crate) fn method(allowed: &str) -> ApiError {
    let message = format!("only {allowed} can be used here");
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method", message)
}

fn content_type(name: &str) -> Option<&'static str> {
    Some(match Path::new(name).extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test compares with the files themselves")]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_type_and_is_what_the_repository_holds() {
        let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        for (name, packed) in EMBEDDED {
            assert!(content_type(name).is_some(), "{name}");
            let bytes = unpack(packed).unwrap_or_else(|_| panic!("{name}"));
            assert!((bytes.len() as u64) < MAX_SIZE, "{name}");
            assert!(bytes == std::fs::read(web.join(name)).unwrap(), "{name}");
        }
        assert!(EMBEDDED.iter().any(|(name, _)| *name == "index.html"));
    }
}
