//! `ccm ensure edit NAME [ENSURE]`.

use ccm_engine::{Arguments, CommandLine, ExtraFlag};
use ccm_host::Host;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "NAME",
    aliases: &[],
    arguments: &["[ensure]"],
    status: &[
        "path", "format", "line", "match", "block", "comment", "set", "add", "remove", "dialect",
        "document",
    ],
    extra: &[
        ExtraFlag {
            long: "set",
            value: "YAML",
            doc: "With structured formats: values by key, merged into the file, as a map in YAML or JSON",
            conflicts: &[],
        },
        ExtraFlag {
            long: "add",
            value: "YAML",
            doc: "With `json`, `yaml` and `toml`: members that a list must have, as a map from JSON Pointers to lists",
            conflicts: &[],
        },
    ],
    example: "ccm ensure edit /etc/sysctl.conf --format line --line 'vm.swappiness = 10'",
    prepare,
};

fn prepare(arguments: &mut Arguments, _host: &Host) -> Result<(), String> {
    for flag in ["set", "add"] {
        if let Some(text) = arguments.take(flag) {
            let source = ccm_yaml::Source::new(format!("--{flag}"), text);
            let node = ccm_yaml::parse(&source).map_err(|error| format!("--{flag}: {error}"))?;
            arguments.set_data(flag, node.into_owned());
        }
    }
    Ok(())
}
