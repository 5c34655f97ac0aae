//! What a plan covers beyond the text itself: resources rendered from
//! templates, resources of child manifests, and the commands of guards and `post`.

use std::path::PathBuf;

use ccm_author::Visited;
use ccm_engine::{AnyResource, RunOptions};
use ccm_host::Host;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::app::App;
use crate::error::redacted;

/// Properties with commands that a plan runs.
const GUARDS: [&str; 2] = ["onlyif", "unless"];
/// The property with commands that a plan runs on private copies of files.
const POST: &str = "post";
/// Resources from elsewhere that are sent; all guards are.
const MAX_INNER: usize = 2000;

/// A resource that the text does not have: of a child manifest, or made by a
/// template. Or why there is none.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum InnerEntry {
    Resource(InnerResource),
    Note(InnerNote),
}

#[derive(Serialize, JsonSchema)]
struct InnerResource {
    /// The number of the resource above it in the text.
    parent: Option<usize>,
    depth: usize,
    r#type: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
    ensure: String,
    require: Vec<String>,
    subscribe: Vec<String>,
    file: String,
    /// From 1.
    line: Option<usize>,
    /// Whether a template has made it.
    rendered: bool,
}

#[derive(Serialize, JsonSchema)]
struct InnerNote {
    /// The number of the resource above it in the text.
    parent: Option<usize>,
    depth: usize,
    note: String,
}

/// A command that a plan runs, or a manifest whose commands are not known yet.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Guard {
    Command(GuardCommand),
    Unknown(UnknownGuards),
}

#[derive(Serialize, JsonSchema)]
struct GuardCommand {
    resource: String,
    file: String,
    property: String,
    command: String,
    /// Who runs it.
    user: String,
}

#[derive(Serialize, JsonSchema)]
struct UnknownGuards {
    resource: String,
    file: String,
    /// Why they are not known.
    unknown: String,
}

/// What a check tells beyond the text itself, without secrets.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Beyond {
    #[schemars(with = "Vec<InnerEntry>")]
    inner: Value,
    /// How many more there are.
    inner_left_out: usize,
    #[schemars(with = "Vec<Guard>")]
    guards: Value,
}

/// Collects them, for the answer of a check.
pub(crate) struct Members {
    /// The types whose resources can have guards.
    guarded: Vec<&'static str>,
    directory: PathBuf,
    user: String,
    /// The resource of the text that stands above what follows.
    parent: Option<usize>,
    inner: Vec<InnerEntry>,
    left_out: usize,
    guards: Vec<Guard>,
}

impl Members {
    pub(crate) fn new(app: &App, options: &RunOptions) -> Self {
        let host = &options.host;
        let types = app.settings.engine.types().iter();
        let has_commands = |name: &str| name == POST || GUARDS.contains(&name);
        let types = types.filter(|kind| kind.fields().iter().any(|field| has_commands(field.name)));
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
            self.push(InnerEntry::Resource(InnerResource {
                parent: self.parent,
                depth: visited.depth,
                r#type: visited.resource.kind().to_owned(),
                name: common.name.clone(),
                alias: common.alias.clone(),
                ensure: common.ensure.clone(),
                require: names(&common.require),
                subscribe: names(visited.resource.subscribe()),
                file: file.clone(),
                line: visited.line(),
                rendered: visited.is_rendered,
            }));
        }
        let skipped = visited.is_skipped.then(|| "skipped by control".to_owned());
        if let Some(note) = skipped.or_else(|| visited.unknown.clone()) {
            let (parent, depth) = (self.parent, visited.depth + 1);
            self.push(InnerEntry::Note(InnerNote { parent, depth, note }));
        }
        self.guards(visited, &file);
    }

    fn push(&mut self, entry: InnerEntry) {
        if self.inner.len() < MAX_INNER {
            self.inner.push(entry);
        } else {
            self.left_out += 1;
        }
    }

    /// Notes the commands that a plan runs for this resource.
    fn guards(&mut self, visited: &Visited<'_>, file: &str) {
        let resource = visited.resource.display();
        if let Some(unknown) = visited.unknown.clone() {
            let (resource, file) = (resource.clone(), file.to_owned());
            self.guards.push(Guard::Unknown(UnknownGuards { resource, file, unknown }));
        }
        if !self.can_guard(visited.resource) {
            return;
        }
        let properties = visited.resource.properties();
        let guard = |property: String, command: &str| {
            Guard::Command(GuardCommand {
                resource: resource.clone(),
                file: file.to_owned(),
                property,
                command: command.to_owned(),
                user: self.user.clone(),
            })
        };
        let mut found = Vec::new();
        for property in GUARDS {
            if let Some(command) = properties[property].as_str().filter(|c| !c.is_empty()) {
                found.push(guard(property.to_owned(), command));
            }
        }
        let lists = properties[POST].as_array().into_iter().flatten();
        for (pattern, command) in lists.filter_map(Value::as_object).flatten() {
            let command = command.as_str().unwrap_or_default();
            found.push(guard(format!("{POST} {pattern}"), command));
        }
        self.guards.append(&mut found);
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

    /// What was collected, without the secrets that a machine knows.
    pub(crate) fn beyond(&self, host: &Host) -> Beyond {
        Beyond {
            inner: redacted(host, &self.inner),
            inner_left_out: self.left_out,
            guards: redacted(host, &self.guards),
        }
    }
}
