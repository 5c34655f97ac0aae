//! `install.sh`, with releases on the loopback interface.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ccm_testkit::{Server, answer, lacks_program};
use tempfile::TempDir;

/// The shells that the script must work with.
const SHELLS: [&[&str]; 2] = [&["dash"], &["busybox", "sh"]];

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../install.sh")
}

fn target() -> &'static str {
    match std::env::consts::ARCH {
        "aarch64" => "aarch64-unknown-linux-musl",
        _ => "x86_64-unknown-linux-musl",
    }
}

/// A release on a server: archives of small programs that only tell their version.
struct Release {
    server: Server,
    root: TempDir,
}

impl Release {
    fn new(versions: &[&str]) -> Self {
        Self::with(versions, |sums| sums)
    }

    /// With a list of checksums that is changed.
    fn with(versions: &[&str], change: impl Fn(String) -> String) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut files = Vec::new();
        let mut sums = String::new();
        for version in versions {
            let name = format!("ccm-{version}-{}", target());
            let archive = archive(root.path(), &name, version);
            sums += &format!("{}  {name}.tar.gz\n", sha256(root.path(), &archive));
            files.push((format!("/{name}.tar.gz"), archive));
        }
        files.push(("/SHA256SUMS".to_owned(), change(sums).into_bytes()));
        let server = Server::start(move |request, stream| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let file = files.iter().find(|(name, _)| name == path);
            let bytes = match file {
                Some((_, content)) => answer("200 OK", "", content),
                None => answer("404 Not Found", "", b""),
            };
            stream.write_all(&bytes).unwrap();
        });
        Self { server, root }
    }

    fn prefix(&self) -> PathBuf {
        self.root.path().join("prefix")
    }

    fn install(&self, shell: &[&str], args: &[&str]) -> Output {
        let prefix = self.prefix();
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(script()).args(args).arg("--prefix").arg(prefix);
        command.env("CCM_DOWNLOAD", self.server.url("/")).env("TMPDIR", self.root.path());
        command.output().unwrap()
    }

    fn installed(&self) -> Vec<String> {
        let prefix = self.prefix();
        let list = Command::new("find").arg(&prefix).args(["-type", "f"]).output().unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        let names = list.lines().filter_map(|line| Path::new(line).strip_prefix(&prefix).ok());
        let mut names: Vec<String> = names.map(|name| name.display().to_string()).collect();
        names.sort();
        names
    }
}

fn archive(root: &Path, name: &str, version: &str) -> Vec<u8> {
    let tree = root.join(name);
    for (path, content) in [
        ("bin/ccm", format!("#!/bin/sh\necho 'ccm {version} (0123456789ab, 2026-11-18)'\n")),
        (&format!("share/doc/ccm/of-{version}"), "text\n".to_owned()),
        ("share/man/man1/ccm.1.gz", "page\n".to_owned()),
        ("lib/systemd/system/ccm-agent.service", "[Service]\n".to_owned()),
    ] {
        fs::create_dir_all(tree.join(path).parent().unwrap()).unwrap();
        fs::write(tree.join(path), content).unwrap();
    }
    fs::set_permissions(tree.join("bin/ccm"), fs::Permissions::from_mode(0o755)).unwrap();
    let tar = Command::new("tar").args(["-cz", "-C"]).arg(root).arg(name).output().unwrap();
    assert!(tar.status.success());
    fs::remove_dir_all(tree).unwrap();
    tar.stdout
}

fn sha256(root: &Path, content: &[u8]) -> String {
    let path = root.join("content");
    fs::write(&path, content).unwrap();
    let output = Command::new("sha256sum").arg(&path).output().unwrap();
    fs::remove_file(path).unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

fn shells() -> impl Iterator<Item = &'static [&'static str]> {
    SHELLS.into_iter().filter(|shell| !lacks_program(shell[0]))
}

#[test]
fn a_release_is_installed_upgraded_and_removed() {
    for shell in shells() {
        let release = Release::new(&["0.9.0", "1.0.0"]);
        let output = release.install(shell, &["--version", "0.9.0"]);
        assert!(output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("Installed ccm 0.9.0 ("), "{}", said(&output));
        assert!(said(&output).contains("is not in your PATH"), "{}", said(&output));
        let files = ["bin/ccm", "share/ccm/installed-files", "share/doc/ccm/of-0.9.0"];
        assert_eq!(release.installed(), [&files[..], &["share/man/man1/ccm.1.gz"]].concat());
        let mode = fs::metadata(release.prefix().join("bin/ccm")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);

        let output = release.install(shell, &["--version", "1.0.0"]);
        assert!(said(&output).contains("Replacing ccm 0.9.0 ("), "{}", said(&output));
        assert!(said(&output).contains("Installed ccm 1.0.0 ("), "{}", said(&output));

        // A file of someone else keeps its directory.
        fs::write(release.prefix().join("share/man/man1/other.1"), "").unwrap();
        let output = release.install(shell, &["--uninstall"]);
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(release.installed(), ["share/man/man1/other.1"]);
        assert!(!release.prefix().join("bin").exists());
        assert!(!release.prefix().join("share/doc").exists());
        let output = release.install(shell, &["--uninstall"]);
        assert!(!output.status.success());
        assert!(said(&output).contains("there is no installation"), "{}", said(&output));
    }
}

#[test]
fn what_cannot_be_trusted_is_not_installed() {
    let other = "0".repeat(64);
    type Case<'a> = (&'a str, &'a [&'a str], &'a dyn Fn(String) -> String);
    let sums: [Case<'_>; 5] = [
        ("checksum mismatch", &[], &|sums| format!("{other}{}", &sums[64..])),
        ("has no archive for", &[], &|_| String::new()),
        ("has no archive for", &[], &|sums| sums.replace("  ccm-", "  ../ccm-")),
        ("has no archive of version 2.0.0", &["--version", "2.0.0"], &|sums| sums),
        ("is not a version", &["--version", "1.*"], &|sums| sums),
    ];
    for shell in shells() {
        for (words, args, change) in &sums {
            let release = Release::with(&["1.0.0"], change);
            let output = release.install(shell, args);
            assert!(!output.status.success() && said(&output).contains(words), "{}", said(&output));
            assert_eq!(release.installed(), [""; 0]);
        }
        let several = Release::new(&["1.0.0", "1.1.0"]);
        assert!(said(&several.install(shell, &[])).contains("choose one with --version"));
    }
}

#[test]
fn a_foreign_program_is_not_replaced() {
    for shell in shells() {
        let release = Release::new(&["1.0.0"]);
        let binary = release.prefix().join("bin/ccm");
        fs::create_dir_all(binary.parent().unwrap()).unwrap();
        fs::write(&binary, "#!/bin/sh\necho other\n").unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        let output = release.install(shell, &[]);
        assert!(said(&output).contains("exists and is not ccm"), "{}", said(&output));
        assert_eq!(fs::read_to_string(&binary).unwrap(), "#!/bin/sh\necho other\n");
        assert_eq!(release.installed(), ["bin/ccm"]);
    }
}

#[test]
fn directories_that_were_there_stay_and_replaced_files_are_named() {
    for shell in shells() {
        let release = Release::new(&["1.0.0"]);
        for directory in ["bin", "share/man"] {
            fs::create_dir_all(release.prefix().join(directory)).unwrap();
        }
        fs::create_dir_all(release.prefix().join("share/man/man1")).unwrap();
        fs::write(release.prefix().join("share/man/man1/ccm.1.gz"), "of others").unwrap();
        let output = release.install(shell, &[]);
        let page = release.prefix().join("share/man/man1/ccm.1.gz");
        let words = format!("Replacing {}, which another program installed", page.display());
        assert!(output.status.success() && said(&output).contains(&words), "{}", said(&output));
        let again = release.install(shell, &[]);
        assert!(again.status.success() && !said(&again).contains(&words), "{}", said(&again));
        assert!(release.install(shell, &["--uninstall"]).status.success());
        assert_eq!(release.installed(), [""; 0]);
        let left =
            Command::new("find").arg(release.prefix()).args(["-type", "d"]).output().unwrap();
        let left = String::from_utf8(left.stdout).unwrap();
        let mut left: Vec<&str> = left
            .lines()
            .filter_map(|line| line.split_once("prefix"))
            .map(|(_, name)| name)
            .collect();
        left.sort_unstable();
        assert_eq!(left, ["", "/bin", "/share", "/share/man", "/share/man/man1"]);
    }
}

/// A system of busybox alone: its wget, tar, grep, sed and the others.
#[test]
fn busybox_is_enough() {
    if lacks_program("busybox") {
        return;
    }
    let release = Release::new(&["1.0.0+build.1"]);
    let programs = release.root.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let busybox = String::from_utf8(
        Command::new("sh").args(["-c", "command -v busybox"]).output().unwrap().stdout,
    );
    let busybox = busybox.unwrap();
    let installed = Command::new(busybox.trim()).args(["--install", "-s"]).arg(&programs).output();
    assert!(installed.unwrap().status.success());
    let run = |arg: &str, value: &str| {
        let mut command = Command::new(programs.join("sh"));
        command.env_clear().env("PATH", &programs).env("TMPDIR", release.root.path());
        command.arg(script()).args([arg, value]).arg("--prefix").arg(release.prefix());
        command.env("CCM_DOWNLOAD", release.server.url("/")).output().unwrap()
    };
    let output = run("--version", "1.0.0+build.1");
    assert!(said(&output).contains("Installed ccm 1.0.0+build.1 ("), "{}", said(&output));
    let output = run("--version", "1.0.0xbuild.1");
    assert!(said(&output).contains("has no archive of version"), "{}", said(&output));
}

/// Someone pipes the script into a shell, and the connection ends.
#[test]
fn a_script_that_was_cut_off_does_nothing() {
    let release = Release::new(&["1.0.0"]);
    let text = fs::read_to_string(script()).unwrap();
    for length in (0..text.len()).step_by(text.len() / 60).filter(|&at| text.is_char_boundary(at)) {
        let path = release.root.path().join("cut.sh");
        fs::write(&path, &text[..length]).unwrap();
        let mut command = Command::new("sh");
        command.arg(path).arg("--prefix").arg(release.prefix());
        command.env("CCM_DOWNLOAD", release.server.url("/")).output().unwrap();
    }
    assert_eq!(release.installed(), [""; 0]);
    assert_eq!(release.server.requests(), [""; 0]);
}

#[test]
fn temporary_files_are_removed() {
    let release = Release::new(&["1.0.0"]);
    assert!(release.install(&["sh"], &[]).status.success());
    let names = fs::read_dir(release.root.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["prefix"]);
}

#[test]
fn shellcheck_finds_nothing() {
    if !lacks_program("shellcheck") {
        let output = Command::new("shellcheck").arg(script()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    }
}
