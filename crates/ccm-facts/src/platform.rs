//! The distribution.

use std::collections::HashMap;

use crate::tree::Tree;

/// Which distribution runs, of which family and version; empty where unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Platform {
    pub(crate) name: String,
    pub(crate) family: String,
    pub(crate) version: String,
}

/// Distributions by `ID` of os-release.
const FAMILIES: [(&str, &[&str]); 7] = [
    (
        "debian",
        &[
            "debian",
            "ubuntu",
            "linuxmint",
            "mint",
            "raspbian",
            "kali",
            "pop",
            "elementary",
            "zorin",
            "neon",
            "deepin",
            "devuan",
            "parrot",
            "pureos",
            "proxmox",
        ],
    ),
    (
        "rhel",
        &[
            "rhel",
            "centos",
            "rocky",
            "almalinux",
            "ol",
            "oracle",
            "amzn",
            "amazon",
            "scientific",
            "cloudlinux",
            "virtuozzo",
            "eurolinux",
        ],
    ),
    ("fedora", &["fedora"]),
    (
        "suse",
        &[
            "suse",
            "opensuse",
            "opensuse-leap",
            "opensuse-tumbleweed",
            "opensuse-microos",
            "sles",
            "sled",
            "sle-micro",
            "sle_hpc",
        ],
    ),
    ("arch", &["arch", "archarm", "manjaro", "endeavouros", "artix"]),
    ("alpine", &["alpine", "postmarketos"]),
    ("gentoo", &["gentoo", "calculate"]),
];

impl Platform {
    pub(crate) fn find(tree: &Tree<'_>) -> Self {
        let Some(text) = tree.text("etc/os-release").or_else(|| tree.text("usr/lib/os-release"))
        else {
            return Self::default();
        };
        let release = parse(&text);
        let mut found = Self::of(&release);
        // These know the point release, which os-release leaves out.
        let precise = match found.family.as_str() {
            "debian" if matches!(found.name.as_str(), "debian" | "raspbian") => {
                tree.line("etc/debian_version")
            }
            "rhel" => tree.text("etc/redhat-release").and_then(|text| release_number(&text)),
            _ => None,
        };
        if let Some(version) = precise
            && (found.version.is_empty() || extends(&version, &found.version))
        {
            found.version = version;
        }
        found
    }

    fn of(release: &HashMap<String, String>) -> Self {
        let value = |key: &str| release.get(key).map(String::as_str).unwrap_or_default();
        let id = value("ID").to_ascii_lowercase();
        // Derivatives that the table does not have say what they derive from.
        let like = value("ID_LIKE").to_ascii_lowercase();
        let family =
            family(&id).or_else(|| like.split_whitespace().find_map(family)).unwrap_or(&id);
        let name = match id.as_str() {
            "rhel" => "redhat",
            "ol" => "oracle",
            "amzn" => "amazon",
            id => id,
        };
        Self {
            name: name.to_owned(),
            family: family.to_owned(),
            version: value("VERSION_ID").to_owned(),
        }
    }
}

fn family(id: &str) -> Option<&'static str> {
    FAMILIES.iter().find(|(_, ids)| ids.contains(&id)).map(|(family, _)| *family)
}

/// Whether `version` says the same as `short`, and more.
fn extends(version: &str, short: &str) -> bool {
    version.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The number in `CentOS Linux release 7.9.2009 (Core)`.
fn release_number(text: &str) -> Option<String> {
    let (_, behind) = text.split_once("release ")?;
    let number: String =
        behind.chars().take_while(|c| c.is_ascii_digit() || matches!(c, '.')).collect();
    (!number.is_empty()).then_some(number)
}

/// Assignments of a shell, as os-release has them.
fn parse(text: &str) -> HashMap<String, String> {
    text.lines()
        .filter_map(|line| line.trim().split_once('='))
        .filter(|(key, _)| !key.starts_with('#'))
        .map(|(key, value)| (key.to_owned(), unquote(value)))
        .collect()
}

fn unquote(value: &str) -> String {
    let inner = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inner) = inner('\'') {
        return inner.to_owned();
    }
    let mut chars = inner('"').unwrap_or(value).chars();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        let next = if c == '\\' { chars.next() } else { Some(c) };
        out.extend(next);
    }
    out
}

#[cfg(test)]
mod tests {
    use ccm_host::Host;

    use super::*;
    use crate::tree::planted;

    fn platform(files: &[(&str, &str)]) -> Platform {
        let dir = planted(files);
        Platform::find(&Tree::at(&Host::new(), dir.path()))
    }

    fn of(text: &str) -> Platform {
        platform(&[("etc/os-release", text)])
    }

    fn is(found: &Platform, name: &str, family: &str, version: &str) {
        assert_eq!((&*found.name, &*found.family, &*found.version), (name, family, version));
    }

    #[test]
    fn distributions_have_families() {
        is(&of("ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"\n"), "ubuntu", "debian", "24.04");
        is(&of("ID=linuxmint\nVERSION_ID='21.3'"), "linuxmint", "debian", "21.3");
        is(&of("ID=\"rhel\"\nVERSION_ID=\"9.4\"\n"), "redhat", "rhel", "9.4");
        is(&of("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n"), "rocky", "rhel", "");
        is(&of("ID=ol\nVERSION_ID=8.9"), "oracle", "rhel", "8.9");
        is(&of("ID=amzn\nID_LIKE=fedora\nVERSION_ID=2023"), "amazon", "rhel", "2023");
        is(&of("ID=fedora\nVERSION_ID=41"), "fedora", "fedora", "41");
        is(&of("ID=opensuse-leap\nVERSION_ID=15.6"), "opensuse-leap", "suse", "15.6");
        is(&of("ID=sles\nVERSION_ID=15.5"), "sles", "suse", "15.5");
        is(&of("ID=arch\nBUILD_ID=rolling"), "arch", "arch", "");
        is(&of("ID=alpine\nVERSION_ID=3.20.1"), "alpine", "alpine", "3.20.1");
        is(&of("ID=gentoo\nVERSION_ID=2.15"), "gentoo", "gentoo", "2.15");
    }

    #[test]
    fn unknown_ones_say_what_they_are_like_or_stand_alone() {
        is(&of("ID=circle\nID_LIKE=\"rhel fedora\""), "circle", "rhel", "");
        is(&of("ID=nixos\nVERSION_ID=24.05"), "nixos", "nixos", "24.05");
        is(&of("ID=odd\nID_LIKE=odder"), "odd", "odd", "");
        is(&of("no assignments here"), "", "", "");
        is(&platform(&[]), "", "", "");
    }

    #[test]
    fn the_point_release_is_preferred() {
        let debian = "ID=debian\nVERSION_ID=\"12\"\n";
        is(
            &platform(&[("etc/os-release", debian), ("etc/debian_version", "12.11\n")]),
            "debian",
            "debian",
            "12.11",
        );
        is(
            &platform(&[("etc/os-release", "ID=debian"), ("etc/debian_version", "trixie/sid\n")]),
            "debian",
            "debian",
            "trixie/sid",
        );
        // Ubuntu's names the Debian it was made from.
        let ubuntu = [
            ("etc/os-release", "ID=ubuntu\nVERSION_ID=22.04"),
            ("etc/debian_version", "bookworm/sid"),
        ];
        is(&platform(&ubuntu), "ubuntu", "debian", "22.04");
        let centos = [
            ("etc/os-release", "ID=centos\nVERSION_ID=7"),
            ("etc/redhat-release", "CentOS Linux release 7.9.2009 (Core)\n"),
        ];
        is(&platform(&centos), "centos", "rhel", "7.9.2009");
    }

    #[test]
    fn the_vendors_file_counts_where_there_is_no_other() {
        is(&platform(&[("usr/lib/os-release", "ID=arch")]), "arch", "arch", "");
    }

    #[test]
    fn quotes_and_escapes_are_the_shells() {
        assert_eq!(unquote(r#""a \"b\" \$c""#), r#"a "b" $c"#);
        assert_eq!(unquote(r"'a\b'"), r"a\b");
        assert_eq!(unquote("plain"), "plain");
        assert_eq!(unquote("\""), "\"");
        let parsed = parse("# ID=no\n\n  A=1\nB='x=y'\n");
        assert_eq!((parsed.len(), parsed["B"].as_str()), (2, "x=y"));
    }
}
