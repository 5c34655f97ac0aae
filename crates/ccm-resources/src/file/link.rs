//! Symlinks: what is at the path, and the steps to the wanted symlink.

use std::path::PathBuf;

use ccm_engine::{Error, Result, Step};
use ccm_model::{Change, Verb};

use super::{Action, CurrentFile, Properties, State};

/// What is in a symlink, and what it points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) target: PathBuf,
    /// The kind of the target, `none` if it does not exist; unknown where nobody
    /// reads it.
    pub(crate) kind: Option<&'static str>,
}

/// Whether the symlink is there, with the wanted text, owner and group.
pub(super) fn is_stable(want: &Properties, have: &State) -> bool {
    has_text(want, have) && have.attributes_match()
}

fn has_text(want: &Properties, have: &State) -> bool {
    let text = have.link.as_ref().map(|link| link.target.as_os_str());
    have.found == CurrentFile::Symlink
        && text.is_some_and(|text| *text == *want.target.as_deref().unwrap_or_default())
}

/// The steps to the wanted symlink.
pub(super) fn decide(want: &Properties, have: &State) -> Result<Vec<Step<Action>>> {
    let name = &want.common.name;
    let path = want.path().to_owned();
    let (Some(attributes), Some(target)) = (have.wanted, &want.target) else {
        return Err(Error::refused(format!("{name}: a symlink needs a `target`")));
    };
    let action = Action::Link {
        path: path.clone(),
        target: target.into(),
        owner: attributes.uid,
        group: attributes.gid,
        force: matches!(have.found, CurrentFile::File | CurrentFile::Other),
    };
    let text = Change::of("target").to(target.as_str());
    let made = |from: &str| {
        let ensure = Change::of("ensure").from(from).to("link");
        let verb = if from == "absent" { Verb::Created } else { Verb::Updated };
        let mut step = Step::new(verb, action.clone()).change(ensure).change(text.clone());
        for (property, value) in [("owner", &want.owner), ("group", &want.group)] {
            if !value.is_empty() {
                step = step.change(Change::of(property).to(value.as_str()));
            }
        }
        step
    };
    match have.found {
        CurrentFile::Nothing => Ok(vec![made("absent")]),
        CurrentFile::Symlink => {
            let mut step = Step::new(Verb::Updated, action.clone());
            if !has_text(want, have) {
                let old = have.link.as_ref().map(|link| link.target.to_string_lossy());
                let mut change = text.clone();
                change.from = old.map(|old| old.into_owned().into());
                step = step.change(change);
            }
            super::changes::attributes(want, have, &mut step.changes);
            Ok(vec![step])
        }
        CurrentFile::File | CurrentFile::Other if want.force => Ok(vec![made("present")]),
        CurrentFile::File | CurrentFile::Other => Err(Error::Refused {
            reason: format!("{name} exists and is not a symlink"),
            hint: Some("set `force: true` to replace it".to_owned()),
        }),
        CurrentFile::Directory { empty: Some(true) } if want.force => {
            // The change is told once, by the step that ends it.
            let remove = Step::new(Verb::Removed, Action::RemoveDirectory { path });
            Ok(vec![remove, made("directory")])
        }
        CurrentFile::Directory { .. } => Err(Error::Refused {
            reason: format!("{name}: path exists as a directory"),
            hint: Some(
                if want.force {
                    "it is not empty; remove it with an earlier resource"
                } else {
                    "set `force: true` to replace an empty directory"
                }
                .to_owned(),
            ),
        }),
    }
}
