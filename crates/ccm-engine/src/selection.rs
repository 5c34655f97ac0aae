//! Selects a part of a manifest: `--only` and `--skip`.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use ccm_model::did_you_mean;

use crate::engine::Engine;
use crate::lifecycle::is_managed;
use crate::manifest::Manifest;
use crate::options::RunOptions;
use crate::resource::AnyResource;

/// The resources that a run looks at. The default is all of them.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    only: Vec<String>,
    skip: Vec<String>,
    /// Manifests with chosen resources in them.
    entered: Arc<HashSet<PathBuf>>,
}

/// Why a selection cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("--{flag} {selector} matches no resource")]
pub struct SelectionError {
    flag: &'static str,
    selector: String,
    hint: String,
}

impl SelectionError {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// Whether a run looks at a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It does, and at everything in the manifest that it applies.
    Chosen,
    /// Only at some resources of the manifest that it applies.
    Entered,
    /// It does not.
    NotSelected,
}

impl Selection {
    /// Whether everything is chosen.
    pub fn is_everything(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty()
    }

    /// Whether to look at a resource. `is_chosen` is whether the manifest that
    /// it stands in was chosen as a whole, `child` the manifest that it applies.
    pub(crate) fn choose(
        &self,
        resource: &dyn AnyResource,
        is_chosen: bool,
        child: Option<PathBuf>,
    ) -> Choice {
        if self.skip.iter().any(|text| is_match(text, resource)) {
            Choice::NotSelected
        } else if is_chosen
            || self.only.is_empty()
            || self.only.iter().any(|text| is_match(text, resource))
        {
            Choice::Chosen
        } else if child.is_some_and(|path| self.entered.contains(&path)) {
            Choice::Entered
        } else {
            Choice::NotSelected
        }
    }
}

/// Whether a selector names a resource: as `type#name` or `type#alias`, by its
/// alias or by a tag, with or without `tag#`. A trailing `*` stands for anything.
fn is_match(selector: &str, resource: &dyn AnyResource) -> bool {
    let (names, selector) = match selector.strip_prefix("tag#") {
        Some(tag) => (resource.common().tags.clone(), tag),
        None => (names(resource), selector),
    };
    match selector.strip_suffix('*') {
        Some(start) => names.iter().any(|name| name.starts_with(start)),
        None => names.iter().any(|name| name == selector),
    }
}

/// Everything that a selector can name a resource by.
fn names(resource: &dyn AnyResource) -> Vec<String> {
    let common = resource.common();
    let kind = resource.kind();
    let mut names = vec![format!("{kind}#{}", common.name)];
    if let Some(alias) = &common.alias {
        names.push(format!("{kind}#{alias}"));
        names.push(alias.clone());
    }
    names.extend(common.tags.iter().cloned());
    names
}

impl Engine {
    /// A selection of a manifest's resources and of those below it.
    ///
    /// # Errors
    ///
    /// Returns the first selector that matches nothing, unless a child manifest
    /// that cannot be read yet could have a match.
    pub fn select(
        &self,
        manifest: &Manifest,
        options: &RunOptions,
        only: Vec<String>,
        skip: Vec<String>,
    ) -> Result<Selection, SelectionError> {
        let mut survey = Survey {
            engine: self,
            options,
            only: &only,
            skip: &skip,
            names: BTreeSet::new(),
            used: HashSet::new(),
            entered: HashSet::new(),
            is_complete: true,
        };
        survey.look_through(manifest, 0);
        let Survey { names, used, entered, is_complete, .. } = survey;
        for (flag, selectors) in [("only", &only), ("skip", &skip)] {
            let unused = selectors.iter().find(|&text| !used.contains(&(flag, text.clone())));
            if let Some(selector) = unused.filter(|_| is_complete) {
                let hint = did_you_mean(selector, names.iter().map(String::as_str));
                let hint = hint.unwrap_or_else(|| {
                    "a selector is `type#name`, an alias or a tag, and may end with `*`".to_owned()
                });
                return Err(SelectionError { flag, selector: selector.clone(), hint });
            }
        }
        Ok(Selection { only, skip, entered: Arc::new(entered) })
    }
}

/// A walk through a manifest and those below it.
struct Survey<'a> {
    engine: &'a Engine,
    options: &'a RunOptions,
    only: &'a [String],
    skip: &'a [String],
    names: BTreeSet<String>,
    /// Flags with selectors that name something.
    used: HashSet<(&'static str, String)>,
    entered: HashSet<PathBuf>,
    /// Every child manifest could be read.
    is_complete: bool,
}

impl Survey<'_> {
    /// Whether any resource of the manifest is chosen by `--only`.
    fn look_through(&mut self, manifest: &Manifest, depth: usize) -> bool {
        let mut has_match = false;
        for resource in &manifest.declarations.resources {
            self.names.extend(names(&**resource));
            let skipped = self.skip.iter().filter(|text| is_match(text, &**resource));
            self.used.extend(skipped.map(|text| ("skip", text.clone())));
            for text in self.only.iter().filter(|text| is_match(text, &**resource)) {
                self.used.insert(("only", text.clone()));
                has_match = true;
            }
            let Some(child) = resource.child() else { continue };
            let path = manifest.working_directory.join(child.path);
            if depth >= self.options.max_depth {
                continue;
            }
            let RunOptions { inputs, .. } = self.options;
            match self.engine.load_child(manifest, &child, inputs, self.options) {
                Ok(found) => {
                    if self.look_through(&found, depth + 1) {
                        self.entered.insert(path);
                        has_match = true;
                    }
                }
                // One that is not applied has no resources to choose.
                Err(_) => {
                    let is_applied = is_managed(&**resource, &manifest.templates);
                    self.is_complete &= !is_applied.unwrap_or(true);
                }
            }
        }
        has_match
    }
}
