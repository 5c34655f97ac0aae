//! Lines of `authorized_keys`: reading, comparing, merging.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Types of keys that sshd knows.
const TYPES: [&str; 8] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];
/// How many bytes the data of a key of this type has.
const ED25519: usize = 51;
/// How much of a key without a comment stands for it in messages.
const SHOWN: usize = 8;

/// A line with a key. Two lines have the same key if type and data are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLine {
    /// What the key may be used for; `None` if nothing was said.
    pub(crate) options: Option<String>,
    kind: String,
    data: String,
    comment: String,
}

impl KeyLine {
    pub(super) fn has_key_of(&self, other: &Self) -> bool {
        (&self.kind, &self.data) == (&other.kind, &other.data)
    }

    /// The same key with these options.
    pub(super) fn with_options(mut self, options: &str) -> Self {
        self.options = Some(options.to_owned());
        self
    }

    /// What a person calls the key: its comment, or its last characters.
    pub(super) fn label(&self) -> String {
        if !self.comment.is_empty() {
            return self.comment.clone();
        }
        let tail = self.data.trim_end_matches('=');
        let tail = tail.get(tail.len().saturating_sub(SHOWN)..).unwrap_or(tail);
        format!("{} …{tail}", self.kind)
    }
}

impl fmt::Display for KeyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(options) = self.options.as_deref().filter(|options| !options.is_empty()) {
            write!(f, "{options} ")?;
        }
        write!(f, "{} {}", self.kind, self.data)?;
        if !self.comment.is_empty() {
            write!(f, " {}", self.comment)?;
        }
        Ok(())
    }
}

/// Reads a line with a key.
pub(super) fn parse(line: &str) -> Result<KeyLine, String> {
    let line = line.trim();
    if line.contains(|c: char| c.is_control() && c != '\t') {
        return Err("contains a control character".to_owned());
    }
    if line.contains("PRIVATE KEY") {
        return Err("is a private key; give the public one".to_owned());
    }
    let is_key = |rest: &str| rest.split_ascii_whitespace().next().is_some_and(is_type);
    let (options, rest) = if is_key(line) {
        (None, line)
    } else {
        let (options, rest) = split_options(line)?;
        (Some(options.to_owned()), rest)
    };
    let mut words = rest.splitn(2, |c: char| c.is_ascii_whitespace());
    let kind = words.next().unwrap_or_default();
    if !is_type(kind) {
        return Err("has no type of key, such as ssh-ed25519".to_owned());
    }
    let rest = words.next().unwrap_or_default().trim_start();
    let mut words = rest.splitn(2, |c: char| c.is_ascii_whitespace());
    let data = words.next().unwrap_or_default();
    check_data(kind, data)?;
    if let Some(options) = &options {
        check_options(options)?;
    }
    let comment = words.next().unwrap_or_default().trim().to_owned();
    Ok(KeyLine { options, kind: kind.to_owned(), data: data.to_owned(), comment })
}

fn is_type(word: &str) -> bool {
    TYPES.contains(&word)
}

/// The options of a line and what comes behind them: blanks in quotes belong to
/// them.
fn split_options(line: &str) -> Result<(&str, &str), String> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ' ' | '\t' if !is_quoted => return Ok((&line[..at], line[at..].trim_start())),
            _ => {}
        }
    }
    Err(if is_quoted { "has a quote without an end" } else { "has no key" }.to_owned())
}

/// What is wrong with options that stand for themselves.
pub(super) fn check_options(options: &str) -> Result<(), String> {
    let name = |option: &str| {
        let name = option.split('=').next().unwrap_or_default();
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if options.contains(|c: char| c.is_control()) {
        return Err("options contain a control character".to_owned());
    }
    match split_options(&format!("{options} x")) {
        Ok((all, _)) if all.len() == options.len() => {}
        Ok(_) => return Err("options contain a blank outside of quotes".to_owned()),
        Err(_) => return Err("options have a quote without an end".to_owned()),
    }
    match list_of(options).iter().find(|option| !name(option)) {
        Some(option) => Err(format!("`{option}` is not an option of a key")),
        None => Ok(()),
    }
}

/// The options of a list, each as it is written.
fn list_of(options: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped, mut begin) = (false, false, 0);
    let mut list = Vec::new();
    for (at, c) in options.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => {
                list.push(&options[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    list.push(&options[begin..]);
    list
}

/// The data of a key begins with its type.
fn check_data(kind: &str, data: &str) -> Result<(), String> {
    let broken = || "has a key that is cut or damaged".to_owned();
    let bytes = base64(data).ok_or_else(broken)?;
    let length = bytes.get(..4).and_then(|four| four.try_into().ok()).map(u32::from_be_bytes);
    let length = length.and_then(|length| usize::try_from(length).ok()).ok_or_else(broken)?;
    let named = bytes.get(4..length.saturating_add(4)).ok_or_else(broken)?;
    let has_length = kind != "ssh-ed25519" || bytes.len() == ED25519;
    if named != kind.as_bytes() || bytes.len() <= 4 + named.len() || !has_length {
        return Err(broken());
    }
    Ok(())
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=');
    if body.is_empty() || !text.len().is_multiple_of(4) || text.len() - body.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(body.len() * 3 / 4);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in body.bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// What a key file becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    pub(crate) content: Vec<u8>,
    /// What a person calls the keys that are added, rewritten and removed.
    pub(crate) added: Vec<String>,
    pub(crate) updated: Vec<String>,
    pub(crate) removed: Vec<String>,
}

impl Merged {
    pub(super) fn is_stable(&self) -> bool {
        self.added.is_empty() && self.updated.is_empty() && self.removed.is_empty()
    }
}

/// How many keys are in a key file.
pub(super) fn count(content: &[u8]) -> usize {
    let lines = content.split(|byte| *byte == b'\n');
    lines.filter(|line| parse(&String::from_utf8_lossy(line)).is_ok()).count()
}

/// Puts keys into a key file. With `exact`, other keys and lines that are none
/// go; comments and blank lines stay.
pub(super) fn merge(existing: &[u8], wanted: &[KeyLine], exact: bool) -> Merged {
    let mut merged = Merged::default();
    let mut found = vec![false; wanted.len()];
    let lines = existing.strip_suffix(b"\n").unwrap_or(existing);
    let lines = lines.split(|byte| *byte == b'\n').filter(|_| !existing.is_empty());
    for line in lines {
        if let Some(kept) = merged.take_line(line, wanted, &mut found, exact) {
            merged.content.extend_from_slice(&kept);
            merged.content.push(b'\n');
        }
    }
    for (key, _) in wanted.iter().zip(&found).filter(|(_, is_there)| !**is_there) {
        merged.content.extend_from_slice(format!("{key}\n").as_bytes());
        merged.added.push(key.label());
    }
    merged
}

impl Merged {
    /// What becomes of a line; `None` if it goes.
    fn take_line(
        &mut self,
        line: &[u8],
        wanted: &[KeyLine],
        found: &mut [bool],
        exact: bool,
    ) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(line);
        let shown = text.trim();
        if shown.is_empty() || shown.starts_with('#') {
            return Some(line.to_vec());
        }
        let Ok(have) = parse(shown) else {
            if exact {
                self.removed.push("a line that is not a key".to_owned());
                return None;
            }
            return Some(line.to_vec());
        };
        let Some(at) = wanted.iter().position(|key| key.has_key_of(&have)) else {
            if exact {
                self.removed.push(have.label());
                return None;
            }
            return Some(line.to_vec());
        };
        let is_first = !std::mem::replace(found.get_mut(at)?, true);
        let options = wanted.get(at)?.options.as_deref();
        let is_same = options.is_none_or(|options| {
            list_of(options) == list_of(have.options.as_deref().unwrap_or_default())
        });
        match (is_same, is_first) {
            (true, _) => Some(line.to_vec()),
            (false, true) => {
                self.updated.push(have.label());
                let options = options.map(str::to_owned);
                Some(KeyLine { options, ..have }.to_string().into_bytes())
            }
            // The same key with other options would allow more than is wanted.
            (false, false) => {
                self.removed.push(have.label());
                None
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const ANN: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA ann@laptop";
    pub(crate) const BOB: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB bob@desk";
    const CID: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgIC";

    fn key(line: &str) -> KeyLine {
        parse(line).unwrap()
    }

    #[test]
    fn keys_are_read() {
        assert_eq!(key(ANN).options, None);
        assert_eq!(key(ANN).label(), "ann@laptop");
        assert_eq!(key(CID).label(), "ssh-ed25519 …AgICAgIC");
        assert_eq!(key(ANN).to_string(), ANN);
        let line = format!(r#"command="echo \"a b\"",no-pty {ANN}"#);
        assert_eq!(key(&line).options.as_deref(), Some(r#"command="echo \"a b\"",no-pty"#));
        assert_eq!(key(&line).to_string(), line);
        assert!(key(&line).has_key_of(&key(ANN)));
        assert_eq!(key(&format!("  {BOB}\t\r\n")).label(), "bob@desk");
        assert_eq!(key(&format!("{CID} two words")).label(), "two words");
    }

    #[test]
    fn what_is_no_key_is_said_so() {
        let cut = &CID[..CID.len() - 4];
        for (line, words) in [
            ("", "has no key"),
            ("ssh-ed25519", "cut or damaged"),
            ("ssh-ed25519 AAAA", "cut or damaged"),
            ("ssh-ed25519 not base64", "cut or damaged"),
            (cut, "cut or damaged"),
            ("restrict,pty", "has no key"),
            ("from=\"a", "quote without an end"),
            ("hello world", "has no type of key"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "is a private key"),
            ("a\0b", "control character"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.contains(words), "{line}: {problem}");
        }
        let other = CID.replace("ssh-ed25519", "ssh-rsa");
        assert!(parse(&other).unwrap_err().contains("damaged"));
        assert!(parse(&format!("no_such! {CID}")).unwrap_err().contains("not an option"));
        for (options, words) in [
            ("restrict", ""),
            (r#"from="10.0.0.0/8",command="a, b""#, ""),
            ("a b", "blank"),
            ("x=\"y", "without an end"),
            ("a,,b", "not an option"),
            ("a\nb", "control"),
        ] {
            let said = check_options(options).err().unwrap_or_default();
            assert!(said.contains(words) && (words.is_empty() == said.is_empty()), "{said}");
        }
    }

    fn merged(existing: &str, wanted: &[&str], exact: bool) -> (String, [Vec<String>; 3]) {
        let wanted: Vec<KeyLine> = wanted.iter().map(|line| key(line)).collect();
        let merged = merge(existing.as_bytes(), &wanted, exact);
        let again = merge(&merged.content, &wanted, exact);
        assert!(again.is_stable() && again.content == merged.content, "{again:?}");
        let content = String::from_utf8(merged.content).unwrap();
        (content, [merged.added, merged.updated, merged.removed])
    }

    fn names(lists: [&[&str]; 3]) -> [Vec<String>; 3] {
        lists.map(|list| list.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn missing_keys_are_added_and_others_stay() {
        let (content, changes) = merged("", &[ANN, BOB], false);
        assert_eq!(content, format!("{ANN}\n{BOB}\n"));
        assert_eq!(changes, names([&["ann@laptop", "bob@desk"], &[], &[]]));
        let existing = format!("# team\n\n{CID} cid\nnonsense\n{ANN}");
        let (content, changes) = merged(&existing, &[ANN, BOB], false);
        assert_eq!(content, format!("{existing}\n{BOB}\n"));
        assert_eq!(changes, names([&["bob@desk"], &[], &[]]));
    }

    #[test]
    fn exact_keys_leave_comments_and_blank_lines() {
        let existing = format!("# team\n\n{CID} cid\nnonsense\n{ANN}\n");
        let (content, changes) = merged(&existing, &[ANN], true);
        assert_eq!(content, format!("# team\n\n{ANN}\n"));
        assert_eq!(changes, names([&[], &[], &["cid", "a line that is not a key"]]));
        assert_eq!(merged(&existing, &[], true).0, "# team\n\n");
    }

    #[test]
    fn options_count_where_they_are_given() {
        let restricted = format!("restrict {ANN}");
        // Not given: those in the file stay.
        let (content, changes) = merged(&format!("{restricted}\n"), &[ANN], false);
        assert_eq!((content, changes), (format!("{restricted}\n"), names([&[], &[], &[]])));
        // Given: the line gets them, and keeps its comment.
        let (content, changes) = merged(&format!("{ANN} 2\n"), &[&restricted], false);
        assert_eq!(content, format!("{restricted} 2\n"));
        assert_eq!(changes, names([&[], &["ann@laptop 2"], &[]]));
        // A second line with the same key would allow more.
        let twice = format!("{restricted}\n{ANN}\n");
        let (content, changes) = merged(&twice, &[&restricted], false);
        assert_eq!(content, format!("{restricted}\n"));
        assert_eq!(changes, names([&[], &[], &["ann@laptop"]]));
    }

    #[test]
    fn empty_options_take_those_in_the_file_away() {
        let wanted = KeyLine { options: Some(String::new()), ..key(ANN) };
        let merged = merge(format!("restrict {ANN}\n").as_bytes(), &[wanted], false);
        assert_eq!(merged.content, format!("{ANN}\n").as_bytes());
        assert_eq!(merged.updated, ["ann@laptop"]);
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let existing = [b"\xff\xfe\n# \xe9\n".as_slice(), ANN.as_bytes(), b"\r\n"].concat();
        let merged = merge(&existing, &[key(ANN), key(BOB)], false);
        let wanted = [existing.as_slice(), BOB.as_bytes(), b"\n"].concat();
        assert_eq!(merged.content, wanted);
    }

    proptest::proptest! {
        #[test]
        fn no_file_makes_it_panic(bytes: Vec<u8>, exact: bool) {
            let wanted = [key(ANN), key(BOB)];
            let merged = merge(&bytes, &wanted, exact);
            let again = merge(&merged.content, &wanted, exact);
            proptest::prop_assert!(again.is_stable());
        }
    }
}
