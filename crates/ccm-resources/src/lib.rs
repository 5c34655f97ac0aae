//! The resource types. One folder each: properties, decisions, providers, view
//! at the command line and tests live together. The rest of ccm knows a type
//! only through its entry in [`TYPES`]. `apply`, which runs manifests, is part
//! of the engine.

mod accounts;
pub mod archive;
pub mod edit;
pub mod exec;
pub mod file;
pub mod group;
mod name;
mod owner;
pub mod package;
pub mod scaffold;
pub mod service;
#[cfg(test)]
mod testing;
mod text_diff;
mod tree;
pub mod user;
mod whole;

pub use text_diff::{hidden_part, unified as unified_diff};

use ccm_engine::{AnyType, Apply, Erased};

/// Every type that there is.
pub static TYPES: &[&dyn AnyType] = &[
    &Erased::<Apply>::NEW,
    &Erased::<archive::Archive>::NEW,
    &Erased::<edit::Edit>::NEW,
    &Erased::<exec::Exec>::NEW,
    &Erased::<file::File>::NEW,
    &Erased::<group::Group>::NEW,
    &Erased::<package::Package>::NEW,
    &Erased::<scaffold::Scaffold>::NEW,
    &Erased::<service::Service>::NEW,
    &Erased::<user::User>::NEW,
];
