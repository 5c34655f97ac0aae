//! `ccm man`

use std::path::{Path, PathBuf};

use ccm_host::Host;
use clap::{Arg, ArgMatches, Command, ValueHint};
use clap_mangen::Man;

use super::{Result, example, flags};
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("man")
        .about("Print the manual page, or write all of them")
        .after_help(example("ccm man | man -l -"))
        .arg(
            Arg::new("dir")
                .long("dir")
                .value_name("DIR")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::DirPath)
                .help("Write one page per command into this directory"),
        )
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let mut cli = crate::cli();
    cli.build();
    match matches.get_one::<PathBuf>("dir") {
        None => ui.print(&page(&cli)),
        Some(directory) => {
            let host = Host::new();
            let directory = flags::from_here(&host, directory);
            write_pages(&host, &directory, &cli, "ccm")?;
        }
    }
    Ok(Exit::Done)
}

fn page(command: &Command) -> String {
    let mut page = Vec::new();
    // Writing to memory does not fail.
    let _ = Man::new(command.clone()).render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

fn write_pages(host: &Host, directory: &Path, command: &Command, name: &str) -> Result<()> {
    let path = directory.join(format!("{name}.1"));
    host.output_file(&path)?.write(page(command).as_bytes(), 0o644)?;
    for sub in
        command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
    {
        write_pages(host, directory, sub, &format!("{name}-{}", sub.get_name()))?;
    }
    Ok(())
}
