//! Which of two versions is newer: package managers disagree, so each of their
//! rules is a module of its own.

pub mod debian;
pub mod generic;
