//! Software packages.

pub mod version;
