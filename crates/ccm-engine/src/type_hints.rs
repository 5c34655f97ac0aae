//! Resource types of other tools, and their equivalents in ccm.

/// Names of types that other tools have, and the hint for them. The pages of the
/// documentation have a recipe for each.
const TYPES: &[(&[&str], &str)] = &[
    (&["account", "users", "groups", "useradd", "groupadd"], "use `user` or `group`"),
    (
        &["authorized_key", "ssh_authorized_key", "authorized_keys", "ssh_auth"],
        "for keys of a user, use `user` with `authorized_keys`",
    ),
    (&["cron", "cron_job", "cronjob"], "for cron jobs, write a `file` in /etc/cron.d"),
    (
        &["sysctl", "kernel_param"],
        "for kernel settings, write a `file` in /etc/sysctl.d and run `sysctl` in an `exec` that \
         subscribes to it",
    ),
    (
        &["template", "copy", "directory", "concat"],
        "for files and directories, use `file`; for a whole tree, `scaffold`",
    ),
    (
        &["lineinfile", "file_line", "replace", "line"],
        "for lines of a file, use `edit` with `format: line`",
    ),
    (&["blockinfile", "block"], "for a block in a file, use `edit` with `format: block`"),
    (
        &["ini_file", "ini_setting", "ini_subsetting", "augeas", "ini"],
        "for keys of a configuration file, use `edit` with its format, such as `ini`",
    ),
    (&["symlink", "link"], "for symlinks, use `file` with `ensure: link`"),
    (
        &["apt", "yum", "dnf", "pkg", "packages", "apt_package", "pip", "gem"],
        "for system packages, use `package`",
    ),
    (&["systemd", "svc", "services", "systemd_unit"], "for services, use `service`"),
    (&["command", "shell", "script", "cmd", "run"], "for commands, use `exec`"),
    (&["unarchive", "tar", "get_url", "remote_file"], "for downloads, use `archive`"),
    (&["include", "include_tasks", "import_tasks", "manifest"], "for other manifests, use `apply`"),
    (&["mount"], "for mounts, write a unit with `file` and start it with `service`"),
    (&["git", "vcsrepo"], "for checkouts, run `git` in an `exec` with `creates`"),
];

/// The hint for an unknown type: the types that there are, and what does the work
/// of a type that another tool has.
pub fn type_hint(name: &str, known: &[&str]) -> String {
    let list = format!("available types: {}", known.join(", "));
    let of_other_tool = TYPES.iter().find(|(names, _)| names.contains(&name));
    match (of_other_tool, ccm_model::did_you_mean(name, known.iter().copied())) {
        (Some((_, hint)), _) => format!("{list}; {hint}"),
        (None, Some(meant)) => meant,
        (None, None) => list,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_of_another_tool_has_a_hint_and_a_misspelled_one_a_suggestion() {
        let known = ["archive", "package"];
        assert_eq!(
            type_hint("cron", &known),
            "available types: archive, package; for cron jobs, write a `file` in /etc/cron.d"
        );
        assert_eq!(type_hint("pakage", &known), "did you mean `package`?");
        assert_eq!(type_hint("zebra", &known), "available types: archive, package");
    }
}
