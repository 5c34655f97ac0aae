//! Three servers that form one cluster.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Child;

use nix::sys::signal::Signal;

use super::{Wire, run};
use crate::wait_until;

/// Three servers with JetStream. A test stops, crashes and restarts them.
pub struct Cluster {
    nodes: Vec<Node>,
}

struct Node {
    directory: PathBuf,
    child: Child,
    address: String,
    is_dead: bool,
}

impl Cluster {
    /// Starts three servers below a directory, and waits until they are one.
    pub fn start(directory: &Path) -> Self {
        // Ports must be known before servers can name each other: all of them are
        // held until all are known.
        let held: Vec<TcpListener> =
            (0..6).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> =
            held.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        drop(held);
        let routes: Vec<String> =
            ports[3..].iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let nodes = (0..3)
            .map(|index| {
                let directory = directory.join(format!("n{index}"));
                std::fs::create_dir_all(&directory).unwrap();
                let shown = directory.display();
                let text = format!(
                    "server_name: n{index}\nlisten: \"127.0.0.1:{}\"\nlogfile: \"{shown}/log\"\n\
                     jetstream {{ store_dir: \"{shown}/js\" }}\n\
                     cluster {{ name: test, listen: \"127.0.0.1:{}\", routes: [{}] }}\n",
                    ports[index],
                    ports[index + 3],
                    routes.join(", ")
                );
                std::fs::write(directory.join("server.conf"), text).unwrap();
                let child = run(&directory);
                let address = format!("127.0.0.1:{}", ports[index]);
                Node { directory, child, address, is_dead: false }
            })
            .collect();
        let cluster = Self { nodes };
        // A port that answers is not enough: it takes a leader to make streams.
        wait_until("a cluster", || {
            for node in &cluster.nodes {
                std::net::TcpStream::connect(&node.address).ok()?;
            }
            Some(())
        });
        wait_until("a leader", || {
            let body = b"{\"name\":\"READY\",\"subjects\":[\"ready\"],\"num_replicas\":3}";
            let address = &cluster.nodes[0].address;
            let answer = Wire::ask(address, "$JS.API.STREAM.CREATE.READY", body)?;
            (!answer.contains("\"error\"")).then_some(())
        });
        cluster
    }

    /// All URLs, with commas between them.
    pub fn urls(&self) -> String {
        let urls: Vec<String> =
            self.nodes.iter().map(|node| format!("nats://{}", node.address)).collect();
        urls.join(",")
    }

    /// The URL of one server.
    pub fn url(&self, node: usize) -> String {
        format!("nats://{}", self.nodes[node].address)
    }

    /// A connection of the test's own to one server.
    pub fn wire(&self, node: usize) -> Wire {
        Wire::connect(&self.nodes[node].address)
    }

    /// The server that leads a stream, as one that works says.
    pub fn leader(&self, stream: &str) -> usize {
        wait_until("the leader of a stream", || {
            let alive = self.nodes.iter().filter(|node| !node.is_dead);
            alive.map(|node| &node.address).find_map(|address| {
                let info = Wire::ask(address, &format!("$JS.API.STREAM.INFO.{stream}"), b"")?;
                let (_, rest) = info.split_once("\"leader\":\"n")?;
                rest.get(..1)?.parse().ok()
            })
        })
    }

    fn signal(&self, node: usize, signal: Signal) {
        let pid = nix::unistd::Pid::from_raw(self.nodes[node].child.id() as i32);
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Makes a server hang with its connections open, as in a partition.
    pub fn hang(&mut self, node: usize) {
        self.signal(node, Signal::SIGSTOP);
        self.nodes[node].is_dead = true;
    }

    /// Lets a server that hangs go on.
    pub fn wake(&mut self, node: usize) {
        self.signal(node, Signal::SIGCONT);
        self.nodes[node].is_dead = false;
    }

    /// Crashes a server.
    pub fn kill(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        let _ = node.child.kill();
        let _ = node.child.wait();
        node.is_dead = true;
    }

    /// Brings a server back that crashed.
    pub fn restart(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        node.child = run(&node.directory);
        node.is_dead = false;
        wait_until("a server", || std::net::TcpStream::connect(&node.address).ok());
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if matches!(node.child.try_wait(), Ok(None)) {
                let pid = nix::unistd::Pid::from_raw(node.child.id() as i32);
                let _ = nix::sys::signal::kill(pid, Signal::SIGCONT);
            }
            let _ = node.child.kill();
            let _ = node.child.wait();
        }
    }
}
