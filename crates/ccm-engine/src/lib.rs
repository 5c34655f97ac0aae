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
mod cli;
mod converge;
mod decision_log;
mod declare;
mod declared;
mod engine;
mod environ;
mod error;
mod group;
mod health;
mod history;
mod inputs;
mod lifecycle;
mod manage;
mod manifest;
mod manifest_run;
mod options;
mod owed;
mod plan;
mod provisional;
mod registration;
mod request;
mod requests;
mod resource;
mod resource_type;
mod run;
mod run_error;
mod saved_plan;
mod selection;
mod session;
mod state_access;
mod step;
mod type_hints;
mod undo;
mod validate;
mod whole_run;

pub use apply::Apply;
pub use ccm_state::history::Former;
pub use cli::{Arguments, CommandLine, ExtraFlag};
pub use converge::{Converged, Convergence, converge};
pub use decision_log::{DecisionLog, DecisionPolicy, ONLY_IN_THE_RUN, RecordedDecision};
pub use declare::{Declare, Ensure, Findings};
pub use declared::{DeclaredPath, DeclaredPaths, Extent, ManagedPath};
pub use engine::{Engine, EnsureError};
pub use environ::environ;
pub use error::{Error, Result, chain};
pub use history::HistoryInfo;
pub use inputs::Inputs;
pub use lifecycle::is_managed;
pub use manage::{AnyAhead, Foreseen, Manage, Turn};
pub use manifest::{
    Block, Declarations, Diagnosis, FindingsByItem, Manifest, ManifestError, SourceRef,
    WrittenPart, WrittenProperty, find_manifest,
};
pub use manifest_run::{Child, MAX_DEPTH, Mode, child_inputs};
pub use options::RunOptions;
pub use owed::RunState;
pub use plan::{Planned, refused_plan};
pub use request::StatusError;
pub use requests::{OpenRun, Requests};
pub use resource::{AnyResource, AnyType, Erased, find_type, templates_of};
pub use resource_type::{
    ActTogether, Awaited, ChangeRecorder, Context, Detail, Diffs, NoRecorder, Prediction,
    ProviderDef, ResourceType, State, Together, Trigger,
};
pub use run::{Finished, Loss, NoObserver, Observer, Position, Run, Stop};
pub use run_error::{RunError, RunExit};
pub use saved_plan::{Difference, PlanRecording, SavedPlan, SavedPlanError, VerifyError};
pub use selection::{Selection, SelectionError};
pub use session::{DirectorySession, LastOutcome, MemorySession, NoSession, Session, SessionError};
pub use state_access::{StateError, StateRequest, wait_for};
pub use step::Step;
pub use type_hints::type_hint;
pub use undo::{UndoError, UndoOptions, find_run};
pub use whole_run::{PreparedRun, RunRequest, RunResult, RunSource, Selectors, SessionRequest};
