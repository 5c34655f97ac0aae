//! `http` and `https` URLs.
//!
//! ccm follows redirects itself instead of leaving it to the HTTP client, so
//! that it never sends credentials and headers to another host.

mod exchange;
mod proxy;
mod resolve;
mod url;
mod watch;

use std::io::{self, Read};
use std::time::Duration;

use ureq::Agent;
use ureq::config::Config;
use ureq::http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, LOCATION,
};
use ureq::http::{HeaderMap, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::DefaultConnector;

pub use exchange::{HttpAnswer, HttpError, HttpRequest, Tls, TlsPart};
use proxy::Proxy;
use resolve::TimedResolver;
pub use url::Url;
use url::basic;
pub(crate) use url::{percent_decoded, without_credentials};
use watch::Watch;

use crate::{Body, Error, Fetch, Host, Request, Result, Validators};

/// How long a server may take to be reached.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 10;
/// Longer ones are not cached.
const MAX_VALIDATOR: usize = 1024;

/// Downloads from `http` and `https` URLs.
#[derive(Debug)]
pub(crate) struct Http;

impl Fetch for Http {
    fn schemes(&self) -> &'static [&'static str] {
        &["http", "https"]
    }

    fn check(&self, url: &str) -> Result<(), String> {
        Url::parse(url).map(drop)
    }

    fn open(&self, request: &Request<'_>, host: &Host) -> Result<Body> {
        match Exchange(request).send(host)? {
            Some(response) => response.into_body(request).map_err(|reason| request.failed(reason)),
            None => Ok(Body::unchanged()),
        }
    }
}

/// A request, and how it is put to servers.
struct Exchange<'a>(&'a Request<'a>);

impl Exchange<'_> {
    fn fail(&self, reason: impl Into<String>) -> Error {
        self.0.failed(reason)
    }

    fn config(&self) -> Config {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        Agent::config_builder()
            .tls_config(tls)
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_per_read(Some(self.0.idle_timeout()))
            .timeout_per_write(Some(self.0.idle_timeout()))
            .timeout_global(self.0.timeout())
            // Which proxy is used depends on the address.
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("ccm/", env!("CARGO_PKG_VERSION")))
            .build()
    }

    /// Asks, and follows where the answer leads. `None` if the server has nothing
    /// new.
    fn send(&self, host: &Host) -> Result<Option<Response>> {
        let mut url = Url::parse(self.0.url()).map_err(|reason| self.fail(reason))?;
        if let Some((name, password)) = self.0.user() {
            url.credentials = Some(format!("{name}:{password}"));
        }
        let config = self.config();
        let direct = Agent::with_parts(config.clone(), DefaultConnector::default(), TimedResolver);
        let mut is_trusted = true;
        for _ in 0..=MAX_REDIRECTS {
            let shown = host.redactor().text(&url.shown()).into_owned();
            tracing::debug!(url = shown, "downloading");
            let proxy = Proxy::find(host, &url).map_err(|reason| self.fail(reason))?;
            let special = proxy.as_ref().and_then(|proxy| proxy.agent(config.clone(), &url));
            let agent = special.as_ref().unwrap_or(&direct);
            let watch = Watch::start(agent, host.cancel());
            let answer = self.ask(agent, &url, proxy.as_ref(), is_trusted);
            let answer = answer.map_err(|error| {
                let through = proxy.as_ref().map(|proxy| format!("through proxy {proxy}, "));
                self.reason(host, &url, &through.unwrap_or_default(), &error)
            })?;
            let status = answer.status();
            if !is_redirect(status) {
                if status == StatusCode::NOT_MODIFIED && self.0.validators().is_some() {
                    return Ok(None);
                }
                // Any other answer has no body, a part of it, or another one.
                if status != StatusCode::OK {
                    let at = redirected(self.0, &url);
                    return Err(self.fail(format!("{at}the server answered {status}")));
                }
                let (parts, body) = answer.into_parts();
                return Ok(Some(Response { headers: parts.headers, body, url, watch }));
            }
            let next = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let next = next.ok_or_else(|| {
                self.fail(format!("the server answered {status} without a `Location` header"))
            })?;
            let next = url.redirect(status, next).map_err(|reason| self.fail(reason))?;
            is_trusted &= url.trusts(&next);
            url = next;
        }
        let last = url.shown();
        Err(self.fail(format!("more than {MAX_REDIRECTS} redirects, the last one to {last}")))
    }

    fn ask(
        &self,
        agent: &Agent,
        url: &Url,
        proxy: Option<&Proxy>,
        is_trusted: bool,
    ) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let request = match proxy {
            Some(proxy) => proxy.request(agent, url),
            None => agent.get(url.to_string()),
        };
        // What is stored or compared must be what the server holds.
        let mut request = request.header(ACCEPT_ENCODING, "identity");
        if is_trusted {
            for (name, value) in self.0.headers() {
                request = request.header(*name, *value);
            }
        }
        if let Some(known) = self.0.validators() {
            let conditions =
                [(IF_NONE_MATCH, &known.etag), (IF_MODIFIED_SINCE, &known.last_modified)];
            for (name, value) in conditions {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
        }
        let is_said =
            self.0.headers().iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let Some(credentials) = &url.credentials
            && !(is_said && is_trusted)
        {
            request = request.header(AUTHORIZATION, basic(credentials));
        }
        request.call()
    }

    fn reason(&self, host: &Host, url: &Url, through: &str, error: &ureq::Error) -> Error {
        if host.cancel().is_cancelled() {
            return self.fail("the run was interrupted");
        }
        let at = format!("{}{through}", redirected(self.0, url));
        self.fail(reason(&at, self.0.idle_timeout(), error))
    }
}

/// Where an answer came from, if not from the URL itself.
fn redirected(request: &Request<'_>, url: &Url) -> String {
    let own = Url::parse(request.url()).is_ok_and(|own| own.to_string() == url.to_string());
    if own { String::new() } else { format!("redirected to {}, ", url.shown()) }
}

/// The message for a failed request.
fn reason(at: &str, idle_timeout: Duration, error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(ureq::Timeout::PerRead | ureq::Timeout::PerWrite) => {
            format!("{at}the server sent no data for {idle_timeout:?}")
        }
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            format!("{at}the server could not be reached within {CONNECT_TIMEOUT:?}")
        }
        ureq::Error::Timeout(_) => format!("{at}the request timed out"),
        // The value may be a secret, and the client's words may show it.
        ureq::Error::Http(_) => format!("{at}a header or the URL is not valid"),
        ureq::Error::Io(error) => format!("{at}{}", without_tls(error)),
        error => format!("{at}{}", without_tls(error)),
    }
}

/// Replaces the TLS library's message for an answer that is not TLS, which does
/// not name the mistake.
fn without_tls(error: &dyn std::error::Error) -> String {
    let words = error.to_string();
    if words.contains("InvalidContentType") {
        return crate::error::NO_TLS.to_owned();
    }
    words
}

/// An answer whose body is still to come.
struct Response {
    headers: HeaderMap,
    body: ureq::Body,
    url: Url,
    watch: Option<Watch>,
}

/// A body whose errors are reasons for people.
struct BodyReader {
    reader: Box<dyn Read>,
    at: String,
    idle_timeout: Duration,
    /// Lives as long as there is something to wait for.
    _watch: Option<Watch>,
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => error,
            _ => io::Error::other(reason(&self.at, self.idle_timeout, &error.into())),
        })
    }
}

impl Response {
    /// The body. One that the server compressed unasked is decompressed, except
    /// where the address itself names gzip: servers label such files so and
    /// send them as they are.
    fn into_body(self, request: &Request<'_>) -> Result<Body, String> {
        let text = |name| self.headers.get(name).and_then(|value| value.to_str().ok());
        let encoding = text(CONTENT_ENCODING).unwrap_or_default().trim().to_ascii_lowercase();
        let length = text(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let validator =
            |name| text(name).filter(|value| value.len() <= MAX_VALIDATOR).map(ToOwned::to_owned);
        let validators =
            Validators { etag: validator(ETAG), last_modified: validator(LAST_MODIFIED) };
        let extension = self.url.path().rsplit('.').next().unwrap_or_default();
        let is_gzip_itself = ["gz", "tgz"].iter().any(|gzip| gzip.eq_ignore_ascii_case(extension));
        let reader = self.body.into_reader();
        let (reader, length): (Box<dyn Read>, _) = match encoding.as_str() {
            "" | "identity" => (Box::new(reader), length),
            "gzip" | "x-gzip" if is_gzip_itself => (Box::new(reader), length),
            "gzip" | "x-gzip" => (Box::new(flate2::read::MultiGzDecoder::new(reader)), None),
            other => {
                return Err(format!(
                    "the server used the content encoding `{other}`, which ccm did not request"
                ));
            }
        };
        let (at, idle_timeout) = (redirected(request, &self.url), request.idle_timeout());
        let reader = BodyReader { reader, at, idle_timeout, _watch: self.watch };
        Ok(Body::new(reader).with_length(length).with_validators(validators))
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

#[cfg(test)]
mod tests;
