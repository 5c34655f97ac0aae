//! `ccm edit MANIFEST set|unset|add|rm|mv|rename`

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_author::check::new_errors;
use ccm_author::edit::{EditOperation, ResourceId, ResourceOperation, edit, property_value};
use ccm_author::outline::outline_of;
use ccm_engine::{Diagnosis, ManifestError};
use ccm_host::{Attributes, Content, FileKind, Host};
use ccm_model::Finding;
use ccm_resources::{TYPES, unified_diff};
use ccm_yaml::Source;
use ccm_yaml::edit::{Change, Document, EditError};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use serde_json::{Map, Value, json};

use super::{Result, example, flags, inputs};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

/// Larger files are not edited.
const MAX_SIZE: u64 = 16 << 20;
/// Lines that a diff shows around a change.
const CONTEXT: usize = 3;

pub(super) fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).value_name(value).required(true).help(help)
    };
    let resource = || text("resource", "TYPE#NAME", "Resource to edit, by name or alias");
    let property = || text("property", "PROPERTY", "Property, by any of its names");
    let place = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("TYPE#NAME").help(help)
    };
    Command::new("edit")
        .about("Edit resources of a manifest, keeping comments and layout")
        .before_help(
            "ccm validates the manifest after the edit and leaves the file as it is if the edit \
             adds an error. To change a part of another file, use `ccm ensure edit`.",
        )
        .after_help(example(
            "ccm edit manifest.yaml set file#/etc/motd mode 0600\n  \
             ccm edit manifest.yaml --noop add package zsh ensure=latest",
        ))
        .subcommand_required(true)
        .arg(
            Arg::new("manifest")
                .value_name("MANIFEST")
                .required(true)
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("Manifest to edit"),
        )
        .arg(
            Arg::new("noop")
                .long("noop")
                .global(true)
                .action(ArgAction::SetTrue)
                .help("Print the diff without saving"),
        )
        .arg(
            Arg::new("force")
                .long("force")
                .global(true)
                .action(ArgAction::SetTrue)
                .help("Edit even if this adds errors to the manifest"),
        )
        .arg(flags::json("Print the changes as JSON").global(true))
        .subcommand(
            Command::new("set")
                .about("Set a property")
                .after_help(example("ccm edit manifest.yaml set file#/etc/motd mode 0600"))
                .arg(resource())
                .arg(property())
                .arg(text("value", "VALUE", "Value as YAML").allow_hyphen_values(true)),
        )
        .subcommand(
            Command::new("unset")
                .about("Remove a property")
                .after_help(example("ccm edit manifest.yaml unset file#/etc/motd content"))
                .arg(resource())
                .arg(property()),
        )
        .subcommand(
            Command::new("add")
                .about("Add a resource")
                .after_help(example("ccm edit manifest.yaml add package zsh ensure=latest"))
                .arg(text("type", "TYPE", "Type of the resource"))
                .arg(text("name", "NAME", "Name of the resource"))
                .arg(
                    Arg::new("properties")
                        .value_name("PROPERTY=VALUE")
                        .num_args(0..)
                        .help("Properties, each value as YAML"),
                )
                .arg(place("after", "Add it after this resource instead of at the end")),
        )
        .subcommand(
            Command::new("rm")
                .about("Remove a resource")
                .after_help(example("ccm edit manifest.yaml rm package#zsh"))
                .arg(resource()),
        )
        .subcommand(
            Command::new("mv")
                .about("Move a resource in the run order")
                .after_help(example(
                    "ccm edit manifest.yaml mv package#zsh --before file#/etc/zshrc",
                ))
                .arg(resource())
                .arg(place("before", "Move it before this resource"))
                .arg(place("after", "Move it after this resource"))
                .group(clap::ArgGroup::new("place").args(["before", "after"]).required(true)),
        )
        .subcommand(
            Command::new("rename")
                .about("Rename a resource and the references to it")
                .after_help(example("ccm edit manifest.yaml rename package#zsh fish"))
                .arg(resource())
                .arg(text("name", "NAME", "New name")),
        )
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let host = Host::new();
    let given = matches.get_one::<PathBuf>("manifest").cloned().unwrap_or_default();
    let path = flags::from_here(&host, &given);
    let shown = given.display().to_string();
    let (before, attributes) = read(&host, &path, &shown)?;
    let mut document = match Document::parse(Source::new(shown.clone(), before.clone())) {
        Ok(document) => document,
        Err(error) => return Err(located(&shown, &before, error.into())),
    };
    if document.locate(&["ccm".into()]).is_none() {
        let hint = "a manifest has `ccm:` with `resources:` below it".to_owned();
        return Err(invalid(format!("cannot edit {shown}: not a manifest"), Some(hint)));
    }
    let operation = operation(&document, matches).map_err(|error| named(&shown, &before, error))?;
    let changes = edit(&mut document, TYPES, &[EditOperation::Resource(operation)])
        .map_err(|error| named(&shown, &before, Failure::Edit(error)))?;
    if !matches.get_flag("force") && !changes.is_empty() {
        check((ui, matches), &path, &shown, (&before, document.text()))?;
    }
    let noop = matches.get_flag("noop");
    if !noop && !changes.is_empty() {
        write(&host, &path, &shown, (&before, document.text()), &attributes)?;
    }
    let diff = diff(&shown, &before, document.text());
    if matches.get_flag("json") {
        let source = Source::new(shown.clone(), before);
        let all: Vec<Value> = changes.iter().map(|change| described(&source, change)).collect();
        ui.print_json(&json!({
            "file": shown, "noop": noop, "changed": !all.is_empty(), "changes": all, "diff": diff,
        }));
    } else if changes.is_empty() {
        ui.line(&format!("{shown} already has this, nothing to change"));
    } else if noop {
        ui.print(&diff);
    } else {
        ui.line(&format!("{shown} edited"));
    }
    Ok(Exit::Done)
}

/// Refuses an edit that gives the manifest errors which it does not have. As
/// ccm runs nothing and asks nobody here, that is what this machine knows.
fn check(
    (ui, matches): (&mut Ui, &ArgMatches),
    path: &Path,
    shown: &str,
    texts: (&str, &str),
) -> Result<()> {
    let engine = flags::engine(matches, "edit").offline();
    let mut options = flags::options(&engine)?;
    options.inputs = inputs::inputs_of_machine(&options)?;
    let Some(Diagnosis { source, findings }) = new_errors(&engine, path, texts, &options) else {
        return Ok(());
    };
    let count = findings.len();
    let source = Arc::new(Source::new(shown, source.text()));
    ui.diagnosis(&Diagnosis { source, findings });
    let errors = if count == 1 { "a new error".to_owned() } else { format!("{count} new errors") };
    let hint = "edit what depends on it first, or use --force".to_owned();
    Err(invalid(format!("{shown} was not edited: the manifest would have {errors}"), Some(hint)))
}

fn described(source: &Source, change: &Change) -> Value {
    json!({"range": source.range(change.span), "text": change.text})
}

fn invalid(message: String, hint: Option<String>) -> Error {
    Error::Invalid { message, hint }
}

/// Reads a regular file, never through a symlink.
fn read(host: &Host, path: &Path, shown: &str) -> Result<(String, Attributes)> {
    let failed = |source: ccm_host::Error| {
        let hint = match source {
            ccm_host::Error::TooLarge { .. } => {
                Some("split it, and apply the parts with `apply` resources".to_owned())
            }
            ref other => other.hint(),
        };
        invalid(format!("cannot read {shown}: {}", ccm_engine::chain(&source)), hint)
    };
    let found = host.lstat(path).map_err(failed)?;
    if found.is_some_and(|found| found.kind == FileKind::Symlink) {
        let hint = "give the path that the symlink points to".to_owned();
        return Err(invalid(format!("cannot edit {shown}: it is a symlink"), Some(hint)));
    }
    let (text, stat) = host.read_text(path, MAX_SIZE).map_err(failed)?;
    Ok((text, Attributes { uid: stat.uid, gid: stat.gid, mode: stat.mode & 0o777 }))
}

/// Replaces the file atomically, if it still is what was read.
fn write(
    host: &Host,
    path: &Path,
    shown: &str,
    (before, after): (&str, &str),
    attributes: &Attributes,
) -> Result<()> {
    let (now, _) = read(host, path, shown)?;
    if now != before {
        let hint = Some("run the command again".to_owned());
        return Err(invalid(format!("cannot write {shown}: another process changed it"), hint));
    }
    let failed = |source| Error::File { path: path.to_owned(), source };
    host.replace(path, Content::Bytes(after.as_bytes()), attributes).map_err(failed)?;
    host.sync().map_err(failed)
}

/// Why there is no operation.
enum Failure {
    Edit(EditError),
    Value(ccm_yaml::SyntaxError, String),
    Other(Error),
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Self {
        Self::Edit(error)
    }
}

fn named(shown: &str, before: &str, failure: Failure) -> Error {
    match failure {
        Failure::Edit(error) if error.span.is_some() => located(shown, before, error),
        Failure::Edit(error) => invalid(format!("cannot edit {shown}: {error}"), error.hint),
        Failure::Value(error, text) => located("VALUE", &text, error.into()),
        Failure::Other(error) => error,
    }
}

/// An error with its place in the text.
fn located(shown: &str, text: &str, error: EditError) -> Error {
    let source = Arc::new(Source::new(shown, text));
    let finding = Finding::error(error.span, error.message).hint(error.hint);
    Error::Manifest(ManifestError::Invalid(Diagnosis { source, findings: vec![finding] }))
}

/// The operation that the arguments ask for.
fn operation(document: &Document, matches: &ArgMatches) -> Result<ResourceOperation, Failure> {
    let Some((verb, matches)) = matches.subcommand() else {
        return Err(Failure::Other(Error::usage("nothing to do", "")));
    };
    let text = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let resource = || ResourceId::Name(text("resource"));
    let id =
        |name: &str| matches.get_one::<String>(name).map(|name| ResourceId::Name(name.clone()));
    Ok(match verb {
        "set" => {
            let (property, value) = (text("property"), text("value"));
            let kind = text("resource");
            let kind = kind.split('#').next().unwrap_or_default();
            let value = value_of(kind, &property, &value)?;
            ResourceOperation::SetProperty { resource: resource(), property, value }
        }
        "unset" => {
            ResourceOperation::UnsetProperty { resource: resource(), property: text("property") }
        }
        "add" => {
            let (kind, name) = (text("type"), text("name"));
            let mut properties = Map::new();
            for given in matches.get_many::<String>("properties").into_iter().flatten() {
                let Some((property, value)) = given.split_once('=') else {
                    let message = format!("`{given}` is not a property");
                    let hint = "write PROPERTY=VALUE";
                    return Err(Failure::Other(Error::usage(message, hint)));
                };
                properties.insert(property.to_owned(), value_of(&kind, property, value)?);
            }
            ResourceOperation::Add { kind, name, properties, after: id("after") }
        }
        "rm" => ResourceOperation::Remove { resource: resource() },
        "mv" => {
            let before = match id("after") {
                Some(after) => behind(document, &after)?,
                None => id("before"),
            };
            let force = matches.get_flag("force");
            ResourceOperation::MoveBefore { resource: resource(), before, force }
        }
        _ => ResourceOperation::Rename { resource: resource(), name: text("name") },
    })
}

fn value_of(kind: &str, property: &str, text: &str) -> Result<Value, Failure> {
    property_value(TYPES, kind, property, text)
        .map_err(|error| Failure::Value(error, text.to_owned()))
}

/// The resource that comes behind another; none behind the last.
fn behind(document: &Document, after: &ResourceId) -> Result<Option<ResourceId>, Failure> {
    let found = outline_of(document).map_err(EditError::from)?;
    let ResourceId::Name(name) = after else { return Ok(None) };
    let (kind, rest) = name.split_once('#').unwrap_or((name, ""));
    let number = found.iter().find(|entry| entry.is_called(kind, rest)).map(|entry| entry.number);
    let Some(number) = number else {
        let known: Vec<_> =
            found.iter().map(ccm_author::outline::OutlineEntry::reference).collect();
        let hint = ccm_model::did_you_mean(name, known.iter().map(String::as_str));
        return Err(EditError::missing(format!("{name} is not in this manifest"), hint).into());
    };
    Ok((number < found.len()).then_some(ResourceId::Number(number + 1)))
}

/// The diff of two texts that are mostly the same: only the lines between the
/// first and the last change are compared.
fn diff(shown: &str, before: &str, after: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) =
        (before.split_inclusive('\n').collect(), after.split_inclusive('\n').collect());
    let front = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    if front == old.len() && front == new.len() {
        return String::new();
    }
    let rest = (&old[front..], &new[front..]);
    let back = rest.0.iter().rev().zip(rest.1.iter().rev()).take_while(|(old, new)| old == new);
    let back = back.count();
    let first = front.saturating_sub(CONTEXT);
    let window = |lines: &[&str]| {
        let last = (lines.len() - back + CONTEXT).min(lines.len());
        lines[first..last].concat()
    };
    let diff = unified_diff(shown, Some(&window(&old)), &window(&new));
    diff.split_inclusive('\n').map(|line| shifted(line, first)).collect()
}

/// A hunk header with its line numbers moved down.
fn shifted(line: &str, by: usize) -> String {
    let Some(rest) = line.strip_prefix("@@ -") else { return line.to_owned() };
    let mut words = rest.split(' ');
    let (old, new) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let moved = |numbers: &str| {
        let (start, count) = numbers.split_once(',').unwrap_or((numbers, ""));
        let start = start.parse::<usize>().unwrap_or_default() + by;
        if count.is_empty() { start.to_string() } else { format!("{start},{count}") }
    };
    format!("@@ -{} +{} @@\n", moved(old), moved(new.trim_start_matches('+')))
}
