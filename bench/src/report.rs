//! All measurements, as a table.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::generate;
use crate::measure::{Usage, median};

const TIMES: usize = 7;

pub(crate) fn run(ccm: &Path) -> io::Result<()> {
    let base = std::env::temp_dir().join(format!("ccm-bench-{}", std::process::id()));
    fs::create_dir(&base)?;
    let result = measure_all(ccm, &base);
    fs::remove_dir_all(&base)?;
    result
}

fn measure_all(ccm: &Path, base: &Path) -> io::Result<()> {
    let ccm = ccm.canonicalize()?;
    let ccm = ccm.to_string_lossy();
    let me = std::env::current_exe()?;
    let me = me.to_string_lossy();
    println!("| what | CPU | floor | ratio | peak memory |");
    println!("|---|---|---|---|---|");

    let version = median(21, &[&ccm, "--version"], || Ok(()))?;
    row("`ccm --version`", version, None);

    let mut growth = Vec::new();
    for n in [1_000, 10_000, 100_000] {
        let directory = base.join(format!("files-{n}"));
        let manifest = base.join(format!("manifest-{n}.yaml"));
        fs::create_dir(&directory)?;
        fs::write(&manifest, generate::manifest(&directory, n))?;
        let target = directory.to_string_lossy().into_owned();
        let manifest = manifest.to_string_lossy().into_owned();
        let count = n.to_string();
        let empty = || {
            fs::remove_dir_all(&directory)?;
            fs::create_dir(&directory)
        };
        let times = if n > 10_000 { 3 } else { TIMES };

        let floor = median(times, &[&me, "floor", "create", &target, &count], empty)?;
        let created = median(times, &[&ccm, "apply", &manifest, "--no-sync"], empty)?;
        row(&format!("{n} files created, no barrier"), created, Some(floor));

        let floor = median(times, &[&me, "floor", "check", &target, &count], || Ok(()))?;
        let stable = median(times, &[&ccm, "apply", &manifest, "--no-sync"], || Ok(()))?;
        row(&format!("{n} files stable"), stable, Some(floor));
        growth.push((n, stable.cpu, created.cpu));

        if n == 1_000 {
            let one = generate::path(&directory, 0);
            let one = one.to_string_lossy();
            let content = generate::content(0);
            let ensure = [&ccm, "ensure", "file", &one, "--content", &content];
            row("one stable `ccm ensure file`", median(21, &ensure, || Ok(()))?, None);
        }
        if n == 10_000 {
            let begin = std::time::Instant::now();
            empty()?;
            median(1, &[&ccm, "apply", &manifest, "--no-sync"], || Ok(()))?;
            let without = begin.elapsed();
            let begin = std::time::Instant::now();
            empty()?;
            median(1, &[&ccm, "apply", &manifest], || Ok(()))?;
            let with = begin.elapsed();
            println!(
                "| the durability barrier for 10000 files, wall time | {} | | | |",
                milliseconds(with.saturating_sub(without))
            );
        }
        fs::remove_dir_all(&directory)?;
    }
    for pair in growth.windows(2) {
        let [(few, few_stable, few_created), (many, many_stable, many_created)] = pair else {
            continue;
        };
        println!(
            "| growth from {few} to {many}: stable, created | {:.1} ×, {:.1} × | | | |",
            many_stable.as_secs_f64() / few_stable.as_secs_f64(),
            many_created.as_secs_f64() / few_created.as_secs_f64(),
        );
    }
    Ok(())
}

fn row(what: &str, used: Usage, floor: Option<Usage>) {
    let (floor, ratio) = floor.map_or_else(Default::default, |floor| {
        let ratio = used.cpu.as_secs_f64() / floor.cpu.as_secs_f64();
        (milliseconds(floor.cpu), format!("{ratio:.2} ×"))
    });
    let peak = used.peak_kib as f64 / 1024.0;
    println!("| {what} | {} | {floor} | {ratio} | {peak:.1} MiB |", milliseconds(used.cpu));
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
