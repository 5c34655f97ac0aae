//! Inputs of templates besides the manifest: facts, environment, external data.

use std::path::Path;

use ccm_hiera::{Document, Error, Explanation, Warning, mapmerge};
use ccm_host::Host;
use ccm_template::{Facts, Resolver, Scope};
use govalue::Map;

/// The inputs of a run besides its manifest.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// About the machine, gathered when something needs them.
    pub facts: Facts,
    /// Variables of the environment.
    pub environ: Map,
    /// Hierarchical data from outside, which wins over the manifest's own.
    pub external: Option<Document>,
    /// Data for resources that stand in no manifest, as a manifest's own would be.
    pub own: Option<Document>,
    /// Data from the manifest above, passed or inherited, which wins over the
    /// manifest's own too. What the one above sees includes external data.
    pub inherited: Option<Map>,
}

impl Inputs {
    /// The templates for resources that stand in no manifest.
    pub fn templates(&self, host: &Host, directory: &Path) -> Result<Resolver, Error> {
        match &self.own {
            Some(own) if own.is_hierarchical() => {
                warn_of_unreached(host, own);
                let (templates, warnings) = self.templates_for(host, own, directory)?;
                for warning in &warnings {
                    host.warn(warning.to_string());
                }
                Ok(templates)
            }
            own => {
                let mut data = own.as_ref().map(|own| own.root().clone()).unwrap_or_default();
                if let Some(external) = self.external_data(host)? {
                    mapmerge::deep(&mut data, &external);
                }
                Ok(self.scope(host, data, directory))
            }
        }
    }

    /// The templates for a manifest with data of its own, and what looks like a
    /// rule in its comments but is none.
    pub fn templates_for(
        &self,
        host: &Host,
        document: &Document,
        directory: &Path,
    ) -> Result<(Resolver, Vec<Warning>), Error> {
        let external = self.external_data(host)?;
        let inherited = self.inherited(external.as_ref());
        let resolved = document.resolve_with(host, &self.facts, |data| {
            for over in [&inherited, &external].into_iter().flatten() {
                mapmerge::deep(data, over);
            }
        })?;
        host.add_secrets(resolved.secrets);
        Ok((self.scope(host, resolved.data, directory), resolved.warnings))
    }

    /// Where the data of a manifest comes from: its own, what the manifest above
    /// passes, and external data.
    pub fn explain(&self, host: &Host, document: &Document) -> Result<Explanation, Error> {
        let mut explained = document.explain(host, &self.facts)?;
        let external = self.external.as_ref().map(|external| external.explain(host, &self.facts));
        let external = external.transpose()?;
        let data = external.as_ref().map(Explanation::data);
        if let Some(inherited) = self.inherited(data.as_ref()) {
            explained.lay_over(Explanation::of_values("inherited", inherited));
        }
        if let Some(external) = external {
            explained.lay_over(external);
        }
        Ok(explained)
    }

    /// What the manifest above gives. External data is laid over everything, so
    /// it must not be in there with the lists that it appends.
    fn inherited(&self, external: Option<&Map>) -> Option<Map> {
        let mut inherited = self.inherited.clone()?;
        if let Some(external) = external {
            mapmerge::without_appended(&mut inherited, external);
        }
        Some(inherited)
    }

    fn external_data(&self, host: &Host) -> Result<Option<Map>, Error> {
        let Some(document) = &self.external else { return Ok(None) };
        warn_of_unreached(host, document);
        let resolved = document.resolve(host, &self.facts, None)?;
        host.add_secrets(resolved.secrets);
        Ok(Some(resolved.data))
    }

    fn scope(&self, host: &Host, data: Map, directory: &Path) -> Resolver {
        Resolver::new(Scope {
            facts: self.facts.clone(),
            data,
            environ: self.environ.clone(),
            directory: directory.to_owned(),
            ..Scope::new(host)
        })
    }
}

fn warn_of_unreached(host: &Host, document: &Document) {
    for warning in document.unreached_warnings() {
        host.warn(warning);
    }
}
