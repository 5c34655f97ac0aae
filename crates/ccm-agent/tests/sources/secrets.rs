//! Passwords in URLs are sent to their server and go nowhere else.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ccm_agent::sources::{Source, SourceKind, SourceSettings};
use ccm_testkit::Server;

use crate::bed::{Bed, PATIENCE, archive, manifest};

const SECRETS: [&str; 2] = ["hunter2", "tok3n"];

/// Keeps what is logged.
#[derive(Clone)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Every byte of every file below a directory, and every name.
fn everything(path: &std::path::Path, into: &mut Vec<u8>) {
    for entry in std::fs::read_dir(path).unwrap().flatten() {
        into.extend_from_slice(entry.file_name().as_encoded_bytes());
        let path = entry.path();
        if path.is_dir() {
            everything(&path, into);
        } else {
            into.extend(std::fs::read(path).unwrap());
        }
    }
}

#[test]
fn passwords_are_on_no_disk_and_in_no_message() {
    let server = Server::with_body(archive(1));
    let url = format!("http://me:hunter2@{}/m.tgz?token=tok3n", server.address);
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = Log(Arc::clone(&logged));
    // Of all threads, and so of all tests here.
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || log.clone())
        .init();
    let bed = Bed::new();
    let cache = bed.cache();
    let watch = bed.manifest(&cache, &url);
    watch.wait_for_text(&manifest(1));
    assert!(server.requests()[0].contains("authorization: Basic bWU6aHVudGVyMg=="));
    let mut said = format!("{:?} {}", watch.source, watch.source.name());
    // And when things go wrong.
    let address = server.address.clone();
    drop(server);
    said += &watch.source.fetch_once(PATIENCE).unwrap_err().to_string();
    said += &format!("{:?}", watch.source.fetch_once(Duration::ZERO).unwrap_err());
    for bad in [
        format!("http://me:hunter2@{address}/m.zip?token=tok3n"),
        format!("http://me:hunter2@{address}:x/m.tgz?token=tok3n"),
        "none://me:hunter2@host/m.tgz?token=tok3n".to_owned(),
    ] {
        let settings = SourceSettings {
            kind: SourceKind::Manifest,
            url: bad,
            interval: Duration::from_mins(5),
            splay: Duration::ZERO,
            accept: None,
        };
        match Source::start(settings, &cache, &bed.system, None, |_| {}) {
            Ok(source) => said += &source.fetch_once(PATIENCE).unwrap_err().to_string(),
            Err(error) => said += &format!("{error} {error:?} {:?}", error.hint()),
        }
    }
    said += &format!("{:?}", watch.events());
    assert!(said.contains(&address), "{said}");
    let mut bytes = logged.lock().unwrap().clone();
    assert!(String::from_utf8_lossy(&bytes).contains("downloading"), "the log is seen");
    bytes.extend_from_slice(said.as_bytes());
    everything(&bed.cache_path(), &mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}
