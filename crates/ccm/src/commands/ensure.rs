//! `ccm ensure TYPE …`: one resource, its flags rendered from the field table.

use ccm_engine::{AnyType, Arguments, Detail, Ensure, RunResult, find_type};
use ccm_host::Host;
use ccm_model::{Common, Control, Field, Fields as _, Format, Shape};
use ccm_resources::TYPES;
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{Result, api, example, facts, flags, inputs, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::{Closing, Output, Show, Ui};

/// Common properties that are plain flags of every type. The others are
/// arguments, or have flags of their own.
const FLAGGED: [&str; 3] = ["alias", "provider", "require"];

pub(super) fn command() -> Command {
    Command::new("ensure")
        .about("Apply one resource, without a manifest")
        .before_help(
            "Use it in scripts, and to try out a resource. Properties are arguments and flags, and \
             can contain placeholders as in a manifest. `--require` and `--subscribe` need a \
             session, see `ccm session --help`.",
        )
        .after_help(example(
            "ccm ensure file /etc/motd --content 'Welcome'\n  ccm ensure package zsh --noop",
        ))
        .subcommand_required(true)
        .arg_required_else_help(true)
        // A manifest is applied by `ccm apply`.
        .subcommands(TYPES.iter().filter_map(|kind| type_command(*kind)))
        .subcommand(api::command())
}

/// The command of a type, if it is offered at the command line.
fn type_command(kind: &'static dyn AnyType) -> Option<Command> {
    let view = kind.command_line()?;
    let mut command = Command::new(kind.name())
        .about(kind.about())
        .visible_aliases(view.aliases)
        .after_help(example(view.example))
        .arg(Arg::new("name").value_name(view.name_value).required(true).help(kind.name_doc()));
    for argument in view.arguments {
        let name = argument.trim_matches(['[', ']']);
        let mut arg = Arg::new(name)
            .value_name(name.to_uppercase())
            .required(name == *argument)
            .help(field(kind, name).map_or("", |field| field.doc));
        if let (true, Ensure::OneOf(words)) = (name == "ensure", kind.ensure()) {
            arg = arg.value_parser(PossibleValuesParser::new(words)).hide_possible_values(false);
        }
        command = command.arg(arg);
        if name != "ensure" {
            // The original's documentation has it as a flag.
            let flag = Arg::new(as_flag(name)).long(name.replace('_', "-"));
            command = command.arg(flag.conflicts_with(name).hide(true));
        }
    }
    for field in own_fields(kind) {
        let name = field.name.replace('_', "-");
        let is_taken = Control::FIELDS.iter().any(|control| control.name == name);
        let mut flag = flag(field);
        if name != field.flag.long && !is_taken {
            flag = flag.alias(name);
        }
        if matches!(field.shape, Shape::Boolean) {
            command = command.arg(facts::negation(&flag));
        }
        command = command.arg(flag);
    }
    for extra in view.extra {
        let arg = Arg::new(extra.long)
            .long(extra.long)
            .conflicts_with_all(extra.conflicts)
            .help(extra.doc);
        command = command.arg(if extra.value.is_empty() {
            arg.action(ArgAction::SetTrue)
        } else {
            arg.value_name(extra.value)
        });
    }
    Some(common_flags(command))
}

/// The flag of a property that is an argument.
fn as_flag(name: &str) -> String {
    format!("{name}-flag")
}

fn field(kind: &'static dyn AnyType, name: &str) -> Option<&'static Field> {
    kind.fields().iter().find(|field| field.name == name)
}

/// The fields that are flags of this type alone.
fn own_fields(kind: &'static dyn AnyType) -> impl Iterator<Item = &'static Field> {
    let arguments = kind.command_line().map_or(&[][..], |view| view.arguments);
    let is_argument = move |name: &str| {
        arguments.iter().any(|argument| argument.trim_matches(['[', ']']) == name)
    };
    let own = kind.fields().iter().skip(Common::FIELDS.len());
    // Free data has no place in one line.
    own.filter(move |field| !is_argument(field.name) && !matches!(field.shape, Shape::Data))
}

pub(super) fn flag(field: &'static Field) -> Arg {
    let mut arg = Arg::new(field.name).long(field.flag.long).help(field.doc);
    if let Some(short) = field.flag.short {
        arg = arg.short(short);
    }
    if matches!(field.shape, Shape::Boolean) {
        return arg.action(ArgAction::SetTrue);
    }
    let value = field.flag.value.map_or_else(|| field.name.to_uppercase(), str::to_owned);
    arg = arg.value_name(value);
    if matches!(field.format, Some(Format::User)) {
        arg = arg.value_hint(ValueHint::Username);
    }
    if matches!(field.shape, Shape::List(_) | Shape::Texts) {
        arg = arg.action(ArgAction::Append);
    }
    if matches!(field.shape, Shape::Integer | Shape::List(Shape::Integer)) {
        arg = arg.value_parser(whole_number);
    }
    if let Some(default) = field.flag.default {
        arg = arg.default_value(default);
    }
    if let Some(env) = field.flag.env {
        arg = arg.env(env).hide_env_values(true);
    }
    arg
}

/// Checks a number and leaves it as it was written, as all values are.
fn whole_number(text: &str) -> Result<String, std::num::ParseIntError> {
    text.parse::<i32>().map(|_| text.to_owned())
}

fn common_flags(command: Command) -> Command {
    let fields = Common::FIELDS.iter().filter(|field| FLAGGED.contains(&field.name));
    // `unless` is also a property of exec, which has its own flag for it.
    let conditions = Control::FIELDS
        .iter()
        .map(|field| flag(field).id(format!("control-{}", field.name)).value_name("EXPR"));
    // The reference lists what has a heading once, for all types.
    command
        .next_help_heading("Common options")
        .arg(flags::noop())
        .arg(flags::offline())
        .args(fields.map(flag))
        .args(conditions)
        .args(health_check_flags())
        .next_help_heading("Output")
        .arg(flags::diff())
        .args(flags::amount_flags())
        .arg(flags::json("Print the event as JSON"))
        .arg(flags::events())
        .next_help_heading("Data and facts")
        .args(inputs::flags())
        .next_help_heading("State")
        .arg(flags::session())
        .args(state::flags())
        .arg(flags::no_sync())
}

fn health_check_flags() -> [Arg; 3] {
    [
        Arg::new("check")
            .long("check")
            .value_name("COMMAND")
            .action(ArgAction::Append)
            .help("Run this Nagios plugin as a health check afterwards; repeatable"),
        Arg::new("check-tries")
            .long("check-tries")
            .value_name("N")
            .requires("check")
            .value_parser(clap::value_parser!(i32).range(1..))
            .default_value("5")
            .help("Try each check up to N times"),
        Arg::new("check-sleep")
            .long("check-sleep")
            .value_name("DURATION")
            .requires("check")
            .help("Wait this long between attempts [default: 1s]"),
    ]
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let (kind, matches) = matches.subcommand().ok_or_else(|| Error::usage("no type", ""))?;
    if kind == "api" {
        return api::run(ui, matches);
    }
    let kind = find_type(TYPES, kind).ok_or_else(|| Error::usage("unknown type", ""))?;
    check_session(kind, matches)?;
    let engine = flags::engine(matches, "ensure");
    let mut options = flags::run_options(&engine, matches)?;
    ui.follow(&options.host);
    let request = arguments(kind, matches, &options.host)?.into_request(kind.name());
    options.inputs = inputs::inputs_here(&options, matches)?;
    let is_json = matches.get_flag("json");
    let output = match (is_json, matches.get_flag("events")) {
        (true, _) => Output::Nothing,
        (false, true) => Output::Events,
        (false, false) => Output::Rows,
    };
    let (amount, closing) = (flags::amount(matches), Closing::OneResource);
    ui.show(Show { output, amount, closing, ..Show::default() });
    options.diffs = flags::diffs(matches);
    if output != Output::Rows || options.has_history {
        options.detail = Detail::Report;
    }
    let state = state::request(&options.host, matches);
    let mut run = engine.open::<Error>(options, &state, flags::session_request(matches))?;
    run.lock(&mut |text| ui.waiting(text))?;
    let mut requests = run.start(ui)?;
    let event = requests.ensure(request, &mut |_| {})?;
    let RunResult { finished, exit, .. } = requests.finish();
    if is_json {
        ui.print_json(&event);
    }
    Ok(ui.losses(finished.losses, Exit::of_run(exit, false)))
}

/// Rejects references without a session, because they could never be resolved.
fn check_session(kind: &'static dyn AnyType, matches: &ArgMatches) -> Result<()> {
    let is_given = |name: &str| {
        matches.try_get_many::<String>(name).ok().flatten().is_some_and(|values| values.len() > 0)
    };
    let references =
        own_fields(kind).filter(|field| matches!(field.shape, Shape::List(Shape::Reference)));
    let names = std::iter::once("require").chain(references.map(|field| field.name));
    for name in names {
        if is_given(name) && flags::session_path(matches).is_none() {
            return Err(Error::usage(
                format!("--{name} needs a session"),
                "start one with `eval \"$(ccm session new)\"` or give --session DIR",
            ));
        }
    }
    Ok(())
}

pub(super) fn arguments(
    kind: &'static dyn AnyType,
    matches: &ArgMatches,
    host: &Host,
) -> Result<Arguments> {
    let mut arguments = Arguments::default();
    let view = kind.command_line().ok_or_else(|| Error::usage("unknown type", ""))?;
    let positional = view.arguments.iter().map(|argument| argument.trim_matches(['[', ']']));
    for name in ["name", "alias", "provider"].into_iter().chain(positional) {
        let as_flag = matches.try_get_one::<String>(&as_flag(name)).ok().flatten();
        if let Some(value) = matches.get_one::<String>(name).or(as_flag) {
            arguments.set(name, value);
        }
    }
    if let Some(values) = matches.get_many::<String>("require") {
        arguments.set_list("require", values.cloned().collect());
    }
    for field in Control::FIELDS {
        if let Some(expression) = matches.get_one::<String>(&format!("control-{}", field.name)) {
            arguments.set_in("control", field.name, expression);
        }
    }
    if let Some(commands) = matches.get_many::<String>("check") {
        let tries = matches.get_one::<i32>("check-tries").map(ToString::to_string);
        let sleep = matches.get_one::<String>("check-sleep").cloned();
        let checks = commands.map(|command| {
            let more = [("tries", tries.clone()), ("try_sleep", sleep.clone())];
            let more = more.into_iter().filter_map(|(name, value)| Some((name, value?)));
            std::iter::once(("command", command.clone())).chain(more).collect()
        });
        arguments.set_maps("health_checks", checks.collect());
    }
    for field in own_fields(kind) {
        give(&mut arguments, field, matches);
    }
    for extra in view.extra {
        if extra.value.is_empty() {
            if matches.get_flag(extra.long) {
                arguments.switch_on(extra.long);
            }
        } else if let Some(value) = matches.get_one::<String>(extra.long) {
            arguments.set(extra.long, value);
        }
    }
    (view.prepare)(&mut arguments, host)
        .map_err(|message| Error::Invalid { message, hint: None })?;
    Ok(arguments)
}

/// Passes the value of a flag on as a property.
pub(super) fn give(arguments: &mut Arguments, field: &Field, matches: &ArgMatches) {
    match field.shape {
        Shape::Boolean if matches.get_flag(field.name) => arguments.switch_on(field.name),
        Shape::Boolean => {}
        Shape::List(_) | Shape::Texts => {
            if let Some(values) = matches.get_many::<String>(field.name) {
                arguments.set_list(field.name, values.cloned().collect());
            }
        }
        _ => {
            if let Some(value) = matches.get_one::<String>(field.name) {
                arguments.set(field.name, value);
            }
        }
    }
}
