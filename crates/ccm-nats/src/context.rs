//! Contexts: files of the `nats` command line tool with the address of a server
//! and its credentials. ccm reads them and never writes them.

mod login;
mod url;

use std::path::{Path, PathBuf};

use ccm_host::Host;
use serde_json::{Map, Value};

pub(crate) use login::{Login, Token};
pub(crate) use url::Servers;

use crate::error::{Error, Problem, Result};

/// Larger files are not contexts, keys or certificates.
const MAX_FILE: u64 = 1 << 20;
/// The context when nothing names one.
const DEFAULT_NAME: &str = "CCM";
/// Where contexts of the machine are, beside those of the user.
const MACHINE_CONTEXTS: &str = "/etc/choria/ccm/context";

/// Which context was asked for.
#[derive(Clone, Debug, Default)]
pub struct ContextChoice {
    /// The name that `--context` gave; the empty one is the selected context.
    pub flag: Option<String>,
    /// The name in a configuration, which flag and environment override.
    pub configured: Option<String>,
}

/// A context, with everything that it names read from disk.
pub(crate) struct Context {
    /// Its display name.
    pub(crate) name: String,
    pub(crate) servers: Servers,
    pub(crate) login: Login,
    pub(crate) token: Option<Token>,
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) is_tls_first: bool,
    pub(crate) inbox_prefix: Option<String>,
    /// What the subjects of JetStream's API begin with.
    pub(crate) api_prefix: String,
    /// Everything that must not be shown.
    pub(crate) secrets: Vec<String>,
}

impl Context {
    /// Finds and reads a context, and the files that it names.
    pub(crate) fn read(choice: &ContextChoice, host: &Host) -> Result<Self> {
        let name = choice
            .flag
            .clone()
            .or_else(|| host.env("NATS_CONTEXT")?.into_string().ok())
            .or_else(|| choice.configured.clone())
            .unwrap_or_else(|| DEFAULT_NAME.to_owned());
        let config = configuration_directory(host);
        let name = if name.is_empty() {
            match selected(config.as_deref(), host)? {
                Some(name) => name,
                None => return Self::of("", Map::new(), host),
            }
        } else {
            name
        };
        let path = locate(&name, config.as_deref(), host)?;
        let fail =
            |reason: String| Error::before(&name, Problem::Context { name: name.clone(), reason });
        let text = host.read_trusted(&path, MAX_FILE).map_err(|error| fail(chain(&error)))?;
        let values: Value = serde_json::from_str(&text)
            .map_err(|error| fail(format!("{} is not JSON: {error}", path.display())))?;
        let Value::Object(values) = values else {
            return Err(fail(format!("{} is not a JSON object", path.display())));
        };
        let context = Self::of(&name, values, host)?;
        if !context.secrets.is_empty() {
            host.check_private(&path).map_err(|error| fail(chain(&error)))?;
        }
        Ok(context)
    }

    fn of(name: &str, values: Map<String, Value>, host: &Host) -> Result<Self> {
        let reader = Reader { name, values, host };
        reader.check_supported()?;
        let servers = reader.text("url")?;
        let servers = Servers::parse(servers.as_deref().unwrap_or("nats://127.0.0.1:4222"))
            .map_err(|reason| reader.fail(format!("url: {reason}")))?;
        let certificate = match (reader.path("cert")?, reader.path("key")?) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            (Some(_), None) => return Err(reader.fail("`cert` needs `key`")),
            (None, Some(_)) => return Err(reader.fail("`key` needs `cert`")),
        };
        let authority = reader.path("ca")?;
        let api_prefix =
            match (reader.subject("jetstream_domain")?, reader.subject("jetstream_api_prefix")?) {
                (Some(_), Some(_)) => {
                    return Err(reader
                        .fail("`jetstream_domain` and `jetstream_api_prefix` cannot both be set"));
                }
                (Some(domain), None) => format!("$JS.{domain}.API"),
                (None, Some(prefix)) => prefix.trim_end_matches('.').to_owned(),
                (None, None) => "$JS.API".to_owned(),
            };
        let mut secrets = servers.secrets();
        let (login, token) = login::read(&reader, &servers, &mut secrets)?;
        if let Some((cert, key)) = &certificate {
            reader.check_pem("cert", cert, "CERTIFICATE", None)?;
            reader.check_pem("key", key, "PRIVATE KEY", Some(&mut secrets))?;
        }
        if let Some(authority) = &authority {
            reader.check_pem("ca", authority, "CERTIFICATE", None)?;
        }
        Ok(Self {
            name: name.to_owned(),
            servers,
            login,
            token,
            certificate,
            authority,
            is_tls_first: reader.flag("tls_first")?,
            inbox_prefix: reader.subject("inbox_prefix")?,
            api_prefix,
            secrets,
        })
    }
}

/// The values of a context, read with what is wrong with them.
pub(crate) struct Reader<'a> {
    name: &'a str,
    values: Map<String, Value>,
    host: &'a Host,
}

impl Reader<'_> {
    pub(crate) fn fail(&self, reason: impl Into<String>) -> Error {
        let (name, reason) = (self.name.to_owned(), reason.into());
        Error::before(self.name, Problem::Context { name, reason })
    }

    /// What ccm cannot do must not be left out silently.
    fn check_supported(&self) -> Result<()> {
        for (key, value) in &self.values {
            let is_known = matches!(key.as_str(), "nsc" | "socks_proxy");
            if (is_known || key.starts_with("windows_")) && !is_empty(value) {
                return Err(Error::before(self.name, Problem::Unsupported { key: key.clone() }));
            }
        }
        Ok(())
    }

    /// A text; the empty one is none.
    pub(crate) fn text(&self, key: &str) -> Result<Option<String>> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(_) => Err(self.fail(format!("`{key}` must be a string"))),
        }
    }

    fn flag(&self, key: &str) -> Result<bool> {
        match self.values.get(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.fail(format!("`{key}` must be true or false"))),
        }
    }

    /// A part of a subject, which must not hold what subjects cannot.
    fn subject(&self, key: &str) -> Result<Option<String>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        let is_bad = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '*' | '>');
        if text.contains(is_bad) || text.split('.').any(str::is_empty) && !text.ends_with('.') {
            return Err(self.fail(format!("`{key}` is not a subject")));
        }
        Ok(Some(text))
    }

    /// A path; a leading `~` is the home directory.
    pub(crate) fn path(&self, key: &str) -> Result<Option<PathBuf>> {
        let Some(text) = self.text(key)? else { return Ok(None) };
        self.expanded(key, &text).map(Some)
    }

    pub(crate) fn expanded(&self, key: &str, text: &str) -> Result<PathBuf> {
        let Some(rest) =
            text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'))
        else {
            return Ok(PathBuf::from(text));
        };
        let home = self.host.home().ok_or_else(|| {
            self.fail(format!("`{key}` begins with `~`, but the user has no home directory"))
        })?;
        Ok(home.join(rest.trim_start_matches('/')))
    }

    /// `$VAR` and `${VAR}` in a text, from the environment; empty if unset.
    pub(crate) fn with_variables(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (name, after) = match after.strip_prefix('{').and_then(|s| s.split_once('}')) {
                Some((name, after)) => (name, after),
                None => after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len())),
            };
            match name {
                "" => out.push('$'),
                name => {
                    let value = self.host.env(name);
                    out.push_str(&value.unwrap_or_default().to_string_lossy());
                }
            }
            rest = after;
        }
        out + rest
    }

    /// Reads a file with a secret.
    pub(crate) fn secret_file(&self, key: &str, path: &Path) -> Result<String> {
        let text = self
            .host
            .read_trusted(path, MAX_FILE)
            .map_err(|error| self.fail(format!("`{key}`: {}", chain(&error))))?;
        self.host
            .check_private(path)
            .map_err(|error| self.fail(format!("`{key}`: {}", chain(&error))))?;
        Ok(text)
    }

    /// Finds out that a file cannot be what it should be before TLS fails with
    /// fewer words.
    fn check_pem(
        &self,
        key: &str,
        path: &Path,
        what: &str,
        secrets: Option<&mut Vec<String>>,
    ) -> Result<()> {
        let text = match secrets {
            None => self
                .host
                .read_trusted(path, MAX_FILE)
                .map_err(|error| self.fail(format!("`{key}`: {}", chain(&error))))?,
            Some(secrets) => {
                let text = self.secret_file(key, path)?;
                // The lines between the marks, which are no secret.
                let lines = text.lines().filter(|line| !line.starts_with("-----"));
                secrets.extend(lines.map(str::to_owned));
                text
            }
        };
        let is_begin = |line: &str| line.starts_with("-----BEGIN ") && line.contains(what);
        if text.lines().any(is_begin) {
            return Ok(());
        }
        Err(self.fail(format!("`{key}`: there is no {what} in {}", path.display())))
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// Where the contexts of the user are.
fn configuration_directory(host: &Host) -> Option<PathBuf> {
    let given = host.env("XDG_CONFIG_HOME").map(PathBuf::from);
    Some(given.or_else(|| Some(host.home()?.join(".config")))?.join("nats"))
}

/// The name of the context that the user has selected.
fn selected(directory: Option<&Path>, host: &Host) -> Result<Option<String>> {
    let Some(path) = directory.map(|directory| directory.join("context.txt")) else {
        return Ok(None);
    };
    match host.read_trusted(&path, MAX_FILE) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|name| !name.is_empty())),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => {
            let (name, reason) = (String::new(), chain(&error));
            Err(Error::before("", Problem::Context { name, reason }))
        }
    }
}

fn locate(name: &str, directory: Option<&Path>, host: &Host) -> Result<PathBuf> {
    if name.starts_with('/') {
        return Ok(PathBuf::from(name));
    }
    if name.contains('/') || name.contains("..") || name.contains('\0') || name.len() > 200 {
        let name: String = name.chars().take(200).collect();
        return Err(Error::before(&name, Problem::ContextName { name: name.clone() }));
    }
    let file = format!("{name}.json");
    let mine = directory.map(|directory| directory.join("context"));
    let places = mine.into_iter().chain([PathBuf::from(MACHINE_CONTEXTS)]);
    let mut looked = Vec::new();
    for path in places.map(|place| place.join(&file)) {
        if host.stat(&path).is_ok_and(|found| found.is_some()) {
            return Ok(path);
        }
        looked.push(path);
    }
    Err(Error::before(name, Problem::UnknownContext { name: name.to_owned(), looked }))
}

/// An error with its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
