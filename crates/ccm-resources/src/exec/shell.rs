//! The provider `shell`: runs commands with `/bin/sh`.

use std::path::Path;

use ccm_engine::{Error, ProviderDef, Result};

use super::{Exec, Runner};

pub(super) const NAME: &str = "shell";
const SHELL: &str = "/bin/sh";

pub(super) const DEF: ProviderDef<Exec> = ProviderDef {
    name: NAME,
    // Behind posix, so never chosen unless asked for.
    rank: |host, _| host.stat(Path::new(SHELL)).ok().flatten().map(|_| 99),
    open: |host| Box::new(Runner::new(host, words)),
};

fn words(command: &str) -> Result<Vec<String>> {
    if command.trim().is_empty() {
        return Err(Error::refused("no command to execute"));
    }
    Ok(vec![SHELL.to_owned(), "-c".to_owned(), command.to_owned()])
}
