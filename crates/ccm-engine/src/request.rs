//! Requests: one resource, asked for at the command line or by a client.

use std::fmt;

use ccm_model::{Finding, Reader, did_you_mean};
use ccm_template::Resolver;
use ccm_yaml::{Entry, Kind, Node, Source};

use crate::resource::{AnyResource, AnyType, find_type, resolve_and_check};

/// The name of the format of requests.
pub const REQUEST: &str = "io.choria.ccm.v1.resource.ensure.request";

/// Everything that is wrong with a request.
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
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            f.write_str(&titled(finding))?;
            if let Some(hint) = &finding.hint {
                write!(f, " ({hint})")?;
            }
        }
        Ok(())
    }
}

impl RequestError {
    /// Messages with their hints, the resource in front.
    pub fn messages(&self) -> impl Iterator<Item = (String, Option<&str>)> {
        self.findings.iter().map(|finding| (titled(finding), finding.hint.as_deref()))
    }
}

fn titled(finding: &Finding) -> String {
    match &finding.resource {
        Some(resource) => format!("{resource}: {}", finding.message),
        None => finding.message.clone(),
    }
}

impl From<String> for RequestError {
    fn from(message: String) -> Self {
        Self { findings: vec![Finding::error(None, message)] }
    }
}

impl From<&str> for RequestError {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// Reads one resource: its properties, then its templates, then everything that
/// can be checked before it is applied.
///
/// # Errors
///
/// Returns all findings together.
pub fn read_resource(
    kind: &'static dyn AnyType,
    properties: Vec<Entry<'_>>,
    templates: &Resolver,
) -> Result<Box<dyn AnyResource>, RequestError> {
    let mut reader = Reader::default();
    let mut resource = kind.declare(properties, None, &mut reader);
    let mut findings = reader.findings;
    // A value of the wrong type was not taken, so more would be said of it.
    if findings.is_empty() {
        findings = resolve_and_check(&mut *resource, templates, None);
    }
    if findings.is_empty() {
        return Ok(resource);
    }
    for finding in &mut findings {
        let name = if resource.has_name() && !resource.common().name.is_empty() {
            resource.display()
        } else {
            kind.name().to_owned()
        };
        finding.resource.get_or_insert(name);
    }
    Err(RequestError { findings })
}

/// Reads the resource of a request in JSON or YAML.
///
/// # Errors
///
/// Returns what is wrong with the request itself, or all findings about its
/// properties together.
pub fn read_request(
    text: &str,
    types: &[&'static dyn AnyType],
    templates: &Resolver,
) -> Result<Box<dyn AnyResource>, RequestError> {
    let source;
    let root = match ccm_yaml::parse_json(text) {
        Some(root) => root,
        None => {
            source = Source::new("request", text);
            parse(&source)?
        }
    };
    let (kind, properties) = parts(root, types)?;
    read_resource(kind, properties, templates)
}

fn parse(source: &Source) -> Result<Node<'_>, RequestError> {
    ccm_yaml::parse(source).map_err(|error| {
        let location = source.position(error.span.start);
        let message = format!(
            "the request cannot be read: {} (line {}, column {})",
            error.message, location.line, location.column
        );
        message.into()
    })
}

/// The type and the properties in a request.
fn parts<'a>(
    root: Node<'a>,
    types: &[&'static dyn AnyType],
) -> Result<(&'static dyn AnyType, Vec<Entry<'a>>), RequestError> {
    let described = root.describe();
    let Kind::Mapping(entries) = root.kind else {
        let message = format!("a request is one map about one resource, this is {described}");
        return Err(message.into());
    };
    let (mut protocol, mut kind, mut properties) = (None, None, None);
    for Entry { key, value } in entries {
        match &*key.text {
            "protocol" => protocol = value.scalar().map(|scalar| scalar.text.to_string()),
            "type" => kind = value.scalar().map(|scalar| scalar.text.to_string()),
            "properties" => properties = Some(value),
            other => {
                let message = format!("unknown key `{other}` in the request");
                let hint = did_you_mean(other, ["protocol", "type", "properties"]);
                return Err(RequestError {
                    findings: vec![Finding::error(None, message).hint(hint)],
                });
            }
        }
    }
    match protocol.as_deref() {
        Some(REQUEST) => {}
        Some(other) => {
            return Err(format!("wrong protocol `{other}`, expected `{REQUEST}`").into());
        }
        None => return Err(format!("the protocol is missing, expected `{REQUEST}`").into()),
    }
    let kind = kind.ok_or("the type is missing")?;
    let known = find_offered(types, &kind)?;
    let properties = properties.ok_or("the properties are missing")?;
    let described = properties.describe();
    match properties.kind {
        Kind::Mapping(entries) => Ok((known, entries)),
        _ => Err(format!("the properties must be a map, not {described}").into()),
    }
}

/// A type that a single resource can be asked of.
fn find_offered(
    types: &[&'static dyn AnyType],
    kind: &str,
) -> Result<&'static dyn AnyType, RequestError> {
    find_type(types, kind).filter(|kind| !kind.nests()).ok_or_else(|| {
        let offered = types.iter().filter(|kind| !kind.nests()).map(|kind| kind.name());
        let offered: Vec<&str> = offered.collect();
        let hint = did_you_mean(kind, offered.iter().copied())
            .unwrap_or_else(|| format!("it is one of {}", offered.join(", ")));
        let message = format!("the type `{kind}` is not offered here");
        RequestError { findings: vec![Finding::error(None, message).hint(hint)] }
    })
}
