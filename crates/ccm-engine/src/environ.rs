//! The environment that templates see: the process's own and `./.env`.

use std::collections::BTreeMap;
use std::path::Path;

use ccm_host::Host;

/// What a person keeps in a `.env` file is short.
const MAX_SIZE: u64 = 1 << 20;

/// The variables of the process, with those of `.env` in `directory` on top if
/// there is such a file and it is wanted. A file that cannot be read is
/// skipped; one that is not trusted is an error with `CCM_STRICT=1`.
pub fn environ(
    host: &Host,
    directory: &Path,
    read_env: bool,
) -> Result<BTreeMap<String, String>, ccm_host::Error> {
    let mut variables = host.env_all();
    let path = directory.join(".env");
    let is_there = read_env && host.stat(&path).is_ok_and(|found| found.is_some());
    if is_there {
        match host.read_trusted(&path, MAX_SIZE) {
            Ok(text) => variables.extend(parse(&text)),
            Err(error @ ccm_host::Error::Untrusted { .. }) => return Err(error),
            Err(error) => {
                let error = crate::chain(&error);
                host.warn(format!("{error}; ccm ignores the environment file"));
            }
        }
    }
    Ok(variables)
}

/// `KEY=value` per line; `export` in front, pairs of quotes around the value,
/// comments and blank lines are fine.
fn parse(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (key, value) = line.split_once('=')?;
        let (key, value) = (key.trim(), value.trim());
        let unquoted = ['"', '\''].into_iter().find_map(|quote| {
            value.strip_prefix(quote)?.strip_suffix(quote).filter(|_| value.len() > 1)
        });
        (!key.is_empty()).then(|| (key.to_owned(), unquoted.unwrap_or(value).to_owned()))
    })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use super::*;

    #[test]
    fn lines_of_an_environment_file() {
        let text = "# comment\n\nA=1\nexport B = two words \nC=\"quoted # kept\"\nD='x'\nE=\n=x\nno\n\
                    F=\"half\nG=\"\n H='a'b'\n";
        let parsed: Vec<_> = parse(text).collect();
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "quoted # kept"),
            ("D", "x"),
            ("E", ""),
            ("F", "\"half"),
            ("G", "\""),
            ("H", "a'b"),
        ];
        assert_eq!(parsed, expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
    }

    #[test]
    fn the_file_wins_over_the_process_unless_it_is_not_wanted() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(".env"), "PATH=mine\nNEW=1\n").unwrap();
        let host = Host::new();
        let with = environ(&host, directory.path(), true).unwrap();
        assert_eq!((with["PATH"].as_str(), with["NEW"].as_str()), ("mine", "1"));
        let without = environ(&host, directory.path(), false).unwrap();
        assert_ne!(without["PATH"], "mine");
        assert!(!without.contains_key("NEW"));
    }
}
