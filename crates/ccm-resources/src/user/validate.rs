//! What can be wrong with the properties of a user.

use ccm_engine::Findings;

use super::{Properties, UPDATES, date, password};
use crate::accounts::{check_id, check_mode_word, check_name};
use crate::file::mode;

/// What separates the fields of the databases.
const SEPARATORS: [char; 2] = [':', '\n'];

pub(super) fn validate(want: &Properties, findings: &mut Findings) {
    check_name(findings, "name", "user", &want.common.name);
    check_id(findings, "uid", want.uid.as_deref());
    check_id(findings, "private_gid", want.private_gid.as_deref());
    check_groups(want, findings);
    if want.comment.as_deref().is_some_and(|comment| comment.contains(SEPARATORS)) {
        findings.add("comment", "a comment contains neither `:` nor a line break");
    }
    check_paths(want, findings);
    check_access(want, findings);
    check_keys(want, findings);
    if !want.is_absent() {
        for (property, is_set) in
            [("remove_home", want.remove_home), ("kill_processes", want.kill_processes)]
        {
            if is_set {
                findings.add(property, "is only for `ensure: absent`");
            }
        }
    }
}

fn check_groups(want: &Properties, findings: &mut Findings) {
    if let Some(group) = &want.group {
        if group.bytes().all(|byte| byte.is_ascii_digit()) {
            check_id(findings, "group", Some(group));
        } else {
            check_name(findings, "group", "group", group);
        }
    }
    for group in want.groups.iter().flatten() {
        if !check_name(findings, "groups", "group", group) {
            break;
        }
    }
    let list = want.groups.is_none().then_some("groups");
    check_mode_word(findings, "groups_mode", want.groups_mode.as_deref(), list);
}

fn check_paths(want: &Properties, findings: &mut Findings) {
    for (property, path) in [("home", &want.home), ("shell", &want.shell)] {
        let Some(path) = path else { continue };
        if path.contains(SEPARATORS) {
            findings
                .add(property, "a path in the user database contains neither `:` nor a line break");
        } else {
            findings.check_path(property, path);
        }
    }
    if want.move_home && want.home.is_none() {
        findings.add("move_home", "needs `home`");
    }
    if let Some(mode) = &want.home_mode
        && let Err(problem) = mode::parse(mode)
    {
        findings.add("home_mode", problem);
    }
}

fn check_access(want: &Properties, findings: &mut Findings) {
    // The message must not contain what may be a password.
    if let Some((problem, hint)) = want.password.as_deref().and_then(password::problem) {
        findings.add_with_hint("password", format!("password {problem}"), hint);
    }
    if let Some(word) = want.password_update.as_deref() {
        if !UPDATES.contains(&word) {
            let message = format!("`{word}` is not a value of password_update");
            let hint = format!("allowed: {}", UPDATES.join(", "));
            findings.add_with_hint("password_update", message, hint);
        } else if want.password.is_none() {
            findings.add("password_update", "needs `password`");
        }
    }
    if let Some(text) = want.expires.as_deref() {
        if text != date::NEVER && date::day(text).is_none() {
            findings.add_with_hint(
                "expires",
                format!("`{text}` is not a date"),
                "write it as YYYY-MM-DD, or `never`",
            );
        } else if want.locked == Some(true) {
            findings.add("expires", "cannot be set with `locked: true`, which sets the date");
        }
    }
}

fn check_keys(want: &Properties, findings: &mut Findings) {
    let list = want.authorized_keys.is_none().then_some("authorized_keys");
    let mode = want.authorized_keys_mode.as_deref();
    check_mode_word(findings, "authorized_keys_mode", mode, list);
    let mut known: Vec<super::KeyLine> = Vec::new();
    for (index, key) in want.authorized_keys.iter().flatten().enumerate() {
        match key.read() {
            Err(problem) => findings.add("authorized_keys", format!("key {index} {problem}")),
            Ok(key) => {
                let twin = known.iter().position(|other| other.has_key_of(&key));
                match twin.and_then(|at| Some((at, known.get(at)?))) {
                    Some((at, other)) if other.options != key.options => findings.add(
                        "authorized_keys",
                        format!("key {index} is key {at} with other options"),
                    ),
                    _ => {}
                }
                known.push(key);
            }
        }
    }
}
