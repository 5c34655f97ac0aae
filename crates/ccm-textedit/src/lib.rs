//! Edits of configuration files that change nothing but what they say.
//!
//! An [`Edit`] says what a part of a file must be, in one of seven formats.
//! [`apply`] makes the new text in memory and holds it to three laws before it
//! gives it back:
//!
//! 1. The same edit of the new text changes nothing.
//! 2. Bytes outside of the lines or entries that the edit names stay as they are.
//! 3. In structured formats, the new text means what the operation makes of the
//!    meaning of the old one.
//!
//! An edit that breaks a law is refused. The crate does no I/O.
//!
//! ```
//! use ccm_textedit::{Edit, LineEdit, Pattern, apply};
//!
//! let edit = Edit::Line(LineEdit {
//!     line: Some("Port 2222".to_owned()),
//!     pattern: Some(Pattern::new(r"^#?Port\s").unwrap()),
//!     ..LineEdit::default()
//! });
//! let edited = apply(b"# sshd\n#Port 22\n", &edit).unwrap();
//! assert_eq!(edited.text, b"# sshd\nPort 2222\n");
//! assert_eq!(edited.changes[0].name, "line 2");
//! assert!(apply(&edited.text, &edit).unwrap().changes.is_empty());
//! ```

mod block;
mod change;
mod entries;
mod ini;
mod json;
mod laws;
mod line;
mod lines;
mod pattern;
mod properties;
mod splice;
mod toml;
mod typed;
mod yaml;

pub use block::{BlockEdit, Comment};
pub use change::{Change, Edited, Refusal};
pub use entries::{Entries, Pointer};
pub use laws::{MAX_SIZE, apply, check_text};
pub use line::{Anchor, IfMissing, LineEdit, Which};
pub use pattern::Pattern;
pub use properties::Dialect;

use serde::{Deserialize, Serialize};

/// What a part of a file must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// A line.
    Line(LineEdit),
    /// Lines between two markers.
    Block(BlockEdit),
    /// Keys of an ini file.
    Ini(Entries),
    /// Entries of a JSON document.
    Json(Entries),
    /// Entries of a YAML document, and which one of the file, from 0.
    Yaml(Entries, usize),
    /// Entries of a TOML document.
    Toml(Entries),
    /// Keys of a properties file.
    Properties(Entries, Dialect),
}
