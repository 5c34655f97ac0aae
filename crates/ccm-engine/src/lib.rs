//! The engine that every command uses: load, validate, plan, apply, ensure,
//! status.
//!
//! - [`Engine`] is the way in; [`RunOptions`] is what one run is given.
//! - [`Declare`] and [`ResourceType`] are what a type implements; [`AnyType`] is
//!   how the engine and the commands see it, through an explicit list.
//! - [`converge`] applies one resource: observe, decide, act, verify.
//! - [`Manifest`] holds resources read from YAML. Loading one reports all its
//!   errors in one pass.
//! - A [`Session`] records one [`Event`](ccm_model::Event) per resource.

mod apply;
mod asked;
pub mod check;
mod cli;
mod converge;
mod debts;
mod decision;
mod decision_log;
mod declare;
pub mod edit;
mod engine;
mod environ;
mod error;
mod foreign;
pub mod form;
pub mod frame;
pub mod graph;
mod health;
mod history;
mod inputs;
mod lifecycle;
mod manage;
mod manifest;
mod manifest_run;
mod options;
pub mod outline;
mod plan;
mod provisional;
mod registration;
mod request;
mod resource;
mod resource_type;
mod run;
mod saved_plan;
pub mod schema;
mod selection;
mod session;
mod step;
mod undo;
mod validate;
pub mod why;

pub use apply::Apply;
pub use asked::{Asked, asked};
pub use ccm_state::history::Former;
pub use cli::{Arguments, CommandLine, ExtraFlag};
pub use converge::{Outcome, converge};
pub use debts::RunState;
pub use decision::{Decision, Decisions};
pub use decision_log::{DecisionLog, DecisionPolicy, ONLY_IN_THE_RUN, RecordedDecision};
pub use declare::{Declare, Ensure, Findings};
pub use engine::{Engine, EnsureError, Validation};
pub use environ::environ;
pub use error::{Error, Result, chain};
pub use foreign::type_hint;
pub use history::HistoryInfo;
pub use inputs::{InheritedData, Inputs};
pub use manage::{Manage, Turn};
pub use manifest::{
    Declarations, Diagnosis, Manifest, ManifestError, SourceRef, Visited, find_manifest,
};
pub use manifest_run::{Child, Mode};
pub use options::RunOptions;
pub use plan::Planned;
pub use request::StatusError;
pub use resource::{AnyResource, AnyType, Erased, find_type};
pub use resource_type::{
    ChangeRecorder, Context, Detail, Diffs, NoRecorder, Prediction, ProviderDef, ResourceType,
    State, Trigger,
};
pub use run::{Finished, Loss, NoObserver, Observer, Run, Stop};
pub use saved_plan::{Difference, PlanRecording, SavedPlan, SavedPlanError, VerifyError};
pub use selection::{Selection, SelectionError};
pub use session::{DirectorySession, LastOutcome, MemorySession, NoSession, Session, SessionError};
pub use step::Step;
pub use undo::{UndoError, UndoOptions};
