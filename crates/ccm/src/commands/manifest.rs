//! The MANIFEST argument.

use std::path::PathBuf;

use ccm_engine::SourceRef;
use clap::{Arg, ArgMatches, ValueHint};

use super::Result;
use crate::error::Error;

pub(super) fn argument() -> Arg {
    Arg::new("manifest")
        .value_name("MANIFEST")
        .required(true)
        .value_parser(clap::value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Manifest: a file, `-` for standard input, or the URL of a tarball")
}

pub(super) fn source(matches: &ArgMatches) -> Result<SourceRef> {
    let path: &PathBuf =
        matches.get_one("manifest").ok_or_else(|| Error::usage("no manifest", ""))?;
    Ok(SourceRef::new(path))
}
