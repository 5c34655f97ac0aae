//! Those who have no key, and what is theirs to use up.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use ccm_testkit::wait_until;
use serde_json::json;

use crate::{MANIFEST, Studio, code, read};

fn connect(studio: &Studio) -> TcpStream {
    TcpStream::connect(&studio.host).unwrap()
}

/// What comes back for some bytes until the server hangs up, or for a second.
fn raw(studio: &Studio, request: &str) -> (String, bool) {
    let mut connection = connect(studio);
    connection.write_all(request.as_bytes()).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match connection.read(&mut buffer) {
            Ok(0) => return (String::from_utf8_lossy(&answer).into_owned(), true),
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(_) => return (String::from_utf8_lossy(&answer).into_owned(), false),
        }
    }
}

#[test]
fn guests_do_not_lock_the_owner_out() {
    let studio = Studio::start(&[]);
    // They say nothing, or ask and keep their connection.
    let page = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", studio.host);
    let mut guests = Vec::new();
    for number in 0..80 {
        let mut connection = connect(&studio);
        if number % 2 == 0 {
            let _ = connection.write_all(page.as_bytes());
        }
        guests.push(connection);
    }
    for _ in 0..5 {
        assert_eq!(studio.request("GET studio", &[], b"").status, 200);
    }
    let (answer, is_closed) = raw(&studio, &page);
    assert!(is_closed && answer.to_lowercase().contains("connection: close"), "{answer:.300}");
    // The connection of who has the key stays.
    let own = format!(
        "GET /api/v1/studio HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        studio.host, studio.key
    );
    let (answer, is_closed) = raw(&studio, &own);
    assert!(!is_closed && answer.starts_with("HTTP/1.1 200"), "{answer:.300}");
}

/// The oldest connections of guests go first, those with a key never do.
#[test]
fn the_oldest_guest_goes_first() {
    let studio = Studio::start(&[]);
    let own = format!(
        "GET /api/v1/studio HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        studio.host, studio.key
    );
    let mut kept = connect(&studio);
    kept.write_all(own.as_bytes()).unwrap();
    let mut first = [0; 12];
    kept.read_exact(&mut first).unwrap();
    let guests: Vec<_> = (0..17).map(|_| connect(&studio)).collect();
    let is_closed = |index: usize| {
        let mut connection = &guests[index];
        connection.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        matches!(connection.read(&mut [0; 1]), Ok(0))
    };
    wait_until("the end of the first guest", || is_closed(0));
    assert!(!is_closed(16), "the last one stays");
    kept.write_all(own.as_bytes()).unwrap();
    let mut rest = vec![0; 20_000];
    assert!(kept.read(&mut rest).unwrap() > 0);
}

#[test]
fn guests_do_not_keep_a_studio_awake() {
    let mut studio = Studio::start(&["--idle", "2s"]);
    let host = studio.host.clone();
    let child = studio.child.as_mut().unwrap();
    wait_until("its end, although there are requests without a key", || {
        if let Ok(mut connection) = TcpStream::connect(&host) {
            let _ = connection.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        }
        child.try_wait().unwrap()
    });
}

#[test]
fn finished_runs_hold_no_descriptors() {
    let studio = Studio::start(&[]);
    let plan = || {
        let body = json!({"mode": "plan", "path": "web.yaml", "text": MANIFEST, "diffs": "public"});
        let id = studio.post("runs", &body)["id"].as_str().unwrap().to_owned();
        wait_until("the end", || studio.get(&format!("runs/{id}"))["state"] != "running");
    };
    let count = || std::fs::read_dir(format!("/proc/{}/fd", studio.pid())).unwrap().count();
    (0..3).for_each(|_| plan());
    let before = count();
    (0..20).for_each(|_| plan());
    assert!(count() <= before + 6, "{before} descriptors, then {}", count());
}

#[test]
fn every_loopback_address_works() {
    let studio = Studio::start(&["--listen", "127.0.0.2:0"]);
    assert!(studio.host.starts_with("127.0.0.2:"), "{}", studio.host);
    assert_eq!(studio.get("studio")["read_only"], false);
}

#[test]
fn a_request_line_for_another_host_is_refused() {
    let studio = Studio::start(&[]);
    let ask = |authority: &str| {
        raw(
            &studio,
            &format!(
                "GET http://{authority}/api/v1/studio HTTP/1.1\r\nHost: {}\r\nAuthorization: \
                 Bearer {}\r\nConnection: close\r\n\r\n",
                studio.host, studio.key
            ),
        )
        .0
    };
    assert!(ask(&studio.host).starts_with("HTTP/1.1 200"));
    for other in ["evil.example", "localhost.evil.example", "user@evil.example:80"] {
        assert!(ask(other).starts_with("HTTP/1.1 403"), "{}", ask(other));
    }
}

#[test]
fn what_is_not_utf8_is_not_overwritten() {
    let studio = Studio::start(&[]);
    std::fs::write(studio.site("latin.yaml"), b"a: caf\xe9\n").unwrap();
    let digest = studio.get("files/latin.yaml")["digest"].as_str().unwrap().to_owned();
    let body = json!({"text": "a: 1\n", "eol": "lf", "bom": false}).to_string();
    let tag = format!("\"{digest}\"");
    let answer = studio.request("PUT files/latin.yaml", &[("If-Match", &tag)], body.as_bytes());
    assert_eq!(code(&answer), (409, "not_utf8".into()));
    assert_eq!(std::fs::read(studio.site("latin.yaml")).unwrap(), b"a: caf\xe9\n");
}

#[test]
fn templates_read_below_the_directory_only() {
    let studio = Studio::start(&[]);
    std::fs::create_dir(studio.site("sub")).unwrap();
    std::fs::write(studio.site("sub/in.txt"), "inside").unwrap();
    let outside = studio.dir.path().join("outside.jet");
    std::fs::write(&outside, "0utside").unwrap();
    std::os::unix::fs::symlink(&outside, studio.site("link.jet")).unwrap();
    let ask = |language: &str, text: String, path: Option<&str>| {
        let mut body = json!({"language": language, "text": text});
        if let Some(path) = path {
            body["path"] = path.into();
        }
        studio.try_post("template", &body)
    };
    for path in [None, Some("web.yaml")] {
        let inside = ask("expr", "{{ readFile('sub/in.txt') }}".into(), path);
        assert_eq!(read(&inside)["text"], "inside", "{}", inside.text());
        for file in [outside.to_str().unwrap(), "../outside.jet", "link.jet", "/etc/hostname"] {
            for (language, text) in [
                ("expr", format!("{{{{ readFile('{file}') }}}}")),
                ("expr", format!("{{{{ jet('{file}') }}}}")),
                ("jet", format!("[[ file(\"{file}\") ]]")),
                ("jet", format!("[[ include \"{file}\" ]]")),
                ("go", format!("{{{{ file \"{file}\" }}}}")),
            ] {
                // Without the ending it is a template itself.
                if text.contains("jet('/etc") {
                    continue;
                }
                let answer = ask(language, text.clone(), path);
                assert_ne!(answer.status, 200, "{text}: {}", answer.text());
                assert!(!answer.text().contains("0utside"), "{text}: {}", answer.text());
            }
        }
    }
    let missing = json!({"language": "jet", "scaffold": "none", "text": ""});
    assert_eq!(code(&studio.try_post("template", &missing)), (404, "not_found".into()));
}
