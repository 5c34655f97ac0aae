//! Permissions in octal notation.

/// Reads `0644`, `644`, `0o644` or `0O644`.
pub(crate) fn parse(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0o").or_else(|| text.strip_prefix("0O")).unwrap_or(text);
    let is_octal = !digits.is_empty() && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    if !is_octal {
        return Err(format!("`{text}` is not an octal mode such as \"0644\""));
    }
    match u32::from_str_radix(digits, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        _ => Err(format!(
            "`{text}` is above 0777; ccm does not manage setuid, setgid and sticky bits"
        )),
    }
}

/// The mode for a directory. Of one without any execute bit, who may read or
/// write may also enter; one with some says itself who may.
pub(super) fn for_directory(mode: u32) -> u32 {
    if mode & 0o111 != 0 {
        return mode;
    }
    let enter = |shift: u32| if mode >> shift & 0o6 != 0 { 0o1 << shift } else { 0 };
    mode | enter(0) | enter(3) | enter(6)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_valid_and_invalid_examples_of_the_design() {
        for (text, mode) in
            [("0644", 0o644), ("644", 0o644), ("0o755", 0o755), ("0O700", 0o700), ("0", 0)]
        {
            assert_eq!(parse(text), Ok(mode), "{text}");
        }
        for text in
            ["0888", "1777", "rw-r--r--", "", "0o", "-644", "+644", "6 44", "77777777777777"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn readers_of_a_directory_may_enter_it() {
        for (file, directory) in
            [(0o644, 0o755), (0o600, 0o700), (0o640, 0o750), (0o222, 0o333), (0o111, 0o111), (0, 0)]
                .into_iter()
                .chain([0o740, 0o744, 0o701, 0o710, 0o766].map(|mode| (mode, mode)))
        {
            assert_eq!(for_directory(file), directory, "{file:o}");
        }
    }

    proptest! {
        #[test]
        fn every_spelling_of_a_mode_is_the_same_mode(mode in 0u32..=0o777) {
            for text in [format!("{mode:o}"), format!("{mode:04o}"), format!("0o{mode:o}"), format!("0O{mode:03o}")] {
                prop_assert_eq!(parse(&text), Ok(mode));
            }
        }

        #[test]
        fn larger_modes_and_other_texts_are_refused(mode in 0o1000u32.., text in ".*") {
            let large = format!("{mode:o}");
            prop_assert!(parse(&large).is_err());
            if let Ok(mode) = parse(&text) {
                prop_assert!(mode <= 0o777);
            }
        }

        #[test]
        fn directories_only_gain_execute_bits(mode in 0u32..=0o777) {
            let directory = for_directory(mode);
            prop_assert_eq!(directory & !0o111, mode & !0o111);
            prop_assert_eq!(directory & mode, mode);
            prop_assert_eq!(for_directory(directory), directory);
        }
    }
}
