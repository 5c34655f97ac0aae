//! Error responses to the page.

use ccm_http::{Response, StatusCode};
use ccm_model::Diagnostic;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::files::Eol;

/// A request that failed: a status, a code for the page, words for people.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    hint: Option<String>,
    pub(crate) details: Box<ErrorDetails>,
}

/// The answer to a request that failed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Failure<'a> {
    error: FailureError<'a>,
}

/// What went wrong.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Error")]
struct FailureError<'a> {
    /// For programs.
    code: &'a str,
    /// For people.
    message: &'a str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// The id of the request, as the log of the studio has it.
    request: &'a str,
    #[serde(flatten)]
    details: &'a ErrorDetails,
}

/// What the page needs beyond words.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct ErrorDetails {
    /// The kind of an edit that was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<&'static str>,
    /// Where it is in the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range: Option<[usize; 4]>,
    /// As the command line shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frame: Option<String>,
    /// What is wrong with the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) findings: Option<Vec<Diagnostic>>,
    /// The placeholders of a template, redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<crate::template::PlaceholderShown>>")]
    pub(crate) placeholders: Option<Value>,
    /// The file on the disk, which is not the one that was read.
    #[serde(flatten)]
    pub(crate) on_disk: Option<OnDisk>,
}

/// A file that has changed on the disk.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OnDisk {
    pub(crate) text: String,
    pub(crate) eol: Eol,
    pub(crate) bom: bool,
    pub(crate) digest: String,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: None, details: Box::default() }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no {what}"))
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }

    pub(crate) fn too_slow(seconds: u64) -> Self {
        let message = format!("this took longer than {seconds} s, and the studio stopped waiting");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message)
    }

    pub(crate) fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "ccm studio is about to end")
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// Adds what the page needs, such as the text on the disk.
    pub(crate) fn with(mut self, details: ErrorDetails) -> Self {
        *self.details = details;
        self
    }

    /// Why a file could not be read or written.
    pub(crate) fn file(error: &ccm_host::Error) -> Self {
        use ccm_host::Error;
        let message = ccm_engine::chain(error);
        let is = |kind| match error {
            Error::Io { source, .. } | Error::Rename { source, .. } => source.kind() == kind,
            _ => false,
        };
        let found = match error {
            Error::LeadsOutside { .. } | Error::Symlink { .. } => {
                Self::forbidden("outside", message)
            }
            Error::NotADirectory { .. } => Self::new(StatusCode::NOT_FOUND, "not_found", message),
            Error::NotAFile { .. } | Error::OtherOwner { .. } | Error::NotUtf8 { .. } => {
                Self::forbidden("permission", message)
            }
            Error::TooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
            }
            _ if is(std::io::ErrorKind::PermissionDenied)
                || is(std::io::ErrorKind::ReadOnlyFilesystem) =>
            {
                Self::forbidden("permission", message)
            }
            _ if is(std::io::ErrorKind::InvalidFilename) => Self::malformed(message),
            _ => Self::internal(message),
        };
        // The hint of ccm-host is about resources.
        let hint = match error {
            Error::NotADirectory { .. } => Some("create the directory first".to_owned()),
            error => error.hint(),
        };
        found.maybe_hint(hint)
    }

    /// The answer to a request with this id.
    pub(crate) fn into_response(self, request: &str) -> Response {
        let Self { status, code, message, hint, details } = self;
        let (message, hint, details) = (&*message, hint.as_deref(), &*details);
        let error = FailureError { code, message, hint, request, details };
        json_response(status, &Failure { error })
    }
}

/// An answer without the secrets that a machine knows.
pub(crate) fn redacted(host: &ccm_host::Host, answer: &impl Serialize) -> Value {
    let mut answer = serde_json::to_value(answer).unwrap_or_default();
    host.redactor().value(&mut answer);
    answer
}

pub(crate) fn json_response(status: StatusCode, value: &impl serde::Serialize) -> Response {
    let body = serde_json::to_vec(value).unwrap_or_default();
    Response::new(status, "application/json", body)
}
