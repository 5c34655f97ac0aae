//! Files of the directory: listed, read, saved, and never left.

use std::os::unix::fs::{PermissionsExt, symlink};

use ccm_testkit::{Answer, wait_until};
use serde_json::{Value, json};

use crate::{LONG, Studio, code, read};

fn put(studio: &Studio, path: &str, text: &str, condition: (&str, &str)) -> Answer {
    let body = json!({"text": text, "eol": "lf", "bom": false}).to_string();
    studio.request(&format!("PUT files/{path}"), &[condition], body.as_bytes())
}

#[test]
fn files_are_listed_with_what_they_are() {
    let studio = Studio::start(&[]);
    std::fs::create_dir_all(studio.site("a/b/c/d/e/f/g/h/i")).unwrap();
    std::fs::write(studio.site("a/b/c/d/e/f/g/h/i/deep.yaml"), "x: 1").unwrap();
    for (name, text) in [
        ("common.yaml", "workers: 3\n"),
        ("page.jet", "hi"),
        ("broken.yaml", "ccm: [\n"),
        ("wrong.yaml", "ccm:\n  resources:\n    - file:\n        - /a: {contnet: b}\n"),
        ("notes.md", "no"),
        (".hidden.yaml", "ccm: {}"),
    ] {
        std::fs::write(studio.site(name), text).unwrap();
    }
    symlink("/etc/passwd", studio.site("away.yaml")).unwrap();
    let listed = studio.get("files");
    let find = |name: &str| {
        listed["files"].as_array().unwrap().iter().find(|file| file["path"] == name).cloned()
    };
    let web = find("web.yaml").unwrap();
    assert_eq!((&web["kind"], &web["resources"]), (&json!("manifest"), &json!(2)));
    assert_eq!(web["writable"], true);
    assert!(web["modified"].as_str().unwrap().contains('T') && web["size"].as_u64().unwrap() > 99);
    assert_eq!(find("common.yaml").unwrap()["kind"], "data");
    assert_eq!(find("page.jet").unwrap()["kind"], "template");
    assert_eq!(find("broken.yaml").unwrap()["errors"], 1);
    assert!(find("wrong.yaml").unwrap()["errors"].as_u64().unwrap() >= 1);
    for absent in ["notes.md", ".hidden.yaml", "away.yaml", "a/b/c/d/e/f/g/h/i/deep.yaml"] {
        assert_eq!(find(absent), None, "{absent}");
    }
    assert_eq!(listed["truncated"], true, "there is more below");
}

#[test]
fn nothing_leads_out_of_the_directory() {
    let studio = Studio::start(&[]);
    let secret = studio.dir.path().join("secret.yaml");
    std::fs::write(&secret, "secret").unwrap();
    symlink("../secret.yaml", studio.site("away.yaml")).unwrap();
    symlink(&secret, studio.site("absolute.yaml")).unwrap();
    symlink("..", studio.site("up")).unwrap();
    symlink("/proc/self/fd", studio.site("magic")).unwrap();
    for path in [
        "../secret.yaml",
        "%2e%2e/secret.yaml",
        "x/..%2f..%2fsecret.yaml",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "away.yaml",
        "absolute.yaml",
        "up/secret.yaml",
        "magic/0",
        ".",
        "..",
        "web.yaml%00",
    ] {
        let answer = studio.request(&format!("GET files/{path}"), &[], b"");
        let (status, code) = code(&answer);
        assert!(status == 403 && code == "outside", "{path}: {status} {code}");
        let answer = put(&studio, path, "mine", ("If-None-Match", "*"));
        assert!(answer.status == 403 || answer.status == 412, "{path}: {}", answer.status);
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    assert!(!studio.dir.path().join("site/up/x.yaml").exists());
    let answer = put(&studio, "up/x.yaml", "mine", ("If-None-Match", "*"));
    assert_eq!(code(&answer), (403, "outside".into()));
    assert!(!studio.dir.path().join("x.yaml").exists());
    // A directory that is swapped for a link while the studio runs.
    std::fs::create_dir(studio.site("sub")).unwrap();
    std::fs::write(studio.site("sub/a.yaml"), "a: 1\n").unwrap();
    assert_eq!(studio.get("files/sub/a.yaml")["text"], "a: 1\n");
    std::fs::rename(studio.site("sub"), studio.site("gone")).unwrap();
    std::fs::create_dir(studio.dir.path().join("elsewhere")).unwrap();
    std::fs::write(studio.dir.path().join("elsewhere/a.yaml"), "theirs").unwrap();
    symlink("../elsewhere", studio.site("sub")).unwrap();
    let answer = studio.request("GET files/sub/a.yaml", &[], b"");
    assert_eq!(code(&answer), (403, "outside".into()));
    // The whole directory is swapped: the studio stays in the one it opened.
    std::fs::rename(studio.dir.path().join("site"), studio.dir.path().join("moved")).unwrap();
    symlink("elsewhere", studio.dir.path().join("site")).unwrap();
    assert!(studio.get("files/web.yaml")["text"].as_str().unwrap().contains("workers"));
}

#[test]
fn files_keep_what_they_are_when_they_are_saved() {
    let studio = Studio::start(&[]);
    let path = studio.site("dos.yaml");
    std::fs::write(&path, "\u{feff}a: 1\r\nb: 2\r\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    symlink("dos.yaml", studio.site("link.yaml")).unwrap();
    let file = studio.get("files/link.yaml");
    assert_eq!((&file["text"], &file["eol"]), (&json!("a: 1\nb: 2\n"), &json!("crlf")));
    assert_eq!(file["bom"], true);
    let body = json!({"text": "a: 2\nb: 2\n", "eol": "crlf", "bom": true}).to_string();
    let tag = format!("\"{}\"", file["digest"].as_str().unwrap());
    let answer = studio.request("PUT files/link.yaml", &[("If-Match", &tag)], body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "\u{feff}a: 2\r\nb: 2\r\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(studio.site("link.yaml").is_symlink());
    assert_eq!(studio.get("files/dos.yaml")["digest"], read(&answer)["digest"]);
    // The old digest is not that of the file any more.
    let again = studio.request("PUT files/link.yaml", &[("If-Match", &tag)], body.as_bytes());
    assert_eq!(code(&again), (412, "changed".into()));
    let error = &read(&again)["error"];
    assert_eq!(
        (&error["text"], &error["digest"]),
        (&json!("a: 2\nb: 2\n"), &read(&answer)["digest"])
    );
    std::fs::write(studio.site("mixed.yaml"), "a: 1\r\nb: 2\n").unwrap();
    let mixed = studio.get("files/mixed.yaml");
    assert_eq!((&mixed["eol"], &mixed["notes"][0]["code"]), (&json!("mixed"), &json!("mixed_eol")));
    let tag = format!("\"{}\"", mixed["digest"].as_str().unwrap());
    let body = json!({"text": "a", "eol": "mixed", "bom": false}).to_string();
    let answer = studio.request("PUT files/mixed.yaml", &[("If-Match", &tag)], body.as_bytes());
    assert_eq!(code(&answer), (400, "malformed".into()));
}

#[test]
fn conflicts_are_found_and_nothing_is_created_over() {
    let studio = Studio::start(&[]);
    let answer = put(&studio, "web.yaml", "x", ("If-None-Match", "*"));
    assert_eq!(code(&answer), (412, "exists".into()));
    let answer = put(&studio, "new.yaml", "a: 1\n", ("If-None-Match", "*"));
    assert_eq!(answer.status, 200);
    assert_eq!(std::fs::read_to_string(studio.site("new.yaml")).unwrap(), "a: 1\n");
    let digest = format!("\"{}\"", read(&answer)["digest"].as_str().unwrap());
    std::fs::write(studio.site("new.yaml"), "theirs\n").unwrap();
    let answer = put(&studio, "new.yaml", "mine\n", ("If-Match", &digest));
    assert_eq!(code(&answer), (412, "changed".into()));
    std::fs::remove_file(studio.site("new.yaml")).unwrap();
    let answer = put(&studio, "new.yaml", "mine\n", ("If-Match", &digest));
    assert_eq!(code(&answer), (412, "changed".into()));
    assert!(!studio.site("new.yaml").exists());
    for condition in [("If-Match", "x"), ("If-None-Match", "\"x\""), ("X-None", "x")] {
        let answer = put(&studio, "web.yaml", "x", condition);
        assert_eq!(code(&answer), (400, "malformed".into()), "{condition:?}");
    }
    let answer = put(&studio, "none/new.yaml", "x", ("If-None-Match", "*"));
    assert_eq!(code(&answer), (404, "not_found".into()));
    assert_eq!(read(&answer)["error"]["hint"], "create the directory first");
    let answer = put(&studio, "program.sh", "x", ("If-None-Match", "*"));
    assert_eq!(code(&answer), (403, "outside".into()));
    let left: Vec<_> = std::fs::read_dir(studio.dir.path().join("site")).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file stays: {left:?}");
}

#[test]
fn what_cannot_be_edited_is_said() {
    let studio = Studio::start(&[]);
    nix::unistd::mkfifo(&studio.site("fifo.yaml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let answer = studio.request("GET files/fifo.yaml", &[], b"");
    assert_eq!(code(&answer), (403, "permission".into()));
    let file = std::fs::File::create(studio.site("large.yaml")).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    let answer = studio.request("GET files/large.yaml", &[], b"");
    assert_eq!(code(&answer), (413, "too_large".into()));
    std::fs::write(studio.site("latin.yaml"), b"a: \xe9\n").unwrap();
    let latin = studio.get("files/latin.yaml");
    assert_eq!(
        (&latin["writable"], &latin["notes"][0]["code"]),
        (&json!(false), &json!("not_utf8"))
    );
    let answer = studio.request("GET files/none.yaml", &[], b"");
    assert_eq!(code(&answer), (404, "not_found".into()));
    let answer = studio.request("GET files/web.yaml/x", &[], b"");
    assert_eq!(code(&answer), (404, "not_found".into()));
    let studio = Studio::start(&["--read-only"]);
    assert_eq!(studio.get("files/web.yaml")["writable"], false);
    let answer = put(&studio, "web.yaml", "x", ("If-Match", "\"x\""));
    assert_eq!(code(&answer), (403, "read_only".into()));
    assert_eq!(studio.get("studio")["read_only"], true);
}

#[test]
fn pages_are_told_of_changes_on_the_disk() {
    let mut studio = Studio::start(&[]);
    studio.get("files/web.yaml");
    let bearer = format!("Bearer {}", studio.key);
    let headers = [("Host", studio.host.as_str()), ("Authorization", bearer.as_str())];
    let (status, lines) = studio.target.lines("GET /api/v1/watch", &headers);
    assert_eq!(status, 200);
    let (sender, received) = std::sync::mpsc::channel::<String>();
    std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    assert_eq!(received.recv_timeout(LONG).unwrap(), ": here");
    let mut seen = String::new();
    let mut turn = 0;
    wait_until("an event about the file", || {
        turn += 1;
        std::fs::write(studio.site("web.yaml"), format!("ccm: {{}} # {turn}\n")).unwrap();
        std::fs::write(studio.site(&format!("more{turn}.yaml")), "").unwrap();
        // The pace of the changes.
        std::thread::sleep(std::time::Duration::from_millis(500));
        seen.extend(received.try_iter().map(|line| line + "\n"));
        seen.contains("event: file\n") && seen.contains("event: files\n")
    });
    let data = seen.lines().find(|line| line.contains("\"path\"")).unwrap();
    let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(data["path"], "web.yaml");
    assert_eq!(data["digest"].as_str().unwrap().len(), 64);
    studio.end(nix::sys::signal::Signal::SIGINT);
    let rest: String = received.iter().collect();
    assert!(rest.contains("event: stopping"), "{rest}");
}

#[test]
fn no_change_is_missed_between_reading_and_watching() {
    let studio = Studio::start(&[]);
    let bearer = format!("Bearer {}", studio.key);
    let headers = [("Host", studio.host.as_str()), ("Authorization", bearer.as_str())];
    let told = |before_watching: bool| {
        let name = if before_watching { "first.yaml" } else { "second.yaml" };
        std::fs::write(studio.site(name), "a: 1\n").unwrap();
        let read = || studio.get(&format!("files/{name}"))["digest"].as_str().unwrap().to_owned();
        let change = || std::fs::write(studio.site(name), "a: 2\n").unwrap();
        if before_watching {
            read();
            change();
        }
        let (_, mut lines) = studio.target.lines("GET /api/v1/watch", &headers);
        if !before_watching {
            // Behind the first look, which tells of the files.
            assert!(lines.any(|line| line == "event: files"));
            read();
            change();
        }
        let about = format!("\"path\":\"{name}\"");
        let line = lines.find(|line| line.contains(&about)).unwrap();
        let data: Value = serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["digest"], *read(), "{name}");
    };
    told(true);
    told(false);
}
