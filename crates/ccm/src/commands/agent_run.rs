//! `ccm agent-run`: one run of the agent in a separate process. Hidden, because
//! only the agent calls it.

use std::sync::Arc;

use ccm_agent::run::JobResult;
use ccm_agent::run::job::{self, Parent};
use ccm_engine::Engine;
use ccm_host::{LockError, System};
use ccm_resources::TYPES;
use clap::{ArgMatches, Command};

use super::{Result, example, state};
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
    host.allow_huge_pages();
    let (parent, job) = Parent::connect(&cancel, &host).map_err(failed)?;
    let system = System::default();
    let system = system.with_lookup(Arc::clone(&parent) as _);
    let system = system.with_publisher(Arc::clone(&parent) as _);
    let engine = Engine::new(system, TYPES);
    let mut options = engine.options(cancel);
    let prepared = job::prepare(&job, &mut options).map_err(failed);
    let result = match prepared.and_then(|()| state::begin_quietly(&mut options, matches)) {
        Ok(_lock) => job::run(&parent, &job, &engine, &options),
        Err(error) => {
            let exit = match &error {
                Error::Lock(LockError::Busy { .. }) => 75,
                _ => 1,
            };
            let errors = vec![ccm_engine::chain(&error)];
            JobResult { exit, errors, ..JobResult::default() }
        }
    };
    let exit = Exit::OfRun(result.exit);
    parent.finish(result);
    Ok(exit)
}
