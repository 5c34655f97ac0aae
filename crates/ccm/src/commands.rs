//! The commands, one file each.

mod api;
mod apply;
mod completion;
#[cfg(test)]
mod docs;
mod ensure;
mod facts;
mod flags;
mod hiera;
mod inputs;
mod man;
mod manifest;
mod plan;
mod schema;
mod session;
mod status;
mod validate;

use ccm_resources::TYPES;
use clap::{ArgMatches, Command};

use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

type Result<T, E = Error> = std::result::Result<T, E>;

pub(crate) fn all() -> [Command; 11] {
    [
        apply::command(),
        plan::command(),
        ensure::command(),
        status::command(),
        validate::command(),
        facts::command(),
        hiera::command(),
        session::command(),
        schema::command(),
        completion::command(),
        man::command(),
    ]
}

pub(crate) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    match matches.subcommand() {
        Some(("apply", matches)) => apply::run(ui, matches),
        Some(("plan", matches)) => plan::run(ui, matches),
        Some(("ensure", matches)) => ensure::run(ui, matches),
        Some(("status", matches)) => status::run(ui, matches),
        Some(("validate", matches)) => validate::run(ui, matches),
        Some(("facts", matches)) => facts::run(ui, matches),
        Some(("hiera", matches)) => hiera::run(ui, matches),
        Some(("schema", matches)) => Ok(schema::run(ui, matches)),
        Some(("session", matches)) => session::run(ui, matches),
        Some(("completion", matches)) => completion::run(ui, matches),
        Some(("man", matches)) => man::run(ui, matches),
        _ => Ok(Exit::Usage),
    }
}

/// The example that every help ends with.
fn example(text: &str) -> String {
    format!("Example:\n  {text}")
}

/// The names of all types.
fn type_names() -> Vec<&'static str> {
    TYPES.iter().map(|kind| kind.name()).collect()
}
