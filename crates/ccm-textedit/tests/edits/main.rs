//! Vectors of every format, and the laws on random documents.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod laws;
mod random;
mod spec;
mod typed;
mod vectors;
