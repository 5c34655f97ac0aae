//! Manifests from local files.

use ccm_engine::{Child, Context, ProviderDef, Result, Tally};

use super::{Apply, Provider};

pub(super) const DEF: ProviderDef<Apply> = ProviderDef {
    name: "ccmmanifest",
    rank: |_, _| Some(1),
    open: |_| Box::new(CcmManifest { tally: None }),
};

/// Has the manifest of one resource applied, and remembers what became of it.
struct CcmManifest {
    tally: Option<Tally>,
}

impl Provider for CcmManifest {
    fn apply_manifest(&mut self, child: &Child<'_>, cx: &mut Context<'_>) -> Result<()> {
        let tally = cx.nested.apply(child)?;
        let Tally { resources, changed, failed, .. } = tally;
        tracing::info!(manifest = child.path, resources, changed, failed, "applied");
        self.tally = Some(tally);
        Ok(())
    }

    fn tally(&self) -> Option<Tally> {
        self.tally
    }
}
