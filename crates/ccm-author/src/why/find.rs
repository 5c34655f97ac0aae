//! Finds the manifest that contains the target of an explanation.

use std::collections::HashSet;
use std::path::PathBuf;

use ccm_engine::{Engine, Inputs, Manifest, RunOptions, child_inputs, is_managed};

use super::{WhyError, WhyTarget};

/// The target of an explanation and the manifest that contains it.
pub struct WhyFound {
    /// The first manifest, or one below it.
    pub manifest: Manifest,
    /// The target in this manifest.
    pub target: WhyTarget,
    /// The path of a child manifest, as people know it.
    pub(super) child: Option<String>,
    /// The child manifests on the way to it, as events have them.
    pub(super) route: Vec<String>,
    /// What the manifest sees.
    pub(super) inputs: Inputs,
}

/// Goes through child manifests in the order of a run.
struct Search<'a> {
    engine: &'a Engine,
    options: &'a RunOptions,
    text: &'a str,
    /// The files on the way to a manifest, so that none is looked into within
    /// itself.
    open: HashSet<PathBuf>,
}

/// Finds `type#name`, `type#name.property` or `data:KEY` in a manifest. A
/// resource that the manifest does not have is looked for in its child
/// manifests, as far as they can be read now.
///
/// # Errors
///
/// Returns what there is not, and what may have been meant.
pub fn find_why(
    engine: &Engine,
    text: &str,
    manifest: Manifest,
    options: &RunOptions,
) -> Result<WhyFound, WhyError> {
    let error = match WhyTarget::find(text, &manifest, engine.types()) {
        Ok(target) => {
            let inputs = options.inputs.clone();
            return Ok(WhyFound { manifest, target, child: None, route: Vec::new(), inputs });
        }
        Err(error) => error,
    };
    if !error.is_elsewhere {
        return Err(error);
    }
    let open = HashSet::from([manifest.path.clone()]);
    let mut search = Search { engine, options, text, open };
    search.below(&manifest, &options.inputs, &[]).unwrap_or(Err(error))
}

impl Search<'_> {
    fn below(
        &mut self,
        manifest: &Manifest,
        inputs: &Inputs,
        route: &[String],
    ) -> Option<Result<WhyFound, WhyError>> {
        let Self { engine, options, .. } = *self;
        let resources = manifest.declarations.resources.iter();
        for resource in resources.filter(|_| route.len() < options.max_depth) {
            let Some(child) = resource.child() else { continue };
            let path = manifest.working_directory.join(child.path);
            let is_managed = is_managed(&**resource, &manifest.templates).unwrap_or(false);
            if !is_managed || !self.open.insert(path.clone()) {
                continue;
            }
            let name = options.host.redactor().name(child.name).into_owned();
            let route = [route, &[name]].concat();
            let below = child_inputs(inputs, &child, &manifest.templates);
            if let Ok(found) = engine.load_child(manifest, &child, inputs, options) {
                match WhyTarget::find(self.text, &found, engine.types()) {
                    Ok(target) => {
                        let child = Some(found.display_name(&found.path));
                        let inputs = below;
                        return Some(Ok(WhyFound {
                            manifest: found,
                            target,
                            child,
                            route,
                            inputs,
                        }));
                    }
                    Err(error) if !error.is_elsewhere => return Some(Err(error)),
                    Err(_) => {}
                }
                if let Some(found) = self.below(&found, &below, &route) {
                    return Some(found);
                }
            }
            self.open.remove(&path);
        }
        None
    }
}
