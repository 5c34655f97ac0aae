//! `ccm schema [NAME]`

use ccm_author::graph::GraphDocument;
use ccm_author::schema;
use ccm_author::why::Why;
use ccm_resources::TYPES;
use clap::builder::PossibleValue;
use clap::{Arg, ArgMatches, Command};
use serde_json::Value;

use super::example;
use crate::exit::Exit;
use crate::ui::Ui;

const NAMES: [&str; 7] = ["manifest", "request", "response", "event", "plan", "graph", "why"];

pub(super) fn command() -> Command {
    Command::new("schema")
        .about("Print a JSON Schema")
        .after_help(example("ccm schema manifest > manifest.json"))
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .value_parser(NAMES.map(|name| {
                    // The name of this schema in the original.
                    let aliases = (name == "request").then_some("resource_ensure_request");
                    PossibleValue::new(name).aliases(aliases)
                }))
                .default_value("manifest")
                .help("Document to print the schema of"),
        )
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Exit {
    let name = matches.get_one::<String>("name").map(String::as_str).unwrap_or_default();
    ui.print_json(&render(name));
    Exit::Done
}

fn render(name: &str) -> Value {
    match name {
        "request" | "resource_ensure_request" => schema::request(TYPES),
        "response" => schema::of::<ccm_model::Response>("response", "Response"),
        "event" => schema::event(),
        "plan" => schema::of::<ccm_model::Plan>("plan", "Plan"),
        "why" => schema::of::<Why>("why", "Explanation"),
        "graph" => schema::of::<GraphDocument>("graph", "Graph"),
        _ => schema::manifest(TYPES),
    }
}
