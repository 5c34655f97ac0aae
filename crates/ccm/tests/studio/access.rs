//! Who may ask, and from where.

use std::io::{Read as _, Write as _};

use serde_json::json;

use crate::{Studio, code, read};

#[test]
fn other_hosts_origins_and_sites_are_refused() {
    let studio = Studio::start(&[]);
    let bearer = format!("Bearer {}", studio.key);
    let own = studio.host.clone();
    let with = |headers: &[(&str, &str)]| {
        let mut all = vec![("Authorization", bearer.as_str())];
        all.extend(headers);
        studio.target.send("GET /api/v1/studio", &all, b"")
    };
    for host in ["evil.example", "localhost.evil.example:80", "128.0.0.2", "0.0.0.0", ""] {
        assert_eq!(code(&with(&[("Host", host)])), (403, "host".into()), "{host}");
    }
    assert_eq!(code(&with(&[("Host", &own), ("Host", "evil.example")])).0, 403);
    assert_eq!(code(&with(&[])), (403, "host".into()));
    for host in ["localhost", "localhost:1", "127.0.0.1:99", "[::1]:80", &own] {
        assert_eq!(with(&[("Host", host)]).status, 200, "{host}");
    }
    let origin = format!("http://{own}");
    assert_eq!(with(&[("Host", &own), ("Origin", &origin)]).status, 200);
    for other in ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost", ""] {
        let answer = with(&[("Host", &own), ("Origin", other)]);
        assert_eq!(code(&answer), (403, "origin".into()), "{other}");
    }
    assert_eq!(with(&[("Host", &own), ("Sec-Fetch-Site", "same-origin")]).status, 200);
    for site in ["cross-site", "same-site", "none", ""] {
        let answer = with(&[("Host", &own), ("Sec-Fetch-Site", site)]);
        assert_eq!(code(&answer), (403, "origin".into()), "{site}");
    }
    // A navigation to the page may come from anywhere, one to the API may not.
    let navigation = [
        ("Host", own.as_str()),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "navigate"),
        ("Sec-Fetch-Dest", "document"),
    ];
    assert_eq!(studio.target.send("GET /", &navigation, b"").status, 200);
    assert_eq!(code(&with(&navigation)), (403, "origin".into()));
    let framed = [("Host", own.as_str()), ("Sec-Fetch-Site", "cross-site")];
    assert_eq!(code(&studio.target.send("GET /", &framed, b"")).0, 403);
    let typed = [("Host", own.as_str()), ("Sec-Fetch-Site", "none")];
    assert_eq!(studio.target.send("GET /", &typed, b"").status, 200);
    // Not even an error page of another host is helped by CORS.
    let answer = with(&[("Host", &own), ("Origin", &origin)]);
    assert!(!answer.headers.iter().any(|(name, _)| name.starts_with("access-control-")));
    let options = studio.target.send("OPTIONS /api/v1/studio", &[("Host", &own)], b"");
    assert_eq!(code(&options), (405, "method".into()));
}

#[test]
fn every_answer_has_the_policy() {
    let studio = Studio::start(&[]);
    let host = [("Host", studio.host.as_str())];
    let answers = [
        studio.target.send("GET /", &host, b""),
        studio.target.send("GET /none.js", &host, b""),
        studio.target.send("GET /api/v1/studio", &host, b""),
        studio.target.send("GET /", &[("Host", "evil.example")], b""),
        studio.request("GET studio", &[], b""),
        studio.request("DELETE studio", &[], b""),
    ];
    for answer in &answers {
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(
            policy.contains("frame-ancestors 'none'") && policy.ends_with("trusted-types 'none'")
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("cross-origin-opener-policy"), "same-origin");
        assert_eq!(answer.header("cross-origin-embedder-policy"), "require-corp");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        assert!(answer.header("permissions-policy").contains("camera=()"));
    }
    assert!(answers[2..].iter().skip(2).all(|answer| answer.header("cache-control") == "no-store"));
    assert_eq!(answers[0].status, 200);
    assert!(answers[0].text().contains("<html"), "the page is in the binary");
    let tag = answers[0].header("etag").to_owned();
    let again = [("Host", studio.host.as_str()), ("If-None-Match", tag.as_str())];
    let again = studio.target.send("GET /", &again, b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
}

#[test]
fn the_page_is_sent_packed_to_whoever_takes_it() {
    let studio = Studio::start(&[]);
    let get = |headers: &[(&str, &str)]| {
        let host = [("Host", studio.host.as_str())];
        studio.target.send("GET /main.js", &[&host, headers].concat(), b"")
    };
    let plain = get(&[]);
    assert_eq!((plain.status, plain.header("content-encoding")), (200, ""));
    for refusal in ["identity", "gzip;q=0", "gzip; q=0.000, br", "xgzip"] {
        let answer = get(&[("Accept-Encoding", refusal)]);
        assert_eq!((answer.header("content-encoding"), &answer.body), ("", &plain.body));
    }
    for wish in ["gzip, deflate, br", "br, GZIP;q=0.5"] {
        let packed = get(&[("Accept-Encoding", wish)]);
        assert_eq!(packed.header("content-encoding"), "gzip");
        assert_eq!(packed.header("vary"), "accept-encoding");
        assert_eq!(packed.header("content-type"), plain.header("content-type"));
        assert_ne!(packed.header("etag"), plain.header("etag"));
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&*packed.body).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, plain.body);
        let tag = packed.header("etag");
        let again = get(&[("Accept-Encoding", wish), ("If-None-Match", tag)]);
        assert_eq!((again.status, again.body.len()), (304, 0));
    }
}

#[test]
fn a_link_works_once_and_wrong_keys_wait() {
    let mut studio = Studio::start(&[]);
    assert_eq!(code(&studio.exchange(&studio.token)), (401, "token_used".into()));
    let unknown = studio.exchange(&"0".repeat(64));
    assert_eq!(code(&unknown), (401, "key_wrong".into()));
    let missing = studio.target.send("GET /api/v1/studio", &[("Host", &studio.host)], b"");
    assert_eq!(code(&missing), (401, "key_missing".into()));
    let with = |value: &str| {
        let headers = [("Host", studio.host.as_str()), ("Authorization", value)];
        studio.target.send("GET /api/v1/studio", &headers, b"")
    };
    let wrong: Vec<_> = ["Bearer", "Bearer x", "Basic eDp4", &format!("Bearer {}", "f".repeat(64))]
        .iter()
        .map(|value| with(value))
        .collect();
    for answer in &wrong {
        assert_eq!(code(answer), (401, "key_wrong".into()));
        assert_eq!(answer.body.len(), wrong[0].body.len(), "all of one length");
    }
    for _ in 0..20 {
        with("Bearer x");
    }
    let started = std::time::Instant::now();
    assert_eq!(with("Bearer x").status, 401);
    assert!(started.elapsed().as_millis() >= 900, "it had to wait");
    // Who has the key does not wait, and is let in.
    assert_eq!(studio.request("GET studio", &[], b"").status, 200);
    let (exit, said) = studio.end(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(exit, Some(143));
    assert!(said.contains("a second time"), "{said}");
    assert!(!said.contains(&studio.token) && !said.contains(&studio.key), "{said}");
}

#[test]
fn requests_must_be_what_they_say() {
    let studio = Studio::start(&[]);
    let json = json!({"path": "web.yaml", "text": ""}).to_string();
    let plain = [
        ("Host", studio.host.as_str()),
        ("Authorization", &format!("Bearer {}", studio.key)),
        ("Content-Type", "text/plain"),
    ];
    let answer = studio.target.send("POST /api/v1/check", &plain, json.as_bytes());
    assert_eq!(code(&answer), (415, "media_type".into()));
    let refused = |body: &str| code(&studio.request("POST check", &[], body.as_bytes()));
    assert_eq!(refused("{"), (400, "malformed".into()));
    assert_eq!(refused("[]"), (400, "malformed".into()));
    assert_eq!(refused(r#"{"path": "a.yaml"}"#), (400, "malformed".into()));
    assert_eq!(
        refused(r#"{"path": "a.yaml", "text": "", "txet": 1}"#),
        (400, "unknown_field".into())
    );
    assert_eq!(refused(r#"{"path": "a.yaml", "text": "a\r\n"}"#), (400, "malformed".into()));
    assert_eq!(refused(r#"{"path": "a.yaml", "text": "\ufeffa"}"#), (400, "malformed".into()));
    assert_eq!(refused(r#"{"path": "../a.yaml", "text": ""}"#), (403, "outside".into()));
    let answer = studio.request("GET none", &[], b"");
    assert_eq!(code(&answer), (404, "not_found".into()));
    let answer = studio.request("PUT check", &[], b"{}");
    assert_eq!(code(&answer), (405, "method".into()));
    assert_eq!(answer.header("allow"), "POST");
    let long = "x".repeat(20_000);
    let answer = studio.request("GET studio", &[("X-Long", &long)], b"");
    assert_eq!(code(&answer), (431, "headers".into()));
    let head = format!(
        "POST /api/v1/check HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 30000000\r\n\r\n",
        studio.host, studio.key
    );
    let mut connection = studio.target.connect();
    connection.write_all(head.as_bytes()).unwrap();
    let mut answer = [0; 12];
    connection.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    let ids: Vec<String> = (0..2)
        .map(|_| read(&studio.request("GET none", &[], b""))["error"]["request"].to_string())
        .collect();
    assert_ne!(ids[0], ids[1], "each request has an id of its own");
}
