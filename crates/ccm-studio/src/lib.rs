//! The studio: a server for a page in the browser that edits, checks, previews
//! and applies manifests.
//!
//! The page is in `web`, as the browser runs it. The server has no logic of its
//! own: types, checks, edits, data, graphs and plans come from the engine. Every
//! request that concerns a text carries it, or names the last one.

#[cfg(test)]
mod answers;
mod app;
mod assets;
mod auth;
mod data;
mod edit;
mod error;
mod facts;
mod files;
mod guard;
mod history;
mod known;
mod members;
mod names;
mod routes;
mod runs;
mod template;
mod texts;
mod watch;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ccm_engine::{Engine, Inputs, RunOptions, StateRequest};
use ccm_host::{Host, ListenSocket, Tree};
use ccm_http::{Limits, Server};

use app::App;

/// Settings of a studio.
pub struct Settings {
    /// Engine for plans and runs.
    pub engine: Engine,
    /// Reads the facts, data and variables that the command line asks for.
    pub inputs: InputsReader,
    /// The machine, for the files of the directory and for random numbers.
    pub host: Host,
    /// The directory with the manifests, held open.
    pub directory: Tree,
    /// The file to show first, by its place in the directory.
    pub file: Option<String>,
    /// Whether runs may change the machine.
    pub allow_apply: bool,
    /// Whether files may not be saved either.
    pub read_only: bool,
    /// The session that runs are recorded in.
    pub session: Option<PathBuf>,
    /// Where runs keep their state.
    pub state: StateRequest,
    /// The studio ends after this time without a request.
    pub idle: Option<Duration>,
    /// The files of the page, instead of those in the binary.
    pub assets: Option<Tree>,
    /// The version of ccm, and the commit that it was built from.
    pub version: (&'static str, &'static str),
    /// Tells the person at the terminal something.
    pub tell: Box<dyn Fn(String) + Send + Sync>,
}

/// Reads the inputs of templates. The error is a message for the user.
pub type InputsReader = Box<dyn Fn(&RunOptions) -> Result<Inputs, String> + Send + Sync>;

/// What the studio takes over HTTP. It refuses headers above 16 KiB itself, with
/// an answer that says so.
const LIMITS: Limits = Limits {
    header_bytes: 64 * 1024,
    body_bytes: 20 * 1024 * 1024,
    connections: 64,
    guests: Some(16),
    header_time: Duration::from_secs(10),
    body_time: Duration::from_secs(30),
    write_time: Duration::from_secs(30),
    end_time: Duration::from_secs(2),
    threads: 16,
};

/// A studio that is being served.
pub struct Studio {
    app: Arc<App>,
    server: Option<Server>,
}

impl Studio {
    /// Serves a studio on a socket.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no thread or descriptor left.
    pub fn start(settings: Settings, socket: ListenSocket) -> io::Result<Self> {
        let app = Arc::new(App::new(settings));
        let shared = Arc::clone(&app);
        let server = Server::start(socket, LIMITS, move |request| {
            routes::handle(Arc::clone(&shared), request)
        })?;
        Ok(Self { app, server: Some(server) })
    }

    /// A new link, which works once.
    pub fn link(&self) -> String {
        let token = self.app.auth.token(&self.app.settings.host);
        let address = self.server.as_ref().and_then(Server::address);
        let origin = address.map_or_else(|| "localhost".to_owned(), |at| at.to_string());
        format!("http://{origin}/#token={token}")
    }

    /// Where the unix socket is, if it has one.
    pub fn socket(&self) -> Option<PathBuf> {
        self.server.as_ref().and_then(Server::path).map(PathBuf::from)
    }

    /// Whether a link was used yet.
    pub fn is_open(&self) -> bool {
        self.app.is_open()
    }

    /// Whether there was no request for the configured idle time.
    pub fn is_idle(&self) -> bool {
        self.app.is_idle()
    }

    /// Tells the pages, stops what runs and waits for it, and ends.
    pub fn stop(mut self) {
        self.app.stop();
        if let Some(server) = self.server.take() {
            server.stop();
        }
    }
}
