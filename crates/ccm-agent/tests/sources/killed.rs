//! An agent that is killed while it replaces a copy.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ccm_agent::sources::{Cache, Source, SourceContent, SourceKind, SourceSettings};
use ccm_host::{Cancel, System};
use ccm_testkit::{Server, answer};

use crate::bed::{Bed, names, place};

const INSIDE: &str = "CCM_TEST_KILLED";
const FILES: usize = 12;

fn archive(version: usize) -> Vec<u8> {
    let text = format!("ccm: {{}} # {version}\n");
    let others: Vec<String> = (0..FILES).map(|number| format!("d{number}/f")).collect();
    let mut files = vec![("manifest.yaml", text.as_bytes())];
    files.extend(others.iter().map(|name| (name.as_str(), text.as_bytes())));
    ccm_testkit::tarball(&files)
}

fn start(cache: &Cache, url: &str) -> Source {
    let settings = SourceSettings {
        kind: SourceKind::Manifest,
        url: url.to_owned(),
        interval: Duration::from_hours(1),
        splay: Duration::ZERO,
        accept: None,
    };
    Source::start(settings, cache, &System::default(), None, |_| {}).unwrap()
}

/// The agent: replaces its copy without end.
fn replace(place: &str) -> ! {
    let (cache, url) = place.split_once(' ').unwrap();
    let cache = Cache::open(cache.as_ref(), &System::default().begin(Cancel::default())).unwrap();
    let source = start(&cache, url);
    loop {
        let _ = source.fetch_once(Duration::from_mins(1));
    }
}

#[test]
fn a_killed_agent_leaves_the_old_copy_or_the_new_one() {
    if let Ok(place) = std::env::var(INSIDE) {
        replace(&place);
    }
    let version = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&version);
    let server = Server::start(move |_, stream| {
        let version = counted.fetch_add(1, Ordering::SeqCst);
        let _ = stream.write_all(&answer("200 OK", "", &archive(version)));
    });
    let bed = Bed::new();
    let url = server.url("/m.tgz");
    let mut seen = None;
    for round in 0..25_u64 {
        let before = version.load(Ordering::SeqCst);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["killed::a_killed_agent_leaves_the_old_copy_or_the_new_one", "--exact"])
            .env(INSIDE, format!("{} {url}", bed.cache_path().display()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        ccm_testkit::wait_until("some replacements", || {
            (version.load(Ordering::SeqCst) > before + 3).then_some(())
        });
        // Somewhere in the next one.
        std::thread::sleep(Duration::from_micros(round * 700));
        child.kill().unwrap();
        child.wait().unwrap();
        let cache = bed.cache();
        let source = start(&cache, &url);
        let copy = source.current().expect("the old copy or the new one");
        drop(source);
        let SourceContent::Manifest(path) = &copy.content else { panic!("{copy:?}") };
        let text = std::fs::read_to_string(path).unwrap();
        for number in 0..FILES {
            let other = path.with_file_name(format!("d{number}")).join("f");
            assert_eq!(std::fs::read_to_string(other).unwrap(), text, "round {round}");
        }
        let found: usize = text.trim().rsplit(' ').next().unwrap().parse().unwrap();
        assert!(seen.is_none_or(|seen| seen <= found), "it went back: {seen:?} {found}");
        seen = Some(found);
        drop((copy, cache));
    }
    let cache = bed.cache();
    let source = start(&cache, &url);
    source.fetch_once(Duration::from_mins(1)).unwrap();
    assert_eq!(names(&place(&bed, &url)).len(), 2, "nothing is left behind");
}
