//! Rules that settings must follow. A message says what a value must be; the name
//! of the setting comes before it.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use ccm_archive::Format;
use ccm_host::{Fetchers, url_scheme};
use ccm_model::{Finding, Span, duration, redact_credentials};

/// The reason, and advice.
type Refused = (String, Option<String>);

pub(super) fn at_least(least: &str) -> impl Fn(&Duration) -> Result<(), String> {
    move |found| check_least(*found, least, "")
}

pub(super) fn zero_or_at_least(least: &str) -> impl Fn(&Duration) -> Result<(), String> {
    move |found| if found.is_zero() { Ok(()) } else { check_least(*found, least, "0, or ") }
}

fn check_least(found: Duration, least: &str, or: &str) -> Result<(), String> {
    if duration::parse_positive(least).is_ok_and(|least| found >= least) {
        return Ok(());
    }
    Err(format!("must be {or}at least {least}, not {found:?}"))
}

pub(super) fn absolute(path: &Path) -> Result<(), String> {
    if path.is_absolute() { Ok(()) } else { Err("must be an absolute path".to_owned()) }
}

pub(super) fn not_empty(manifests: &[String]) -> Result<(), String> {
    if manifests.is_empty() { Err("list at least one manifest".to_owned()) } else { Ok(()) }
}

/// Checks each item of the list of manifests, which has its place.
pub(super) fn manifests(urls: &[String], places: &[Span], fetchers: &Fetchers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = HashSet::new();
    for (url, place) in urls.iter().zip(places) {
        let mut found = |message: String, hint| {
            findings.push(Finding::error(*place, format!("manifests: {message}")).hint(hint));
        };
        if let Err((reason, hint)) = manifest(url, fetchers) {
            found(reason, hint);
        } else if !seen.insert(url) {
            found(format!("{} is listed twice", redact_credentials(url)), None);
        }
    }
    findings
}

fn manifest(url: &str, fetchers: &Fetchers) -> Result<(), Refused> {
    source(url, fetchers)?;
    // A local manifest is the file itself.
    if ccm_host::local_path(url).is_some() {
        return Ok(());
    }
    ccm_archive::check_tree_url(url).map_err(|error| (error.to_string(), error.hint()))
}

/// Checks where data comes from.
pub(super) fn data(url: &str, fetchers: &Fetchers) -> Result<(), Refused> {
    source(url, fetchers)?;
    if Format::of_url(url).is_some() {
        let shown = redact_credentials(url);
        return Err((format!("{shown} is an archive, and data is a document"), None));
    }
    Ok(())
}

fn source(url: &str, fetchers: &Fetchers) -> Result<(), Refused> {
    match url_scheme(url) {
        Some(_) => fetchers.check_written(url),
        None if Path::new(url).is_absolute() => Ok(()),
        None => {
            let shown = redact_credentials(url);
            Err((format!("`{shown}` must be an absolute path or a URL"), None))
        }
    }
}
