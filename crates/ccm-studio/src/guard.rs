//! Rejects requests that do not come from the page, by the headers `Host`,
//! `Origin` and `Sec-Fetch-*`.

use ccm_http::{HeaderMap, Method, Request, Response, header};

use crate::error::{ApiError, ApiResult};

/// Everything that the page may load, and from where.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// On every answer.
const HEADERS: [(&str, &str); 8] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
];

/// Bytes of all headers that the studio takes.
const MAX_HEADERS: usize = 16 * 1024;

pub(crate) fn add_policy(mut response: Response, is_api: bool) -> Response {
    for (name, value) in HEADERS {
        response = response.with(header::HeaderName::from_static(name), value);
    }
    if is_api {
        response = response.with(header::CACHE_CONTROL, "no-store");
    }
    response
}

/// Refuses a request that another site, another name of this machine or another
/// page may have sent.
pub(crate) fn check(request: &Request, is_api: bool) -> ApiResult<()> {
    if header_bytes(request) > MAX_HEADERS {
        let status = ccm_http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Err(ApiError::new(status, "headers", "the headers are too large"));
    }
    let host = request.header(header::HOST).unwrap_or_default();
    let is_elsewhere = request.authority.as_deref().is_some_and(|named| named != host);
    if !is_local(host) || is_elsewhere {
        return Err(ApiError::forbidden("host", "this host name is not served here")
            .hint("open http://localhost or http://127.0.0.1 with the port of ccm studio"));
    }
    let headers = &request.headers;
    let is_navigation = !is_api
        && request.method == Method::GET
        && is(headers, "sec-fetch-mode", "navigate")
        && is(headers, "sec-fetch-dest", "document");
    if is_navigation {
        return Ok(());
    }
    let elsewhere = || ApiError::forbidden("origin", "the request comes from another page");
    if headers.contains_key(header::ORIGIN) {
        let origin = request.header(header::ORIGIN).unwrap_or_default();
        if origin.strip_prefix("http://") != Some(host) {
            return Err(elsewhere());
        }
    }
    if headers.contains_key("sec-fetch-site") {
        let is_typed = !is_api && is(headers, "sec-fetch-site", "none");
        if !is_typed && !is(headers, "sec-fetch-site", "same-origin") {
            return Err(elsewhere());
        }
    }
    Ok(())
}

fn header_bytes(request: &Request) -> usize {
    let line = request.path.len() + request.query.len();
    let headers = request.headers.iter();
    line + headers.map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>()
}

/// Whether a header is there once, with this value.
fn is(headers: &HeaderMap, name: &str, value: &str) -> bool {
    let mut all = headers.get_all(name).iter();
    all.next().is_some_and(|found| found == value) && all.next().is_none()
}

/// Whether `Host` is a loopback name, which no other machine can have.
fn is_local(host: &str) -> bool {
    let is_port = |port: &str| {
        !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    let (name, port) = match host.strip_suffix(']') {
        Some(_) => (host, None),
        None => host.rsplit_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    // Any loopback address that it may listen on.
    let is_address =
        |name: &str| name.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    port.is_none_or(is_port) && (matches!(name, "localhost" | "[::1]") || is_address(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for good in
            ["localhost", "localhost:1", "127.0.0.1:65535", "127.0.0.2:80", "[::1]", "[::1]:80"]
        {
            assert!(is_local(good), "{good}");
        }
        for bad in [
            "",
            "localhost.",
            "localhost:",
            "localhost:x",
            "localhost:80:80",
            "localhost.evil.example",
            "evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.2.evil.example",
            "127.0.0.2:",
            "128.0.0.1",
            "127.1",
            "::1",
            "LOCALHOST",
            "0.0.0.0",
            "localhost:123456",
        ] {
            assert!(!is_local(bad), "{bad}");
        }
    }
}
