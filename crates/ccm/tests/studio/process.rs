//! The process: sockets, signals, flags, other users.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;

use ccm_testkit::wait_until;
use nix::sys::signal::Signal;
use serde_json::json;

use crate::{MANIFEST, Studio, code};

fn output(dir: &std::path::Path, flags: &[&str]) -> (Option<i32>, String) {
    let output = Studio::command(dir, flags).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn fresh() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("site")).unwrap();
    dir
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    let dir = fresh();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "nonsense", "127.0.0.1"] {
        let (exit, said) = output(dir.path(), &["--listen", address]);
        assert_eq!(exit, Some(64), "{address}: {said}");
        assert!(said.contains("hint:"), "{said}");
    }
    let (_, said) = output(dir.path(), &["--listen", "0.0.0.0:8000"]);
    assert!(said.contains("ssh -L 8000:127.0.0.1:8000"), "{said}");
    let (exit, _) = output(dir.path(), &["--read-only", "--allow-apply"]);
    assert_eq!(exit, Some(64));
    let (exit, _) = output(dir.path(), &["--idle", "soon"]);
    assert_eq!(exit, Some(64));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (exit, said) = output(dir.path(), &["--listen", &address]);
    assert_eq!(exit, Some(1), "{said}");
}

#[test]
fn a_unix_socket_is_private_and_has_one_studio() {
    let dir = fresh();
    let path = dir.path().join("socket").display().to_string();
    let mut studio = Studio::start_in(dir, &["--socket", &path]);
    assert_eq!(studio.host, "localhost");
    let mode = std::fs::symlink_metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(studio.get("studio")["read_only"], false);
    let (exit, said) = output(studio.dir.path(), &["--socket", &path]);
    assert_eq!(exit, Some(1), "{said}");
    assert!(said.contains("hint:"), "{said}");
    assert_eq!(studio.request("GET studio", &[], b"").status, 200, "the first one goes on");
    let (exit, _) = studio.end(Signal::SIGINT);
    assert_eq!(exit, Some(130));
    assert!(!std::path::Path::new(&path).exists());
}

#[test]
fn a_killed_studio_leaves_a_socket_that_the_next_one_replaces() {
    let dir = fresh();
    let path = dir.path().join("socket").display().to_string();
    let mut studio = Studio::start_in(dir, &["--socket", &path]);
    studio.end(Signal::SIGKILL);
    assert!(std::path::Path::new(&path).exists());
    let dir = std::mem::replace(&mut studio.dir, tempfile::tempdir().unwrap());
    drop(studio);
    let studio = Studio::start_in(dir, &["--socket", &path]);
    assert_eq!(studio.request("GET studio", &[], b"").status, 200);
}

#[test]
fn a_shared_directory_is_no_place_for_a_socket() {
    let dir = fresh();
    let shared = dir.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o1777)).unwrap();
    let path = shared.join("socket").display().to_string();
    let (exit, said) = output(dir.path(), &["--socket", &path]);
    assert_eq!(exit, Some(1), "{said}");
    assert!(said.contains("other users can write"), "{said}");
}

#[test]
fn a_studio_that_nobody_uses_ends() {
    let mut studio = Studio::start(&["--idle", "1s"]);
    let mut child = studio.child.take().unwrap();
    let exit = wait_until("its end", || child.try_wait().unwrap());
    assert_eq!(exit.code(), Some(0));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("it received no request"), "{said}");
}

#[test]
fn a_signal_stops_the_run_that_goes_on() {
    let mut studio = Studio::start(&["--allow-apply"]);
    let mark = studio.dir.path().join("target/began");
    let manifest = format!(
        "ccm:\n  resources:\n    - exec:\n        - long:\n            command: sh -c 'echo $$ > {}; \
         exec sleep 1000'\n",
        mark.display()
    );
    std::fs::write(studio.site("web.yaml"), &manifest).unwrap();
    let plan = studio.post("runs", &json!({"mode": "plan", "path": "web.yaml", "text": manifest}));
    let id = plan["id"].as_str().unwrap().to_owned();
    wait_until("the plan", || studio.get(&format!("runs/{id}"))["state"] == "finished");
    studio.post("runs", &json!({"mode": "apply", "plan": id}));
    wait_until("the command", || {
        std::fs::read_to_string(&mark).is_ok_and(|pid| pid.ends_with('\n'))
    });
    let (exit, _) = studio.end(Signal::SIGTERM);
    assert_eq!(exit, Some(143));
    let pid: i32 = std::fs::read_to_string(&mark).unwrap().trim().parse().unwrap();
    let gone = || nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_err();
    wait_until("the end of the command", gone);
}

#[test]
fn a_file_opens_its_directory_with_that_file_shown() {
    let dir = fresh();
    let file = dir.path().join("site/web.yaml");
    std::fs::write(&file, MANIFEST).unwrap();
    let studio = Studio::start_at(dir, &file, &[]);
    assert_eq!(studio.get("studio")["file"], "web.yaml");
    assert_eq!(studio.get("files")["files"][0]["path"], "web.yaml");
    let none = studio.dir.path().join("none");
    let output = Studio::command_at(studio.dir.path(), &none, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stderr.is_empty());
}

#[test]
fn as_root_a_directory_of_others_is_worth_a_warning_and_refused_if_strict() {
    if ccm_testkit::lacks_root() {
        return;
    }
    let dir = fresh();
    let site = dir.path().join("site");
    std::fs::set_permissions(&site, PermissionsExt::from_mode(0o777)).unwrap();
    std::fs::write(site.join("web.yaml"), MANIFEST).unwrap();
    let strict = Studio::command(dir.path(), &[]).env("CCM_STRICT", "1").output().unwrap();
    assert_eq!(strict.status.code(), Some(1));
    let mut studio = Studio::start_in(dir, &[]);
    assert_eq!(studio.get("studio")["root"], true);
    let (_, said) = studio.end(Signal::SIGTERM);
    assert!(said.contains("writable by other users"), "{said}");
    assert!(said.contains("runs as root"), "{said}");
}

#[test]
fn nothing_is_served_while_it_ends() {
    let mut studio = Studio::start(&[]);
    let answer = studio.request("GET studio", &[], b"");
    assert_eq!(answer.status, 200);
    assert_eq!(code(&studio.request("GET none", &[], b"")).0, 404);
    let (exit, said) = studio.end(Signal::SIGHUP);
    assert_eq!(exit, Some(129), "{said}");
}
