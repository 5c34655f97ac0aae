//! The loop that all faces share: observe, decide, act, verify.
//!
//! - [`ResourceType`] is what a type implements; [`AnyType`] is how the engine
//!   and the faces see it, through an explicit list.
//! - [`converge`] brings one resource to its desired state. It alone knows of
//!   noop and of verification.
//! - [`Run`] takes resources through their whole lifecycle and records one
//!   [`Event`](ccm_model::Event) each in a [`Session`].
//! - [`Manifest`] reads resources from YAML, with everything that is wrong
//!   found in one pass.

mod cli;
mod converge;
mod environ;
mod error;
pub mod frame;
mod health;
mod inputs;
mod lifecycle;
mod manifest;
mod nested;
mod request;
mod resource;
mod resource_type;
mod run;
pub mod schema;
mod session;
mod validate;

pub use cli::{Arguments, CommandLine, ExtraFlag};
pub use converge::{Outcome, converge};
pub use environ::environ;
pub use error::{Error, Result, chain};
pub use inputs::{Handed, Inputs, Served};
pub use manifest::{Children, Declarations, Diagnosis, Manifest, ManifestError};
pub use nested::{Child, Nested, Nowhere, Tally};
pub use request::{REQUEST, RequestError, read_request, read_resource};
pub use resource::{AnyResource, AnyType, Erased, find_type};
pub use resource_type::{
    Context, Detail, Diffs, Ensure, Findings, ProviderDef, ResourceType, State, Trigger,
};
pub use run::{Observer, Run, Settings, Stop};
pub use session::{DirectorySession, Last, MemorySession, NoSession, Session, SessionError};
