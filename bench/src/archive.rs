//! Unpacking: ccm against `tar -xzf`, by the clock, as both use two processors.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::measure::{Usage, median};

const TIMES: usize = 5;
/// Bytes of the archive, about.
const SIZE: usize = 500_000_000;
const SMALL_FILES: usize = 20_000;

pub(crate) fn run(ccm: &str, base: &Path) -> io::Result<()> {
    compare(ccm, &base.join("archive"), "a tar.gz of {} MB", large_files)?;
    let what = format!("a tar.gz of {SMALL_FILES} small files");
    compare(ccm, &base.join("small"), &what, small_files)
}

/// Measures one archive; `{}` in `what` is its size.
fn compare(
    ccm: &str,
    base: &Path,
    what: &str,
    populate: fn(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let source = base.join("source");
    let archive = base.join("a.tar.gz");
    fs::create_dir_all(&source)?;
    populate(&source)?;
    fs::write(source.join("marker"), "")?;
    tool(Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(&source).arg("."))?;
    fs::remove_dir_all(&source)?;
    let size = fs::metadata(&archive)?.len() / 1_000_000;
    let what = what.replace("{}", &size.to_string());

    let path = archive.to_string_lossy();
    let mut sides = [Vec::new(), Vec::new()];
    let mut peak_kib = 0;
    for round in 0..TIMES {
        // In turn, so that what else goes on meets both alike.
        for (side, times) in sides.iter_mut().enumerate() {
            let into = base.join(format!("into-{side}-{round}"));
            fs::create_dir(&into)?;
            let directory = into.to_string_lossy();
            let marker = into.join("marker");
            let marker = marker.to_string_lossy();
            let theirs = ["tar", "-xzf", &*path, "-C", &*directory];
            let url = "http://127.0.0.1:1/a.tar.gz";
            let ours = [
                ccm,
                "ensure",
                "archive",
                &*path,
                url,
                "--extract",
                &*directory,
                "--creates",
                &*marker,
                "--no-sync",
            ];
            let begin = Instant::now();
            let used = if side == 0 {
                median(1, &theirs, || Ok(()))?
            } else {
                median(1, &ours, || Ok(()))?
            };
            times.push((begin.elapsed(), used));
            if side == 1 {
                peak_kib = peak_kib.max(used.peak_kib);
            }
            fs::remove_dir_all(&into)?;
            // Not the next one's business.
            tool(&mut Command::new("sync"))?;
        }
    }
    let [theirs, ours] = sides.map(middle);
    let ratio = |ours: Duration, theirs: Duration| ours.as_secs_f64() / theirs.as_secs_f64();
    println!(
        "| {what} extracted, against `tar -xzf`: wall time | {:.2} s | {:.2} s | {:.2} × | {:.1} MiB |",
        ours.0.as_secs_f64(),
        theirs.0.as_secs_f64(),
        ratio(ours.0, theirs.0),
        peak_kib as f64 / 1024.0
    );
    println!(
        "| the same: CPU | {:.2} s | {:.2} s | {:.2} × | |",
        ours.1.cpu.as_secs_f64(),
        theirs.1.cpu.as_secs_f64(),
        ratio(ours.1.cpu, theirs.1.cpu),
    );
    Ok(())
}

fn middle(mut times: Vec<(Duration, Usage)>) -> (Duration, Usage) {
    times.sort_by_key(|(wall, _)| *wall);
    times[times.len() / 2]
}

/// Files of many sizes, half of each text and half of it noise, as programs
/// and their data are.
fn large_files(top: &Path) -> io::Result<()> {
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        noise
    };
    let words: Vec<String> =
        (0..4096).map(|_| format!("{:x} ", next() >> (24 + next() % 24))).collect();
    let sizes = [1_000, 5_000, 20_000, 100_000, 1_000_000, 3_000_000];
    let mut total = 0;
    for n in 0.. {
        // Text shrinks to less than half.
        if total > SIZE * 141 / 100 {
            break;
        }
        let directory = top.join(format!("d{}", n / 100));
        fs::create_dir_all(&directory)?;
        let half = sizes[n % sizes.len()] / 2;
        let mut bytes = Vec::with_capacity(half * 2);
        while bytes.len() < half {
            bytes.extend_from_slice(&next().to_le_bytes());
        }
        while bytes.len() < half * 2 {
            bytes.extend_from_slice(words[next() as usize % words.len()].as_bytes());
        }
        total += bytes.len();
        fs::write(directory.join(format!("f{n}")), bytes)?;
    }
    Ok(())
}

/// Many files with little in them, as source trees are.
fn small_files(top: &Path) -> io::Result<()> {
    for n in 0..SMALL_FILES {
        let directory = top.join(format!("d{}", n / 100));
        if n % 100 == 0 {
            fs::create_dir(&directory)?;
        }
        let line = format!("line of file {n}\n");
        fs::write(directory.join(format!("f{n}")), line.repeat(1 + n % 200))?;
    }
    Ok(())
}

fn tool(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{command:?}: {status}"))) }
}
