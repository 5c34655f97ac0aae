//! Names and IDs of users and groups.

use ccm_engine::Findings;

use super::{MAX_ID, MODES};

/// 16 bits of ones stand for "no ID" in old interfaces.
const NO_ID: i64 = 65535;
const LONGEST_NAME: usize = 32;

/// Reports a name that the shadow tools do not accept. An empty one is reported
/// elsewhere.
pub(crate) fn check_name(
    findings: &mut Findings,
    property: &'static str,
    what: &str,
    name: &str,
) -> bool {
    let problem = problem(what, name).filter(|_| !(property == "name" && name.is_empty()));
    let is_fine = problem.is_none();
    if let Some(problem) = problem {
        findings.add_with_hint(
            property,
            problem,
            "use at most 32 lower-case letters, digits, `_` and `-`; the first is a letter or `_`, \
             and the last may be `$`",
        );
    }
    is_fine
}

fn problem(what: &str, name: &str) -> Option<String> {
    let body = name.strip_suffix('$').unwrap_or(name);
    let is_first = |c: char| c.is_ascii_lowercase() || c == '_';
    let is_inner = |c: char| is_first(c) || c.is_ascii_digit() || c == '-';
    let is_name =
        body.starts_with(is_first) && body.chars().all(is_inner) && body.len() <= LONGEST_NAME;
    (!is_name).then(|| format!("{name:?} is not a {what} name"))
}

/// Reports an ID that no user or group can have.
pub(crate) fn check_id(findings: &mut Findings, property: &'static str, id: Option<&str>) {
    let Some(id) = id else { return };
    let is_digits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    let number = id.parse::<i64>().ok().filter(|_| is_digits);
    match number {
        Some(NO_ID) => findings.add(property, "65535 means \"no ID\" and cannot be one"),
        Some(number) if number <= MAX_ID => {}
        _ => findings.add(property, format!("`{id}` is not a number from 0 to {MAX_ID}")),
    }
}

/// Reports a word that is neither `minimum` nor `exact`, and `exact` without a
/// list.
pub(crate) fn check_mode_word(
    findings: &mut Findings,
    property: &'static str,
    word: Option<&str>,
    list: Option<&'static str>,
) {
    let Some(word) = word else { return };
    if !MODES.contains(&word) {
        findings.add_with_hint(
            property,
            format!("`{word}` is not a value of {property}"),
            ccm_model::did_you_mean(word, MODES.iter().copied())
                .unwrap_or_else(|| format!("allowed: {}", MODES.join(", "))),
        );
    } else if let Some(list) = list {
        findings.add(property, format!("needs `{list}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_shadow_tools() {
        let longest = "a".repeat(32);
        for name in ["app", "_apt", "www-data", "a1", "host$", "x_y", &longest] {
            assert_eq!(problem("user", name), None, "{name}");
        }
        let too_long = "a".repeat(33);
        for name in [
            "", "$", "-a", "1a", "App", "a b", "a:b", "a\nb", "a/b", "a$b", "ä", "a.b", "--root",
            &too_long,
        ] {
            assert_eq!(problem("user", name).unwrap(), format!("{name:?} is not a user name"));
        }
    }
}
