//! `ccm greet NAME`: a minimal command for tests, which `docs/extending.md`
//! quotes.

use clap::{Arg, ArgMatches, Command};

use super::{Result, example, flags};
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("greet")
        .about("Greet someone")
        .after_help(example("ccm greet Ann"))
        .arg(Arg::new("name").value_name("NAME").required(true).help("Whom to greet"))
        .arg(flags::json("Print the greeting as JSON"))
}

#[expect(clippy::unnecessary_wraps, reason = "the signature of every command")]
pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let name = matches.get_one::<String>("name").map(String::as_str).unwrap_or_default();
    if name.is_empty() {
        return Ok(Exit::Failed);
    }
    let greeting = format!("Hello, {name}\n");
    if matches.get_flag("json") {
        ui.print_json(&greeting.trim_end());
    } else {
        ui.print(&greeting);
    }
    Ok(Exit::Done)
}
