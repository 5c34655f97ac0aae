//! `ccm ensure service NAME [ENSURE]`.

use ccm_engine::{CommandLine, ExtraFlag};

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "NAME",
    aliases: &["svc"],
    arguments: &["[ensure]"],
    extra: &[ExtraFlag {
        long: "disable",
        value: "",
        doc: "Do not start the service at boot",
        conflicts: &["enable"],
    }],
    status: &[],
    example: "ccm ensure service nginx running --enable",
    prepare: |arguments, _| {
        if arguments.take_switch("disable") {
            arguments.switch_off("enable");
        }
        Ok(())
    },
};
