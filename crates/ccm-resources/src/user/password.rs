//! Password fields: which are accepted, and how they compare.

use crate::accounts::Secret;

/// Hashes that ccm sets, by how they begin.
const ACCEPTED: [&str; 5] = ["$y$", "$7$", "$6$", "$5$", "$2b$"];
/// How long the hash of a DES password is.
const DES: usize = 13;

/// What is wrong with a password in a manifest, and what to do. The message never
/// contains it.
pub(super) fn problem(password: &str) -> Option<(&'static str, &'static str)> {
    const MAKE: &str = "make a hash with `openssl passwd -6`";
    if matches!(password, "!" | "*") {
        return None;
    }
    let hash = password.strip_prefix('!').unwrap_or(password);
    let is_hash_text =
        hash.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b':' | b'!' | b'*'));
    let begins = |words: &[&str]| words.iter().any(|word| hash.starts_with(word));
    if begins(&["$2a$", "$2y$"]) {
        return Some(("is a bcrypt hash of a former kind", "make one that begins with `$2b$`"));
    }
    if begins(&["$1$", "$md5", "_"]) && is_hash_text {
        return Some(("is a hash that is too weak", MAKE));
    }
    if begins(&ACCEPTED) && is_hash_text && hash.matches('$').count() >= 3 {
        return None;
    }
    let is_salted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/');
    if hash.len() == DES && hash.bytes().all(is_salted) {
        return Some(("is plain text, or a DES hash, which is too weak", MAKE));
    }
    Some(("is not a hash", MAKE))
}

/// The part of a field that is neither a lock nor a placeholder; empty if there
/// is no password.
pub(super) fn hash(field: &str) -> &str {
    field.trim_start_matches('!')
}

/// Whether no password was ever set, or all were taken away.
fn is_none(field: &str) -> bool {
    hash(field).is_empty() && !field.is_empty()
}

/// Whether a field locks a password.
pub(super) fn is_locked(field: &str) -> bool {
    field.starts_with('!')
}

/// Whether a field locks a password that could be used again.
pub(super) fn is_locked_hash(field: &str) -> bool {
    is_locked(field) && !hash(field).is_empty()
}

/// The field to set so that the password is the wanted one; `None` if it is.
/// Unless the lock is managed, it stays as it is.
pub(super) fn new_field(wanted: &str, have: &str, locked: Option<bool>) -> Option<Secret> {
    if wanted == "!" {
        return (!is_none(have)).then(|| Secret::new("!"));
    }
    let is_same = match locked {
        Some(false) => have == wanted,
        _ => hash(have) == hash(wanted) && (is_locked(have) || !is_locked(wanted)),
    };
    if is_same {
        return None;
    }
    let keeps_lock = locked == Some(true) || (locked.is_none() && is_locked_hash(have));
    let lock = if keeps_lock && !is_locked(wanted) { "!" } else { "" };
    Some(Secret::new(format!("{lock}{wanted}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_strong_hashes_are_accepted() {
        for password in [
            "!",
            "*",
            "$6$salt$abc./09",
            "!$6$salt$abc./09",
            "$5$rounds=5000$s$h",
            "$y$j9T$s$h",
            "$7$CU..../....s$h$x",
            "$2b$12$abcdefghijklmnopqrstuv",
        ] {
            assert_eq!(problem(password), None, "{password}");
        }
        for (password, words) in [
            ("hunter2", "is not a hash"),
            ("", "is not a hash"),
            ("$6$", "is not a hash"),
            ("$6$a:b$c", "is not a hash"),
            ("$6$a\nb$c", "is not a hash"),
            ("$1$salt$hash", "too weak"),
            ("abJnggxhB/yWI", "DES hash"),
            ("$2a$12$abc", "former kind"),
            ("$2y$12$abc", "former kind"),
            ("!!", "is not a hash"),
        ] {
            let (problem, hint) = problem(password).unwrap();
            assert!(problem.contains(words), "{password}: {problem}");
            assert!(hint.contains("make"), "{hint}");
        }
    }

    #[test]
    fn fields_compare_by_what_is_managed() {
        let field = |wanted, have, locked| {
            new_field(wanted, have, locked).map(|secret| secret.expose().to_owned())
        };
        let (one, two) = ("$6$s$one", "$6$s$two");
        for (wanted, have, locked, set) in [
            (one, one, None, None),
            (one, two, None, Some("$6$s$one")),
            (one, "!", None, Some("$6$s$one")),
            (one, "*", None, Some("$6$s$one")),
            (one, "", None, Some("$6$s$one")),
            // A lock that is not managed stays.
            (one, "!$6$s$one", None, None),
            (one, "!$6$s$two", None, Some("!$6$s$one")),
            (one, "!$6$s$one", Some(true), None),
            (one, "!$6$s$two", Some(true), Some("!$6$s$one")),
            (one, one, Some(true), None),
            (one, two, Some(true), Some("!$6$s$one")),
            (one, "!$6$s$one", Some(false), Some("$6$s$one")),
            ("!", "!", None, None),
            ("!", "!!", None, None),
            ("!", one, None, Some("!")),
            ("!", "", None, Some("!")),
            ("*", "*", None, None),
            ("*", "!*", Some(true), None),
            ("*", one, None, Some("*")),
            ("!$6$s$one", one, None, Some("!$6$s$one")),
            ("!$6$s$one", "!$6$s$one", None, None),
        ] {
            assert_eq!(field(wanted, have, locked).as_deref(), set, "{wanted} {have} {locked:?}");
        }
    }

    #[test]
    fn a_bare_mark_is_no_locked_password() {
        assert!(is_locked("!") && !is_locked_hash("!") && !is_locked_hash("!!"));
        assert!(is_locked_hash("!$6$s$h") && !is_locked("$6$s$h") && !is_locked("*"));
    }
}
