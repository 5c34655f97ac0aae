//! The part of the file that an edit is about, compared with what is wanted.

use std::path::PathBuf;
use std::sync::Arc;

use ccm_host::{Attributes, Digest, Stat};
use ccm_model::Change;
use ccm_textedit::{Edited, Refusal};
use serde::{Serialize, Serializer};
use serde_json::{Map, json};

use super::{Properties, changes};

/// What is in the file, and what the edit would make of it.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) name: String,
    pub(super) provider: &'static str,
    pub(super) format: String,
    /// The file, all symlinks followed.
    pub(super) path: PathBuf,
    pub(super) found: Found,
    /// Attributes of the file; none if it does not exist.
    pub(super) stat: Option<Stat>,
    /// The attributes with which a missing file is made.
    pub(super) create: Option<Attributes>,
    /// What is in the file must not be shown.
    pub(super) is_secret: bool,
    /// The text before, where a diff may want it.
    pub(super) text: Arc<[u8]>,
    pub(super) checksum: Option<Digest>,
    pub(super) owner: Option<Arc<str>>,
    pub(super) group: Option<Arc<str>>,
    /// The word of `ensure` for this state.
    pub(super) ensure: &'static str,
}

/// What is at the path.
#[derive(Clone, Debug)]
pub(super) enum Found {
    /// Nothing; with `create`, what would be made.
    Missing(Option<Result<Edited, Refusal>>),
    /// A file, and what the edit makes of it.
    File(Result<Edited, Refusal>),
}

impl State {
    /// What would change; none if the edit cannot be made.
    pub(super) fn pending(&self) -> Option<&[ccm_textedit::Change]> {
        match &self.found {
            Found::Missing(Some(Ok(edited))) | Found::File(Ok(edited)) => Some(&edited.changes),
            _ => None,
        }
    }

    /// Whether nothing is left to do.
    pub(super) fn is_satisfied(&self, is_removal: bool) -> bool {
        match &self.found {
            Found::Missing(_) => is_removal,
            Found::File(edited) => edited.as_ref().is_ok_and(|edited| edited.changes.is_empty()),
        }
    }

    fn differences(&self) -> Vec<Change> {
        changes::entries(self, self.pending().unwrap_or_default())
    }

    pub(super) fn mismatch(&self, want: &Properties) -> Option<String> {
        if self.is_satisfied(want.is_removal()) {
            return None;
        }
        Some(match (&self.found, self.pending().and_then(<[_]>::first)) {
            (Found::File(Err(refusal)), _) => refusal.message.clone(),
            (_, Some(change)) if self.is_secret => format!("{} is not as written", change.name),
            (_, Some(change)) => {
                let text = |value: &Option<String>| value.clone().unwrap_or("absent".to_owned());
                format!("{} is {}, should be {}", change.name, text(&change.from), text(&change.to))
            }
            (_, None) => "the file does not exist".to_owned(),
        })
    }

    /// For a saved plan: what the edit would replace. Where a line stands does not
    /// matter.
    pub(super) fn evidence(&self, want: &Properties) -> serde_json::Value {
        let refusal = match &self.found {
            Found::File(Err(refusal)) => Some(refusal.message.as_str()),
            _ => None,
        };
        let mut evidence = Map::from_iter([
            ("path".to_owned(), json!(self.path)),
            ("exists".to_owned(), self.stat.is_some().into()),
            ("satisfied".to_owned(), self.is_satisfied(want.is_removal()).into()),
            ("attributes".to_owned(), json!(self.stat.map(|stat| [stat.uid, stat.gid, stat.mode]))),
            ("refusal".to_owned(), json!(refusal)),
        ]);
        let mut lines = Vec::new();
        for change in self.pending().unwrap_or_default() {
            let from = change.from.as_ref().map(|text| {
                if self.is_secret {
                    format!("sha256:{}", Digest::of(text.as_bytes()))
                } else {
                    text.clone()
                }
            });
            if self.format == "line" {
                lines.push(from);
            } else {
                evidence.insert(format!("entry {}", change.name), json!(from));
            }
        }
        evidence.insert("lines".to_owned(), json!(lines));
        evidence.into()
    }
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        self.ensure
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Outer<'a> {
            metadata: Metadata<'a>,
        }
        #[derive(Serialize)]
        struct Metadata<'a> {
            name: &'a str,
            provider: &'a str,
            path: std::borrow::Cow<'a, str>,
            format: &'a str,
            exists: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            checksum: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            size: Option<u64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            owner: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            group: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            mode: Option<String>,
            satisfied: bool,
            differences: Vec<Change>,
        }
        let metadata = Metadata {
            name: &self.name,
            provider: self.provider,
            path: self.path.to_string_lossy(),
            format: &self.format,
            exists: self.stat.is_some(),
            checksum: self.checksum.map(|digest| digest.to_string()),
            size: self.stat.map(|stat| stat.size),
            owner: self.owner.as_deref(),
            group: self.group.as_deref(),
            mode: self.stat.map(|stat| format!("{:04o}", stat.mode)),
            satisfied: self.is_satisfied(self.ensure == "absent"),
            differences: self.differences(),
        };
        Outer { metadata }.serialize(to)
    }
}
