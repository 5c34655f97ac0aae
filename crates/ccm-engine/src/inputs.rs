//! What templates see beside a manifest: facts, environment, external data.

use std::path::{Path, PathBuf};

use ccm_hiera::{Document, Error, Warning, mapmerge};
use ccm_host::Host;
use ccm_template::{Facts, Resolver, Scope};
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
    /// Data from a manifest above, which wins over the manifest's own too.
    pub handed: Handed,
    /// Where manifests come from that were fetched.
    pub served: Option<Served>,
}

/// A directory of fetched files, and what people know it as.
#[derive(Clone, Debug)]
pub struct Served {
    /// Where the files are for now.
    pub directory: PathBuf,
    /// Where they came from, without credentials.
    pub name: String,
}

/// What a manifest is handed by the one above it.
#[derive(Clone, Debug, Default)]
pub enum Handed {
    /// Nothing: it is the first.
    #[default]
    Nothing,
    /// This; external data still wins.
    Some(Map),
    /// Everything that the one above sees, external data included.
    All(Map),
}

impl Inputs {
    /// The templates for resources at the command line: only external data.
    pub fn templates(&self, host: &Host, directory: &Path) -> Result<Resolver, Error> {
        Ok(self.scope(host, self.external_data()?.unwrap_or_default(), directory))
    }

    /// The templates for a manifest with data of its own, and what looks like a
    /// rule in its comments but is none.
    pub fn templates_for(
        &self,
        host: &Host,
        document: &Document,
        directory: &Path,
    ) -> Result<(Resolver, Vec<Warning>), Error> {
        let external = match self.handed {
            Handed::Nothing | Handed::Some(_) => self.external_data()?,
            Handed::All(_) => None,
        };
        let resolved = document.resolve_with(&self.facts, |data| {
            // A key that is handed down means below what it means above.
            if let Handed::Some(handed) | Handed::All(handed) = &self.handed {
                mapmerge::shallow(data, handed);
            }
            if let Some(external) = &external {
                mapmerge::deep(data, external);
            }
        })?;
        Ok((self.scope(host, resolved.data, directory), resolved.warnings))
    }

    /// What people know a file as.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let served = self.served.as_ref();
        let below = served.and_then(|served| {
            let inner = path.strip_prefix(&served.directory).ok()?;
            Some(format!("{}:{}", served.name, inner.display()))
        });
        below.unwrap_or_else(|| path.display().to_string())
    }

    fn external_data(&self) -> Result<Option<Map>, Error> {
        let Some(document) = &self.external else { return Ok(None) };
        Ok(Some(document.resolve(&self.facts, None)?.data))
    }

    fn scope(&self, host: &Host, data: Map, directory: &Path) -> Resolver {
        Resolver::new(Scope {
            facts: self.facts.clone(),
            data,
            environ: self.environ.clone(),
            directory: directory.to_owned(),
            host: host.clone(),
        })
    }
}
