//! Facts, data and environment from the command line.

use std::path::{Path, PathBuf};

use ccm_engine::{Inputs, RunOptions};
use ccm_hiera::DataSource;
use ccm_host::Host;
use ccm_template::{Facts, Scope};
use clap::{Arg, ArgAction, ArgMatches, ValueHint};
use govalue::{Map, Value};

use super::Result;
use crate::error::Error;

/// Data for one-off commands in the current directory.
const DEFAULT_DATA: &str = ".hiera";

/// The flags that say which facts there are.
pub(super) fn fact_flags() -> [Arg; 2] {
    [
        Arg::new("fact")
            .long("fact")
            .value_name("KEY=VALUE")
            .action(ArgAction::Append)
            .help("Set a fact, `a.b=v` for a nested one; repeatable"),
        Arg::new("facts")
            .long("facts")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("Override detected facts with facts from this file"),
    ]
}

/// The flags that say what templates see.
pub(super) fn flags() -> Vec<Arg> {
    let switch = |name: &'static str, other: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).overrides_with(other).help(help)
    };
    let mut flags = Vec::from(fact_flags());
    flags.extend([
        Arg::new("hiera")
            .long("hiera")
            .value_name("SOURCE")
            .env("CCM_HIERA_DATA")
            .hide_env_values(true)
            .help("Override the manifest's data with this file or URL of hierarchical data"),
        super::flags::context(),
        super::flags::registration(),
        switch("read-env", "no-read-env", "Read variables from `./.env` too (the default)"),
        switch("no-read-env", "read-env", "Do not read `./.env`"),
    ]);
    flags
}

/// The facts of the machine with those of the command line on top, gathered
/// when something needs them.
pub(super) fn facts(host: &Host, matches: &ArgMatches) -> Result<Facts> {
    Ok(facts_below(host, layers_over(host, matches)?))
}

fn facts_below(host: &Host, over: Vec<(String, Map)>) -> Facts {
    let host = host.clone();
    Facts::layered(move || {
        let found = ccm_facts::gather_layers(&host, &ccm_facts::Options::new(&host));
        let found = found.into_iter().map(|layer| match layer.file {
            None => ("built-in".to_owned(), layer.facts),
            Some(file) => (file.display().to_string(), layer.facts),
        });
        let layers: Vec<(String, Map)> = found.chain(over).collect();
        (ccm_facts::merged(layers.iter().map(|(_, layer)| layer.clone())), layers)
    })
}

/// Only the facts of the command line: a file, then single ones.
pub(super) fn facts_over(host: &Host, matches: &ArgMatches) -> Result<Map> {
    Ok(ccm_facts::merged(layers_over(host, matches)?.into_iter().map(|(_, layer)| layer)))
}

/// The facts of the command line with where they come from.
fn layers_over(host: &Host, matches: &ArgMatches) -> Result<Vec<(String, Map)>> {
    let mut layers = Vec::new();
    if let Some(path) = matches.get_one::<PathBuf>("facts") {
        // A path has a slash: that tells it from what is no file.
        let name = super::flags::from_here(host, path).display().to_string();
        layers.push((name, ccm_facts::read_file(host, path)?));
    }
    let mut single = Map::new();
    for argument in matches.get_many::<String>("fact").into_iter().flatten() {
        set_fact(&mut single, argument)?;
    }
    if !single.is_empty() {
        layers.push(("--fact".to_owned(), single));
    }
    Ok(layers)
}

/// Sets `key=value`; anything else is wrong usage.
pub(super) fn set_fact(facts: &mut Map, argument: &str) -> Result<()> {
    ccm_facts::set(facts, argument)
        .map_err(|error| Error::Usage { message: error.to_string(), hint: error.hint() })
}

/// What templates see, as the flags say.
pub(super) fn inputs(options: &RunOptions, matches: &ArgMatches) -> Result<Inputs> {
    let host = &options.host;
    let read_env = !matches.get_flag("no-read-env");
    let variables = ccm_engine::environ(host, &options.working_directory, read_env)?;
    let external = match matches.get_one::<String>("hiera").filter(|source| !source.is_empty()) {
        Some(source) => Some(DataSource::new(source).load(host)?),
        None => None,
    };
    let environ = Scope::environ(variables);
    Ok(Inputs { facts: facts(host, matches)?, environ, external, ..Inputs::default() })
}

/// The same for a command without these flags.
pub(super) fn inputs_of_machine(options: &RunOptions) -> Result<Inputs> {
    let host = &options.host;
    let variables = ccm_engine::environ(host, &options.working_directory, true)?;
    let (facts, environ) = (facts_below(host, Vec::new()), Scope::environ(variables));
    Ok(Inputs { facts, environ, ..Inputs::default() })
}

/// As [`inputs`] for a command without a manifest: `./.hiera` is its data.
pub(super) fn inputs_here(options: &RunOptions, matches: &ArgMatches) -> Result<Inputs> {
    let mut inputs = inputs(options, matches)?;
    if inputs.external.is_none() {
        inputs.external = DataSource::load_default(&options.host, Path::new(DEFAULT_DATA))?;
    }
    Ok(inputs)
}

/// A value of the template languages as JSON; null if JSON has no form for it.
pub(super) fn as_json(value: &Value) -> serde_json::Value {
    serde_json::to_value(value).unwrap_or_default()
}
