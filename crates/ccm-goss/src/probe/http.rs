//! `http`

use std::path::Path;
use std::time::Instant;

use ccm_host::{Host, HttpAnswer, HttpError, HttpRequest, Tls, TlsPart, Url};

use super::{Found, Machine, Probe, bytes, chain, number, unknown, value};
use crate::compile::{Entry, header};

/// The methods that a rule can use.
pub(crate) const METHODS: [&str; 8] =
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

/// More of a body than this is not looked at.
const LARGEST_BODY: u64 = 16 << 20;
/// Certificates and keys are small.
const LARGEST_PEM: u64 = 4 << 20;
const MAX_REDIRECTS: usize = 10;

pub(super) struct Http<'a> {
    entry: &'a Entry,
    machine: &'a Machine,
    answer: Option<Result<Answer, String>>,
}

/// The answer of a server.
struct Answer {
    /// The code of its status.
    status: u16,
    /// `Name: value`, sorted.
    headers: Vec<String>,
    /// The body, or the reason why it could not be read to its end.
    body: Result<Vec<u8>, String>,
}

impl<'a> Http<'a> {
    pub(super) fn new(entry: &'a Entry, machine: &'a Machine) -> Self {
        Self { entry, machine, answer: None }
    }

    fn ask(&self) -> Result<Answer, String> {
        let settings = &self.entry.settings;
        let file = |name: &str| match settings.text(name) {
            Some(path) => {
                let read = self.machine.host.read_bytes(Path::new(path), LARGEST_PEM);
                let (pem, _) = read.map_err(|error| format!("{name}: {}", chain(&error)))?;
                Ok::<_, String>(Some(pem))
            }
            None => Ok(None),
        };
        let (authorities, certificate, key) =
            (file("ca-file")?, file("cert-file")?, file("key-file")?);
        let identity = certificate.as_deref().zip(key.as_deref());
        let tls = Tls::new(authorities.as_deref(), identity, settings.flag("allow-insecure"));
        let tls = tls.map_err(|part| match part {
            TlsPart::Authorities => "ca-file: holds no certificate in PEM",
            TlsPart::Certificate => "cert-file: holds no certificate in PEM",
            TlsPart::Key => "key-file: holds no private key in PEM",
        })?;
        let mut url = Url::parse(&self.entry.name)?;
        let (user, password) = (settings.text("username"), settings.text("password"));
        if user.is_some() || password.is_some() {
            let (user, password) = (user.unwrap_or_default(), password.unwrap_or_default());
            url.credentials = Some(format!("{user}:{password}"));
        }
        let headers = settings.texts("request-headers").filter_map(header);
        let headers: Vec<(String, String)> =
            headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let method = settings.text("method").unwrap_or("GET").to_ascii_uppercase();
        let timeout = self.machine.time(self.entry.timeout())?;
        let request = HttpRequest {
            url: &url,
            method: &method,
            headers: &headers,
            body: settings.text("request-body"),
            timeout,
            tls: &tls,
            proxy: settings.text("proxy"),
        };
        exchange(&self.machine.host, request, !settings.flag("no-follow-redirects"))
    }
}

/// Sends a request and reads the answer, following redirects if wanted. What is
/// meant for the first host alone goes to no other.
fn exchange(host: &Host, mut request: HttpRequest<'_>, follows: bool) -> Result<Answer, String> {
    let timeout = request.timeout;
    let deadline = Instant::now() + timeout;
    let failed = |error| match error {
        HttpError::Timeout => format!("no answer within {timeout:?}"),
        HttpError::Other(reason) => reason,
    };
    let mut url = request.url.clone();
    for _ in 0..=MAX_REDIRECTS {
        request.timeout = deadline.saturating_duration_since(Instant::now());
        let answer = host.exchange(&HttpRequest { url: &url, ..request }).map_err(failed)?;
        let Some(next) = answer.redirect(&url).filter(|_| follows) else {
            return Ok(whole(answer, failed));
        };
        let next = next?;
        if !url.trusts(&next) {
            request.headers = &[];
        }
        // As browsers do: only 307 and 308 repeat the request as it was.
        if !matches!(answer.status(), 307 | 308) {
            request.body = None;
            if request.method != "HEAD" {
                request.method = "GET";
            }
        }
        url = next;
    }
    Err(format!("more than {MAX_REDIRECTS} redirects, the last one to {}", url.shown()))
}

fn whole(answer: HttpAnswer, failed: impl Fn(HttpError) -> String) -> Answer {
    let header = |(name, value)| format!("{}: {}", canonical(name), String::from_utf8_lossy(value));
    let mut headers: Vec<String> = answer.headers().map(header).collect();
    headers.sort_unstable();
    let status = answer.status();
    let body = match answer.read_body(LARGEST_BODY + 1) {
        Ok(body) if body.len() as u64 > LARGEST_BODY => {
            Err(format!("the body is larger than {} MiB", LARGEST_BODY >> 20))
        }
        body => body.map_err(failed),
    };
    Answer { status, headers, body }
}

/// `content-type` as `Content-Type`.
fn canonical(name: &str) -> String {
    let parts = name.split('-').map(|part| {
        let mut letters = part.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_ascii_uppercase().to_string() + letters.as_str()
        })
    });
    parts.collect::<Vec<_>>().join("-")
}

impl Probe for Http<'_> {
    fn find(&mut self, attribute: &str) -> Result<Found, String> {
        if self.answer.is_none() {
            self.answer = Some(self.ask());
        }
        match (&self.answer, attribute) {
            (Some(Err(reason)), _) => Err(reason.clone()),
            (Some(Ok(answer)), "status") => number(answer.status),
            (Some(Ok(answer)), "headers") => value(answer.headers.join("\n")),
            (Some(Ok(answer)), "body") => bytes(answer.body.as_deref().map_err(Clone::clone)?),
            _ => unknown(attribute),
        }
    }
}
