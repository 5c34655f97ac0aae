//! ccm on throw-away machines.

mod bed;

pub(crate) use system_tests::{Layer, Machine, Outcome};
