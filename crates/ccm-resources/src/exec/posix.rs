//! The provider `posix`: runs commands directly, without a shell.

use ccm_engine::{Error, ProviderDef, Result};
use ccm_model::shellquote;

use super::{Exec, Runner};

pub(super) const DEF: ProviderDef<Exec> = ProviderDef {
    name: "posix",
    rank: |_, _| Some(1),
    open: |host| Box::new(Runner::new(host, words)),
};

fn words(command: &str) -> Result<Vec<String>> {
    shellquote::split(command).map_err(|error| Error::refused(error.to_string()))
}
