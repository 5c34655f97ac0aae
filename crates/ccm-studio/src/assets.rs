//! The files of the page.

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
    let bytes = match disk {
        None => {
            let found = EMBEDDED.iter().find(|(known, _)| *known == name);
            found.map(|(_, bytes)| Bytes::from_static(bytes))
        }
        Some(tree) => {
            let place = tree_place(name);
            let read = place.and_then(|place| tree.read(&place, MAX_SIZE).ok().flatten());
            read.map(|(bytes, _)| bytes.into())
        }
    };
    let content_type = content_type(name).ok_or_else(|| ApiError::not_found("such page"))?;
    let bytes = bytes.ok_or_else(|| ApiError::not_found("such page"))?;
    let tag = format!("\"{}\"", Digest::of(&bytes));
    let is_known = request.header(header::IF_NONE_MATCH).is_some_and(|known| known == tag);
    let response = if is_known {
        Response::empty(StatusCode::NOT_MODIFIED)
    } else {
        Response::new(StatusCode::OK, content_type, bytes)
    };
    Ok(response.with(header::ETAG, &tag).with(header::CACHE_CONTROL, "no-cache"))
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
mod tests {
    use super::*;

    #[test]
    fn every_file_has_a_type_and_the_page_is_there() {
        for (name, bytes) in EMBEDDED {
            assert!(content_type(name).is_some(), "{name}");
            assert!((bytes.len() as u64) < MAX_SIZE, "{name}");
        }
    }
}
