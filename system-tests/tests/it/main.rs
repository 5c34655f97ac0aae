//! ccm on throw-away machines.

#![expect(clippy::unwrap_used, reason = "a test that cannot read an answer has to fail")]

mod agent;
mod apt;
mod bed;
mod dnf;
mod example;
mod goss;
mod groups;
mod offline;
mod packages;
mod prediction;
mod selection;
mod service;
mod studio;
mod undo;
mod users;

pub(crate) use system_tests::Outcome::{Changed, Failed, Refreshed, Stable};
pub(crate) use system_tests::{Layer, Machine};

/// A manifest of one package.
pub(crate) fn package(name: &str, ensure: &str) -> String {
    format!("ccm: {{resources: [{{package: [{{{name}: {{ensure: \"{ensure}\"}}}}]}}]}}\n")
}
