//! A server, and a place for ccm with contexts that lead to it.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use ccm_testkit::nats::{NatsServer, Wire};
pub(crate) use ccm_testkit::nats::{encoded, object_digest as digest};

use crate::env::TestEnv;

pub(crate) struct Bed {
    pub(crate) server: NatsServer,
    pub(crate) env: TestEnv,
    _servers: tempfile::TempDir,
}

impl Bed {
    /// A server that refuses nobody, and the context `CCM` for it.
    pub(crate) fn new() -> Self {
        Self::with("")
    }

    pub(crate) fn with(configuration: &str) -> Self {
        let servers = tempfile::tempdir().unwrap();
        let server = NatsServer::with(servers.path(), configuration);
        let env = TestEnv::new();
        context(&env, "CCM", &format!("\"url\": \"{}\"", server.url()));
        Self { server, env, _servers: servers }
    }

    pub(crate) fn wire(&self) -> Wire {
        self.server.wire()
    }

    pub(crate) fn run<const N: usize>(&self, args: [&str; N]) -> Ran {
        Ran::of(&self.env.run(args))
    }

    /// Runs ccm, which must do it.
    pub(crate) fn ok<const N: usize>(&self, args: [&str; N]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.out
    }

    /// Runs ccm, which must fail; what it says.
    pub(crate) fn fails<const N: usize>(&self, args: [&str; N]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, 1, "{ran:?}");
        ran.err
    }

    /// Writes and applies a manifest.
    pub(crate) fn apply(&self, manifest: &str, args: &[&str]) -> Ran {
        self.env.manifest(manifest);
        let args = ["apply", "manifest.yaml"].iter().chain(args).copied();
        Ran::of(&self.env.command(args).output().unwrap())
    }

    /// Runs ccm with this on its standard input.
    pub(crate) fn piped<const N: usize>(&self, args: [&str; N], input: &str) -> Ran {
        let mut child = self
            .env
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        Ran::of(&child.wait_with_output().unwrap())
    }
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Writes a context of these members.
pub(crate) fn context(env: &TestEnv, name: &str, members: &str) -> PathBuf {
    private(env, &format!(".config/nats/context/{name}.json"), &format!("{{{members}}}"))
}

/// Writes a file that only its owner can read.
pub(crate) fn private(env: &TestEnv, name: &str, text: &str) -> PathBuf {
    let path = env.write(name, text);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

/// Stores an object whole.
pub(crate) fn put_object(wire: &mut Wire, bucket: &str, name: &str, content: &[u8]) {
    wire.put_object(bucket, name, content);
}

/// A `.tar.gz` with one manifest.
pub(crate) fn tarball(manifest: &str) -> Vec<u8> {
    ccm_testkit::tarball(&[("manifest.yaml", manifest.as_bytes())])
}
