//! One request over HTTP and its answer, for callers who look at the answer
//! themselves.

use std::fmt;
use std::io::Read as _;
use std::time::Duration;

use ureq::config::Config;
use ureq::http::Response;
use ureq::http::header::{ACCEPT_ENCODING, AUTHORIZATION, HeaderName, LOCATION};
use ureq::http::response::Parts;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, RequestBuilder};

use super::is_redirect;
use super::proxy::Proxy;
use super::resolve::TimedResolver;
use super::url::{Url, basic};
use super::watch::Watch;
use crate::{Cancel, Host};

/// A request to one server. A redirect is an answer like any other.
#[derive(Clone, Copy)]
pub struct HttpRequest<'a> {
    /// Where to; its credentials are sent unless a header is called
    /// `Authorization`.
    pub url: &'a Url,
    /// In capital letters; one that is not known is `GET`.
    pub method: &'a str,
    /// Names and values of headers, in place of those that ccm sends itself.
    pub headers: &'a [(String, String)],
    /// Body of the request.
    pub body: Option<&'a str>,
    /// How long everything together may take.
    pub timeout: Duration,
    /// Whom to trust, and how to prove who asks.
    pub tls: &'a Tls,
    /// A proxy in place of that of the environment.
    pub proxy: Option<&'a str>,
}

/// Nothing of a request may show up in a log.
impl fmt::Debug for HttpRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Whom to trust, and how to prove who asks.
#[derive(Clone)]
pub struct Tls(TlsConfig);

/// The part of [`Tls`] that holds nothing of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsPart {
    /// No certificate of an authority in PEM.
    Authorities,
    /// No certificate of our own in PEM.
    Certificate,
    /// No private key in PEM.
    Key,
}

impl Tls {
    /// Trusts these authorities alone, or those of the system; proves who asks
    /// with a certificate and its key, if they are given. All of them are PEM.
    ///
    /// # Errors
    ///
    /// Returns the part that cannot be used.
    pub fn new(
        authorities: Option<&[u8]>,
        identity: Option<(&[u8], &[u8])>,
        allow_insecure: bool,
    ) -> Result<Self, TlsPart> {
        let roots = match authorities {
            Some(pem) => RootCerts::new_with_certs(&certificates(pem).ok_or(TlsPart::Authorities)?),
            None => RootCerts::PlatformVerifier,
        };
        let identity = match identity {
            Some((chain, key)) => {
                let chain = certificates(chain).ok_or(TlsPart::Certificate)?;
                let key = PrivateKey::from_pem(key).map_err(|_| TlsPart::Key)?;
                Some(ClientCert::new_with_certs(&chain, key))
            }
            None => None,
        };
        Ok(Self(
            TlsConfig::builder()
                .root_certs(roots)
                .client_cert(identity)
                .disable_verification(allow_insecure)
                .build(),
        ))
    }
}

fn certificates(pem: &[u8]) -> Option<Vec<Certificate<'static>>> {
    let found: Vec<_> = parse_pem(pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    (!found.is_empty()).then_some(found)
}

/// Why there is no answer, or not all of it. It holds nothing of the request's
/// secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// The time was up.
    Timeout,
    /// Anything else, for people.
    Other(String),
}

impl HttpError {
    fn new(error: &ureq::Error, cancel: &Cancel) -> Self {
        if cancel.is_cancelled() {
            return Self::Other("the run was interrupted".to_owned());
        }
        match error {
            ureq::Error::Timeout(_) => Self::Timeout,
            // The value may be a secret, and the client's words may show it.
            ureq::Error::Http(_) => Self::Other("a header or the URL is not valid".to_owned()),
            ureq::Error::Io(error) => Self::Other(error.to_string()),
            error => Self::Other(error.to_string()),
        }
    }
}

/// The answer of a server, whose body is still to come.
pub struct HttpAnswer {
    parts: Parts,
    body: ureq::Body,
    cancel: Cancel,
    /// Lives as long as there is something to wait for.
    _watch: Option<Watch>,
}

impl HttpAnswer {
    /// The code of its status.
    pub fn status(&self) -> u16 {
        self.parts.status.as_u16()
    }

    /// Where it leads, if it is a redirect that says so; `url` is where it came
    /// from. An error is the reason why ccm does not go there.
    pub fn redirect(&self, url: &Url) -> Option<Result<Url, String>> {
        let status = self.parts.status;
        let location = self.parts.headers.get(LOCATION).filter(|_| is_redirect(status))?;
        Some(url.redirect(status, location.to_str().ok()?))
    }

    /// Names, in small letters, and values of its headers.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
    }

    /// Reads the body, at most `limit` bytes of it.
    ///
    /// # Errors
    ///
    /// Returns why it could not be read as far.
    pub fn read_body(self, limit: u64) -> Result<Vec<u8>, HttpError> {
        let mut bytes = Vec::new();
        let read = self.body.into_reader().take(limit).read_to_end(&mut bytes);
        read.map_err(|error| HttpError::new(&error.into(), &self.cancel))?;
        Ok(bytes)
    }
}

impl Host {
    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    ///
    /// Returns why there is none.
    pub fn exchange(&self, request: &HttpRequest<'_>) -> Result<HttpAnswer, HttpError> {
        let config = config(request.timeout, request.tls.0.clone());
        let proxy = match request.proxy {
            Some(given) => Proxy::given(given).map(Some),
            None => Proxy::find(self, request.url),
        };
        let proxy = proxy.map_err(HttpError::Other)?;
        let special = proxy.as_ref().and_then(|proxy| proxy.agent(config.clone(), request.url));
        let agent = special.unwrap_or_else(|| {
            Agent::with_parts(config, DefaultConnector::default(), TimedResolver)
        });
        let watch = Watch::start(&agent, self.cancel());
        let answer = request.send(&agent, proxy.as_ref());
        let answer = answer.map_err(|error| HttpError::new(&error, self.cancel()))?;
        let (parts, body) = answer.into_parts();
        Ok(HttpAnswer { parts, body, cancel: self.cancel().clone(), _watch: watch })
    }
}

impl HttpRequest<'_> {
    fn send(
        &self,
        agent: &Agent,
        proxy: Option<&Proxy>,
    ) -> Result<Response<ureq::Body>, ureq::Error> {
        let Self { url, headers: own, body, .. } = *self;
        let mut headers: Vec<(String, String)> = Vec::new();
        let direct = url.to_string();
        let target = match proxy.and_then(|proxy| proxy.absolute(url)) {
            Some((target, more)) => {
                headers.extend(more.into_iter().map(|(name, value)| (name.to_string(), value)));
                target
            }
            None => direct,
        };
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
