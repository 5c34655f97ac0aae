//! Reads an API request: declares, resolves and validates its resource.

use ccm_model::{Field, Finding, Reader, Request, RequestError, Required, Severity};
use ccm_template::Resolver;
use ccm_yaml::{Entry, Key, Node};

use crate::Error;
use crate::resource::{AnyResource, AnyType, find_type, resolve_and_check};

/// Reads the resource of a request: its properties, then its templates, then
/// everything that can be checked before it is managed.
///
/// # Errors
///
/// Returns all findings together.
pub(crate) fn read_request(
    request: Request<'_>,
    types: &[&'static dyn AnyType],
    templates: &Resolver,
) -> Result<Box<dyn AnyResource>, RequestError> {
    let kind = find_offered(types, &request.kind)?;
    let mut reader = Reader::default();
    let mut resource = kind.declare(request.properties, None, &mut reader);
    let mut findings = reader.findings;
    // A value of the wrong type was not taken, so more would be said of it.
    if findings.is_empty() {
        findings = resolve_and_check(&mut *resource, templates, None);
        for warning in findings.extract_if(.., |found| found.severity == Severity::Warning) {
            let hint = warning.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            templates.host().warn(format!("{}{hint}", warning.message));
        }
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

/// Reads a resource whose state someone wants to see. What is needed only to
/// make one is not needed to look at it.
pub(crate) fn read_status(
    mut request: Request<'_>,
    types: &[&'static dyn AnyType],
    templates: &Resolver,
) -> Result<Box<dyn AnyResource>, StatusError> {
    if let Some(kind) = find_type(types, &request.kind) {
        if let Some(reason) = kind.no_status() {
            let message = format!("the state of {} cannot be shown: {reason}", request.display());
            return Err(Error::refused(message).into());
        }
        let is_given = |name: &str| request.properties.iter().any(|entry| entry.key.text == name);
        let is_for_making = |field: &&Field| match field.required {
            Required::UnlessEnsure(words) => words.contains(&"absent"),
            _ => false,
        };
        let is_incomplete =
            kind.fields().iter().filter(is_for_making).any(|field| !is_given(field.name));
        if is_incomplete && !is_given("ensure") {
            let value = Node::text("absent".to_owned());
            let key = Key { text: "ensure".into(), span: value.span };
            request.properties.push(Entry { key, value });
        }
    }
    Ok(read_request(request, types, templates)?)
}

/// A type that a single resource can be asked of.
fn find_offered(
    types: &[&'static dyn AnyType],
    kind: &str,
) -> Result<&'static dyn AnyType, RequestError> {
    let is_offered = |kind: &&'static dyn AnyType| kind.command_line().is_some();
    find_type(types, kind).filter(is_offered).ok_or_else(|| {
        let offered = types.iter().copied().filter(is_offered).map(AnyType::name);
        let offered: Vec<&str> = offered.collect();
        let hint = crate::type_hint(kind, &offered);
        let message = format!("the type `{kind}` is not available here");
        Finding::error(None, message).hint(hint).into()
    })
}

/// Why the state of a resource is not known.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The request is wrong.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The data that templates see cannot be resolved.
    #[error("cannot resolve data")]
    Data(#[from] ccm_hiera::Error),
    /// The machine did not answer.
    #[error(transparent)]
    Resource(#[from] Error),
}
