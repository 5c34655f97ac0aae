//! `ccm ensure archive FILE URL`.

use ccm_engine::{Arguments, CommandLine, ExtraFlag};
use ccm_host::Host;

use crate::owner;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "FILE",
    aliases: &[],
    arguments: &["[url]"],
    status: &["creates"],
    extra: &[ExtraFlag {
        long: "absent",
        value: "",
        doc: "Remove the archive; no URL is needed",
        conflicts: &["extract_parent", "cleanup", "checksum"],
    }],
    example: "ccm ensure archive /tmp/app.tar.gz https://example.com/app.tar.gz \\\n      \
              --extract /opt/app --creates /opt/app/bin/app --cleanup",
    prepare,
};

fn prepare(arguments: &mut Arguments, host: &Host) -> Result<(), String> {
    for header in arguments.take_list("headers").unwrap_or_default() {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| "a --header has no `:` between name and value".to_owned())?;
        arguments.set_in("headers", name.trim(), value.trim());
    }
    if arguments.take_switch("absent") {
        arguments.set("ensure", "absent");
        return Ok(());
    }
    owner::prepare(arguments, host);
    Ok(())
}
