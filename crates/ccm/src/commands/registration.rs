//! `ccm registration`: the registry of services.

mod show;

use std::io::{IsTerminal as _, Read as _};

use ccm_host::{Host, Publish as _, Registry, StandardInput};
use ccm_model::{
    Annotations, Registration, RegistryEntry, RegistryQuery, duration, prometheus_file_sd,
};
use ccm_nats::{Nats, Watched};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{Result, example, flags};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

/// How long one command may take to publish an entry.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(5);

pub(super) fn command() -> Command {
    Command::new("registration")
        .visible_aliases(["reg", "r"])
        .about("Manage the service registry in NATS")
        .after_help(example("ccm registration query production http web"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([init(), create(), rm(), query(), watch()])
}

fn subcommand(name: &'static str, about: &'static str, line: &str) -> Command {
    let command = Command::new(name).about(about).after_help(example(line));
    command.arg(flags::context()).arg(flags::registration())
}

fn init() -> Command {
    subcommand("init", "Create or update the stream", "ccm registration init --replicas 3")
        .arg(
            Arg::new("replicas")
                .long("replicas")
                .value_name("COUNT")
                .value_parser(clap::value_parser!(u64).range(1..=5))
                .default_value("1")
                .help("Number of replicas, from 1 to 5"),
        )
        .arg(
            Arg::new("max-age")
                .long("max-age")
                .value_name("DURATION")
                .default_value("15m")
                .help("How long the stream keeps entries without a time to live, at least 1s"),
        )
}

/// The flags that name one entry.
fn entry_flags() -> Vec<Arg> {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(name.to_uppercase()).help(help)
    };
    vec![
        flag("cluster", "Cluster that the service belongs to").required(true),
        flag("service", "Name of the service").required(true),
        flag("protocol", "Protocol that it speaks").required(true),
        flag("address", "IPv4 or IPv6 address").required(true),
        flag("port", "Port, from 1 to 65535"),
    ]
}

fn create() -> Command {
    let line = "ccm registration create --cluster production --service web \\\n      \
                --protocol http --address 10.0.0.5 --port 8080";
    subcommand("create", "Publish one entry", line)
        .visible_alias("c")
        .args(entry_flags())
        .arg(
            Arg::new("priority")
                .long("priority")
                .value_name("PRIORITY")
                .default_value("100")
                .help("From 1 to 255; clients prefer the lowest"),
        )
        .arg(
            Arg::new("ttl")
                .long("ttl")
                .value_name("DURATION")
                .default_value("30s")
                .help("Time to live: a duration, `never`, or '' for the default of the stream"),
        )
        .arg(
            Arg::new("annotation")
                .long("annotation")
                .short('A')
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("Annotations of the service"),
        )
}

fn rm() -> Command {
    let line = "ccm registration rm --cluster production --service web \\\n      \
                --protocol http --address 10.0.0.5 --port 8080";
    subcommand("rm", "Remove one entry", line).visible_alias("delete").args(entry_flags()).arg(
        Arg::new("force")
            .long("force")
            .action(ArgAction::SetTrue)
            .help("Do not ask for confirmation, and do not fail if the entry does not exist"),
    )
}

/// The arguments that say which entries to look at.
fn query_arguments() -> Vec<Arg> {
    let argument = |name: &'static str, help: &'static str| {
        Arg::new(name).value_name(name.to_uppercase()).help(help)
    };
    vec![
        argument("cluster", "Cluster, `*` for all"),
        argument("protocol", "Protocol, `*` for all"),
        argument("service", "Service, `*` for all"),
        argument("address", "Address, `*` for all"),
    ]
}

fn query() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    subcommand("query", "Print entries", "ccm registration query production '*' web")
        .visible_alias("q")
        .args(query_arguments())
        .arg(
            flags::json("Print a list of entries as JSON")
                .conflicts_with_all(["yaml", "prometheus"]),
        )
        .arg(flag("yaml", "Print a list of entries as YAML").conflicts_with("prometheus"))
        .arg(flag("prometheus", "Print a target file for Prometheus"))
}

fn watch() -> Command {
    subcommand("watch", "Print entries and their changes as they happen", "ccm registration watch")
        .args(query_arguments())
        .arg(flags::json("Print one JSON object per line"))
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(Exit::Usage) };
    let stream = text(matches, "registration");
    let nats = Nats::with_stream(flags::context_choice(matches), "registration", stream);
    let options = flags::options(&flags::engine(matches, "registration"))?;
    let host = options.host;
    let done = match name {
        "init" => prepare(ui, &nats, &host, matches),
        "create" => publish(ui, &nats, &host, matches),
        "rm" => remove(ui, &nats, &host, matches),
        "query" => show_entries(ui, &nats, &host, matches),
        _ => follow(ui, &nats, &host, matches),
    };
    ui.warnings(&host);
    match host.cancel().reason() {
        Some(reason) if name != "watch" => Ok(reason.into()),
        _ => done,
    }
}

fn text<'m>(matches: &'m ArgMatches, name: &str) -> &'m str {
    matches.get_one::<String>(name).map(String::as_str).unwrap_or_default()
}

fn usage(flag: &str, reason: impl std::fmt::Display) -> Error {
    Error::Usage { message: format!("--{flag}: {reason}"), hint: None }
}

fn prepare(ui: &mut Ui, nats: &Nats, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let replicas = matches.get_one::<u64>("replicas").copied().unwrap_or(1);
    let age = text(matches, "max-age");
    let max_age = duration::parse_positive(age).map_err(|error| usage("max-age", error))?;
    if max_age.as_secs() < 1 {
        return Err(usage("max-age", "must be at least `1s`"));
    }
    let prepared = nats.prepare(replicas, max_age, host)?;
    let stream = text(matches, "registration");
    let what = match (prepared.is_new, prepared.changes.is_empty()) {
        (true, _) => "Created",
        (false, false) => "Updated",
        (false, true) => "Unchanged",
    };
    let mut out = format!("{what} stream {stream}\n");
    out.push_str(&format!("  Subjects: {}.>\n", ccm_model::REGISTRY_PREFIX));
    out.push_str(&format!("  Replicas: {replicas}\n"));
    out.push_str(&format!("   Max age: {age}\n"));
    for (name, before, after) in &prepared.changes {
        let before = if before.is_null() { "unset".to_owned() } else { before.to_string() };
        out.push_str(&format!("   Changed: {name} from {before} to {after}\n"));
    }
    ui.print(&out);
    Ok(Exit::Done)
}

/// The entry that the flags name. Form and range are matters of usage.
fn entry(matches: &ArgMatches) -> Result<RegistryEntry> {
    let given = |name: &str| matches.try_get_one::<String>(name).ok().flatten();
    let whole = |name: &str| {
        given(name)
            .map(|number| number.parse::<i64>().map(Into::into))
            .transpose()
            .map_err(|_| usage(name, format!("`{}` is not a whole number", text(matches, name))))
    };
    let mut annotations = Annotations::default();
    let pairs = matches.try_get_many::<String>("annotation").ok().flatten();
    for pair in pairs.into_iter().flatten() {
        let (key, value) = pair
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| usage("annotation", format!("`{pair}` is not KEY=VALUE")))?;
        annotations.0.insert(key.to_owned(), value.to_owned());
    }
    let wanted = Registration {
        cluster: text(matches, "cluster").to_owned(),
        service: text(matches, "service").to_owned(),
        protocol: text(matches, "protocol").to_owned(),
        address: text(matches, "address").to_owned(),
        port: whole("port")?,
        priority: whole("priority")?.or_else(|| Some(100.into())),
        ttl: given("ttl").filter(|ttl| !ttl.is_empty()).cloned(),
        annotations,
    };
    wanted.entry().map_err(|problems| Error::Usage { message: problems.join(", "), hint: None })
}

fn publish(ui: &mut Ui, nats: &Nats, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let entry = entry(matches)?;
    nats.publish(&entry, Registry::JetStream, PATIENCE, host)?;
    ui.print(&format!("Registered {}\n", entry.subject()));
    Ok(Exit::Done)
}

fn remove(ui: &mut Ui, nats: &Nats, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let entry = entry(matches)?;
    let is_forced = matches.get_flag("force");
    if !is_forced && !confirm(ui, host, &entry)? {
        ui.print("Nothing removed\n");
        return Ok(Exit::Done);
    }
    if nats.remove(&entry.subject(), host)? {
        ui.print(&format!("Removed {}\n", entry.subject()));
        return Ok(Exit::Done);
    }
    if is_forced {
        ui.print("No such entry\n");
        return Ok(Exit::Done);
    }
    let message = format!("there is no entry {}", entry.subject());
    let hint = Some("`ccm registration query` shows all entries".to_owned());
    Err(Error::Invalid { message, hint })
}

/// Asks for confirmation. Fails if standard input is not a terminal.
fn confirm(ui: &mut Ui, host: &Host, entry: &RegistryEntry) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Error::usage(
            "cannot ask for confirmation: standard input is not a terminal",
            "add --force",
        ));
    }
    ui.print(&format!("Remove {}? (y/N) ", entry.subject()));
    let mut answer = [0; 64];
    let read = StandardInput::of(host).read(&mut answer).unwrap_or_default();
    let answer = String::from_utf8_lossy(&answer[..read]);
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn query_of(matches: &ArgMatches) -> Result<RegistryQuery> {
    let part = |name: &str| text(matches, name);
    RegistryQuery::new(part("cluster"), part("protocol"), part("service"), part("address"))
        .map_err(|message| Error::Usage { message, hint: None })
}

fn show_entries(ui: &mut Ui, nats: &Nats, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let entries = nats.query(&query_of(matches)?, host)?;
    if matches.get_flag("json") {
        ui.print_json(&entries);
    } else if matches.get_flag("yaml") {
        let value = serde_json::to_value(&entries).unwrap_or_default();
        ui.print(&ccm_yaml::to_yaml(&value));
    } else if matches.get_flag("prometheus") {
        ui.print(&format!("{}\n", prometheus_file_sd(&entries)));
    } else {
        ui.print(&show::entries(entries));
    }
    Ok(Exit::Done)
}

fn follow(ui: &mut Ui, nats: &Nats, host: &Host, matches: &ArgMatches) -> Result<Exit> {
    let query = query_of(matches)?;
    let is_json = matches.get_flag("json");
    nats.watch(&query, host, &mut |watched| match watched {
        Watched::Change(change) => {
            ui.print(&if is_json { show::change_json(&change) } else { show::change(&change) });
            // Stop if the reader has closed the output.
            if ui.reader_is_gone() {
                host.cancel().cancel(ccm_host::CancelReason::Requested);
            }
        }
        Watched::Garbage(error) if is_json => {
            host.warn(error.to_string());
            ui.warnings(host);
        }
        Watched::Garbage(error) => ui.line(&format!("WARN {error}")),
        Watched::Lost(error) => {
            host.warn(format!("{error}; trying again"));
            ui.warnings(host);
        }
        Watched::Back => {
            host.warn("the connection to NATS is back");
            ui.warnings(host);
        }
    })?;
    Ok(Exit::Done)
}
