//! `NAME=VALUE`, the notation of environment files.

use std::path::Path;

use ccm_engine::{ProviderDef, Result};
use ccm_host::Host;

use super::{Provider, Setting, lines};

pub(super) const DEF: ProviderDef<Setting> = ProviderDef {
    name: "plain",
    rank: |_, _| Some(2),
    open: |host| Box::new(Plain { host: host.clone() }),
};

struct Plain {
    host: Host,
}

impl Provider for Plain {
    fn get(&mut self, file: &Path, variable: &str) -> Result<Option<String>> {
        lines::find(&self.host, file, &format!("{variable}="))
    }

    fn set(&mut self, file: &Path, variable: &str, value: Option<&str>) -> Result<()> {
        lines::replace(&self.host, file, &format!("{variable}="), line(variable, value))
    }

    fn predict(&mut self, file: &Path, variable: &str, value: Option<&str>) -> Result<()> {
        lines::predict(&self.host, file, &format!("{variable}="), line(variable, value))
    }
}

fn line(variable: &str, value: Option<&str>) -> Option<String> {
    value.map(|value| format!("{variable}={value}"))
}
