//! How to extend ccm, as a crate that builds and runs: `setting` is a resource
//! type with two providers. `docs/extending.md` quotes this crate, and
//! `tests/engine.rs` runs it through everything that the engine offers.

pub mod setting;

use ccm_engine::{AnyType, Erased};

/// The new type beside one that ccm has.
pub static TYPES: &[&dyn AnyType] =
    &[&Erased::<ccm_resources::file::File>::NEW, &Erased::<setting::Setting>::NEW];
