//! The engine without the binary: manifests are loaded, applied and looked at
//! through [`ccm_engine::Engine`], with the types that ccm has.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod bed;
mod lifecycle;
mod loader;
mod nested;
mod owed;
mod whole_run;

use bed::Bed;
