//! Tells the binary which commit it was built from, and the day of that commit.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this is how builds talk to cargo"
)]

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// `git archive` writes commit and time into this file, so that a source tarball
/// has them too.
const ARCHIVED: &str = "commit";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={ARCHIVED}");
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let commit = cloned().or_else(archived);
    let hash = commit.as_ref().and_then(|(hash, _)| hash.get(..12)).unwrap_or("unknown");
    println!("cargo:rustc-env=CCM_COMMIT={hash}");
    println!("cargo:rustc-env=CCM_DATE={}", date(time(commit.as_ref().map(|(_, time)| *time))));
}

/// The commit and its time, if this is a clone and not, say, unpacked inside of
/// another.
fn cloned() -> Option<(String, u64)> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != Path::new("../..").canonicalize().ok()? {
        return None;
    }
    // Where these lie depends on how the clone was made. Cargo takes what is
    // missing for changed.
    for name in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", name])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    parse(&git(&["log", "-1", "--format=%H %ct"])?)
}

fn archived() -> Option<(String, u64)> {
    parse(std::fs::read_to_string(ARCHIVED).ok()?.trim())
}

/// Reads `HASH SECONDS`. In a clone the file has a placeholder instead.
fn parse(text: &str) -> Option<(String, u64)> {
    let (hash, time) = text.split_once(' ')?;
    let is_hash = hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then_some((hash.to_owned(), time.parse().ok()?))
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

/// The time that the version shows, in seconds since 1970: the one that a
/// packager sets, that of the commit, or now.
fn time(of_commit: Option<u64>) -> u64 {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => match seconds.trim().parse() {
            Ok(seconds) => seconds,
            Err(error) => panic!("SOURCE_DATE_EPOCH is {seconds:?}: {error}"),
        },
        Err(_) => of_commit.unwrap_or_else(|| {
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
        }),
    }
}

/// The day in UTC, as YYYY-MM-DD.
fn date(seconds: u64) -> String {
    let is_leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    let (mut year, mut day) = (1970, seconds / 86_400);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", day + 1)
}
