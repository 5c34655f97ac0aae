//! Names for completion in forms: the users and groups of this machine.

use std::collections::BTreeSet;
use std::path::Path;

use ccm_http::{Response, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::error::json_response;

/// More names than this are no help.
const MAX_NAMES: usize = 2000;
/// A list of users is not larger.
const MAX_SIZE: u64 = 4 << 20;

/// Users and groups.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Names {
    users: BTreeSet<String>,
    groups: BTreeSet<String>,
}

/// `GET names`. Only what the files of the machine list: a directory service
/// may be large, and asking it would use the network.
pub(crate) fn list(app: &App) -> Response {
    let read = |path: &str| -> BTreeSet<String> {
        let text = app.settings.host.read_text(Path::new(path), MAX_SIZE);
        let text = text.map(|(text, _)| text).unwrap_or_default();
        let names = text.lines().filter_map(|line| line.split_once(':'));
        let names = names.map(|(name, _)| name.to_owned()).filter(|name| is_name(name));
        names.take(MAX_NAMES).collect()
    };
    let answer = Names { users: read("/etc/passwd"), groups: read("/etc/group") };
    json_response(StatusCode::OK, &answer)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with(['+', '-', '#'])
}
