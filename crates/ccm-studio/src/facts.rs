//! Facts: those of the machine, and those that a request chooses instead.

use std::collections::BTreeMap;
use std::path::Path;

use ccm_engine::Inputs;
use ccm_facts::Facts as FactMap;
use ccm_http::{Response, StatusCode};
use ccm_template::Facts;
use govalue::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::error::{ApiError, ApiResult, json_response};
use crate::routes::{check_place, parameter};

/// A file of facts is not larger.
const MAX_FILE: u64 = 4 << 20;

/// The facts that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactsChoice {
    /// Those of this machine, of a file, or none.
    #[serde(default)]
    source: FactsSource,
    /// The file, with `source: file`.
    #[serde(default)]
    path: Option<String>,
    /// More of them, as `a.b=value`; these win.
    #[serde(default)]
    set: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FactsSource {
    #[default]
    Machine,
    File,
    None,
}

impl FactsChoice {
    /// Whether they are in a file, which may change.
    pub(crate) fn is_file(&self) -> bool {
        self.source == FactsSource::File
    }

    /// What templates see with these facts.
    pub(crate) fn apply(&self, app: &App, inputs: &mut Inputs) -> ApiResult<()> {
        let (facts, name) = match self.source {
            FactsSource::Machine if self.set.is_empty() => return Ok(()),
            FactsSource::Machine => {
                let known = inputs.facts.get().as_map().cloned().unwrap_or_default();
                (known, "this machine".to_owned())
            }
            FactsSource::None => (FactMap::new(), "none".to_owned()),
            FactsSource::File => {
                let path = self.path.as_deref().unwrap_or_default();
                (read_file(app, path)?, path.to_owned())
            }
        };
        let mut single = FactMap::new();
        for argument in &self.set {
            ccm_facts::set(&mut single, argument)
                .map_err(|error| ApiError::malformed(error.to_string()).maybe_hint(error.hint()))?;
        }
        let mut all = facts.clone();
        ccm_facts::merge(&mut all, single.clone());
        let layers = vec![(name, facts), ("what if".to_owned(), single)];
        inputs.facts = Facts::layered(move || (all, layers));
        Ok(())
    }
}

fn read_file(app: &App, place: &str) -> ApiResult<FactMap> {
    check_place(place)?;
    let read = app.settings.directory.read(Path::new(place), MAX_FILE);
    let read = read.map_err(|error| ApiError::file(&error))?;
    let Some((bytes, _)) = read else { return Err(ApiError::not_found("such file")) };
    let not_facts = || ApiError::malformed(format!("{place} does not hold facts: a map of names"));
    let text = String::from_utf8(bytes).map_err(|_| not_facts())?;
    let source = ccm_yaml::Source::new(place, text);
    let node = ccm_yaml::parse(&source).map_err(|_| not_facts())?;
    match ccm_yaml::to_value(&node) {
        Value::Map(map) => Ok((*map).clone()),
        _ => Err(not_facts()),
    }
}

/// Facts, and the names of the variables of the environment.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Facts")]
pub(crate) struct FactsShown {
    /// All of them, or what is below a path.
    facts: serde_json::Value,
    environ: Vec<String>,
}

/// One variable of the environment.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Variable {
    environ: BTreeMap<String, String>,
}

/// `GET facts`: all, those below a path, or one variable of the environment.
pub(crate) fn list(app: &App, query: &str) -> ApiResult<Response> {
    let inputs = app.inputs()?;
    if let Some(name) = parameter(query, "environ") {
        let Some(value) = inputs.environ.get(name.as_str()) else {
            return Err(ApiError::not_found("such variable"));
        };
        let environ = BTreeMap::from([(name, value.to_string())]);
        return Ok(json_response(StatusCode::OK, &Variable { environ }));
    }
    let mut facts = as_json(inputs.facts.get());
    let wanted = parameter(query, "query").filter(|query| !query.is_empty());
    if let Some(wanted) = wanted {
        let steps = wanted.split('.');
        let found = steps.into_iter().try_fold(&facts, |at, step| match at {
            serde_json::Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            at => at.get(step),
        });
        facts = found.cloned().unwrap_or_default();
    }
    let environ =
        inputs.environ.sorted().into_iter().map(|(name, _)| name.value().to_string()).collect();
    Ok(json_response(StatusCode::OK, &FactsShown { facts, environ }))
}

/// A value of the template languages as JSON; null if JSON has no form for it.
pub(crate) fn as_json(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
