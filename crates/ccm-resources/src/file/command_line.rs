//! `ccm ensure file NAME [ENSURE]`.

use std::path::Path;

use ccm_engine::{Arguments, CommandLine, ExtraFlag};
use ccm_host::Host;

use crate::owner;

/// What is read from a file into an argument.
const MAX_CONTENT: u64 = 64 << 20;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "NAME",
    aliases: &[],
    arguments: &["[ensure]"],
    status: &[],
    extra: &[ExtraFlag {
        long: "content-file",
        value: "FILE",
        doc: "Read the desired content from this file",
        conflicts: &["content", "source"],
    }],
    example: "ccm ensure file /etc/motd --content 'Welcome' --owner root:root --mode 0644",
    prepare,
};

fn prepare(arguments: &mut Arguments, host: &Host) -> Result<(), String> {
    if let Some(path) = arguments.take("content-file") {
        let content = host
            .read_trusted(Path::new(&path), MAX_CONTENT)
            .map_err(|error| ccm_engine::chain(&error))?;
        arguments.set("content", content);
    }
    if arguments.get("ensure") == Some("absent") {
        return Ok(());
    }
    if arguments.get("ensure") == Some("link") {
        // Without an owner, a symlink keeps the one that it has.
        if arguments.get("owner").is_some() {
            owner::prepare(arguments, host);
        }
        return Ok(());
    }
    owner::prepare(arguments, host);
    if arguments.get("mode").is_none() {
        let is_directory = arguments.get("ensure") == Some("directory");
        arguments.set("mode", if is_directory { "0755" } else { "0644" });
    }
    Ok(())
}
