//! The binary as people use it: hermetic, with what it says in snapshots.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod api;
mod apply;
mod archive;
mod archive_attacks;
mod archive_upgrade;
mod bad_input;
mod cancelled;
mod copied;
mod copied_attacks;
mod data;
mod edit;
mod ensure;
mod env;
mod exec_user;
mod faults;
mod findings;
mod for_each;
mod goss;
mod graph;
mod health;
mod history;
mod http;
mod install;
mod jet_file;
mod killed;
mod mistakes;
mod mounted;
mod moving;
mod nested;
mod original;
mod output;
mod owed;
mod parts;
mod permissions;
mod plan;
mod planted;
mod proxy;
mod recipes;
mod redaction;
mod rendering;
mod sandboxed;
mod saved_plan;
mod scaffold;
mod scaffold_faults;
mod schema;
mod secrets;
mod session;
mod state;
mod state_faults;
mod strict;
mod undo;
mod undo_partial;
mod validate;
mod version;
mod why;
mod words;

use env::TestEnv;
