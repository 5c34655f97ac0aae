//! Downloads by URL: one trait for all schemes, and the registry of
//! implementations.
//!
//! Limits, digests, progress, cancellation and the placing of files are the
//! same for all schemes and live here. An implementation only opens a body.

mod local;
mod stream;

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use stream::ProgressSink;
pub use stream::{Fetched, Progress};

use crate::http::{Http, without_credentials};
use crate::{Error, Host, RecordedFetch, Result};

/// How long a server may send nothing.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// Why an offline system does not connect.
pub(crate) const OFFLINE: &str = "ccm makes no connection in a check";
/// How long a text may take: these are small.
const TEXT_TIMEOUT: Duration = Duration::from_mins(1);

/// Downloads URLs of certain schemes.
///
/// [`System::with_fetch`](crate::System::with_fetch) registers an
/// implementation. Everything that takes a URL then takes its schemes too:
/// manifests, hierarchical data, archives and scaffold sources.
pub trait Fetch: fmt::Debug + Send + Sync {
    /// The schemes that it serves, in lower case.
    fn schemes(&self) -> &'static [&'static str];

    /// Checks how a URL is written, without I/O.
    ///
    /// # Errors
    ///
    /// Returns the reason. It must not repeat what may be a password.
    fn check(&self, url: &str) -> Result<(), String>;

    /// Begins to fetch. The caller enforces the request's limit and ends when
    /// the run is cancelled; an implementation that waits must end its wait when
    /// [`Host::cancel`] does.
    ///
    /// # Errors
    ///
    /// [`Request::failed`] makes the error.
    fn open(&self, request: &Request<'_>, host: &Host) -> Result<Body>;

    /// In a preview: begins to fetch if that asks nobody, as for a local file.
    /// `None` means that only the run can tell.
    ///
    /// # Errors
    ///
    /// Returns why the run could not fetch it.
    fn open_preview(&self, _request: &Request<'_>, _host: &Host) -> Result<Option<Body>> {
        Ok(None)
    }
}

/// `ETag` and `Last-Modified` of a version, as the server sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Validators {
    /// The `ETag` of HTTP, or the digest or revision that another server names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// The `Last-Modified` of HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

impl Validators {
    /// Whether the server named nothing.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// The body of a download in progress.
pub struct Body {
    reader: Box<dyn Read>,
    length: Option<u64>,
    validators: Validators,
    is_unchanged: bool,
}

impl Body {
    /// A body of unknown length. An error of the reader is shown to people as
    /// the reason why the URL could not be fetched.
    pub fn new(reader: impl Read + 'static) -> Self {
        let validators = Validators::default();
        Self { reader: Box::new(reader), length: None, validators, is_unchanged: false }
    }

    /// Says that the server still has what the request knows, see
    /// [`Request::with_validators`].
    pub fn unchanged() -> Self {
        Self { is_unchanged: true, ..Self::new(std::io::empty()) }
    }

    /// Says which version it is.
    #[must_use]
    pub fn with_validators(mut self, validators: Validators) -> Self {
        self.validators = validators;
        self
    }

    /// Says how many bytes there are, if that is known.
    #[must_use]
    pub fn with_length(mut self, length: Option<u64>) -> Self {
        self.length = length;
        self
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("length", &self.length).finish_non_exhaustive()
    }
}

/// A URL to download, with the credentials, headers and limits of the request.
#[derive(Clone)]
pub struct Request<'a> {
    url: &'a str,
    user: Option<(&'a str, &'a str)>,
    headers: Vec<(&'a str, &'a str)>,
    idle_timeout: Duration,
    timeout: Option<Duration>,
    limit: u64,
    validators: Option<&'a Validators>,
}

impl<'a> Request<'a> {
    /// Credentials in the URL are sent to its own host only, and never shown.
    pub fn new(url: &'a str) -> Self {
        Self {
            url,
            user: None,
            headers: Vec::new(),
            idle_timeout: IDLE_TIMEOUT,
            timeout: None,
            limit: u64::MAX,
            validators: None,
        }
    }

    /// Sends these credentials in place of those in the URL.
    #[must_use]
    pub fn with_user(mut self, name: &'a str, password: &'a str) -> Self {
        self.user = Some((name, password));
        self
    }

    /// Sends a header, to the URL's own host only.
    #[must_use]
    pub fn with_header(mut self, name: &'a str, value: &'a str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Gives up after this long without a byte, instead of after a minute.
    #[cfg(test)]
    pub(crate) fn with_idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }

    /// Accepts at most this many bytes.
    #[must_use]
    pub fn with_limit(mut self, limit: u64) -> Self {
        self.limit = limit;
        self
    }

    /// Asks only for what is not of this version. They are no secret: a redirect
    /// takes them along.
    #[must_use]
    pub fn with_validators(mut self, known: &'a Validators) -> Self {
        self.validators = Some(known).filter(|known| !known.is_empty());
        self
    }

    /// The version that the caller has.
    pub fn validators(&self) -> Option<&'a Validators> {
        self.validators
    }

    /// The URL as written, with its credentials.
    pub fn url(&self) -> &'a str {
        self.url
    }

    /// Name and password that override those in the URL.
    pub fn user(&self) -> Option<(&'a str, &'a str)> {
        self.user
    }

    /// Names and values of the headers to send.
    pub fn headers(&self) -> &[(&'a str, &'a str)] {
        &self.headers
    }

    /// How long the server may send nothing.
    pub fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }

    /// How long everything together may take.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// The error for something that its owner deleted on purpose.
    pub fn deleted(&self, reason: impl Into<String>) -> Error {
        Error::Deleted { url: without_credentials(self.url), reason: reason.into() }
    }

    /// The error for a URL that could not be fetched. It shows the URL without
    /// credentials.
    pub fn failed(&self, reason: impl Into<String>) -> Error {
        Error::Fetch { url: without_credentials(self.url), reason: reason.into() }
    }
}

/// Shows only the URL without credentials, not what is sent there.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_credentials(self.url))
    }
}

/// The scheme of a URL as written; `None` if the text is a path.
///
/// ```
/// assert_eq!(ccm_host::url_scheme("https://host/x"), Some("https"));
/// assert_eq!(ccm_host::url_scheme("data/common.yaml"), None);
/// assert_eq!(ccm_host::url_scheme("./odd://name"), None);
/// ```
pub fn url_scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let is_rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(is_rest);
    is_scheme.then_some(scheme)
}

/// The local file that a path or `file` URL names; `None` for other URLs and for
/// `file` URLs that name none.
///
/// ```
/// use std::path::Path;
/// assert_eq!(ccm_host::local_path("/etc/a b").as_deref(), Some(Path::new("/etc/a b")));
/// assert_eq!(ccm_host::local_path("file:///etc/a%20b").as_deref(), Some(Path::new("/etc/a b")));
/// assert_eq!(ccm_host::local_path("https://host/etc"), None);
/// ```
pub fn local_path(text: &str) -> Option<std::path::PathBuf> {
    match url_scheme(text) {
        None => Some(text.into()),
        Some(scheme) if scheme.eq_ignore_ascii_case("file") => local::path(text).ok(),
        Some(_) => None,
    }
}

/// The registered implementations of [`Fetch`]. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fetchers(Arc<Vec<Arc<dyn Fetch>>>);

/// `file`, `http` and `https`.
impl Default for Fetchers {
    fn default() -> Self {
        Self(Arc::new(vec![Arc::new(local::File), Arc::new(Http)]))
    }
}

impl Fetchers {
    pub(crate) fn add(&mut self, fetch: Arc<dyn Fetch>) {
        Arc::make_mut(&mut self.0).push(fetch);
    }

    /// Checks that there is an implementation for a URL, and that the URL is
    /// written as its scheme demands. Does no I/O.
    ///
    /// # Errors
    ///
    /// Returns [`Error::UnknownScheme`] or [`Error::Fetch`].
    pub fn check(&self, url: &str) -> Result<()> {
        let checked = self.find(url)?.check(url);
        checked.map_err(|reason| Request::new(url).failed(reason))
    }

    /// The same in words for whoever wrote the URL: the reason, and advice.
    ///
    /// # Errors
    ///
    /// Returns both. The reason does not repeat a URL that is written wrongly, as
    /// a part of it may be a password.
    pub fn check_written(&self, url: &str) -> Result<(), (String, Option<String>)> {
        self.check(url).map_err(|error| {
            let hint = error.hint();
            match error {
                Error::Fetch { reason, .. } => (reason, hint),
                error => (error.to_string(), hint),
            }
        })
    }

    /// The implementation for a URL. The last one registered for a scheme wins.
    fn find(&self, url: &str) -> Result<&dyn Fetch> {
        let scheme = url_scheme(url).ok_or_else(|| Request::new(url).failed("it is not a URL"))?;
        let serves = |fetch: &&Arc<dyn Fetch>| {
            fetch.schemes().iter().any(|known| known.eq_ignore_ascii_case(scheme))
        };
        let found = self.0.iter().rev().find(serves);
        found.map(AsRef::as_ref).ok_or_else(|| Error::UnknownScheme {
            url: without_credentials(url),
            scheme: scheme.to_owned(),
            known: self.schemes(),
        })
    }

    fn schemes(&self) -> Vec<&'static str> {
        let mut schemes: Vec<&str> =
            self.0.iter().flat_map(|fetch| fetch.schemes()).copied().collect();
        schemes.sort_unstable();
        schemes.dedup();
        schemes
    }
}

impl Host {
    /// The implementations that fetch URLs for this run.
    pub fn fetchers(&self) -> &Fetchers {
        self.inner.system.fetchers()
    }

    /// Fetches a UTF-8 text of at most `limit` bytes.
    pub fn fetch_text(&self, url: &str, limit: u64) -> Result<String> {
        if let Some(RecordedFetch::Text(text)) = self.replayed_fetch(url) {
            return Ok(text);
        }
        let mut request = Request::new(url).with_limit(limit);
        request.timeout = Some(TEXT_TIMEOUT);
        let mut bytes = Vec::new();
        self.stream(&request, &mut |chunk| {
            bytes.extend_from_slice(chunk);
            Ok(())
        })?;
        let text = String::from_utf8(bytes).map_err(|_| request.failed("it is not UTF-8"))?;
        self.record_fetch(url, RecordedFetch::Text(text.clone()));
        Ok(text)
    }

    /// Reads a text that decides what a run does, from a path or a URL. See
    /// [`Host::read_trusted`] for paths.
    pub fn read_source(&self, source: &str, limit: u64) -> Result<String> {
        match url_scheme(source) {
            Some(_) => self.fetch_text(source, limit),
            None => self.read_trusted(Path::new(source), limit),
        }
    }
}

#[cfg(test)]
mod tests;
