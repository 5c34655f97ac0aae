//! `ccm graph MANIFEST`

use std::path::{Path, PathBuf};

use ccm_author::Decisions;
use ccm_author::graph::{GraphFormat, graph};
use ccm_engine::{Finished, Stop};
use ccm_host::{Host, OutputFile};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{Result, example, flags, inputs, manifest, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    Command::new("graph")
        .about("Draw the resources of a manifest and their references")
        .after_help(example(
            "ccm graph manifest.yaml --plan --output graph.svg\n  \
             ccm graph manifest.yaml --format mermaid",
        ))
        .arg(manifest::argument())
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["svg", "dot", "mermaid", "json"])
                .default_value("svg")
                .help("Set the output format"),
        )
        .arg(
            Arg::new("plan")
                .long("plan")
                .action(ArgAction::SetTrue)
                .help("Mark each resource with what a run would do; changes nothing"),
        )
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("Write to this file instead of standard output"),
        )
        .arg(state::directory_flag())
        .next_help_heading("Data and facts")
        .args(inputs::flags())
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "graph");
    let mut options = flags::options(&engine)?;
    let source = manifest::source(matches)?;
    let file = output_file(&options.host, matches)?;
    if file.is_some() {
        options.host.record_sources();
    }
    options.inputs = inputs::inputs(&options, matches)?;
    // What earlier runs owe decides what a run would do.
    options.state.directory = state::request(&options.host, matches).read_only(&options.host);
    let manifest = engine.load(&source, &options)?;
    ui.warnings(&options.host);
    ui.diagnosis(&manifest.warnings);
    let (mut decisions, mut exit) = (None, Exit::Done);
    if matches.get_flag("plan") {
        let (found, Finished { stop, .. }) =
            Decisions::preview(&engine, engine.load(&source, &options)?, &options);
        if let Some(Stop::Cancelled(reason)) = stop {
            exit = reason.into();
        }
        decisions = Some(found);
    }
    if exit != Exit::Done {
        return Ok(exit);
    }
    let format = match matches.get_one::<String>("format").map(String::as_str) {
        Some("dot") => GraphFormat::Dot,
        Some("mermaid") => GraphFormat::Mermaid,
        Some("json") => GraphFormat::Json,
        _ => GraphFormat::Svg,
    };
    let text = graph(&engine, &manifest, &options, decisions.as_ref()).render(format);
    match file {
        Some((file, path)) => {
            flags::check_not_read(&options.host, &path)?;
            file.write(text.as_bytes(), 0o644).map_err(|source| Error::File { path, source })?;
        }
        None => ui.print(&text),
    }
    Ok(exit)
}

/// The file to write to, checked before anything is read; `-` is standard
/// output.
fn output_file(host: &Host, matches: &ArgMatches) -> Result<Option<(OutputFile, PathBuf)>> {
    let path = matches.get_one::<PathBuf>("output").filter(|path| *path != Path::new("-"));
    let Some(path) = path.map(|path| flags::from_here(host, path)) else { return Ok(None) };
    match OutputFile::new(host, &path) {
        Ok(file) => Ok(Some((file, path))),
        Err(source) => Err(Error::File { path, source }),
    }
}
