//! Small documents over HTTP.

use std::time::Duration;

use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

use crate::{Error, Host, Result};

/// How long a server may take to be reached.
const CONNECT: Duration = Duration::from_secs(10);
/// How long everything may take: these are documents, not archives.
const WHOLE: Duration = Duration::from_mins(1);

impl Host {
    /// Fetches a text of at most `limit` bytes. Credentials in the URL are sent
    /// as basic authentication, to its own host only, and never shown.
    pub fn fetch_text(&self, url: &str, limit: u64) -> Result<String> {
        let fail = |reason: String| Error::Fetch { url: without_credentials(url), reason };
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let agent: Agent = Agent::config_builder()
            .tls_config(tls)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(WHOLE))
            .http_status_as_error(false)
            .user_agent(concat!("ccm/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        tracing::debug!(url = without_credentials(url), "fetching");
        let mut response = agent.get(url).call().map_err(|error| fail(reason(&error, url)))?;
        if !response.status().is_success() {
            return Err(fail(format!("the server answered {}", response.status())));
        }
        let body = response.body_mut().with_config().limit(limit).read_to_vec();
        let bytes = body.map_err(|error| fail(reason(&error, url)))?;
        String::from_utf8(bytes).map_err(|_| fail("the answer is not UTF-8".to_owned()))
    }
}

/// What went wrong, without what the URL must not show.
fn reason(error: &ureq::Error, url: &str) -> String {
    error.to_string().replace(url, &without_credentials(url))
}

/// A URL as it may be shown.
fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// A server that answers one request with these bytes and hands it back.
    fn serve(answer: &'static [u8]) -> (String, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut request = String::new();
            while let Some(Ok(line)) = lines.next() {
                if line.is_empty() {
                    break;
                }
                request.push_str(&line);
                request.push('\n');
            }
            stream.write_all(answer).unwrap();
            request
        });
        (address, server)
    }

    #[test]
    fn documents_are_fetched_with_basic_authentication() {
        let (address, server) = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        let url = format!("http://me:secret@{address}/data.yaml");
        assert_eq!(Host::new().fetch_text(&url, 100).unwrap(), "hello");
        let request = server.join().unwrap();
        assert!(request.starts_with("GET /data.yaml HTTP/1.1\n"), "{request}");
        assert!(request.to_lowercase().contains("authorization: basic bwu6c2vjcmv0"), "{request}");
    }

    #[test]
    fn failures_are_told_without_credentials() {
        for (answer, words) in [
            (&b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..], "404 Not Found"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nshort", ""),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\xff\xfe\xfd", "not UTF-8"),
            (b"nonsense\r\n\r\n", ""),
        ] {
            let (address, server) = serve(answer);
            let url = format!("http://me:secret@{address}/x");
            let error = Host::new().fetch_text(&url, 100).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("/x"), "{error}");
            assert!(!error.contains("secret"), "{error}");
            server.join().unwrap();
        }
        let large = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world";
        let (address, server) = serve(large);
        assert!(Host::new().fetch_text(&format!("http://{address}/"), 5).is_err());
        server.join().unwrap();
        assert!(Host::new().fetch_text("http://127.0.0.1:1/", 5).is_err());
    }
}
