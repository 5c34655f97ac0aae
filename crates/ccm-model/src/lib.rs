//! The data types of ccm: properties, references, states, events. No I/O.
//!
//! - [`properties`](Properties): the desired state of a resource, read from a
//!   manifest with positions by `#[derive(Properties)]`, and the table of
//!   fields that the command line, schemas and documentation are rendered from.
//! - [`ResourceRef`] is `type#name`.
//! - [`Event`] and [`Summary`]: the result of a resource, and of a run.
//! - [`Registration`] and [`RegistryEntry`]: where services can be found.
//! - [`shellquote`] and [`duration`]: two small languages that properties use.

// The derive names this crate from outside; this lets it do so inside too.
extern crate self as ccm_model;

mod change;
mod data;
mod diagnostic;
pub mod duration;
mod event;
mod event_id;
mod excerpt;
mod field;
mod finding;
mod goss_rules;
mod health_check;
mod outcome;
mod plan;
mod properties;
mod read;
mod redact;
mod redactor;
mod reference;
mod registration;
mod report;
mod request;
mod resolve;
pub mod shellquote;
mod suggest;
mod summary;

pub use ccm_macros::{Properties, Settings};
pub use ccm_yaml::{Node, Span};
pub use change::{Change, ChangeValue, Removed, Verb};
pub use data::Data;
pub use diagnostic::Diagnostic;
pub use event::{Event, GroupPlace, ItemPlace, OwedReaction, SessionStart};
pub use event_id::EventId;
pub use excerpt::excerpt;
pub use field::{Field, Flag, Format, Phase, Required, Shape, concat_fields};
pub use finding::{Finding, Severity};
pub use goss_rules::GossRules;
pub use health_check::{Health, HealthCheck, HealthCheckResult};
pub use outcome::{Counts, Outcome};
pub use plan::{Plan, PlanDifference, PlanHost, PlanTree, PlannedResource};
pub use properties::{Common, Control, Fields, Properties, REDACTED, SerializeFields};
pub use read::{FromNode, Reader, Spanned};
pub use redact::{is_secret_name, mask_credentials, redact_credentials};
pub use redactor::{Redactor, SecretValues, Secrets, header_secrets};
pub use reference::{ResourceRef, ResourceRefError};
pub use registration::{
    Annotations, REGISTRY_PREFIX, Registration, RegistryChange, RegistryEntry,
    RegistryMessageError, RegistryQuery, RegistrySubject, Ttl, TtlError, Whole, entries_of,
    prometheus_file_sd,
};
pub use report::{Report, StillOwed};
pub use request::{Request, RequestError, Response};
pub use resolve::{
    Resolve, Stage, TemplateError, TemplatePlace, Templates, has_placeholder,
    has_script_placeholder,
};
pub use suggest::{closest, did_you_mean, property_hint};
pub use summary::{HealthChecks, Summary};
