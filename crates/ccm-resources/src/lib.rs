//! The resource types. One folder each: properties, decisions, providers, view
//! at the command line and tests live together. A type is known to the rest of
//! ccm by its line in [`TYPES`] alone.

pub mod exec;
pub mod file;
mod name;
pub mod package;
pub mod service;

use ccm_engine::{AnyType, Erased};

/// Every type that there is.
pub static TYPES: &[&dyn AnyType] = &[
    &Erased::<exec::Exec>::NEW,
    &Erased::<file::File>::NEW,
    &Erased::<package::Package>::NEW,
    &Erased::<service::Service>::NEW,
];
