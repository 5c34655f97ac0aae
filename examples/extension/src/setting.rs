//! Settings: one variable in a file of assignments.

mod command_line;
mod lines;
mod plain;
mod shell;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use ccm_engine::{
    CommandLine, Context, Declare, Ensure, Findings, Prediction, ProviderDef, ResourceType, Result,
    Step, Trigger,
};
use ccm_model::{Change, Common, Properties as _, Stage, Verb};
use serde::{Deserialize, Serialize};

/// The `setting` type.
pub struct Setting;

/// Manage one variable in a file of assignments
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    common: Common,
    /// File that holds the variable
    #[property(required)]
    file: String,
    /// Value of the variable
    #[property(required_unless(ensure = "absent"))]
    value: String,
}

impl Properties {
    /// The value that the variable should have; none if it should not exist.
    fn desired(&self) -> Option<&str> {
        (self.common.ensure != ABSENT).then_some(&*self.value)
    }
}

const PRESENT: &str = "present";
const ABSENT: &str = "absent";

/// What a provider of settings can do: read and write its notation.
pub trait Provider {
    /// The value of a variable, or none if the file does not set it.
    fn get(&mut self, file: &Path, variable: &str) -> Result<Option<String>>;
    /// Sets a variable, or removes it if there is no value. Other lines stay.
    fn set(&mut self, file: &Path, variable: &str, value: Option<&str>) -> Result<()>;
    /// In a preview: records the file as setting a variable would leave it.
    fn predict(&mut self, file: &Path, variable: &str, value: Option<&str>) -> Result<()>;
}

/// The value that the file gives the variable now.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    value: Option<String>,
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        if self.value.is_some() { PRESENT } else { ABSENT }
    }
}

/// A variable to set or to remove. It holds all that acting needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    file: PathBuf,
    variable: String,
    value: Option<String>,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.value.is_some() { "Would have set" } else { "Would have removed" })
    }
}

impl Declare for Setting {
    type Properties = Properties;

    const NAME: &'static str = "setting";
    const ABOUT: &'static str = "Manage one variable in a file of assignments";
    const ENSURE: Ensure = Ensure::OneOf(&[PRESENT, ABSENT]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        findings.check_path("file", &want.file);
        let name = &want.common().name;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            findings.add("name", "a variable has only letters, digits and `_`");
        }
        if want.value.contains(['\n', '\'']) {
            findings.add("value", "a value is one line, without `'`");
        }
    }
}

impl ResourceType for Setting {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[plain::DEF, shell::DEF];

    fn observe(on: &mut Self::Provider, want: &Properties, _cx: &mut Context<'_>) -> Result<State> {
        Ok(State { value: on.get(Path::new(&want.file), &want.common.name)? })
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        let desired = want.desired();
        if desired == have.value.as_deref() {
            return Ok(Vec::new());
        }
        let verb = match (&have.value, desired) {
            (None, _) => Verb::Created,
            (Some(_), Some(_)) => Verb::Updated,
            (Some(_), None) => Verb::Removed,
        };
        let mut change = Change::of("value");
        change.from = have.value.as_deref().map(Into::into);
        change.to = desired.map(Into::into);
        let action = Action {
            file: PathBuf::from(&want.file),
            variable: want.common.name.clone(),
            value: desired.map(str::to_owned),
        };
        Ok(vec![Step::new(verb, action).change(change)])
    }

    fn act(on: &mut Self::Provider, action: &Action, _cx: &mut Context<'_>) -> Result<()> {
        on.set(&action.file, &action.variable, action.value.as_deref())
    }

    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Action>,
        _cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        let Action { file, variable, value } = &step.action;
        on.predict(file, variable, value.as_deref())?;
        Ok(Prediction::Exact)
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        let desired = want.desired();
        let is_same = desired == have.value.as_deref();
        (!is_same).then(|| format!("value is {:?}, should be {desired:?}", have.value))
    }
}
