//! Error responses to the page.

use ccm_http::{Response, StatusCode};
use serde_json::{Map, Value, json};

/// A request that failed: a status, a code for the page, words for people.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    hint: Option<String>,
    more: Box<Map<String, Value>>,
}

pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: None, more: Box::default() }
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

    /// Adds something that the page needs, such as the text on the disk.
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.more.insert(key.to_owned(), value.into());
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
            Error::NotAFile { .. } | Error::Foreign { .. } | Error::NotUtf8 { .. } => {
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
        let Self { status, code, message, hint, mut more } = self;
        let mut error = Map::new();
        error.insert("code".into(), code.into());
        error.insert("message".into(), message.into());
        if let Some(hint) = hint {
            error.insert("hint".into(), hint.into());
        }
        error.insert("request".into(), request.into());
        error.append(&mut more);
        json_response(status, &json!({"error": error}))
    }
}

pub(crate) fn json_response(status: StatusCode, value: &impl serde::Serialize) -> Response {
    let body = serde_json::to_vec(value).unwrap_or_default();
    Response::new(status, "application/json", body)
}
