//! Version comparison. Package managers disagree on it, so each rule has its
//! own module.

pub mod debian;
pub mod generic;
