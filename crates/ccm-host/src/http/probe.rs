//! One HTTP request whose complete response is returned, regardless of its
//! status.

use std::fmt;
use std::io::Read as _;
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderName, LOCATION};
use ureq::http::{Response, StatusCode};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, RequestBuilder};

use super::proxy::Proxy;
use super::resolve::TimedResolver;
use super::url::{Url, basic};
use super::watch::Watch;
use super::{MAX_REDIRECTS, is_redirect};
use crate::Host;

/// The methods that a probe can use.
pub const HTTP_METHODS: [&str; 8] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

/// A request to a server whose answer is to be looked at.
#[derive(Clone, Default)]
pub struct HttpProbe {
    /// Where to; credentials in it are sent to its own host only.
    pub url: String,
    /// One of [`HTTP_METHODS`].
    pub method: String,
    /// How long everything together may take.
    pub timeout: Duration,
    /// Accept every certificate.
    pub allow_insecure: bool,
    /// Look at the first answer, even if it leads elsewhere.
    pub no_follow_redirects: bool,
    /// Names and values of headers, for the URL's own host only.
    pub headers: Vec<(String, String)>,
    /// Body of the request.
    pub body: Option<String>,
    /// Name and password in place of those in the URL.
    pub user: Option<(String, String)>,
    /// Certificates in PEM that alone are trusted, in place of the system's.
    pub authorities: Option<Vec<u8>>,
    /// Certificates and key in PEM that prove who asks.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// A proxy in place of that of the environment.
    pub proxy: Option<String>,
    /// As many bytes of the body are read.
    pub limit: u64,
}

/// Nothing of a request may show up in a log.
impl fmt::Debug for HttpProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpProbe").field("method", &self.method).finish_non_exhaustive()
    }
}

/// The answer of a server.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    /// The code of its status.
    pub status: u16,
    /// `Name: value`, sorted.
    pub headers: Vec<String>,
    /// The body, or the reason why it could not be read to its end.
    pub body: Result<Vec<u8>, String>,
}

impl Host {
    /// Sends a request and reads the answer. The reason of a failure is for
    /// people and holds nothing of the request's secrets.
    pub fn probe_http(&self, probe: &HttpProbe) -> Result<HttpAnswer, String> {
        let deadline = Instant::now() + probe.timeout;
        let mut url = Url::parse(&probe.url)?;
        if let Some((name, password)) = &probe.user {
            url.credentials = Some(format!("{name}:{password}"));
        }
        let tls = tls(probe)?;
        let mut hop = Hop { probe, method: &probe.method, has_body: true, is_trusted: true };
        for _ in 0..=MAX_REDIRECTS {
            let left = deadline.saturating_duration_since(Instant::now());
            let config = config(left, tls.clone());
            let proxy = match &probe.proxy {
                Some(given) => Some(Proxy::given(given)?),
                None => Proxy::find(self, &url)?,
            };
            let special = proxy.as_ref().and_then(|proxy| proxy.agent(config.clone(), &url));
            let agent = special.unwrap_or_else(|| {
                Agent::with_parts(config, DefaultConnector::default(), TimedResolver)
            });
            let watch = Watch::start(&agent, self.cancel());
            let answer = hop.send(&agent, &url, proxy.as_ref());
            let answer = answer.map_err(|error| self.reason(probe, &error))?;
            let status = answer.status();
            let next = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let next = next.filter(|_| is_redirect(status) && !probe.no_follow_redirects);
            let Some(next) = next else {
                let answer = self.whole(probe, answer);
                drop(watch);
                return Ok(answer);
            };
            let next = url.join(next).map_err(|reason| {
                format!("the server answered {status}, with an invalid `Location` header: {reason}")
            })?;
            if url.is_downgraded_by(&next) {
                let next = next.shown();
                return Err(format!(
                    "the server redirects from https to {next}, which ccm does not follow"
                ));
            }
            hop.follow(status, url.trusts(&next));
            url = next;
        }
        Err(format!("more than {MAX_REDIRECTS} redirects, the last one to {}", url.shown()))
    }

    fn whole(&self, probe: &HttpProbe, answer: Response<ureq::Body>) -> HttpAnswer {
        let (parts, body) = answer.into_parts();
        let mut headers: Vec<String> = parts
            .headers
            .iter()
            .map(|(name, value)| {
                format!("{}: {}", canonical(name), String::from_utf8_lossy(value.as_bytes()))
            })
            .collect();
        headers.sort_unstable();
        let mut bytes = Vec::new();
        let read = body.into_reader().take(probe.limit + 1).read_to_end(&mut bytes);
        let body = match read {
            Ok(_) if bytes.len() as u64 > probe.limit => {
                Err(format!("the body is larger than {} MiB", probe.limit >> 20))
            }
            Ok(_) => Ok(bytes),
            Err(error) => Err(self.reason(probe, &error.into())),
        };
        HttpAnswer { status: parts.status.as_u16(), headers, body }
    }

    fn reason(&self, probe: &HttpProbe, error: &ureq::Error) -> String {
        if self.cancel().is_cancelled() {
            return "the run was interrupted".to_owned();
        }
        match error {
            ureq::Error::Timeout(_) => format!("no answer within {:?}", probe.timeout),
            // The value may be a secret, and the client's words may show it.
            ureq::Error::Http(_) => "a header or the URL is not valid".to_owned(),
            ureq::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        }
    }
}

/// One request on the way along redirects.
struct Hop<'a> {
    probe: &'a HttpProbe,
    method: &'a str,
    has_body: bool,
    /// Whether what is meant for the first host may go to this one.
    is_trusted: bool,
}

impl Hop<'_> {
    /// Goes on as browsers do: only 307 and 308 repeat the request as it was.
    fn follow(&mut self, status: StatusCode, is_trusted: bool) {
        self.is_trusted &= is_trusted;
        if !matches!(status.as_u16(), 307 | 308) {
            self.has_body = false;
            if self.method != "HEAD" {
                self.method = "GET";
            }
        }
    }

    fn send(
        &self,
        agent: &Agent,
        url: &Url,
        proxy: Option<&Proxy>,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let mut headers: Vec<(String, String)> = Vec::new();
        let direct = url.to_string();
        let target = match proxy.and_then(|proxy| proxy.absolute(url)) {
            Some((target, more)) => {
                headers.extend(more.into_iter().map(|(name, value)| (name.to_string(), value)));
                target
            }
            None => direct,
        };
        let own: &[(String, String)] = if self.is_trusted { &self.probe.headers } else { &[] };
        let is_said =
            |name: &HeaderName| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name.as_str()));
        if !is_said(&ACCEPT_ENCODING) {
            headers.push((ACCEPT_ENCODING.to_string(), "identity".to_owned()));
        }
        if let Some(credentials) = url.credentials.as_ref().filter(|_| !is_said(&AUTHORIZATION)) {
            headers.push((AUTHORIZATION.to_string(), basic(credentials)));
        }
        // A name that the caller gives replaces ours.
        headers.retain(|(name, _)| !own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
        headers.extend(own.iter().cloned());
        let tunnel = proxy.filter(|proxy| proxy.absolute(url).is_none());
        let body = self.probe.body.as_deref().filter(|_| self.has_body);
        let with_body = match self.method {
            "POST" => agent.post(target),
            "PUT" => agent.put(target),
            "PATCH" => agent.patch(target),
            other => {
                let request = match other {
                    "HEAD" => agent.head(target),
                    "DELETE" => agent.delete(target),
                    "OPTIONS" => agent.options(target),
                    "TRACE" => agent.trace(target),
                    _ => agent.get(target),
                };
                let request = decorate(request, &headers, tunnel);
                return match body {
                    Some(body) => request.force_send_body().send(body),
                    None => request.call(),
                };
            }
        };
        let request = decorate(with_body, &headers, tunnel);
        match body {
            Some(body) => request.send(body),
            None => request.send_empty(),
        }
    }
}

fn decorate<B>(
    mut request: RequestBuilder<B>,
    headers: &[(String, String)],
    tunnel: Option<&Proxy>,
) -> RequestBuilder<B> {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match tunnel {
        Some(proxy) => request.config().proxy(Some(proxy.inner().clone())).build(),
        None => request,
    }
}

fn config(timeout: Duration, tls: TlsConfig) -> Config {
    Agent::config_builder()
        .tls_config(tls)
        .timeout_global(Some(timeout))
        .timeout_resolve(Some(timeout))
        .timeout_connect(Some(timeout))
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("ccm/", env!("CARGO_PKG_VERSION")))
        .build()
}

fn tls(probe: &HttpProbe) -> Result<TlsConfig, String> {
    let roots = match &probe.authorities {
        Some(pem) => RootCerts::new_with_certs(&certificates(pem, "ca-file")?),
        None => RootCerts::PlatformVerifier,
    };
    let identity = match &probe.identity {
        Some((chain, key)) => {
            let chain = certificates(chain, "cert-file")?;
            let key =
                PrivateKey::from_pem(key).map_err(|_| "key-file: holds no private key in PEM")?;
            Some(ClientCert::new_with_certs(&chain, key))
        }
        None => None,
    };
    Ok(TlsConfig::builder()
        .root_certs(roots)
        .client_cert(identity)
        .disable_verification(probe.allow_insecure)
        .build())
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<Certificate<'static>>, String> {
    let found: Vec<_> = parse_pem(pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() { Err(format!("{what}: holds no certificate in PEM")) } else { Ok(found) }
}

/// `content-type` as `Content-Type`.
fn canonical(name: &HeaderName) -> String {
    let parts = name.as_str().split('-').map(|part| {
        let mut letters = part.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_ascii_uppercase().to_string() + letters.as_str()
        })
    });
    parts.collect::<Vec<_>>().join("-")
}
