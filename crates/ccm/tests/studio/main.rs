//! The studio's server, without a browser: what it answers, and what it refuses.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests set their stage by themselves"
)]

mod access;
mod edits;
mod faces;
mod files;
mod guests;
mod process;
mod runs;
mod texts;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ccm_testkit::{Answer, Target};
use serde_json::{Value, json};

/// Long enough for a busy machine.
const LONG: Duration = Duration::from_mins(2);

const MANIFEST: &str = r#"data:
  workers: 4
ccm:
  resources:
    - file:
        - defaults: {owner: "{{ Environ.ME }}", group: "{{ Environ.MINE }}", mode: "0644"}
        - "{{ Environ.TARGET }}/app.conf":
            alias: config
            content: "workers = {{ Data.workers }}\n"
    - exec:
        - reload:
            command: /bin/true
            refresh_only: true
            subscribe: ["file#config"]
"#;

/// A studio of its own in a fresh directory.
struct Studio {
    dir: tempfile::TempDir,
    child: Option<Child>,
    target: Target,
    /// The value of `Host`.
    host: String,
    token: String,
    key: String,
}

impl Studio {
    fn start(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("site")).unwrap();
        std::fs::create_dir(dir.path().join("target")).unwrap();
        std::fs::write(dir.path().join("site/web.yaml"), MANIFEST).unwrap();
        Self::start_in(dir, flags)
    }

    fn command(dir: &Path, flags: &[&str]) -> Command {
        Self::command_at(dir, &dir.join("site"), flags)
    }

    fn command_at(dir: &Path, path: &Path, flags: &[&str]) -> Command {
        let given = std::env::var_os("CCM_BINARY");
        let mut command = Command::new(given.unwrap_or_else(|| env!("CARGO_BIN_EXE_ccm").into()));
        let id = |flag| {
            let output = Command::new("id").arg(flag).output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", dir)
            .env("TMPDIR", dir)
            .env("CCM_STATE_DIR", dir.join("state"))
            .env("ME", id("-un"))
            .env("MINE", id("-gn"))
            .env("TARGET", dir.join("target"))
            .current_dir(dir)
            .arg("studio")
            .arg("--json")
            .args(flags)
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What another command of ccm says that sees the same as the studio.
    fn ccm(&self, args: &[&str]) -> String {
        let like = Self::command(self.dir.path(), &[]);
        let envs = like.get_envs().filter_map(|(name, value)| Some((name, value?)));
        let mut ccm = Command::new(like.get_program());
        ccm.env_clear().envs(envs).current_dir(self.dir.path()).args(args);
        let output = ccm.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }

    fn start_in(dir: tempfile::TempDir, flags: &[&str]) -> Self {
        let site = dir.path().join("site");
        Self::start_at(dir, &site, flags)
    }

    fn start_at(dir: tempfile::TempDir, path: &Path, flags: &[&str]) -> Self {
        let mut child = Self::command_at(dir.path(), path, flags).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let _ = child.kill();
            let mut said = String::new();
            let _ = child.stderr.take().unwrap().read_to_string(&mut said);
            panic!("it did not start: {line}{said}")
        });
        let url = printed["url"].as_str().unwrap();
        let (origin, token) = url.split_once("/#token=").unwrap();
        let host = origin.strip_prefix("http://").unwrap().to_owned();
        let target = match printed["socket"].as_str() {
            Some(path) => Target::Unix(PathBuf::from(path)),
            None => Target::Tcp(host.parse().unwrap()),
        };
        assert_eq!(printed["pid"], child.id());
        let token = token.to_owned();
        let mut studio = Self { dir, child: Some(child), target, host, token, key: String::new() };
        let answer = studio.exchange(&studio.token.clone());
        assert_eq!(answer.status, 200, "{}", answer.text());
        read(&answer)["key"].as_str().unwrap().clone_into(&mut studio.key);
        studio
    }

    fn exchange(&self, token: &str) -> Answer {
        let body = json!({"token": token}).to_string();
        let headers = [("Host", self.host.as_str()), ("Content-Type", "application/json")];
        self.target.send("POST /api/v1/session", &headers, body.as_bytes())
    }

    /// A request as the page sends it, with more headers.
    fn request(&self, line: &str, more: &[(&str, &str)], body: &[u8]) -> Answer {
        let (method, path) = line.split_once(' ').unwrap();
        let bearer = format!("Bearer {}", self.key);
        let mut headers = vec![("Host", self.host.as_str()), ("Authorization", bearer.as_str())];
        if !body.is_empty() {
            headers.push(("Content-Type", "application/json"));
        }
        headers.extend(more);
        self.target.send(&format!("{method} /api/v1/{path}"), &headers, body)
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.request(&format!("GET {path}"), &[], b"");
        assert!(answer.status < 300, "{path}: {} {}", answer.status, answer.text());
        read(&answer)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let answer = self.try_post(path, body);
        assert!(answer.status < 300, "{path}: {} {}", answer.status, answer.text());
        read(&answer)
    }

    fn try_post(&self, path: &str, body: &Value) -> Answer {
        self.request(&format!("POST {path}"), &[], body.to_string().as_bytes())
    }

    fn site(&self, name: &str) -> PathBuf {
        self.dir.path().join("site").join(name)
    }

    fn pid(&self) -> nix::unistd::Pid {
        nix::unistd::Pid::from_raw(self.child.as_ref().unwrap().id().cast_signed())
    }

    /// Sends a signal and gives the exit code and what was said on stderr.
    fn end(&mut self, signal: nix::sys::signal::Signal) -> (Option<i32>, String) {
        nix::sys::signal::kill(self.pid(), signal).unwrap();
        let mut child = self.child.take().unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (child.wait().unwrap().code(), said)
    }
}

impl Drop for Studio {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The JSON of an answer.
fn read(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or_else(|_| panic!("no JSON: {}", answer.text()))
}

/// Status and code of an error.
fn code(answer: &Answer) -> (u16, String) {
    (answer.status, read(answer)["error"]["code"].as_str().unwrap_or_default().to_owned())
}
