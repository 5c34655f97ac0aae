//! Archives under attack: runs that are killed while they extract, two at once,
//! on disks that fail, and under the hands of another user. `ccm-archive` has the
//! tests of extraction itself.
//!
//! `CCM_ATTACKS` says how many kills there are to be at least.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use ccm_testkit::{
    Server, answer, is_whole_version, snapshot, versioned_content as content,
    versioned_name as name,
};

use crate::TestEnv;

const NOBODY: u32 = 65534;
const FILES: usize = 48;

fn attacks(few: usize) -> usize {
    let told = std::env::var("CCM_ATTACKS").ok().and_then(|text| text.parse().ok());
    told.unwrap_or(few)
}

/// Archives of a tree in two versions, and what `tar` makes of each.
struct Scene {
    env: TestEnv,
    server: Server,
    archives: [PathBuf; 2],
    trees: [BTreeMap<PathBuf, String>; 2],
}

impl Scene {
    fn new() -> Self {
        let env = TestEnv::new();
        let mut archives = Vec::new();
        let mut trees = Vec::new();
        for version in 1..=2 {
            let source = format!("v{version}");
            for n in 0..FILES {
                env.write(&format!("{source}/{}", name(n)), &content(version, n));
            }
            let at = |name: &str| env.path(&source).join(name);
            std::os::unix::fs::symlink("d1/f01", at("app/link")).unwrap();
            std::fs::hard_link(at(&name(2)), at("app/z-hard")).unwrap();
            let archive = env.path(&format!("v{version}.tar.gz"));
            let source = at("");
            // `app/d1/f05` says that all is there, and is not the last entry.
            let status = Command::new("tar")
                .args(["--sort=name", "-czf", archive.to_str().unwrap(), "-C"])
                .args([source.to_str().unwrap(), "app"])
                .status();
            assert!(status.unwrap().success());
            let reference = env.path("reference");
            std::fs::create_dir(&reference).unwrap();
            let status = Command::new("tar")
                .args(["-xzf", archive.to_str().unwrap(), "-C", reference.to_str().unwrap()])
                .status();
            assert!(status.unwrap().success());
            let mut tree = snapshot(&reference);
            tree.remove(Path::new(""));
            trees.push(tree);
            std::fs::remove_dir_all(&reference).unwrap();
            archives.push(archive);
        }
        let both = archives.clone();
        let server = Server::start(move |head, stream| {
            let archive = &both[usize::from(head.contains("v2"))];
            let _ = stream.write_all(&answer("200 OK", "", &std::fs::read(archive).unwrap()));
        });
        let (archives, trees) = (archives.try_into().unwrap(), trees.try_into().unwrap());
        Self { env, server, archives, trees }
    }

    fn checksum(&self, version: usize) -> String {
        let output = Command::new("sha256sum").arg(&self.archives[version - 1]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()[..64].to_owned()
    }

    /// The command that extracts a version into `DIR/PLACE/in`.
    fn command(&self, place: &str, version: usize, more: &[&str]) -> Command {
        let at = |name: &str| self.env.path(place).join(name).to_string_lossy().into_owned();
        let url = self.server.url(&format!("/v{version}.tar.gz"));
        let mut command =
            self.env.command(["ensure", "archive", &at("a.tar.gz"), &url, "--no-sync", "--json"]);
        command.args(["--extract", &at("in")]);
        command.args(more.iter().map(|arg| arg.replace("[IN]", &at("in"))));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, place: &str, version: usize, more: &[&str]) -> Output {
        self.command(place, version, more).output().unwrap()
    }

    /// Nothing in a place is torn; what `ccm` itself needs aside.
    fn check_whole(&self, place: &str, context: &str) {
        for n in 0..FILES {
            let path = self.env.path(place).join("in").join(name(n));
            if let Ok(text) = std::fs::read_to_string(&path) {
                assert!(is_whole_version(&text, n), "{context}: {} is torn", path.display());
            }
        }
    }

    /// All of a version is in a place, and nothing else.
    fn check_complete(&self, place: &str, version: usize, context: &str) {
        let mut found = snapshot(&self.env.path(place).join("in"));
        found.remove(Path::new(""));
        for (name, what) in &self.trees[version - 1] {
            assert_eq!(found.get(name), Some(what), "{context}: {}", name.display());
        }
        let extra: Vec<_> =
            found.keys().filter(|name| !self.trees[version - 1].contains_key(*name)).collect();
        assert!(extra.is_empty(), "{context}: {extra:?}");
    }
}

/// Whether a run says that it changed something; `None` when it failed.
fn has_changed(output: &Output) -> Option<bool> {
    let is = |changed: bool| text(output).contains(&format!("\n  \"changed\": {changed},\n"));
    output.status.success().then(|| {
        assert_ne!(is(true), is(false), "{}", text(output));
        is(true)
    })
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn end(mut child: Child) -> bool {
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

/// Whether an extraction is under way in a directory, or was not ended.
fn is_marked(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| {
        entries.any(|entry| entry.unwrap().file_name().to_string_lossy().contains("incomplete"))
    })
}

/// Waits until an extraction begins or will not; how long that took.
fn await_extraction(child: &mut Child, directory: &Path) -> Duration {
    let begin = Instant::now();
    while !is_marked(directory) && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    begin.elapsed()
}

/// Waits about so long; sleeping is too coarse for moments.
fn spin(duration: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < duration {
        std::hint::spin_loop();
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn a_kill_at_any_moment_of_an_extraction_is_made_good() {
    let scene = Scene::new();
    let checksum = scene.checksum(2);
    let variants: [(&str, &[&str]); 4] = [
        ("plain", &[]),
        ("creates", &["--creates", "[IN]/app/d1/f05"]),
        ("cleanup", &["--creates", "[IN]/app", "--cleanup"]),
        ("checksum", &["--checksum", &checksum]),
    ];
    let count = attacks(40);
    let (mut kills, mut torn_runs, mut again) = (0, 0, 0);
    for (variant, more) in variants {
        // How long it takes here and now: before the extraction, and that.
        let mut times = [Duration::ZERO; 2];
        for place in ["warm", "timed"].map(|place| format!("{variant}-{place}")) {
            std::fs::create_dir(scene.env.path(&place)).unwrap();
            let mut child = scene.command(&place, 2, more).spawn().unwrap();
            times[0] = await_extraction(&mut child, &scene.env.path(&place).join("in"));
            let begin = Instant::now();
            let output = child.wait_with_output().unwrap();
            times[1] = begin.elapsed();
            assert_eq!(has_changed(&output), Some(true), "{}", text(&output));
        }
        let share = count.div_ceil(variants.len());
        for round in 1..=share {
            let place = format!("{variant}-{round}");
            let context = format!("{variant}, round {round} of {share}");
            let at = |name: &str| scene.env.path(&place).join(name);
            std::fs::create_dir(at("")).unwrap();
            // Every other time over an older tree, where that is possible.
            if round % 2 == 0 && variant != "cleanup" {
                let old = scene.run(&place, 1, &["--creates", "[IN]/app"]);
                assert!(old.status.success(), "{}", text(&old));
                match variant {
                    "plain" => std::fs::remove_file(at("a.tar.gz")).unwrap(),
                    "creates" => {
                        std::fs::remove_file(at("in/app/d1/f05")).unwrap();
                        std::fs::copy(&scene.archives[1], at("a.tar.gz")).unwrap();
                    }
                    _ => {}
                }
            }
            // And sometimes the run that makes good is killed as well.
            for part in 0..=usize::from(round % 3 == 0) {
                let mut child = scene.command(&place, 2, more).spawn().unwrap();
                let moment = f64::from((round * 7 + part * 5) as u32 % 16) / 16.0;
                if round % 4 == 3 {
                    spin((times[0] + times[1]).mul_f64(moment));
                } else {
                    await_extraction(&mut child, &at("in"));
                    spin(times[1].mul_f64(moment));
                }
                kills += 1;
                torn_runs += usize::from(end(child));
                scene.check_whole(&place, &context);
            }
            let incomplete = is_marked(&at("in"));
            let next = scene.run(&place, 2, more);
            assert!(next.status.success(), "{context}: {}", text(&next));
            if incomplete {
                again += 1;
                assert_eq!(has_changed(&next), Some(true), "{context}: {}", text(&next));
            }
            scene.check_complete(&place, 2, &context);
            assert_eq!(at("a.tar.gz").exists(), variant != "cleanup", "{context}");
            let left: Vec<_> = std::fs::read_dir(at(""))
                .unwrap()
                .flatten()
                .filter(|entry| entry.file_name().to_string_lossy().starts_with(".ccm-"))
                .collect();
            assert!(left.is_empty(), "{context}: {left:?}");
            let stable = scene.run(&place, 2, more);
            assert_eq!(has_changed(&stable), Some(false), "{context}: {}", text(&stable));
            std::fs::remove_dir_all(at("")).unwrap();
        }
    }
    println!("{kills} kills, {torn_runs} of them in time, {again} with a marker left");
    assert!(again > 0, "no extraction was killed half-way: the test shows nothing");
}

#[test]
fn two_at_once_both_succeed() {
    let scene = Scene::new();
    let variants: [&[&str]; 3] =
        [&[], &["--creates", "[IN]/app/d1/f05"], &["--creates", "[IN]/app", "--cleanup"]];
    for round in 0..15 {
        let more = variants[round % variants.len()];
        let place = format!("both-{round}");
        std::fs::create_dir(scene.env.path(&place)).unwrap();
        if round >= 9 {
            // The archive is there, so that both want to extract the same file.
            std::fs::copy(&scene.archives[1], scene.env.path(&place).join("a.tar.gz")).unwrap();
        }
        let both = [(), ()].map(|()| scene.command(&place, 2, more).spawn().unwrap());
        for child in both {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "round {round}: {}", text(&output));
        }
        if round >= 9 && more.is_empty() {
            continue; // Without `creates`, an archive that is there is left alone.
        }
        scene.check_complete(&place, 2, &format!("round {round}"));
    }
}

/// One failing call after the other, wherever it is: nothing is torn, nothing
/// that failed is called a success, and the next run makes it good.
#[test]
#[expect(clippy::print_stdout, reason = "figures")]
fn a_failing_disk_tears_nothing() {
    if ccm_testkit::lacks_strace() {
        return;
    }
    let scene = Scene::new();
    std::fs::create_dir(scene.env.path("old")).unwrap();
    assert!(scene.run("old", 1, &[]).status.success());
    let more = ["--creates", "[IN]/app/d1/f05"];
    let log = scene.env.path("trace");
    let (mut failed, mut number) = (0, 0);
    for (call, error, moments) in [
        ("write", "EIO", &[3, 4, 9, 60][..]),
        ("write", "ENOSPC", &[5, 30]),
        ("renameat", "EIO", &[1, 2, 20]),
        ("renameat2", "EIO", &[1]),
        ("fchmod", "EIO", &[1, 9]),
        ("fchown", "EIO", &[1, 9]),
        ("utimensat", "EIO", &[1, 30]),
        ("linkat", "EIO", &[1]),
        ("symlinkat", "EIO", &[1]),
        ("unlinkat", "EIO", &[1]),
        ("syncfs", "EIO", &[1]),
    ] {
        for &moment in moments {
            number += 1;
            let place = format!("fault-{number}");
            let context = format!("{call} {moment} fails with {error}");
            let [old, new] = [scene.env.path("old"), scene.env.path(&place)];
            assert!(Command::new("cp").arg("-a").args([&old, &new]).status().unwrap().success());
            std::fs::remove_file(new.join("in/app/d1/f05")).unwrap();
            std::fs::copy(&scene.archives[1], new.join("a.tar.gz")).unwrap();
            let plain = scene.command(&place, 2, &more);
            let mut command = Command::new("strace");
            command.args(["-f", "-qq", "-o", log.to_str().unwrap(), "-e"]);
            command.arg(format!("inject={call}:error={error}:when={moment}"));
            command.arg(plain.get_program());
            command.args(plain.get_args().filter(|&arg| arg != "--no-sync" || call != "syncfs"));
            command.current_dir(scene.env.dir()).env("CCM_STATE_DIR", scene.env.state());
            let output = command.output().unwrap();
            let injected = std::fs::read_to_string(&log).unwrap().contains("(INJECTED)");
            scene.check_whole(&place, &context);
            if output.status.success() {
                scene.check_complete(&place, 2, &context);
            } else {
                assert!(injected, "{context}: {}", text(&output));
                assert_eq!(output.status.code(), Some(1), "{context}: {}", text(&output));
                failed += 1;
            }
            let next = scene.run(&place, 2, &more);
            assert!(next.status.success(), "{context}: {}", text(&next));
            scene.check_complete(&place, 2, &context);
        }
    }
    println!("{number} faults, {failed} runs failed");
    assert!(failed >= 10, "only {failed} runs failed: the test shows little");
}

/// Another user, who is to own the archive, writes to whatever of it he can get
/// at, all the time. What is extracted is what was checksummed.
#[test]
fn the_owner_of_an_archive_cannot_change_what_is_extracted() {
    use std::os::unix::process::CommandExt as _;
    if ccm_testkit::lacks_root() {
        return;
    }
    let scene = Scene::new();
    let checksum = scene.checksum(2);
    for round in 0..12 {
        let place = format!("theirs-{round}");
        let at = |name: &str| scene.env.path(&place).join(name);
        std::fs::create_dir(at("")).unwrap();
        std::fs::create_dir(at("drop")).unwrap();
        for path in [scene.env.dir().to_owned(), at("drop")] {
            std::os::unix::fs::chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        // One of the same length, so that it can take the other's place in parts.
        let mut evil = std::fs::read(&scene.archives[0]).unwrap();
        evil.resize(std::fs::metadata(&scene.archives[1]).unwrap().len() as usize, 0);
        std::fs::write(at("evil"), evil).unwrap();
        let is_there = round % 2 == 1;
        if is_there {
            std::fs::copy(&scene.archives[1], at("drop/a.tar.gz")).unwrap();
            std::os::unix::fs::chown(at("drop/a.tar.gz"), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let (drop, evil, good) = (at("drop"), at("evil"), &scene.archives[1]);
        let (drop, evil, good) = (drop.display(), evil.display(), good.display());
        let write = |from: &dyn std::fmt::Display| {
            format!(
                "for f in {drop}/*.gz {drop}/.ccm-*; do \
                 test -f $f && dd if={from} of=$f conv=notrunc bs=1M; done"
            )
        };
        let script = format!("while :; do {}; {}; done 2>/dev/null", write(&evil), write(&good));
        let mut attacker = Command::new("sh");
        attacker.args(["-c", &script]).uid(NOBODY).gid(NOBODY).process_group(0);
        let mut attacker = attacker.spawn().unwrap();
        // Another moment of the run each time.
        std::thread::sleep(Duration::from_millis(round as u64 * 3));
        let output = scene
            .env
            .command(["ensure", "archive", &format!("{drop}/a.tar.gz")])
            .arg(scene.server.url("/v2.tar.gz"))
            .args(["--checksum", &checksum, "--owner", "nobody:nogroup", "--no-sync"])
            .args(["--extract", at("in").to_str().unwrap()])
            .args(["--creates", at("in/app/d1/f05").to_str().unwrap()])
            .output()
            .unwrap();
        let group = nix::unistd::Pid::from_raw(-i32::try_from(attacker.id()).unwrap());
        nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGKILL).unwrap();
        attacker.wait().unwrap();
        for n in 0..FILES {
            if let Ok(found) = std::fs::read_to_string(at("in").join(name(n))) {
                let said = text(&output);
                assert_eq!(found, content(2, n), "round {round}: foreign content: {said}");
            }
        }
        if !is_there {
            // The archive is theirs once it is in its place, and verification sees
            // what they write then.
            let said = text(&output);
            let is_told = output.status.success() || said.contains("the checksum differs");
            assert!(is_told, "round {round}: {said}");
            scene.check_complete(&place, 2, &format!("round {round}"));
        }
    }
}
