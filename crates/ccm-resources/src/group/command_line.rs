//! `ccm ensure group NAME [ENSURE]`.

use ccm_engine::CommandLine;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "NAME",
    aliases: &[],
    arguments: &["[ensure]"],
    extra: &[],
    status: &[],
    example: "ccm ensure group deploy --gid 2000 --members ann --members bob",
    prepare: |_, _| Ok(()),
};
