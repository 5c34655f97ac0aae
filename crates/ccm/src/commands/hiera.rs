//! `ccm hiera parse` and `ccm hiera facts`

use std::path::PathBuf;

use ccm_hiera::DataSource;
use ccm_host::{Cancel, Host};
use ccm_template::Facts;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use govalue::{Map, Value};

use super::{Result, example, facts, flags, inputs};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

pub(super) fn command() -> Command {
    let parse = Command::new("parse")
        .about("Resolve hierarchical data and print it")
        .alias("resolve")
        .after_help(example("ccm hiera parse data.yaml -S --query packages"))
        .arg(
            Arg::new("source")
                .value_name("SOURCE")
                .required(true)
                .help("Document to resolve: a file or a URL"),
        )
        .arg(flags::context())
        .args(fact_sources())
        .arg(flags::json("Print JSON (the default)"))
        .arg(facts::yaml())
        .arg(
            switch("env", None, "Print variables for a shell").conflicts_with_all(["json", "yaml"]),
        )
        .arg(
            Arg::new("env-prefix")
                .long("env-prefix")
                .value_name("PREFIX")
                .default_value("HIERA")
                .help("Prefix the names of the variables"),
        )
        .arg(
            Arg::new("query")
                .long("query")
                .value_name("PATH")
                .help("GJSON path of the data to print"),
        )
        .arg(
            Arg::new("data")
                .short('D')
                .long("data")
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("Override a data key; repeatable"),
        )
        .arg(
            Arg::new("data-file")
                .long("data-file")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("Override data with this file"),
        );
    let facts = Command::new("facts")
        .about("Print the facts that `hiera parse` would use")
        .after_help(example("ccm hiera facts -S os=plan9"))
        .args(fact_sources())
        .arg(flags::json("Print JSON (the default)"))
        .arg(facts::yaml());
    Command::new("hiera")
        .about("Resolve hierarchical data")
        .after_help(example("ccm hiera parse data.yaml role=web"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([parse, facts])
}

fn switch(name: &'static str, short: Option<char>, help: &'static str) -> Arg {
    let arg = Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    match short {
        Some(short) => arg.short(short),
        None => arg,
    }
}

/// Where facts come from, the later ones winning.
fn fact_sources() -> Vec<Arg> {
    let [_, file] = inputs::fact_flags();
    vec![
        Arg::new("fact")
            .value_name("FACT=VALUE")
            .action(ArgAction::Append)
            .help("Facts to resolve the data with"),
        switch("system-facts", Some('S'), "Use the facts of this machine"),
        switch("env-facts", Some('E'), "Use environment variables as facts"),
        file,
    ]
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    match matches.subcommand() {
        Some(("parse", matches)) => parse(ui, matches),
        Some(("facts", matches)) => {
            let host = Host::new();
            let facts = gather(&host, matches)?;
            ui.warnings(&host);
            facts::show(ui, &facts.into(), None, matches.get_flag("yaml"))
        }
        _ => Ok(Exit::Usage),
    }
}

fn gather(host: &Host, matches: &ArgMatches) -> Result<Map> {
    let mut facts = if matches.get_flag("system-facts") {
        ccm_facts::gather(host, &ccm_facts::Options::new(host))
    } else {
        Map::new()
    };
    if matches.get_flag("env-facts") {
        ccm_facts::merge(&mut facts, host.env_all().into_iter().collect());
    }
    ccm_facts::merge(&mut facts, inputs::facts_over(host, matches)?);
    Ok(facts)
}

fn parse(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = flags::system(matches, "hiera").begin(Cancel::default());
    let source = matches.get_one::<String>("source").map(String::as_str).unwrap_or_default();
    let facts = Facts::known(gather(&host, matches)?);
    let mut over = match matches.get_one::<PathBuf>("data-file") {
        Some(path) => ccm_facts::read_file(&host, path)?,
        None => Map::new(),
    };
    for argument in matches.get_many::<String>("data").into_iter().flatten() {
        inputs::set_fact(&mut over, argument)?;
    }
    let document = DataSource::new(source).load(&host)?;
    let resolved = document.resolve(&host, &facts, Some(&over).filter(|over| !over.is_empty()))?;
    for warning in &resolved.warnings {
        host.warn(format!("{source}: {warning}"));
    }
    for warning in document.unreached_warnings() {
        host.warn(warning);
    }
    ui.warnings(&host);
    let data = Value::from(resolved.data);
    let query = matches.get_one::<String>("query").map(String::as_str);
    if !matches.get_flag("env") {
        return facts::show(ui, &data, query, matches.get_flag("yaml"));
    }
    let found = match query {
        None => Some(data),
        Some(query) => gjson::Path::compile(query).lookup(&data).ok().flatten(),
    };
    let prefix = matches.get_one::<String>("env-prefix").map(String::as_str).unwrap_or_default();
    match found.as_ref().and_then(Value::as_map) {
        Some(map) => {
            ui.print(&variables(map, prefix));
            Ok(Exit::Done)
        }
        None => Err(Error::Invalid {
            message: "only a map can be printed as variables".to_owned(),
            hint: None,
        }),
    }
}

/// `PREFIX_KEY=value` per line, quoted for a shell; nested values as JSON.
fn variables(map: &Map, prefix: &str) -> String {
    let mut lines = String::new();
    for (key, value) in map.sorted() {
        let key: String = format!("{prefix}_{}", key.value())
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        let value = match value {
            Value::Map(_) | Value::Array(_) => inputs::as_json(value).to_string(),
            Value::Nil => String::new(),
            scalar => scalar.to_string(),
        };
        lines.push_str(&format!("{key}={}\n", quoted(&value)));
    }
    lines
}

/// A value as shells, `EnvironmentFile` and `--env-file` read it: bare if that
/// is safe, else in single quotes.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,=".contains(c);
    if value.chars().all(is_plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}
