//! `ccm ensure package NAME [ENSURE]`.

use ccm_engine::CommandLine;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "NAME",
    aliases: &["pkg"],
    arguments: &["[ensure]"],
    extra: &[],
    status: &[],
    example: "ccm ensure package nginx latest",
    prepare: |_, _| Ok(()),
};
