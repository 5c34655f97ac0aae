//! Files of a tree in several versions: each tells whether it is whole.

/// The name of a file of the tree.
pub fn versioned_name(n: usize) -> String {
    format!("app/d{}/f{n:02}", n % 4)
}

/// The content of a file in a version: nothing of another one, and an end that
/// can be told.
pub fn versioned_content(version: usize, n: usize) -> String {
    let line = format!("version {version} of file {n}\n");
    line.repeat(1 + n * n * 2) + "end\n"
}

/// Whether this is all of some version of a file.
pub fn is_whole_version(text: &str, n: usize) -> bool {
    let digits: String =
        text.trim_start_matches("version ").chars().take_while(char::is_ascii_digit).collect();
    digits.parse().is_ok_and(|version| versioned_content(version, n) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_mixtures_are_not_whole() {
        let [one, two] = [1, 2].map(|version| versioned_content(version, 3));
        assert!(is_whole_version(&one, 3) && is_whole_version(&two, 3));
        for text in ["", &one[..one.len() - 1], &(one.clone() + &two), &one.replacen('1', "2", 1)] {
            assert!(!is_whole_version(text, 3), "{text:?}");
        }
        assert!(!is_whole_version(&one, 4), "of another file");
    }
}
