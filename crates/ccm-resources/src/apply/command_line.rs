//! Not offered by `ccm ensure`: a manifest is applied by `ccm apply`.

use ccm_engine::CommandLine;

pub(super) const VIEW: CommandLine = CommandLine {
    name_value: "MANIFEST",
    aliases: &[],
    arguments: &[],
    extra: &[],
    status: &[],
    example: "ccm apply manifest.yaml",
    prepare: |_, _| Ok(()),
};
