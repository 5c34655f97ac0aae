//! `ccm man`

use std::path::{Path, PathBuf};

use ccm_host::{Attributes, Host, OutputFile};
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
                .help("Write one page per command into this directory, and create it if needed"),
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
            if host.stat(&directory)?.is_none() {
                let (uid, gid) = host.whoami();
                host.create_directory(&directory, &Attributes { uid, gid, mode: 0o755 })?;
            }
            write_pages(&host, &directory, &cli, "ccm")?;
        }
    }
    Ok(Exit::Done)
}

fn page(command: &Command) -> String {
    let mut page = Vec::new();
    // The examples get a section of their own.
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = help.trim_start_matches("Examples:").trim();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let description = match command.get_before_help() {
        Some(text) => format!("{about}.\n\n{text}"),
        None => about,
    };
    // Writing to memory does not fail.
    let _ = Man::new(command.clone().after_help("").long_about(description)).render(&mut page);
    let mut page = String::from_utf8_lossy(&page).into_owned();
    section(&mut page, "EXIT STATUS", EXIT_STATUS);
    section(&mut page, "FILES", FILES);
    section(&mut page, "ENVIRONMENT", ENVIRONMENT);
    page.push_str(&format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(examples)));
    page
}

/// What the codes mean that a command ends with.
const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "Success, whether anything changed or not."),
    ("1", "The command failed, or at least one resource failed."),
    (
        "2, 4, 6",
        "With --detailed-exitcodes: changes, failures, both. 2 also: reactions are owed, rules fail.",
    ),
    ("64", "The command line is invalid."),
    ("75", "Another run is in progress."),
    ("129, 130, 143", "Interrupted by SIGHUP, SIGINT, SIGTERM."),
];

/// What ccm reads and writes besides what its arguments name.
const FILES: &[(&str, &str)] = &[
    (
        "/var/lib/ccm, ~/.local/state/ccm",
        "Lock, owed reactions and history, for root and for other users.",
    ),
    ("/etc/choria/ccm, ~/.config/choria/ccm", "Custom facts: facts.json, facts.yaml, facts.d."),
    ("./.env", "Variables for templates."),
    ("./.hiera", "Data for ccm ensure."),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    ("CCM_HIERA_DATA", "External data, as --hiera."),
    ("CCM_SESSION_STORE", "Directory of the session, as --session."),
    ("CCM_STATE_DIR", "State directory, as --state-dir."),
    ("CCM_STRICT", "If 1, refuse files that other users can change, when run as root."),
    ("NATS_CONTEXT", "NATS context, as --context."),
    ("NO_COLOR", "Any value turns color off."),
    ("http_proxy, https_proxy, all_proxy, no_proxy", "Proxies for downloads."),
];

fn section(page: &mut String, title: &str, rows: &[(&str, &str)]) {
    page.push_str(&format!(".SH \"{title}\"\n"));
    for (name, text) in rows {
        page.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(text)));
    }
}

/// Text that roff prints as it is: dashes that can be copied, and no line that
/// begins with a control character.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| {
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
    };
    escaped.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn write_pages(host: &Host, directory: &Path, command: &Command, name: &str) -> Result<()> {
    let path = directory.join(format!("{name}.1"));
    OutputFile::new(host, &path)?.write(page(command).as_bytes(), 0o644)?;
    for sub in
        command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set())
    {
        write_pages(host, directory, sub, &format!("{name}-{}", sub.get_name()))?;
    }
    Ok(())
}
