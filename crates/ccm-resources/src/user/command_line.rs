//! `ccm ensure user NAME [ENSURE]`.

use ccm_engine::{CommandLine, ExtraFlag};

/// Switches that turn a property off.
const OFF: [(&str, &str); 3] =
    [("without-home", "create_home"), ("unlock", "locked"), ("disable-linger", "linger")];

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "NAME",
    aliases: &[],
    arguments: &["[ensure]"],
    extra: &[
        ExtraFlag {
            long: OFF[0].0,
            value: "",
            doc: "Do not make the home directory",
            conflicts: &["create_home"],
        },
        ExtraFlag {
            long: OFF[1].0,
            value: "",
            doc: "Unlock the password and the account",
            conflicts: &["locked"],
        },
        ExtraFlag {
            long: OFF[2].0,
            value: "",
            doc: "Let no services of the user run without a login",
            conflicts: &["linger"],
        },
    ],
    status: &[],
    example: "ccm ensure user ann --groups sudo --shell /bin/bash --comment 'Ann Smith'",
    prepare: |arguments, _| {
        for (switch, property) in OFF {
            if arguments.take_switch(switch) {
                arguments.switch_off(property);
            }
        }
        Ok(())
    },
};
