//! For those who write manifests, and for the programs that help them: checks,
//! edits, outlines, forms, graphs, explanations, schemas.
//!
//! It stands beside a run: everything here reads manifests through an
//! [`Engine`](ccm_engine::Engine), and no run needs any of it.
//!
//! - [`validate`] checks a manifest and its child manifests; [`check`] checks the
//!   text in an editor, with ranges and fixes; [`frame`] draws what they find.
//! - [`outline`] lists the resources of a text, [`edit`] changes them, and
//!   [`form`] is the table that forms are made of.
//! - [`graph`] and [`why`] explain a manifest, with [`Decisions`] as what a run
//!   would do now.
//! - [`schema`] renders the JSON Schemas.

pub mod check;
mod children;
mod decision;
mod diagnosis;
pub mod edit;
pub mod form;
pub mod frame;
pub mod graph;
pub mod outline;
pub mod schema;
mod single;
mod validate;
mod visit;
pub mod why;

pub use decision::{Decision, Decisions};
pub use single::{SingleResource, single_resource};
pub use validate::{Validation, validate};
pub use visit::{Visited, visit};
