//! The file that a plan is saved in.
//!
//! It begins with a NUL byte, so that it is never taken for a manifest, and a
//! line that names the format and its version. JSON follows, then the SHA-256 of
//! everything before it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ccm_host::{Digest, Host};

use super::SavedPlan;

pub(crate) const MAGIC: &[u8] = b"\0ccm-plan ";
const VERSION: &str = "1";
/// The hexadecimal digest, with a line break before and behind it.
const TAIL: usize = 66;
/// Contents make at most 64 MiB, which Base64 makes larger by a third.
const MAX_SIZE: u64 = 256 << 20;

/// Why a saved plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SavedPlanError {
    /// It cannot be read or written.
    #[error("cannot use the saved plan {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ccm_host::Error,
    },
    /// It is not a saved plan.
    #[error("{} is not a saved plan", path.display())]
    NotAPlan {
        /// The file.
        path: PathBuf,
    },
    /// It is not what was written.
    #[error("the saved plan is damaged")]
    Damaged,
    /// Another version of ccm wrote it.
    #[error("the saved plan has format {found}, and this ccm reads format {VERSION}")]
    OtherFormat {
        /// The format that it names.
        found: String,
    },
    /// It was made for another machine.
    #[error("the plan was made for {}, and this is {}", planned.escape_debug(), here.escape_debug())]
    OtherHost {
        /// The machine that it was made for.
        planned: String,
        /// This machine.
        here: String,
    },
    /// Its time has not come, so its age cannot be told.
    #[error("the plan was made at {created}, which is in the future")]
    Future {
        /// When it was made.
        created: jiff::Timestamp,
    },
    /// It was made too long ago.
    #[error("the plan is {} old, and the limit is {}", shown(*age), shown(*limit))]
    TooOld {
        /// How old it is.
        age: Duration,
        /// How old it may be.
        limit: Duration,
    },
}

impl SavedPlanError {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        let again = "make a new plan with `ccm plan MANIFEST --out FILE`".to_owned();
        match self {
            Self::File { source, .. } => source.hint(),
            Self::OtherHost { .. } => {
                Some("apply it there, or use --any-host if the machines are alike".to_owned())
            }
            Self::TooOld { .. } => Some(format!("{again}, or raise --max-age")),
            Self::NotAPlan { .. }
            | Self::Damaged
            | Self::OtherFormat { .. }
            | Self::Future { .. } => Some(again),
        }
    }
}

/// An age to the largest unit that it fills.
fn shown(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

impl SavedPlan {
    /// Whether a file is a saved plan, by its first bytes.
    pub fn is_one(host: &Host, path: &Path) -> bool {
        use std::io::Read as _;
        let mut start = [0; MAGIC.len()];
        let Ok((mut file, _)) = host.open(path) else { return false };
        file.read_exact(&mut start).is_ok() && start == MAGIC
    }

    /// Reads a saved plan. As root it must be root's, as a manifest must.
    ///
    /// # Errors
    ///
    /// Returns why the file cannot be read, that it is no plan, damaged, or of
    /// another format.
    pub fn read(host: &Host, path: &Path) -> Result<Self, SavedPlanError> {
        let failed = |source| SavedPlanError::File { path: path.to_owned(), source };
        let bytes = host.read_trusted_bytes(path, MAX_SIZE).map_err(failed)?;
        if !bytes.starts_with(MAGIC) {
            return Err(SavedPlanError::NotAPlan { path: path.to_owned() });
        }
        Self::decode(&bytes)
    }

    /// Identifies this plan: the digest at the end of its file.
    pub fn digest(&self) -> String {
        let bytes = self.encode();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(65)..]).trim().to_owned()
    }

    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(VERSION.as_bytes());
        bytes.push(b'\n');
        // Only maps with other keys than texts cannot be written, and there are
        // none.
        bytes.extend(serde_json::to_vec(self).unwrap_or_default());
        let digest = Digest::of(&bytes);
        bytes.extend_from_slice(format!("\n{digest}\n").as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, SavedPlanError> {
        let damaged = || SavedPlanError::Damaged;
        let (head, tail) =
            bytes.split_at_checked(bytes.len().saturating_sub(TAIL)).ok_or_else(damaged)?;
        let is_whole = tail == format!("\n{}\n", Digest::of(head)).as_bytes();
        let rest = head.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let end = rest.iter().position(|&byte| byte == b'\n').ok_or_else(damaged)?;
        let version = std::str::from_utf8(&rest[..end]).map_err(|_| damaged())?;
        let is_number = |text: &str| text.len() < 4 && text.bytes().all(|b| b.is_ascii_digit());
        match (is_whole, version) {
            (true, VERSION) => serde_json::from_slice(&rest[end + 1..]).map_err(|_| damaged()),
            (true, other) if is_number(other) => {
                Err(SavedPlanError::OtherFormat { found: other.to_owned() })
            }
            _ => Err(damaged()),
        }
    }
}

pub(super) fn encode_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(super) fn decode_base64(text: &str) -> Result<Vec<u8>, SavedPlanError> {
    STANDARD.decode(text).map_err(|_| SavedPlanError::Damaged)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::decision_log::DecisionLog;

    fn plan() -> SavedPlan {
        SavedPlan {
            plan: ccm_model::Plan { manifest: "m.yaml".into(), ..Default::default() },
            manifest: "/m.yaml".into(),
            only: Vec::new(),
            skip: Vec::new(),
            offline: false,
            no_post: false,
            no_groups: false,
            facts: serde_json::json!({"a": 1}),
            environ: BTreeMap::new(),
            external: None,
            sources: Vec::new(),
            trees: Vec::new(),
            directories: BTreeSet::new(),
            links: BTreeMap::new(),
            special: BTreeSet::new(),
            fetched: BTreeMap::new(),
            decisions: DecisionLog::default(),
        }
    }

    #[test]
    fn plans_come_back() {
        let bytes = plan().encode();
        let back = SavedPlan::decode(&bytes).unwrap();
        assert_eq!(back.encode(), bytes);
        assert_eq!(back.plan.manifest, "m.yaml");
    }

    #[test]
    fn a_plan_that_is_cut_or_has_a_flipped_bit_is_damaged() {
        let bytes = plan().encode();
        for end in 0..bytes.len() {
            assert!(SavedPlan::decode(&bytes[..end]).is_err(), "cut at {end}");
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(SavedPlan::decode(&flipped).is_err(), "flipped at {at}");
        }
    }

    #[test]
    fn other_formats_are_named() {
        let bytes = plan().encode();
        let mut later = bytes[..bytes.len() - TAIL].to_vec();
        later[MAGIC.len()] = b'2';
        let digest = Digest::of(&later);
        later.extend_from_slice(format!("\n{digest}\n").as_bytes());
        let error = SavedPlan::decode(&later).unwrap_err();
        assert!(matches!(&error, SavedPlanError::OtherFormat { found } if found == "2"), "{error}");
    }

    #[test]
    fn ages_are_short() {
        for (seconds, text) in [(5, "5s"), (180, "3m"), (7200, "2h"), (200_000, "2d")] {
            assert_eq!(shown(Duration::from_secs(seconds)), text);
        }
    }
}
