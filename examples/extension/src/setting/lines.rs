//! Lines of a file, read and replaced through the host.

use std::path::Path;

use ccm_engine::Result;
use ccm_host::{Attributes, Content, Host, NewContent};

/// A file of assignments is written by people.
const MAX_FILE: u64 = 1 << 20;

/// What follows `prefix` in the last line that begins with it.
pub(super) fn find(host: &Host, file: &Path, prefix: &str) -> Result<Option<String>> {
    let text = read(host, file)?;
    Ok(text.lines().rev().find_map(|line| line.strip_prefix(prefix)).map(str::to_owned))
}

/// Replaces the lines that begin with `prefix` by one, or by none. The file keeps
/// its owner and mode.
pub(super) fn replace(host: &Host, file: &Path, prefix: &str, line: Option<String>) -> Result<()> {
    let (text, attributes) = replaced(host, file, prefix, line)?;
    Ok(host.replace(file, Content::Bytes(text.as_bytes()), &attributes)?)
}

/// In a preview: records the file as [`replace`] would leave it.
pub(super) fn predict(host: &Host, file: &Path, prefix: &str, line: Option<String>) -> Result<()> {
    let (text, attributes) = replaced(host, file, prefix, line)?;
    Ok(host.predict_file(file, NewContent::Bytes(text.as_bytes()), &attributes)?)
}

fn replaced(
    host: &Host,
    file: &Path,
    prefix: &str,
    line: Option<String>,
) -> Result<(String, Attributes)> {
    let text = read(host, file)?;
    let others = text.lines().filter(|line| !line.starts_with(prefix));
    let mut text: String = others.flat_map(|line| [line, "\n"]).collect();
    if let Some(line) = line {
        text.push_str(&line);
        text.push('\n');
    }
    let (uid, gid) = host.whoami();
    let attributes = match host.stat(file)? {
        Some(stat) => Attributes { uid: stat.uid, gid: stat.gid, mode: stat.mode & 0o777 },
        None => Attributes { uid, gid, mode: 0o644 },
    };
    Ok((text, attributes))
}

/// A file that does not exist has no lines.
fn read(host: &Host, file: &Path) -> Result<String> {
    host.check_managed_path(file)?;
    match host.stat(file)? {
        Some(_) => Ok(host.read_text(file, MAX_FILE)?.0),
        None => Ok(String::new()),
    }
}
