//! Which source of the name service switch a user or group comes from.

use std::path::Path;

use ccm_host::{Command, Exit, Host};

const SWITCH: &str = "/etc/nsswitch.conf";
const MAX_SWITCH: u64 = 1 << 20;

/// The source that knows a user (`passwd`) or a group (`group`) that is not in the
/// local file, such as `sss`, for messages.
pub(crate) fn source_of(host: &Host, database: &str, name: &str) -> String {
    let text = host.read_text(Path::new(SWITCH), MAX_SWITCH);
    let text = text.map(|(text, _)| text).unwrap_or_default();
    let knows = |source: &&str| {
        let service = format!("{database}:{source}");
        let command = Command::new("getent", ["-s", &service, database, name]).query();
        host.run(&command, &mut |_, _| {}).is_ok_and(|output| output.exit == Exit::Code(0))
    };
    let found = sources(&text, database).into_iter().find(knows);
    found.map_or_else(|| "another source of the name service".to_owned(), str::to_owned)
}

/// The sources beside files that a database lists.
fn sources<'t>(switch: &'t str, database: &str) -> Vec<&'t str> {
    let line = switch.lines().find_map(|line| {
        line.split('#').next()?.trim().strip_prefix(database)?.trim_start().strip_prefix(':')
    });
    let words = line.unwrap_or_default().split_whitespace();
    let is_source = |word: &&str| {
        !matches!(*word, "files" | "compat")
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    words.filter(is_source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_those_of_the_database() {
        let switch = "# passwd: no\npasswd:         files systemd [NOTFOUND=return] sss # ldap\n\
                      group: files\nshadow : files extrausers\n";
        assert_eq!(sources(switch, "passwd"), ["systemd", "sss"]);
        assert_eq!(sources(switch, "group"), [""; 0]);
        assert_eq!(sources(switch, "shadow"), ["extrausers"]);
        assert_eq!(sources("", "passwd"), [""; 0]);
    }
}
