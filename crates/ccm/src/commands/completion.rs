//! `ccm completion SHELL`

use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;

use super::{Result, example};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("completion")
        .about("Print shell completions")
        .after_help(example("ccm completion bash > /etc/bash_completion.d/ccm"))
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(clap::value_parser!(Shell))
                .help("Shell to print completions for"),
        )
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let shell: &Shell = matches.get_one("shell").ok_or_else(|| Error::usage("no shell", ""))?;
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut crate::cli(), "ccm", &mut script);
    ui.print(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
