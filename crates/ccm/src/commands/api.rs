//! `ccm ensure api pipe`: requests on standard input, responses on standard
//! output, for other programs.

use std::io::{self, BufRead, Read as _};
use std::path::{Path, PathBuf};

use ccm_engine::{Detail, Observer, Requests, RunResult};
use ccm_hiera::Document;
use ccm_host::{Host, StandardInput};
use ccm_model::{Event, Request, Response};
use ccm_yaml::Source;
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};

use super::{Result, example, flags, inputs, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

/// The largest request.
const MAX_REQUEST: u64 = 64 << 20;
/// How much is gathered of responses while more requests are waiting.
const BATCH: usize = 1 << 20;
/// Data that `--data` names is written by people.
const MAX_DATA: u64 = 16 << 20;

pub(super) fn command() -> Command {
    let pipe = Command::new("pipe")
        .visible_alias("piped")
        .about("Read requests from standard input, write responses to standard output")
        .after_help(example(
            "ccm ensure api pipe < request.json\n  \
             echo '{\"protocol\": \"io.choria.ccm.v1.resource.ensure.request\",\n    \
             \"type\": \"file\", \"properties\": {\"name\": \"/tmp/a\", \"ensure\": \"absent\"}}' |\n    \
             ccm ensure api pipe",
        ))
        .arg(Arg::new("yaml").long("yaml").action(ArgAction::SetTrue).help("Write YAML, not JSON"))
        .arg(
            Arg::new("stream")
                .long("stream")
                .action(ArgAction::SetTrue)
                .help("Read one request per line, in one session"),
        )
        .arg(
            Arg::new("data")
                .long("data")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("Data for templates: hierarchical data or a plain map"),
        )
        .args(inputs::flags())
        .arg(flags::register())
        .arg(flags::session())
        .arg(flags::noop())
        .arg(flags::offline().conflicts_with("register"))
        .arg(flags::no_sync())
        .args(state::flags());
    Command::new("api")
        .about("Apply resources for other programs")
        .after_help(example("ccm ensure api pipe --stream < requests.jsonl"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(pipe)
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let (_, matches) = matches.subcommand().ok_or_else(|| Error::usage("no subcommand", ""))?;
    let engine = flags::engine(matches, "ensure");
    let mut options = flags::run_options(&engine, matches)?;
    options.detail = Detail::Report;
    options.register = flags::registry(matches);
    options.inputs = inputs::inputs_here(&options, matches)?;
    if let Some(path) = matches.get_one::<PathBuf>("data") {
        options.inputs.own = Some(read_data(&options.host, path)?);
    }
    let request = state::request(&options.host, matches);
    let host = options.host.clone();
    let mut open = engine.open::<Error>(options, &request, flags::session_request(matches))?;
    let mut silent = Silent;
    let requests = open.start(&mut silent)?;
    let format = if matches.get_flag("yaml") { Format::Yaml } else { Format::Json };
    let mut pipe = Pipe { ui, host, requests, format, is_failed: false };
    match (matches.get_flag("stream"), format) {
        (false, _) => pipe.single()?,
        (true, Format::Json) => pipe.lines()?,
        (true, Format::Yaml) => pipe.documents()?,
    }
    let Pipe { ui, requests, is_failed, .. } = pipe;
    let RunResult { finished, exit, .. } = requests.finish();
    for warning in &finished.report.warnings {
        tracing::warn!("{}", warning.message);
    }
    let exit = Exit::of_run(exit, false);
    Ok(ui.losses(finished.losses, if is_failed { exit.or_failed() } else { exit }))
}

/// The data that `--data` names.
fn read_data(host: &Host, path: &Path) -> Result<Document> {
    let text = host.read_trusted(path, MAX_DATA)?;
    Ok(Document::parse(&path.display().to_string(), &text)?)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
}

/// Nothing but responses goes to standard output.
struct Silent;

impl Observer for Silent {
    fn output(&mut self, line: &str) {
        tracing::info!("{line}");
    }
}

struct Pipe<'a> {
    ui: &'a mut Ui,
    host: Host,
    requests: Requests<'a>,
    format: Format,
    /// Something was no request, or nobody read the responses.
    is_failed: bool,
}

impl Pipe<'_> {
    /// Everything that comes is one request.
    fn single(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        StandardInput::of(&self.host)
            .take(MAX_REQUEST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| input(&error))?;
        if self.host.cancel().is_cancelled() {
            return Ok(());
        }
        let response =
            if bytes.len() as u64 > MAX_REQUEST { Err(too_large()) } else { self.answer(&bytes) };
        let mut out = Vec::new();
        self.write(response, &mut out);
        self.send(&mut out)
    }

    /// Every line is a request.
    fn lines(&mut self) -> Result<()> {
        let mut reader = io::BufReader::with_capacity(BATCH, StandardInput::of(&self.host));
        let (mut line, mut out) = (Vec::new(), Vec::new());
        while self.goes_on() {
            line.clear();
            let read = (&mut reader).take(MAX_REQUEST + 1).read_until(b'\n', &mut line);
            let read = read.map_err(|error| input(&error))?;
            // A signal ends the input within a line too.
            if read == 0 || self.host.cancel().is_cancelled() {
                break;
            }
            if read as u64 > MAX_REQUEST {
                self.write(Err(too_large()), &mut out);
                break;
            }
            if !line.trim_ascii().is_empty() {
                let response = self.answer(&line);
                self.write(response, &mut out);
            }
            // Whoever waits for an answer gets it; whoever sends many in a row
            // gets them together.
            if out.len() > BATCH || !reader.buffer().contains(&b'\n') {
                self.send(&mut out)?;
            }
        }
        self.send(&mut out)
    }

    /// Requests end with `---`, `...` or the input, as YAML's documents do.
    fn documents(&mut self) -> Result<()> {
        let mut reader = io::BufReader::new(StandardInput::of(&self.host));
        let (mut document, mut out) = (Vec::new(), Vec::new());
        while self.goes_on() {
            let begin = document.len();
            let read = (&mut reader).take(MAX_REQUEST).read_until(b'\n', &mut document);
            let read = read.map_err(|error| input(&error))?;
            if self.host.cancel().is_cancelled() {
                break;
            }
            let is_end = matches!(document[begin..].trim_ascii_end(), b"---" | b"...");
            if read > 0 && !is_end && document.len() as u64 <= MAX_REQUEST {
                continue;
            }
            if is_end {
                document.truncate(begin);
            }
            if document.len() as u64 > MAX_REQUEST {
                self.write(Err(too_large()), &mut out);
                break;
            }
            if !document.trim_ascii().is_empty() {
                let response = self.answer(&document);
                out.extend_from_slice(b"---\n");
                self.write(response, &mut out);
                self.send(&mut out)?;
            }
            document.clear();
            if read == 0 {
                break;
            }
        }
        self.send(&mut out)
    }

    /// The run is not cancelled, and the client reads the responses.
    fn goes_on(&self) -> bool {
        !self.host.cancel().is_cancelled() && !self.ui.reader_is_gone()
    }

    /// Manages what a request asks for.
    fn answer(&mut self, bytes: &[u8]) -> Result<Event, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "the request is not UTF-8".to_owned())?;
        let source = Source::new("request", text);
        let request = Request::parse(&source).map_err(|error| error.to_string())?;
        let ensured = self.requests.ensure(request, &mut |text| self.ui.waiting(text));
        ensured.map_err(|error| error.to_string())
    }

    fn write(&mut self, answer: Result<Event, String>, out: &mut Vec<u8>) {
        self.is_failed |= answer.is_err();
        let response = Response::new(answer, self.requests.take_warnings());
        match self.format {
            Format::Json => {
                // Writing to memory cannot fail, and a response is always JSON.
                let _ = serde_json::to_writer(&mut *out, &response);
                out.push(b'\n');
            }
            Format::Yaml => {
                let value = serde_json::to_value(&response).unwrap_or_default();
                out.extend_from_slice(ccm_yaml::to_yaml(&value).as_bytes());
            }
        }
    }

    /// Hands responses out, once what they tell of is on disk.
    fn send(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let on_disk = self.host.sync();
        self.ui.print_bytes(out);
        out.clear();
        // Unread responses are a failure.
        self.is_failed |= self.ui.reader_is_gone();
        Ok(on_disk?)
    }
}

fn input(source: &io::Error) -> Error {
    Error::Invalid { message: format!("cannot read standard input: {source}"), hint: None }
}

fn too_large() -> String {
    format!("a request has at most {} MiB", MAX_REQUEST >> 20)
}
