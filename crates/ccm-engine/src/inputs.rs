//! What templates see beside a manifest: facts, environment, external data.

use std::path::Path;

use ccm_hiera::{Document, Error, Warning};
use ccm_template::{Engine, Facts, Scope};
use govalue::Map;

/// What a run is given beside its manifest.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// About the machine, gathered when something needs them.
    pub facts: Facts,
    /// Variables of the environment.
    pub environ: Map,
    /// Hierarchical data from outside, which wins over the manifest's own.
    pub external: Option<Document>,
}

impl Inputs {
    /// The templates for resources at the command line: only external data.
    pub fn templates(&self, directory: &Path) -> Result<Engine, Error> {
        Ok(self.scope(self.external_data()?.unwrap_or_default(), directory))
    }

    /// The templates for a manifest with data of its own, and what looks like a
    /// rule in its comments but is none.
    pub(crate) fn templates_for(
        &self,
        document: &Document,
        directory: &Path,
    ) -> Result<(Engine, Vec<Warning>), Error> {
        let external = self.external_data()?;
        let resolved = document.resolve(&self.facts, external.as_ref())?;
        Ok((self.scope(resolved.data, directory), resolved.warnings))
    }

    fn external_data(&self) -> Result<Option<Map>, Error> {
        let Some(document) = &self.external else { return Ok(None) };
        Ok(Some(document.resolve(&self.facts, None)?.data))
    }

    fn scope(&self, data: Map, directory: &Path) -> Engine {
        Engine::new(Scope {
            facts: self.facts.clone(),
            data,
            environ: self.environ.clone(),
            directory: directory.to_owned(),
        })
    }
}
