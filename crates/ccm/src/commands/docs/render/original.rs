//! What differs from the original in names: flags, and fields of JSON documents.
//! The lists say what the original has; what ccm has comes from the program.

use std::collections::BTreeSet;

use ccm_author::schema;
use clap::Command;

use super::{code, table};

/// What `ensure` of every type takes.
const COMMON: [&str; 13] = [
    "alias",
    "check",
    "check-sleep",
    "check-tries",
    "context",
    "hiera",
    "if",
    "noop",
    "provider",
    "read-env",
    "require",
    "session",
    "unless",
];

/// The commands of the original with their own flags.
const FLAGS: [(&str, &[&str]); 20] = [
    ("agent", &["config", "context"]),
    (
        "apply",
        &[
            "context",
            "fact",
            "facts",
            "hiera",
            "monitor-only",
            "noop",
            "read-env",
            "registration",
            "render",
            "report",
        ],
    ),
    (
        "ensure archive",
        &["checksum", "cleanup", "creates", "extract", "header", "owner", "password", "username"],
    ),
    (
        "ensure exec",
        &[
            "creates",
            "cwd",
            "environment",
            "logoutput",
            "path",
            "refresh-only",
            "returns",
            "subscribe",
            "timeout",
        ],
    ),
    ("ensure file", &["content", "content-file", "mode", "owner", "source"]),
    ("ensure package", &[]),
    (
        "ensure scaffold",
        &["engine", "left-delimiter", "post", "purge", "right-delimiter", "skip-empty"],
    ),
    ("ensure service", &["disable", "enable", "subscribe"]),
    ("ensure api pipe", &["context", "hiera", "noop", "read-env", "session", "yaml"]),
    ("facts", &["yaml"]),
    (
        "hiera parse",
        &["context", "data", "env", "env-facts", "env-prefix", "facts", "query", "yaml"],
    ),
    ("hiera facts", &["env-facts", "facts", "query"]),
    (
        "registration create",
        &[
            "address",
            "annotation",
            "cluster",
            "context",
            "port",
            "priority",
            "protocol",
            "registration",
            "service",
            "ttl",
        ],
    ),
    ("registration init", &["context", "max-age", "registration", "replicas"]),
    ("registration query", &["context", "json", "registration", "yaml"]),
    (
        "registration rm",
        &["address", "cluster", "context", "force", "port", "protocol", "registration", "service"],
    ),
    ("registration watch", &["context", "json", "registration"]),
    ("session new", &["directory"]),
    ("session report", &["session"]),
    ("status", &["json"]),
];

/// The fields of an event of the original.
const EVENT: [&str; 22] = [
    "alias",
    "changed",
    "duration",
    "error",
    "event_id",
    "failed",
    "final_ensure",
    "health_check",
    "health_check_only",
    "name",
    "noop",
    "noop_message",
    "properties",
    "protocol",
    "provider",
    "refreshed",
    "requested_ensure",
    "skipped",
    "status",
    "timestamp",
    "type",
    "unmet_requirements",
];

/// The fields of the summary of a session.
const SUMMARY: [&str; 17] = [
    "changed_resources",
    "end_time",
    "failed_resources",
    "health_check_critical_count",
    "health_check_ok_count",
    "health_check_unknown_count",
    "health_check_warning_count",
    "health_checked_count",
    "refreshed_count",
    "requirements_unmet_count",
    "skipped_resources",
    "stable_resources",
    "start_time",
    "total_duration",
    "total_errors",
    "total_resources",
    "unique_resources",
];

/// The flags of a command, as they are shown, and all that it accepts.
fn flags(path: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut command: Command = crate::cli();
    command.build();
    for word in path.split(' ') {
        command = command.find_subcommand(word).expect(path).clone();
    }
    let (mut shown, mut accepted) = (BTreeSet::new(), BTreeSet::new());
    for arg in command.get_arguments().filter(|arg| arg.get_id() != "help") {
        let names = arg.get_long_and_visible_aliases().unwrap_or_default();
        if !arg.is_hide_set() && !arg.is_global_set() {
            shown.extend(names.iter().map(ToString::to_string));
        }
        accepted.extend(names.iter().map(ToString::to_string));
        accepted.extend(arg.get_all_aliases().unwrap_or_default().iter().map(ToString::to_string));
    }
    (shown, accepted)
}

/// The flags of the original at this command.
fn original(path: &str, own: &[&str]) -> BTreeSet<String> {
    let common = COMMON.iter().filter(|_| is_type(path));
    own.iter().chain(common).map(ToString::to_string).collect()
}

/// The flags of ccm that the original does not have at this command. A flag of
/// the original has its negation too.
fn added(path: &str, own: &[&str]) -> BTreeSet<String> {
    let theirs = original(path, own);
    let is_theirs = |name: &str| theirs.contains(name.strip_prefix("no-").unwrap_or(name));
    flags(path).0.into_iter().filter(|name| !is_theirs(name)).collect()
}

fn is_type(path: &str) -> bool {
    path.starts_with("ensure ") && path != "ensure api pipe"
}

/// Flags that only ccm has; those of all types in one row.
pub(super) fn new_flags() -> String {
    let types = FLAGS.iter().filter(|(path, _)| is_type(path));
    let common = types.map(|(path, own)| added(path, own));
    let common = common.reduce(|one, other| &one & &other).unwrap_or_default();
    let rows = FLAGS.iter().filter_map(|(path, own)| {
        let mut new = added(path, own);
        if is_type(path) {
            new = &new - &common;
        }
        (!new.is_empty()).then(|| vec![code(path), listed(&new, "--")])
    });
    let all = std::iter::once(vec!["`ensure` with any type".to_owned(), listed(&common, "--")]);
    table(&["Command", "New flags"], all.chain(rows))
}

/// Fields that only one of both programs has.
pub(super) fn field_differences() -> String {
    let fields = |value: &serde_json::Value| -> BTreeSet<String> {
        value.as_object().into_iter().flat_map(|map| map.keys().cloned()).collect()
    };
    let summary = serde_json::to_value(ccm_model::Summary::default()).expect("JSON");
    let rows = [
        ("Event", &EVENT[..], fields(&schema::event()["properties"])),
        ("`summary` of a report", &SUMMARY[..], fields(&summary)),
    ];
    let rows = rows.into_iter().map(|(document, theirs, ours)| {
        let theirs: BTreeSet<String> = theirs.iter().map(ToString::to_string).collect();
        vec![document.to_owned(), listed(&(&theirs - &ours), ""), listed(&(&ours - &theirs), "")]
    });
    table(&["Document", "Only in Choria CCM", "Only in ccm"], rows)
}

fn listed(names: &BTreeSet<String>, prefix: &str) -> String {
    names.iter().map(|name| code(&format!("{prefix}{name}"))).collect::<Vec<_>>().join(", ")
}

/// Every flag of the original works.
#[test]
fn no_flag_of_the_original_is_missing() {
    for (path, own) in FLAGS {
        let missing: Vec<_> = original(path, own).difference(&flags(path).1).cloned().collect();
        assert!(missing.is_empty(), "ccm {path} lacks {missing:?}");
    }
}
