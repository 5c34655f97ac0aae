//! `ccm ensure scaffold TARGET [SOURCE] [ENSURE]`.

use ccm_engine::{Arguments, CommandLine};
use ccm_host::Host;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "TARGET",
    aliases: &[],
    arguments: &["[source]", "[ensure]"],
    status: &["source", "engine", "skip_empty", "left_delimiter", "right_delimiter", "post"],
    extra: &[],
    example: "ccm ensure scaffold /etc/app templates --engine go --post '*.sh=chmod +x {}'",
    prepare,
};

fn prepare(arguments: &mut Arguments, _host: &Host) -> Result<(), String> {
    let Some(given) = arguments.take_list("post") else { return Ok(()) };
    let pair = |text: String| match text.split_once('=') {
        Some((pattern, command)) => Ok((pattern.to_owned(), command.to_owned())),
        None => Err(format!("--post `{text}` has no `=` between pattern and command")),
    };
    let pairs = given.into_iter().map(pair).collect::<Result<_, _>>()?;
    arguments.set_pairs("post", pairs);
    Ok(())
}
