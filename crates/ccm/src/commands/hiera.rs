//! `ccm hiera parse` and `ccm hiera facts`

use std::borrow::Cow;
use std::path::PathBuf;

use ccm_hiera::DataSource;
use ccm_host::{Cancel, Host};
use ccm_model::Redactor;
use ccm_template::Facts;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use govalue::{Map, Value};

use super::{Result, example, facts, flags, inputs};
use crate::exit::Exit;
use crate::ui::Ui;

/// Names the document of `hiera parse` where no argument does.
const INPUT: &str = "HIERA_INPUT";

pub(super) fn command() -> Command {
    let parse = Command::new("parse")
        .about("Resolve hierarchical data and print it")
        .alias("resolve")
        .after_help(example("ccm hiera parse data.yaml role=web --query packages"))
        .arg(
            Arg::new("source")
                .value_name("SOURCE")
                .env(INPUT)
                .required(true)
                .help("Document to resolve: a file or a URL"),
        )
        .arg(flags::context())
        .args(fact_sources())
        .arg(flags::json("Print JSON (the default)"))
        .args(facts::yaml())
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
        .arg(query("GJSON path of the data to print"))
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
        .after_help(example("ccm hiera facts role=web --query role"))
        .args(fact_sources())
        .arg(query("GJSON path of the facts to print"))
        .arg(flags::json("Print JSON (the default)"))
        .args(facts::yaml());
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

fn query(help: &'static str) -> Arg {
    Arg::new("query").long("query").value_name("PATH").help(help)
}

/// Where facts come from, the later ones winning.
fn fact_sources() -> Vec<Arg> {
    let [_, file] = inputs::fact_flags();
    vec![
        Arg::new("fact")
            .value_name("FACT=VALUE")
            .action(ArgAction::Append)
            .help("Facts to resolve the data with"),
        switch("system-facts", Some('S'), "Use the facts of this machine (the default)")
            .overrides_with("no-system-facts"),
        switch("no-system-facts", None, "Do not use the facts of this machine")
            .overrides_with("system-facts"),
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
            let found = queried(&host, matches, facts)?;
            ui.warnings(&host);
            facts::show(ui, &found, matches.get_flag("yaml"));
            Ok(Exit::Done)
        }
        _ => Ok(Exit::Usage),
    }
}

fn gather(host: &Host, matches: &ArgMatches) -> Result<Map> {
    let mut facts = if matches.get_flag("no-system-facts") {
        Map::new()
    } else {
        ccm_facts::gather(host, &ccm_facts::Options::new(host))
    };
    if matches.get_flag("env-facts") {
        ccm_facts::merge(&mut facts, host.env_all().into_iter().collect());
    }
    ccm_facts::merge(&mut facts, inputs::facts_over(host, matches)?);
    Ok(facts)
}

/// The document, and the fact that stands in its place where the environment
/// names the document.
fn source<'m>(host: &Host, matches: &'m ArgMatches) -> (String, Option<&'m str>) {
    let given = matches.get_one::<String>("source").map_or("", String::as_str);
    let is_fact = given.contains('=') && !given.contains("://");
    match host.env(INPUT).and_then(|input| input.into_string().ok()) {
        Some(input) if is_fact && input != given => (input, Some(given)),
        _ => (given.to_owned(), None),
    }
}

fn parse(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = flags::system(matches, "hiera").begin(Cancel::default());
    let (source, fact) = source(&host, matches);
    let mut facts = gather(&host, matches)?;
    if let Some(fact) = fact {
        inputs::set_fact(&mut facts, fact)?;
    }
    let facts = Facts::known(facts);
    let mut over = match matches.get_one::<PathBuf>("data-file") {
        Some(path) => ccm_facts::read_file(&host, path)?,
        None => Map::new(),
    };
    for argument in matches.get_many::<String>("data").into_iter().flatten() {
        inputs::set_fact(&mut over, argument)?;
    }
    let document = DataSource::new(&source).load(&host)?;
    let resolved = document.resolve(&host, &facts, Some(&over).filter(|over| !over.is_empty()))?;
    host.add_secrets(resolved.secrets);
    for warning in &resolved.warnings {
        host.warn(format!("{source}: {warning}"));
    }
    for warning in document.unreached_warnings() {
        host.warn(warning);
    }
    let found = without_secrets(&host.redactor(), queried(&host, matches, resolved.data)?);
    ui.warnings(&host);
    if matches.get_flag("env") {
        let prefix = matches.get_one::<String>("env-prefix").map_or("", String::as_str);
        ui.print(&variables(found, prefix));
    } else {
        facts::show(ui, &found, matches.get_flag("yaml"));
    }
    Ok(Exit::Done)
}

/// The data with secrets redacted.
fn without_secrets(redactor: &Redactor, value: Value) -> Value {
    match value {
        Value::Map(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| (key.clone(), without_secrets(redactor, value.clone())));
            Value::from(entries.collect::<Map>())
        }
        Value::Array(items) => {
            Value::array(items.iter().map(|item| without_secrets(redactor, item.clone())))
        }
        Value::Nil | Value::Bool(_) => value,
        single => match redactor.text(&single.to_string()) {
            Cow::Owned(redacted) => redacted.into(),
            Cow::Borrowed(_) => single,
        },
    }
}

/// What `--query` asks for, or everything. Where nothing matches, scripts of the
/// original expect null.
fn queried(host: &Host, matches: &ArgMatches, values: Map) -> Result<Value> {
    let query = matches.get_one::<String>("query").map(String::as_str);
    let values = Value::from(values);
    let found = facts::find(&values, query)?;
    if let (None, Some(query)) = (&found, query) {
        let keys = values.as_map().into_iter().flat_map(Map::keys);
        let keys: Vec<String> = keys.map(|key| key.value().to_string()).collect();
        let meant = ccm_model::did_you_mean(query, keys.iter().map(String::as_str));
        let meant = meant.map(|meant| format!("; {meant}")).unwrap_or_default();
        host.warn(format!("the query `{query}` matches nothing{meant}"));
    }
    Ok(found.unwrap_or(Value::Nil))
}

/// `PREFIX_KEY=value` per line, quoted for a shell; nested values as JSON. What
/// is no map is `PREFIX_VALUE`.
fn variables(values: Value, prefix: &str) -> String {
    let map = match values {
        Value::Map(map) => map,
        single => Map::from_iter([("value", single)]).into(),
    };
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
