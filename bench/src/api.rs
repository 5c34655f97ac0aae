//! Many requests over one pipe, against the same resources in a manifest.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use crate::generate;
use crate::measure::{Usage, median};
use crate::report::{TIMES, row};

/// One line for each file.
fn requests(directory: &Path, n: usize) -> String {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let mut text = String::new();
    for n in 0..n {
        let content = generate::content(n).replace('\n', "\\n");
        let _ = writeln!(
            text,
            "{{\"protocol\":\"io.choria.ccm.v1.resource.ensure.request\",\"type\":\"file\",\
             \"properties\":{{\"name\":\"{}\",\"ensure\":\"present\",\"owner\":\"{user}\",\
             \"group\":\"{group}\",\"mode\":\"0644\",\"content\":\"{content}\"}}}}",
            generate::path(directory, n).display()
        );
    }
    text
}

/// `directory` has the files already; `apply` is what the manifest took.
pub(crate) fn measure(ccm: &str, directory: &Path, n: usize, apply: Usage) -> io::Result<()> {
    let file = directory.with_extension("jsonl");
    fs::write(&file, requests(directory, n))?;
    let command = format!("exec {ccm} ensure api pipe --stream --no-sync < {}", file.display());
    let stream = median(TIMES, &["sh", "-c", &command], || Ok(()))?;
    row(&format!("{n} stable files as a stream of requests, against `apply`"), stream, Some(apply));
    Ok(())
}
