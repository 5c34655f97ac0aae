//! Helpers for tests of types: one resource, managed as `ccm ensure` would.

use std::path::Path;

use ccm_engine::{
    Arguments, Detail, Engine, MemorySession, NoObserver, Observer, RunOptions, Session,
};
use ccm_host::{Cancel, System};
use ccm_model::{Event, Fields, Reader, Request};
use serde_json::Value;

use crate::TYPES;

fn engine(directory: &Path) -> (Engine, RunOptions) {
    let engine = Engine::new(System::default(), TYPES);
    let mut options = engine.options(Cancel::default());
    options.detail = Detail::Report;
    options.working_directory = directory.to_owned();
    (engine, options)
}

/// Manages a resource, or previews it.
pub(crate) fn ensure(
    kind: &'static str,
    arguments: Arguments,
    directory: &Path,
    noop: bool,
) -> Event {
    let mut session = MemorySession::default();
    ensure_in(kind, arguments, directory, noop, &mut session, &mut NoObserver).unwrap()
}

/// The same, in a session and under someone's eyes.
pub(crate) fn ensure_in(
    kind: &'static str,
    arguments: Arguments,
    directory: &Path,
    noop: bool,
    session: &mut dyn Session,
    observer: &mut dyn Observer,
) -> Result<Event, String> {
    let (engine, mut options) = engine(directory);
    options.mode.noop = noop;
    let ensured = engine.ensure(arguments.into_request(kind), &options, session, observer);
    ensured.map(|(event, _)| event).map_err(|error| error.to_string())
}

/// The state of a resource.
pub(crate) fn status(kind: &'static str, arguments: Arguments) -> Value {
    let (engine, options) = engine(Path::new("/"));
    engine.status(arguments.into_request(kind), &options).unwrap()
}

/// Properties as a request gives them.
pub(crate) fn properties<P: Fields + Default>(json: &Value) -> P {
    let source = ccm_yaml::Source::new("test", json.to_string());
    let mut reader = Reader::default();
    let read = reader.read_struct(ccm_yaml::parse(&source).unwrap()).unwrap();
    assert!(reader.findings.is_empty(), "{:?}", reader.findings);
    read
}

/// A request in noop mode, which changes nothing.
pub(crate) fn request(kind: &str, properties: &Value) -> Result<Event, String> {
    let request =
        serde_json::json!({"protocol": Request::PROTOCOL, "type": kind, "properties": properties});
    let source = ccm_yaml::Source::new("test", request.to_string());
    let request = Request::parse(&source).map_err(|error| error.to_string())?;
    let (engine, mut options) = engine(Path::new("/"));
    options.mode.noop = true;
    let mut session = MemorySession::default();
    let ensured = engine.ensure(request, &options, &mut session, &mut NoObserver);
    ensured.map(|(event, _)| event).map_err(|error| error.to_string())
}

/// What is wrong with the properties of a request.
pub(crate) fn invalid(kind: &str, properties: &Value) -> String {
    request(kind, properties).expect_err("the request is valid")
}
