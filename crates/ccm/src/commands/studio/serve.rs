//! Serves the studio until a signal arrives or it has been idle for too long.

use std::io::{IsTerminal as _, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use ccm_host::{
    Cancel, Command, Environment, FileKind, Host, ListenSocket, StandardInput, System, Tree,
};
use ccm_studio::{Settings, Studio};
use clap::ArgMatches;
use serde_json::json;

use super::super::{Result, flags, inputs, state};
use crate::error::Error;
use crate::exit::Exit;
use crate::ui::Ui;

/// How often the main thread looks whether there is something to say or to do.
const TICK: Duration = Duration::from_millis(100);

/// What other threads have for the person at the terminal.
enum Message {
    Note(String),
    Enter,
}

pub(super) fn run(ui: &mut Ui, matches: &ArgMatches) -> Result<Exit> {
    let engine = flags::engine(matches, "studio");
    let options = flags::options(&engine)?;
    let host = options.host.clone();
    let cancel = host.cancel().clone();
    let (directory, file) = place(&host, matches)?;
    // As root: a user who can write there decides what root does.
    host.check_trusted_directory(directory.path())?;
    ui.warnings(&host);
    let socket = socket(&host, matches)?;
    if host.is_root() {
        ui.remark("ccm studio runs as root: anyone with the link can do what root can");
        if matches!(socket, ListenSocket::Tcp(..)) {
            ui.remark("other users of this machine can connect too, but need the link; --socket keeps them out");
        }
    }
    let (sender, messages) = mpsc::channel();
    let tell = {
        let sender = sender.clone();
        Box::new(move |text| drop(sender.send(Message::Note(text))))
    };
    let settings = Settings {
        engine,
        inputs: {
            let matches = matches.clone();
            Box::new(move |options| {
                inputs::inputs(options, &matches).map_err(|error| described(&error))
            })
        },
        host: host.clone(),
        directory,
        file,
        allow_apply: matches.get_flag("allow-apply"),
        read_only: matches.get_flag("read-only"),
        session: flags::session_path(matches),
        state: state::request(&host, matches),
        idle: matches.get_one::<Duration>("idle").copied().filter(|idle| !idle.is_zero()),
        assets: assets(&host, matches)?,
        version: (env!("CARGO_PKG_VERSION"), env!("CCM_COMMIT")),
        tell,
    };
    let studio = Studio::start(settings, socket)
        .map_err(|source| ccm_host::Error::Spawn { command: "the server".to_owned(), source })?;
    announce(ui, &studio, matches);
    let mut browser = if matches.get_flag("open") {
        Browser::open(ui, &host, &studio.link(), sender.clone())
    } else {
        None
    };
    if std::io::stdin().is_terminal() && !matches.get_flag("json") {
        watch_keyboard(&host, sender);
    }
    let exit = loop {
        cancel.pause(TICK);
        if let Some(reason) = cancel.reason() {
            break reason.into();
        }
        for message in messages.try_iter() {
            match message {
                Message::Note(text) => ui.remark(&text),
                Message::Enter => ui.print(&format!("{}\n", studio.link())),
            }
            ui.flush();
        }
        ui.warnings(&host);
        if studio.is_open() {
            browser = None;
        }
        if studio.is_idle() {
            ui.remark("ccm studio exits: it received no request for a while");
            break Exit::Done;
        }
    };
    drop(browser);
    studio.stop();
    Ok(exit)
}

/// An error with its causes and what to do about it, in one line.
fn described(error: &Error) -> String {
    match error.hint() {
        Some(hint) => format!("{} ({hint})", ccm_engine::chain(error)),
        None => ccm_engine::chain(error),
    }
}

/// The directory to serve, and the file in it to show.
fn place(host: &Host, matches: &ArgMatches) -> Result<(Tree, Option<String>)> {
    let given = matches.get_one::<PathBuf>("path").cloned().unwrap_or_default();
    let path = host.canonicalize(&flags::from_here(host, &given))?;
    let stat = host.stat(&path)?;
    let (directory, file) = match stat.map(|stat| stat.kind) {
        Some(FileKind::File) => {
            let name = path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
            (path.parent().unwrap_or(Path::new("/")).to_owned(), name)
        }
        _ => (path, None),
    };
    match host.open_tree(&directory)? {
        Some(tree) => Ok((tree, file)),
        None => Err(Error::usage(
            format!("there is no directory {}", directory.display()),
            "give a directory with manifests, or a manifest",
        )),
    }
}

fn socket(host: &Host, matches: &ArgMatches) -> Result<ListenSocket> {
    if let Some(path) = matches.get_one::<PathBuf>("socket") {
        return Ok(ListenSocket::bind_unix(host, &flags::from_here(host, path))?);
    }
    let given = matches.get_one::<String>("listen").map(String::as_str).unwrap_or_default();
    let address = given.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = address.as_deref().unwrap_or(given);
    let Ok(address) = address.parse::<SocketAddr>() else {
        return Err(Error::usage(
            format!("`{given}` is not an address and a port"),
            "write --listen 127.0.0.1:8080",
        ));
    };
    if !address.ip().is_loopback() {
        let port = address.port();
        return Err(Error::usage(
            format!("ccm studio listens only on loopback addresses, not on {}", address.ip()),
            format!(
                "to use it from another machine, run there: ssh -L {port}:127.0.0.1:{port} {}",
                host.uname().hostname
            ),
        ));
    }
    Ok(ListenSocket::bind(address)?)
}

fn assets(host: &Host, matches: &ArgMatches) -> Result<Option<Tree>> {
    let path = matches.try_get_one::<PathBuf>("assets").ok().flatten();
    let Some(path) = path.map(|path| flags::from_here(host, path)) else { return Ok(None) };
    match host.open_tree(&path)? {
        Some(tree) => Ok(Some(tree)),
        None => Err(Error::usage(format!("there is no directory {}", path.display()), "")),
    }
}

/// Prints the link, as the only thing on standard output.
fn announce(ui: &mut Ui, studio: &Studio, matches: &ArgMatches) {
    let link = studio.link();
    if matches.get_flag("json") {
        let mut answer = json!({"url": link, "pid": std::process::id()});
        if let Some(path) = studio.socket() {
            answer["socket"] = path.display().to_string().into();
        }
        ui.print(&format!("{answer}\n"));
    } else {
        ui.print(&format!("{link}\n"));
        ui.remark("Open this link in a browser of this machine. It works once, within 10 minutes.");
        if let Some(path) = studio.socket() {
            ui.remark(&format!("The socket is {}", path.display()));
        }
        if std::io::stdin().is_terminal() {
            ui.remark("Press Enter for a new link, Ctrl+C to end.");
        }
    }
    ui.flush();
}

/// Sends a message for each line that someone types.
fn watch_keyboard(host: &Host, sender: mpsc::Sender<Message>) {
    let mut input = StandardInput::of(host);
    let read = move || {
        let mut buffer = [0; 256];
        while let Ok(read @ 1..) = input.read(&mut buffer) {
            let is_line = buffer[..read].contains(&b'\n');
            if is_line && sender.send(Message::Enter).is_err() {
                return;
            }
        }
    };
    // Without it, a new link needs a new start: no reason to fail.
    let _ = std::thread::Builder::new().name("keyboard".into()).spawn(read);
}

/// A private file that leads the browser to the link, so that the link is in
/// nobody's list of processes. It ends with this value.
struct Browser {
    _directory: ccm_host::TemporaryDirectory,
}

impl Browser {
    fn open(ui: &mut Ui, host: &Host, link: &str, sender: mpsc::Sender<Message>) -> Option<Self> {
        let opened = Self::try_open(host, link, sender);
        if let Err(reason) = &opened {
            ui.remark(&format!("cannot open a browser: {reason}"));
        }
        opened.ok()
    }

    fn try_open(
        host: &Host,
        link: &str,
        sender: mpsc::Sender<Message>,
    ) -> std::result::Result<Self, String> {
        let text = |error: ccm_host::Error| ccm_engine::chain(&error);
        let directory = host.temporary_directory("ccm-studio-").map_err(text)?;
        let path = directory.path().join("open.html");
        // The page that it leads to takes the token out of the address.
        let page = format!(
            "<!DOCTYPE html><meta charset=utf-8><title>ccm studio</title>\
             <meta http-equiv=refresh content=\"0;url={link}\"><a href=\"{link}\">ccm studio</a>\n"
        );
        let (uid, gid) = host.whoami();
        let attributes = ccm_host::Attributes { uid, gid, mode: 0o600 };
        let content = ccm_host::Content::Bytes(page.as_bytes());
        host.replace_unsynced(&path, content, &attributes).map_err(text)?;
        let browser = host.env("BROWSER").and_then(|name| name.into_string().ok());
        let program = browser.unwrap_or_else(|| "xdg-open".to_owned());
        let command = Command::new(&program, [path.as_os_str()])
            .environment(Environment::Inherited { add: Vec::new(), path: None });
        // With a token of its own: a browser outlives what opened it.
        let host = System::default().begin(Cancel::default());
        let run = move || {
            let failed = |reason: String| {
                let text = format!("cannot open a browser: {program}: {reason}");
                let _ = sender.send(Message::Note(text));
            };
            match host.run(&command, &mut |_, _| {}) {
                Ok(done) if done.exit == ccm_host::Exit::Code(0) => {}
                Ok(done) => failed(done.exit.to_string()),
                Err(error) => failed(ccm_engine::chain(&error)),
            }
        };
        let spawned = std::thread::Builder::new().name("browser".into()).spawn(run);
        spawned.map_err(|error| error.to_string())?;
        Ok(Self { _directory: directory })
    }
}
