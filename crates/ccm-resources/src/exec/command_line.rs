//! `ccm ensure exec COMMAND`.

use ccm_engine::CommandLine;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "COMMAND",
    aliases: &[],
    arguments: &[],
    status: &[],
    extra: &[],
    example: "ccm ensure exec '/usr/bin/make install' --cwd /usr/src --creates /usr/bin/app",
    prepare: |_, _| Ok(()),
};
