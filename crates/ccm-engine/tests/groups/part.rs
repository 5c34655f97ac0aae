//! A type whose steps can be taken together: parts are files in a directory, and a
//! file beside them lists the transactions.

use std::fmt;
use std::path::{Path, PathBuf};

use ccm_engine::{
    CommandLine, Context, Declare, Ensure, Error, Findings, Former, Prediction, ProviderDef,
    ResourceType, Result, Step, Together, Trigger,
};
use ccm_model::{Change, Common, Stage, Verb};
use serde::{Deserialize, Serialize};

pub(crate) struct Part;

/// Manage parts
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub(crate) struct Properties {
    #[property(common)]
    common: Common,
    /// Directory of the part
    #[property(required)]
    at: String,
}

pub(crate) struct Store;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct State {
    is_there: bool,
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        if self.is_there { "present" } else { "absent" }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Action {
    at: PathBuf,
    name: String,
    is_wanted: bool,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_wanted { "Would have added" } else { "Would have removed" })
    }
}

/// Says which transaction was made.
fn note(at: &Path, words: &str) {
    use std::io::Write as _;
    let path = at.with_extension("log");
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(log, "{words}").unwrap();
}

impl Store {
    /// `missing` parts spoil a transaction before it begins, `half` ones in the middle
    /// of one with others, `stubborn` ones say nothing and are not there afterwards.
    fn transact(actions: &[&Action]) -> Result<()> {
        let Some(first) = actions.first() else { return Ok(()) };
        let names: Vec<&str> = actions.iter().map(|action| &*action.name).collect();
        note(&first.at, &names.join(" "));
        if let Some(missing) = names.iter().find(|name| name.starts_with("missing")) {
            return Err(Error::refused(format!("there is no part {missing}")));
        }
        for action in actions {
            let path = action.at.join(&action.name);
            if action.name.starts_with("half") && actions.len() > 1 {
                return Err(Error::refused("the transaction broke".to_owned()));
            }
            if !action.is_wanted {
                std::fs::remove_file(path).unwrap();
            } else if !action.name.starts_with("stubborn") {
                std::fs::write(path, "").unwrap();
            }
        }
        Ok(())
    }
}

impl Declare for Part {
    type Properties = Properties;

    const NAME: &'static str = "part";
    const ABOUT: &'static str = "Manage parts";
    const ENSURE: Ensure = Ensure::OneOf(&["present", "absent"]);
    const COMMAND_LINE: Option<CommandLine> = Some(CommandLine {
        name_value: "PART",
        aliases: &[],
        arguments: &["[ensure]"],
        status: &["at"],
        extra: &[],
        example: "ccm ensure part one --at /tmp/parts",
        prepare: |_, _| Ok(()),
    });

    fn validate(_want: &Properties, _stage: Stage, _findings: &mut Findings) {}
}

impl ResourceType for Part {
    type State = State;
    type Action = Action;
    type Provider = Store;

    const PROVIDERS: &'static [ProviderDef<Self>] =
        &[ProviderDef { name: "store", rank: |_, _| Some(1), open: |_| Box::new(Store) }];

    const TOGETHER: Option<Together<Self>> = Some(Together {
        kind: |action| Some(if action.is_wanted { "add" } else { "remove" }),
        survey: |_, _| Ok(()),
        act: |_, actions, _| Store::transact(actions),
        predict: |_, actions, _| {
            if let Some(first) = actions.first() {
                note(&first.at, &format!("foresee {}", actions.len()));
            }
            Ok(())
        },
    });

    fn observe(_: &mut Store, want: &Properties, _cx: &mut Context<'_>) -> Result<State> {
        Ok(State { is_there: Path::new(&want.at).join(&want.common.name).exists() })
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        let is_wanted = want.common.ensure == "present";
        if is_wanted == have.is_there {
            return Ok(Vec::new());
        }
        let action =
            Action { at: PathBuf::from(&want.at), name: want.common.name.clone(), is_wanted };
        let verb = if is_wanted { Verb::Installed } else { Verb::Removed };
        let from = ccm_engine::State::ensure(have);
        let change = Change::of("ensure").from(from).to(want.common.ensure.as_str());
        Ok(vec![Step::new(verb, action).change(change)])
    }

    fn act(_: &mut Store, action: &Action, _cx: &mut Context<'_>) -> Result<()> {
        Store::transact(&[action])
    }

    fn predict(
        _: &mut Store,
        _step: &mut Step<Action>,
        _cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        Ok(Prediction::Exact)
    }

    fn former(want: &Properties, have: &State) -> Former {
        let ensure = ccm_engine::State::ensure(have);
        Former::Properties(serde_json::json!({"ensure": ensure, "at": want.at}))
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        let found = ccm_engine::State::ensure(have);
        let wanted = &want.common.ensure;
        (found != wanted).then(|| format!("ensure is {found}, should be {wanted}"))
    }
}
