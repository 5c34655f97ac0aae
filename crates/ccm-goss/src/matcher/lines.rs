//! Reads a file line by line.

use std::io::{BufRead as _, BufReader, Read as _};
use std::ops::ControlFlow;
use std::path::Path;

use ccm_host::Host;

/// Longer lines are no text that anyone looks for something in.
const LONGEST_LINE: u64 = 16 << 20;

/// Reads a regular file line by line, as long as `each` wants more. Lines come
/// without their ends.
pub(super) fn read_lines(
    host: &Host,
    path: &Path,
    each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> Result<(), String> {
    let failed = |error| format!("cannot read {}: {error}", path.display());
    let (file, _) = host.open(path).map_err(|error| crate::probe::chain(&error))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = reader.by_ref().take(LONGEST_LINE);
        let count = limited.read_until(b'\n', &mut line).map_err(failed)?;
        if count == 0 {
            return Ok(());
        }
        if count as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
            return Err(format!("cannot read {}: a line is longer than 16 MiB", path.display()));
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if each(text).is_break() {
            return Ok(());
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test sets its stage by itself")]
mod tests {
    use super::*;

    #[test]
    fn lines_come_without_their_ends_and_end_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "a\r\nb\n\nlast").unwrap();
        let host = Host::new();
        let read = |most: usize| {
            let mut lines = Vec::new();
            read_lines(&host, &path, &mut |line| {
                lines.push(String::from_utf8_lossy(line).into_owned());
                if lines.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
            lines
        };
        assert_eq!(read(9), ["a", "b", "", "last"]);
        assert_eq!(read(2), ["a", "b"]);
        std::fs::write(&path, vec![b'x'; (LONGEST_LINE + 5) as usize]).unwrap();
        let error = read_lines(&host, &path, &mut |_| ControlFlow::Continue(())).unwrap_err();
        assert!(error.ends_with("a line is longer than 16 MiB"), "{error}");
    }
}
