//! `export NAME='VALUE'`, for files that shells source.

use std::path::Path;

use ccm_engine::{ProviderDef, Result};
use ccm_host::Host;

use super::{Provider, Setting, lines};

pub(super) const DEF: ProviderDef<Setting> = ProviderDef {
    name: "shell",
    // Scripts are its files; for those it comes before `plain`.
    rank: |_, want| Path::new(&want.file).extension().is_some_and(|end| end == "sh").then_some(1),
    open: |host| Box::new(Shell { host: host.clone() }),
};

struct Shell {
    host: Host,
}

impl Provider for Shell {
    fn get(&mut self, file: &Path, variable: &str) -> Result<Option<String>> {
        let value = lines::find(&self.host, file, &format!("export {variable}="))?;
        Ok(value.map(|value| value.trim_matches('\'').to_owned()))
    }

    fn set(&mut self, file: &Path, variable: &str, value: Option<&str>) -> Result<()> {
        lines::replace(&self.host, file, &format!("export {variable}="), line(variable, value))
    }

    fn predict(&mut self, file: &Path, variable: &str, value: Option<&str>) -> Result<()> {
        lines::predict(&self.host, file, &format!("export {variable}="), line(variable, value))
    }
}

fn line(variable: &str, value: Option<&str>) -> Option<String> {
    value.map(|value| format!("export {variable}='{value}'"))
}
