//! What a plan covers beyond the text itself: resources rendered from
//! templates, resources of child manifests, and the commands of guards.

use std::path::PathBuf;

use ccm_engine::{AnyResource, RunOptions, Visited};
use ccm_model::Redactor;
use serde::Serialize;
use serde_json::{Value, json};

use crate::app::App;

/// Properties with commands that a plan runs.
const GUARDS: [&str; 2] = ["onlyif", "unless"];
/// Resources from elsewhere that are sent; all guards are.
const MAX_INNER: usize = 2000;

/// Collects them, for the answer of a check.
#[derive(Serialize)]
pub(crate) struct Members {
    /// The types whose resources can have guards.
    #[serde(skip)]
    guarded: Vec<&'static str>,
    #[serde(skip)]
    directory: PathBuf,
    #[serde(skip)]
    user: String,
    /// The resource of the text that stands above what follows.
    #[serde(skip)]
    parent: Option<usize>,
    inner: Vec<Value>,
    #[serde(rename = "inner_left_out")]
    left_out: usize,
    guards: Vec<Value>,
}

impl Members {
    pub(crate) fn new(app: &App, options: &RunOptions) -> Self {
        let host = &options.host;
        let types = app.settings.engine.types().iter();
        let types =
            types.filter(|kind| kind.fields().iter().any(|field| GUARDS.contains(&field.name)));
        Self {
            guarded: types.map(|kind| kind.name()).collect(),
            directory: app.settings.directory.path().to_owned(),
            user: host.user_name(host.whoami().0).to_string(),
            parent: None,
            inner: Vec::new(),
            left_out: 0,
            guards: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, visited: &Visited<'_>) {
        let is_own = visited.depth == 0 && !visited.is_rendered;
        if visited.depth == 0 {
            self.parent = is_own.then_some(visited.index + 1);
        }
        let has_note = visited.is_skipped || visited.unknown.is_some();
        if is_own && !has_note && !self.can_guard(visited.resource) {
            return;
        }
        let file = self.file(visited);
        if !is_own {
            let common = visited.resource.common();
            let names = |list: &[ccm_model::ResourceRef]| -> Vec<String> {
                list.iter().map(ToString::to_string).collect()
            };
            self.push(json!({
                "parent": self.parent,
                "depth": visited.depth,
                "type": visited.resource.kind(),
                "name": common.name,
                "alias": common.alias,
                "ensure": common.ensure,
                "require": names(&common.require),
                "subscribe": names(visited.resource.subscribe()),
                "file": file,
                "line": visited.line(),
                "rendered": visited.is_rendered,
            }));
        }
        let skipped = visited.is_skipped.then(|| "skipped by control".to_owned());
        if let Some(note) = skipped.or_else(|| visited.unknown.clone()) {
            self.push(json!({"parent": self.parent, "depth": visited.depth + 1, "note": note}));
        }
        self.guards(visited, &file);
    }

    fn push(&mut self, entry: Value) {
        if self.inner.len() < MAX_INNER {
            self.inner.push(entry);
        } else {
            self.left_out += 1;
        }
    }

    /// Notes the commands that a plan runs for this resource.
    fn guards(&mut self, visited: &Visited<'_>, file: &str) {
        let resource = visited.resource.display();
        if let Some(why) = &visited.unknown {
            self.guards.push(json!({"resource": resource, "file": file, "unknown": why}));
        }
        if !self.can_guard(visited.resource) {
            return;
        }
        let properties = visited.resource.properties();
        for property in GUARDS {
            if let Some(command) = properties[property].as_str().filter(|c| !c.is_empty()) {
                self.guards.push(json!({"resource": resource, "file": file, "property": property,
                                        "command": command, "user": self.user}));
            }
        }
    }

    /// Whether resources of this type can have guards at all.
    fn can_guard(&self, resource: &dyn AnyResource) -> bool {
        self.guarded.contains(&resource.kind())
    }

    /// The place of a file beneath the directory, or its path.
    fn file(&self, visited: &Visited<'_>) -> String {
        let path = visited.file.strip_prefix(&self.directory).unwrap_or(visited.file);
        path.display().to_string()
    }

    /// Takes secrets out of what was made.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        self.inner.iter_mut().chain(&mut self.guards).for_each(|made| redactor.value(made));
    }
}
