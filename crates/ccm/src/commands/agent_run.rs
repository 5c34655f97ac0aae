//! `ccm agent-run`: one run of the agent in a separate process. Hidden, because
//! only the agent calls it.

use ccm_agent::run::job::{self, Parent};
use ccm_engine::Engine;
use ccm_host::{System, process};
use ccm_resources::TYPES;
use clap::{ArgMatches, Command};

use super::{Result, example, flags, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::signals;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("agent-run")
        .about("Make one run of the agent")
        .hide(true)
        .after_help(example("ccm agent-run"))
        .args(state::flags())
}

pub(super) fn run(_: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let failed = |message: String| Error::Invalid { message, hint: None };
    let cancel = signals::watch().map_err(|error| failed(error.to_string()))?;
    let host = System::default().begin(cancel.clone());
    // The agent has none.
    process::allow_huge_pages();
    let (parent, job) = Parent::connect(&cancel, &host).map_err(failed)?;
    let engine = Engine::new(flags::with_network(System::default(), &parent), TYPES);
    let state = state::request(&host, matches);
    let result = job::run(&parent, &job, &engine, cancel, state);
    let exit = Exit::Code(result.exit);
    parent.finish(result);
    Ok(exit)
}
