//! Requests and responses of the API, for one resource each.

use std::borrow::Cow;
use std::fmt;

use ccm_yaml::{Entry, Kind, Node, Source};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Diagnostic, Event, Finding, did_you_mean, redact_credentials};

/// A request to apply one resource. Its type and its properties are not checked
/// yet.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The name of its type.
    pub kind: Cow<'a, str>,
    /// Its properties as they were given.
    pub properties: Vec<Entry<'a>>,
}

impl<'a> Request<'a> {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.resource.ensure.request";

    /// Reads a request in JSON or YAML.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the request itself. Its properties are read
    /// when the type is known.
    pub fn parse(source: &'a Source) -> Result<Self, RequestError> {
        let root = match ccm_yaml::parse_json(source.text()) {
            Some(root) => root,
            None => parse_yaml(source)?,
        };
        let described = root.describe();
        let Kind::Mapping(entries) = root.kind else {
            let message = format!("a request must be one map about one resource, not {described}");
            return Err(message.into());
        };
        let (mut protocol, mut kind, mut properties) = (None, None, None);
        for Entry { key, value } in entries {
            match &*key.text {
                "protocol" => protocol = value.scalar().map(|scalar| scalar.text.to_string()),
                "type" => kind = value.scalar().map(|scalar| scalar.text.clone()),
                "properties" => properties = Some(value),
                other => {
                    let message = format!("unknown key `{other}` in the request");
                    let hint = did_you_mean(other, ["protocol", "type", "properties"]);
                    return Err(Finding::error(None, message).hint(hint).into());
                }
            }
        }
        let wanted = Self::PROTOCOL;
        match protocol.as_deref() {
            Some(Self::PROTOCOL) => {}
            Some(other) => {
                return Err(format!("wrong protocol `{other}`, expected `{wanted}`").into());
            }
            None => return Err(format!("the protocol is missing, expected `{wanted}`").into()),
        }
        let kind = kind.ok_or("the type is missing")?;
        let properties = properties.ok_or("the properties are missing")?;
        let described = properties.describe();
        match properties.kind {
            Kind::Mapping(properties) => Ok(Self { kind, properties }),
            _ => Err(format!("the properties must be a map, not {described}").into()),
        }
    }
}

impl Request<'_> {
    /// Display name of the resource: `type#name`, without credentials.
    pub fn display(&self) -> String {
        let name = self.properties.iter().find(|entry| entry.key.text == "name");
        let name = name.and_then(|entry| entry.value.scalar()).map(|scalar| &*scalar.text);
        redact_credentials(&format!("{}#{}", self.kind, name.unwrap_or_default())).into_owned()
    }
}

fn parse_yaml(source: &Source) -> Result<Node<'_>, RequestError> {
    ccm_yaml::parse(source).map_err(|error| {
        let location = source.position(error.span.start);
        let message = format!(
            "cannot parse the request: {} (line {}, column {})",
            error.message, location.line, location.column
        );
        message.into()
    })
}

/// All errors in a request.
#[derive(Debug)]
pub struct RequestError {
    /// What is wrong; each finding names its resource, or the type where the
    /// resource has no name.
    pub findings: Vec<Finding>,
}

impl std::error::Error for RequestError {}

/// One finding per line, with its hint.
impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (message, hint)) in self.messages().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            f.write_str(&message)?;
            if let Some(hint) = hint {
                write!(f, " ({hint})")?;
            }
        }
        Ok(())
    }
}

impl RequestError {
    /// Each finding with what to do about it.
    pub fn messages(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        self.findings.iter().map(|finding| {
            let message = match &finding.resource {
                Some(resource) => format!("{resource}: {}", finding.message),
                None => finding.message.clone(),
            };
            (message, finding.hint.as_deref())
        })
    }
}

impl From<Finding> for RequestError {
    fn from(finding: Finding) -> Self {
        Self { findings: vec![finding] }
    }
}

impl From<String> for RequestError {
    fn from(message: String) -> Self {
        Finding::error(None, message).into()
    }
}

impl From<&str> for RequestError {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// The response to a request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("oneOf" = [{"required": ["state"]}, {"required": ["error"]}]))]
pub struct Response {
    /// The name of this format
    #[schemars(extend("const" = Response::PROTOCOL))]
    pub protocol: &'static str,
    /// The event of the resource
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Event>,
    /// Why ccm rejected the request
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Warnings
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub warnings: Vec<Diagnostic>,
}

impl Response {
    /// The name of this format.
    pub const PROTOCOL: &'static str = "io.choria.ccm.v1.resource.ensure.response";

    /// The response for an event, or for a request that could not be tried.
    pub fn new(answer: Result<Event, String>, warnings: Vec<Diagnostic>) -> Self {
        let (state, error) = match answer {
            Ok(event) => (Some(event), None),
            Err(error) => (None, Some(error)),
        };
        Self { protocol: Self::PROTOCOL, state, error, warnings }
    }
}
