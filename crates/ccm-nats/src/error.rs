//! Errors of NATS.

use std::path::PathBuf;
use std::time::Duration;

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// Why NATS did not do what it was asked. Displayed, it names the context and
/// the server, never a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{problem}{}", place(context, url.as_deref()))]
pub struct Error {
    /// The context that was used.
    context: String,
    /// The URL of the context, without credentials; `None` before it is known.
    url: Option<String>,
    pub(crate) problem: Problem,
}

fn place(context: &str, url: Option<&str>) -> String {
    url.map(|url| format!(" (NATS context \"{context}\", {url})")).unwrap_or_default()
}

impl Error {
    /// A problem of a context that was not used yet.
    pub(crate) fn before(context: &str, problem: Problem) -> Self {
        Self { context: context.to_owned(), url: None, problem }
    }

    pub(crate) fn at(context: &str, url: &str, problem: Problem) -> Self {
        Self { context: context.to_owned(), url: Some(url.to_owned()), problem }
    }

    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }

    /// Whether what was asked for was deleted on purpose: there is a mark of it.
    pub(crate) fn is_deletion(&self) -> bool {
        matches!(self.problem, Problem::NoObject { is_deleted: true, .. })
    }

    /// Whether nothing is wrong with what was asked: the same may work later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self.problem,
            Problem::NoAnswer { .. }
                | Problem::NoGreeting { .. }
                | Problem::Lost
                | Problem::Connect { .. }
        )
    }
}

impl From<Error> for ccm_host::Error {
    fn from(error: Error) -> Self {
        Self::Network { message: error.to_string(), hint: error.hint() }
    }
}

/// What went wrong.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Problem {
    #[error("unknown NATS context \"{name}\", looked for {}", listed(looked))]
    UnknownContext { name: String, looked: Vec<PathBuf> },
    #[error("\"{name}\" is not the name of a NATS context")]
    ContextName { name: String },
    #[error("cannot use NATS context \"{name}\": {reason}")]
    Context { name: String, reason: String },
    #[error("the context uses \"{key}\", which ccm does not support")]
    Unsupported { key: String },
    #[error("cannot connect to NATS: {reason}")]
    Connect { reason: String },
    #[error("cannot connect to NATS: {reason}")]
    Tls { reason: String, hint: &'static str },
    #[error("no answer from NATS within {}: the server sent no greeting", shown(*after))]
    NoGreeting { after: Duration },
    #[error("cannot connect to NATS: the server there is not a NATS server")]
    NotNats,
    #[error("NATS refused the credentials of context \"{context}\"")]
    Credentials { context: String },
    #[error("the connection to NATS was lost")]
    Lost,
    #[error("no answer from NATS within {} to {what}", shown(*after))]
    NoAnswer { what: String, after: Duration },
    #[error("no permission for subject {subject}")]
    NoPermission { subject: String },
    #[error("there is no JetStream in this account")]
    NoJetStream,
    #[error("no bucket `{bucket}`")]
    NoBucket { bucket: String, what: &'static str },
    #[error("no key `{key}` in bucket `{bucket}`")]
    NoKey { bucket: String, key: String },
    #[error("key `{key}` in bucket `{bucket}` is {what}")]
    Value { bucket: String, key: String, what: &'static str },
    #[error("no object \"{name}\" in bucket \"{bucket}\"")]
    NoObject { bucket: String, name: String, is_deleted: bool },
    #[error("object \"{name}\" in bucket \"{bucket}\" {what}")]
    Object { bucket: String, name: String, what: String },
    #[error("no stream `{stream}`")]
    NoStream { stream: String },
    #[error("NATS refused to {what}: {reason}")]
    Refused { what: String, reason: String },
    #[error("NATS server {version} is too old: {what} needs {needs} or newer")]
    TooOld { version: String, what: &'static str, needs: &'static str },
    #[error("{what} exceeds the limit of {limit}")]
    TooMuch { what: String, limit: &'static str },
    #[error("the run was interrupted")]
    Cancelled,
    #[error("cannot start the NATS client: {reason}")]
    Runtime { reason: String },
}

impl Problem {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::UnknownContext { name, .. } => {
                format!("create it with `nats context add {name}`")
            }
            Self::ContextName { .. } => {
                "write a name without `/` and `..`, or the absolute path of a file".to_owned()
            }
            Self::Credentials { .. } => {
                "check user, password, token or credentials file of the context".to_owned()
            }
            Self::Connect { .. } => {
                "check that the server runs, and `url` of the context".to_owned()
            }
            Self::Tls { hint, .. } => (*hint).to_owned(),
            Self::NoAnswer { .. } | Self::Lost => {
                "check the server and the network, then run this again".to_owned()
            }
            Self::NoGreeting { .. } | Self::NotNats => {
                "check `url` of the context; a server that begins with TLS \
                                        needs `tls_first`"
                    .to_owned()
            }
            Self::NoKey { bucket, key } => {
                format!("store it with `nats kv put {bucket} {key} VALUE`")
            }
            Self::NoObject { bucket, .. } => {
                format!("store it with `nats object put {bucket} FILE`")
            }
            Self::Object { bucket, .. } => {
                format!("store it again with `nats object put {bucket} FILE`")
            }
            Self::TooOld { needs, .. } => format!("use a server of version {needs} or newer"),
            Self::NoPermission { subject } => {
                format!("allow the user of the context to use {subject}")
            }
            Self::NoJetStream => "enable JetStream for the account".to_owned(),
            Self::NoBucket { bucket, what } => {
                format!("create it with `nats {what} add {bucket}`")
            }
            Self::NoStream { .. } => "create it with `ccm registration init`".to_owned(),
            Self::TooMuch { .. } => "narrow the query".to_owned(),
            _ => return None,
        })
    }
}

fn listed(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(" and ")
}

/// A limit as people write it.
fn shown(limit: Duration) -> String {
    if limit.subsec_millis() == 0 {
        return format!("{}s", limit.as_secs());
    }
    format!("{}ms", limit.as_millis())
}
