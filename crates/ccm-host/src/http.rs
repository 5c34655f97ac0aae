//! What others serve: small documents as text, large bodies streamed to disk.
//!
//! Redirects are followed here and not by the client below, so that what is
//! meant for one host never reaches another.

mod download;
mod proxy;
mod resolve;
mod url;
mod watch;

use std::io::Read;
use std::time::Duration;

use ureq::Agent;
use ureq::config::Config;
use ureq::http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, LOCATION,
};
use ureq::http::{HeaderMap, StatusCode};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::unversioned::transport::DefaultConnector;

pub(crate) use download::ProgressSink;
pub use download::{Fetched, Progress};
use proxy::Proxy;
use resolve::TimedResolver;
use url::{Url, basic, without_credentials};
use watch::Watch;

use crate::{Error, Host, Result};

/// How long a server may take to be reached.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a document may take: these are small.
const DOCUMENT: Duration = Duration::from_mins(1);
/// How long a server may be silent.
const SILENCE: Duration = Duration::from_mins(1);
const MAX_REDIRECTS: usize = 10;

/// Whether a text is an address that can be fetched, and why not.
pub fn check_url(url: &str) -> Result<(), String> {
    Url::parse(url).map(drop)
}

/// What to fetch, and what to say to the server.
#[derive(Clone)]
pub struct Request<'a> {
    url: &'a str,
    user: Option<(&'a str, &'a str)>,
    headers: Vec<(&'a str, &'a str)>,
    silence: Duration,
    whole: Option<Duration>,
    limit: u64,
}

impl<'a> Request<'a> {
    /// Credentials in the URL are sent as basic authentication, to its own host
    /// only, and never shown.
    pub fn new(url: &'a str) -> Self {
        let silence = SILENCE;
        Self { url, user: None, headers: Vec::new(), silence, whole: None, limit: u64::MAX }
    }

    /// Sends basic authentication, in place of what the URL says.
    #[must_use]
    pub fn user(mut self, name: &'a str, password: &'a str) -> Self {
        self.user = Some((name, password));
        self
    }

    /// Sends a header, to the URL's own host only.
    #[must_use]
    pub fn header(mut self, name: &'a str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Gives up after this long without a byte; a minute when not said.
    #[must_use]
    pub fn silence(mut self, silence: Duration) -> Self {
        self.silence = silence;
        self
    }

    /// Accepts at most this many bytes.
    #[must_use]
    pub fn limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    fn fail(&self, reason: impl Into<String>) -> Error {
        Error::Fetch { url: without_credentials(self.url), reason: reason.into() }
    }

    fn config(&self) -> Config {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        Agent::config_builder()
            .tls_config(tls)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(self.silence))
            .timeout_per_write(Some(self.silence))
            .timeout_global(self.whole)
            // Which proxy is used depends on the address.
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("ccm/", env!("CARGO_PKG_VERSION")))
            .build()
    }

    /// Asks, and follows where the answer leads.
    fn send(&self, host: &Host) -> Result<Response> {
        let mut url = Url::parse(self.url).map_err(|reason| self.fail(reason))?;
        if let Some((name, password)) = self.user {
            url.credentials = Some(format!("{name}:{password}"));
        }
        let config = self.config();
        let direct = Agent::with_parts(config.clone(), DefaultConnector::default(), TimedResolver);
        let mut is_trusted = true;
        for _ in 0..=MAX_REDIRECTS {
            tracing::debug!(url = url.shown(), "fetching");
            let proxy = Proxy::find(host, &url).map_err(|reason| self.fail(reason))?;
            let special = proxy.as_ref().and_then(|proxy| proxy.agent(config.clone(), &url));
            let agent = special.as_ref().unwrap_or(&direct);
            let watch = Watch::start(agent, host.cancel());
            let answer = self.ask(agent, &url, proxy.as_ref(), is_trusted);
            let answer = answer.map_err(|error| {
                let through = proxy.as_ref().map(|proxy| format!("through proxy {proxy}, "));
                self.reason_by(host, &url, &through.unwrap_or_default(), &error)
            })?;
            let status = answer.status();
            if !is_redirect(status) {
                // Any other answer has no body, a part of it, or another one.
                if status != StatusCode::OK {
                    return Err(self.fail(format!("{}the server answered {status}", self.at(&url))));
                }
                let (parts, body) = answer.into_parts();
                return Ok(Response { headers: parts.headers, body, url, watch });
            }
            let next = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let next = next.ok_or_else(|| {
                self.fail(format!("the server answered {status} and not where to go"))
            })?;
            let next = url.join(next).map_err(|reason| {
                self.fail(format!("the server answered {status}, but where it leads: {reason}"))
            })?;
            if url.is_downgraded_by(&next) {
                return Err(self.fail(format!(
                    "the server redirects from https to {}, which ccm does not follow",
                    next.shown()
                )));
            }
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
            for (name, value) in &self.headers {
                request = request.header(*name, *value);
            }
        }
        let is_said =
            self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if let Some(credentials) = &url.credentials
            && !(is_said && is_trusted)
        {
            request = request.header(AUTHORIZATION, basic(credentials));
        }
        request.call()
    }

    /// Where an answer came from, if not from the URL itself.
    fn at(&self, url: &Url) -> String {
        let own = Url::parse(self.url).is_ok_and(|own| own.to_string() == url.to_string());
        if own { String::new() } else { format!("redirected to {}, ", url.shown()) }
    }

    /// What went wrong, in words.
    fn reason(&self, host: &Host, url: &Url, error: &ureq::Error) -> Error {
        self.reason_by(host, url, "", error)
    }

    fn reason_by(&self, host: &Host, url: &Url, through: &str, error: &ureq::Error) -> Error {
        if host.cancel().is_cancelled() {
            return self.fail("the run was interrupted");
        }
        let at = format!("{}{through}", self.at(url));
        self.fail(match error {
            ureq::Error::Timeout(ureq::Timeout::PerRead | ureq::Timeout::PerWrite) => {
                format!("{at}the server was silent for {:?}", self.silence)
            }
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                format!("{at}the server could not be reached within {CONNECT:?}")
            }
            ureq::Error::Timeout(_) => format!("{at}it took too long"),
            // The value may be a secret, and the client's words may show it.
            ureq::Error::Http(_) => format!("{at}a header or the URL is not valid"),
            ureq::Error::Io(error) => format!("{at}{error}"),
            error => format!("{at}{error}"),
        })
    }
}

/// Only where it goes, never what is said there.
impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&without_credentials(self.url))
    }
}

/// An answer whose body is still to come.
struct Response {
    headers: HeaderMap,
    body: ureq::Body,
    url: Url,
    watch: Option<Watch>,
}

/// A body on its way.
struct Body {
    reader: Box<dyn Read>,
    /// Its length, where the server says.
    length: Option<u64>,
    /// Lives as long as there is something to wait for.
    _watch: Option<Watch>,
}

impl Response {
    /// The body. One that the server compressed unasked is decompressed, except
    /// where the address itself names gzip: servers label such files so and
    /// send them as they are.
    fn into_body(self) -> Result<Body, String> {
        let text = |name| self.headers.get(name).and_then(|value| value.to_str().ok());
        let encoding = text(CONTENT_ENCODING).unwrap_or_default().trim().to_ascii_lowercase();
        let length = text(CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let extension = self.url.path().rsplit('.').next().unwrap_or_default();
        let is_gzip_itself = ["gz", "tgz"].iter().any(|gzip| gzip.eq_ignore_ascii_case(extension));
        let reader = self.body.into_reader();
        let (reader, length): (Box<dyn Read>, _) = match encoding.as_str() {
            "" | "identity" => (Box::new(reader), length),
            "gzip" | "x-gzip" if is_gzip_itself => (Box::new(reader), length),
            "gzip" | "x-gzip" => (Box::new(flate2::read::MultiGzDecoder::new(reader)), None),
            other => {
                return Err(format!("the server encoded it as `{other}`, which was not asked for"));
            }
        };
        Ok(Body { reader, length, _watch: self.watch })
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

impl Host {
    /// Fetches a text of at most `limit` bytes. Credentials in the URL are sent
    /// as basic authentication, to its own host only, and never shown.
    pub fn fetch_text(&self, url: &str, limit: u64) -> Result<String> {
        let mut request = Request::new(url).limit(limit);
        request.whole = Some(DOCUMENT);
        let mut bytes = Vec::new();
        self.stream(&request, &mut |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        String::from_utf8(bytes).map_err(|_| request.fail("the answer is not UTF-8"))
    }
}

#[cfg(test)]
mod tests;
