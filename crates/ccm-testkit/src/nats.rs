//! Real NATS servers for tests: one alone, or three that form a cluster.
//!
//! The program is found in `CCM_NATS_SERVER`, in `target/tools`, where `cargo
//! xtask nats` builds it, or in the search path. Everything that a server
//! writes is below a directory of its own, and it ends with its handle.

mod cluster;
mod objects;
mod wire;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::wait_until;

pub use cluster::Cluster;
pub use objects::{encoded, object_digest};
pub use wire::{Message, Wire};

/// The program, if this machine has it.
pub fn program() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("CCM_NATS_SERVER") {
        return Some(given.into());
    }
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/nats-server");
    if tools.exists() {
        return tools.canonicalize().ok();
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|place| place.join("nats-server")).find(|path| path.exists())
}

/// Whether the test has to return because there is no server on this machine.
pub fn lacks_nats() -> bool {
    let lacks = program().is_none();
    if lacks {
        crate::not_run("there is no nats-server, `cargo xtask nats` builds it with Go");
    }
    lacks
}

/// A server with JetStream on a free port of the loopback interface.
pub struct NatsServer {
    directory: PathBuf,
    child: Child,
    /// `127.0.0.1:PORT`
    pub address: String,
}

impl NatsServer {
    /// Nobody is refused.
    pub fn start(directory: &Path) -> Self {
        Self::with(directory, "")
    }

    /// With more in its configuration.
    pub fn with(directory: &Path, configuration: &str) -> Self {
        std::fs::create_dir_all(directory).unwrap();
        let shown = directory.display();
        let text = format!(
            "server_name: test\nhost: 127.0.0.1\nport: -1\nports_file_dir: \"{shown}\"\n\
             logfile: \"{shown}/log\"\njetstream {{ store_dir: \"{shown}/js\" }}\n{configuration}\n"
        );
        std::fs::write(directory.join("server.conf"), text).unwrap();
        let child = run(directory);
        let address = wait_until("a server", || ports(directory));
        let mut server = Self { directory: directory.to_owned(), child, address };
        server.pin();
        server
    }

    /// Keeps the port, so that the server can come back on it.
    fn pin(&mut self) {
        let port = self.address.rsplit(':').next().unwrap_or_default();
        self.reconfigure(|text| text.replace("port: -1", &format!("port: {port}")), false);
    }

    /// Changes the configuration; a server that runs reads it again.
    pub fn reconfigure(&self, change: impl FnOnce(&str) -> String, reload: bool) {
        let path = self.directory.join("server.conf");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, change(&text)).unwrap();
        if reload {
            let before = self.reloads();
            self.signal(nix::sys::signal::Signal::SIGHUP);
            wait_until("the server to read it", || self.reloads() > before);
        }
    }

    /// How often the server has read a changed configuration, as its log says.
    fn reloads(&self) -> usize {
        self.log().matches("Reloaded server configuration").count()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The URL without credentials.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Sends a signal: SIGSTOP makes it hang with its connections open.
    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, signal).unwrap();
        if signal == nix::sys::signal::SIGSTOP {
            // On a busy machine its threads run on for a moment.
            wait_until("the server to stop", || self.is_stopped());
        }
    }

    /// Whether every thread of it is stopped.
    fn is_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        tasks.flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_none_or(|rest| !rest.starts_with(['R', 'S', 'D']))
        })
    }

    /// Crashes it.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Brings it back on the same port, with its data.
    pub fn restart(&mut self) {
        self.kill();
        clear_ports(&self.directory);
        self.child = run(&self.directory);
        wait_until("a server that came back", || ports(&self.directory));
    }

    /// A connection of the test's own.
    pub fn wire(&self) -> Wire {
        Wire::connect(&self.address)
    }

    /// Where it can be asked over HTTP, if it has `http: "127.0.0.1:-1"` in its
    /// configuration.
    pub fn monitor(&self) -> String {
        address(&self.directory, "monitoring").unwrap()
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        // One that was stopped cannot end.
        self.signal_if_alive(nix::sys::signal::Signal::SIGCONT);
        self.kill();
    }
}

impl NatsServer {
    fn signal_if_alive(&mut self, signal: nix::sys::signal::Signal) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(signal);
        }
    }
}

fn run(directory: &Path) -> Child {
    let program = program().unwrap();
    let output = std::fs::File::create(directory.join("out")).unwrap();
    Command::new(program)
        .arg("-c")
        .arg(directory.join("server.conf"))
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .spawn()
        .unwrap()
}

fn port_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|end| end == "ports")).collect()
}

fn clear_ports(directory: &Path) {
    for path in port_files(directory) {
        let _ = std::fs::remove_file(path);
    }
}

/// An address in the file that a server writes when it is ready.
fn address(directory: &Path, service: &str) -> Option<String> {
    let text = std::fs::read_to_string(port_files(directory).first()?).ok()?;
    let (_, rest) = text.split_once(&format!("\"{service}\""))?;
    let (_, rest) = rest.split_once("://")?;
    Some(rest.split('"').next()?.to_owned())
}

fn ports(directory: &Path) -> Option<String> {
    let address = address(directory, "nats")?;
    // It answers.
    std::net::TcpStream::connect(&address).ok()?;
    Some(address)
}
