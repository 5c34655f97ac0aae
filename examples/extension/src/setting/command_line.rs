//! `ccm ensure setting VARIABLE [ENSURE]`.

use ccm_engine::CommandLine;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "VARIABLE",
    aliases: &[],
    arguments: &["[ensure]"],
    status: &["file"],
    extra: &[],
    example: "ccm ensure setting PORT --file /etc/default/app --value 8080",
    prepare: |_, _| Ok(()),
};
