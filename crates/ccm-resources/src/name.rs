//! Names that become arguments of system tools. Validation rejects characters
//! that a tool would interpret.

/// What is wrong with the name of a `what`, if anything is.
pub(crate) fn problem(what: &str, name: &str) -> Option<String> {
    check(what, name, "._+:~-")
}

/// What is wrong with the name of a systemd unit, if anything is. It may be an
/// instance of a template, such as `getty@tty1`.
pub(crate) fn unit_problem(name: &str) -> Option<String> {
    check("service name", name, "._+:~-@").or_else(|| {
        let (template, instance) = name.split_once('@')?;
        let is_template = instance.is_empty() || instance.starts_with('.');
        is_template.then(|| {
            format!("{name:?} is a template; name an instance of it, such as `{template}@one`")
        })
    })
}

/// What is wrong with a version, if anything is.
pub(crate) fn version_problem(version: &str) -> Option<String> {
    // A caret orders snapshots in the versions of rpm.
    check("version", version, "._+:~-^")
}

fn check(what: &str, text: &str, marks: &str) -> Option<String> {
    if text.is_empty() {
        return Some(format!("{what} cannot be empty"));
    }
    if text.contains(|c: char| !c.is_ascii_alphanumeric() && !marks.contains(c)) {
        return Some(format!("{what} contains dangerous characters: {text:?}"));
    }
    // A dash begins an option, a tilde a search pattern of apt.
    (!text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
        .then(|| format!("{what} must start with a letter or digit: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_valid_and_invalid_examples_of_the_design() {
        for name in ["httpd", "nginx.service", "my-app_v2", "g++", "libc6:i386", "a~b"] {
            assert_eq!(problem("name", name), None, "{name}");
        }
        let dangerous = [
            "app@instance",
            "app; rm -rf /",
            "a|b",
            "a&b",
            "$a",
            "`a`",
            "a'b",
            "a\"b",
            "a b",
            "a\tb",
            "a\nb",
            "../a",
            "a/b",
            "a*",
            "a\\b",
            "ä",
            "a\0",
            " a",
            "a=1",
            "a^",
        ];
        for name in dangerous {
            let problem = problem("name", name).unwrap();
            assert!(problem.contains("dangerous"), "{problem}");
        }
        for name in ["-a", "--force", "~n", "+a", ".a", ":a"] {
            assert!(problem("name", name).unwrap().contains("must start with"), "{name}");
        }
        assert_eq!(problem("name", "").unwrap(), "name cannot be empty");
    }

    #[test]
    fn units_are_names_that_may_have_an_instance() {
        for name in ["nginx", "getty@tty1", "app@blue.service", "a@b@c", "user@1000.service"] {
            assert_eq!(unit_problem(name), None, "{name}");
        }
        for (name, words) in [
            ("@", "must start with"),
            ("@tty1", "must start with"),
            ("-a@b", "must start with"),
            ("app@a b", "dangerous"),
            ("app@a/b", "dangerous"),
            ("app@*", "dangerous"),
            ("app@$(x)", "dangerous"),
            ("app@", "such as `app@one`"),
            ("app@.service", "such as `app@one`"),
            ("", "cannot be empty"),
        ] {
            let problem = unit_problem(name).unwrap();
            assert!(problem.contains(words), "{name}: {problem}");
        }
    }

    #[test]
    fn versions_are_names_with_carets() {
        for version in ["1.24.0-1.el9", "1:2.0~rc1+b2", "1.0^git1-1"] {
            assert_eq!(version_problem(version), None, "{version}");
        }
        for version in ["1.0;x", "1 0", "-1", "1/2", "$(x)", "1=2", ""] {
            assert!(version_problem(version).is_some(), "{version}");
        }
    }
}
