//! All measurements, as a table.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::measure::{Usage, median};
use crate::{api, archive, generate, packages, scaffold};

pub(crate) const TIMES: usize = 7;

/// Measures in a place of its own: below `CCM_BENCH_DIR`, or where temporary
/// files belong. What the file system is made of decides much.
pub(crate) fn run(ccm: &Path, measure: fn(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
    let place = std::env::var_os("CCM_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let base = place.join(format!("ccm-bench-{}", std::process::id()));
    fs::create_dir(&base)?;
    let result = measure(ccm, &base);
    fs::remove_dir_all(&base)?;
    result
}

/// Plans against runs of the same manifest, by itself.
pub(crate) fn measure_plan(ccm: &Path, base: &Path) -> io::Result<()> {
    let ccm = ccm.canonicalize()?;
    let ccm = ccm.to_string_lossy();
    let stage = Stage { base: base.to_owned(), n: 10_000 };
    println!("| what | CPU | apply | ratio | peak memory |\n|---|---|---|---|---|");
    let planned = stage
        .create(0, TIMES, |_, manifest| [&*ccm, "plan", manifest].map(str::to_owned).to_vec())?;
    let created = stage.create(0, TIMES, |_, manifest| {
        [&*ccm, "apply", manifest, "--no-sync"].map(str::to_owned).to_vec()
    })?;
    row("`ccm plan` of 10000 files to create", planned, Some(created));
    let (_, manifest) = stage.files(0)?;
    let stable = median(TIMES, &[&*ccm, "apply", &manifest, "--no-sync"], || Ok(()))?;
    let planned = median(TIMES, &[&*ccm, "plan", &manifest], || Ok(()))?;
    row("`ccm plan` of 10000 stable files", planned, Some(stable));
    Ok(())
}

/// Resources of one `for_each`, against the same ones written out. The manifests
/// are measured in turn, as the differences are small.
pub(crate) fn measure_loop(ccm: &Path, base: &Path) -> io::Result<()> {
    let ccm = ccm.canonicalize()?;
    let ccm = ccm.to_string_lossy();
    println!("| what | CPU | written out | ratio | peak memory |\n|---|---|---|---|---|");
    let mut growth = Vec::new();
    for n in [1_000, 10_000, 100_000] {
        let directory = base.join(n.to_string());
        fs::create_dir(&directory)?;
        let files = generate::looped(&directory, n);
        let path = |name: &str, text: &str| {
            let path = directory.with_file_name(format!("{n}-{name}.yaml"));
            fs::write(&path, text).map(|()| path.to_string_lossy().into_owned())
        };
        let looped = path("looped", &files.in_loop)?;
        let written = [("the same placeholders", &files.placeholders), ("values", &files.values)];
        for (what, text) in written {
            let written = path("written", text)?;
            let times = if n > 10_000 { 3 } else { 2 * TIMES + 1 };
            let measure = |command: &str, options: &[&str], is_new: bool| {
                let arguments = |path| [&[&*ccm, command, path][..], options].concat();
                in_turn(times, [&arguments(&looped), &arguments(&written)], || {
                    if is_new {
                        fs::remove_dir_all(&directory)?;
                        fs::create_dir(&directory)?;
                    }
                    Ok(())
                })
            };
            let quiet = ["--no-sync", "--quiet"];
            let [used, floor] = measure("apply", &quiet, true)?;
            row(&format!("{n} files created in a loop, against {what}"), used, Some(floor));
            let [used, floor] = measure("apply", &quiet, false)?;
            row(&format!("{n} files stable in a loop, against {what}"), used, Some(floor));
            let [used, floor] = measure("validate", &[], false)?;
            row(&format!("{n} files validated in a loop, against {what}"), used, Some(floor));
            growth.push((n, used.cpu));
        }
    }
    for pair in growth.windows(3).step_by(2) {
        let ratio = pair[2].1.as_secs_f64() / pair[0].1.as_secs_f64();
        println!("| growth from {} to {} in a loop | {ratio:.1} × | | | |", pair[0].0, pair[2].0);
    }
    Ok(())
}

/// Measures two commands one after the other, several times.
fn in_turn(
    times: usize,
    commands: [&[&str]; 2],
    mut before: impl FnMut() -> io::Result<()>,
) -> io::Result<[Usage; 2]> {
    let mut usages: [Vec<Usage>; 2] = Default::default();
    for _ in 0..times {
        for (usages, command) in usages.iter_mut().zip(commands) {
            usages.push(median(1, command, &mut before)?);
        }
    }
    Ok(usages.map(|mut usages| {
        usages.sort_by_key(|usage| usage.cpu);
        let peak_kib = usages.iter().map(|usage| usage.peak_kib).max().unwrap_or_default();
        Usage { cpu: usages[usages.len() / 2].cpu, peak_kib }
    }))
}

/// One edit of a large manifest, with and without the check of what it makes,
/// against `validate`.
pub(crate) fn measure_edit(ccm: &Path, base: &Path) -> io::Result<()> {
    let ccm = ccm.canonicalize()?;
    let ccm = ccm.to_string_lossy();
    let n = 10_000;
    let path = base.join("edited.yaml");
    let text = generate::small(n);
    fs::write(&path, &text)?;
    let manifest = path.to_string_lossy();
    println!("| what | CPU | validate | ratio | peak memory |\n|---|---|---|---|---|");
    let validated = median(TIMES, &[&*ccm, "validate", &manifest], || Ok(()))?;
    let resource = format!("file#{}", generate::small_name(n / 2));
    let edit = [&*ccm, "edit", &manifest, "--noop", "set", &resource, "mode", "0640"];
    let checked = median(TIMES, &edit, || Ok(()))?;
    let forced = [&edit[..], &["--force"]].concat();
    let alone = median(TIMES, &forced, || Ok(()))?;
    let size = text.len() as f64 / 1e6;
    row(&format!("`ccm edit set` in {n} resources, {size:.1} MB"), checked, Some(validated));
    row("the same with `--force`: not checked as a manifest", alone, Some(validated));
    Ok(())
}

pub(crate) fn measure_archive(ccm: &Path, base: &Path) -> io::Result<()> {
    archive::run(&ccm.canonicalize()?.to_string_lossy(), base)
}

pub(crate) fn measure_all(ccm: &Path, base: &Path) -> io::Result<()> {
    let ccm = ccm.canonicalize()?;
    let ccm = ccm.to_string_lossy();
    let me = std::env::current_exe()?;
    let me = me.to_string_lossy();
    println!("| what | CPU | floor | ratio | peak memory |");
    println!("|---|---|---|---|---|");

    let version = median(21, &[&ccm, "--version"], || Ok(()))?;
    row("`ccm --version`", version, None);
    packages(&ccm, base)?;

    let mut growth = Vec::new();
    for n in [1_000, 10_000, 100_000] {
        let times = if n > 10_000 { 3 } else { TIMES };
        let stage = Stage { base: base.join(n.to_string()), n };
        fs::create_dir(&stage.base)?;

        let planned = stage.create(0, times, |_, manifest| {
            [&*ccm, "plan", manifest].map(str::to_owned).to_vec()
        })?;
        let floor = stage.create(1_000, times, |directory, _| {
            [&*me, "floor", "create", directory, &n.to_string()].map(str::to_owned).to_vec()
        })?;
        let created = stage.create(0, times, |_, manifest| {
            [&*ccm, "apply", manifest, "--no-sync"].map(str::to_owned).to_vec()
        })?;
        row(&format!("{n} files created, no barrier"), created, Some(floor));
        row(&format!("`ccm plan` of {n} files to create, against `apply`"), planned, Some(created));

        let (directory, manifest) = stage.files(0)?;
        let check = [&*me, "floor", "check", &directory, &n.to_string()];
        let apply = [&*ccm, "apply", &manifest, "--no-sync"];
        let floor = median(times, &check, || Ok(()))?;
        let stable = median(times, &apply, || Ok(()))?;
        row(&format!("{n} files stable"), stable, Some(floor));
        let planned = median(times, &[&*ccm, "plan", &manifest], || Ok(()))?;
        row(&format!("`ccm plan` of {n} stable files, against `apply`"), planned, Some(stable));
        growth.push((n, stable.cpu, created.cpu));

        if n == 1_000 {
            let one = generate::path(Path::new(&directory), 0);
            let content = generate::content(0);
            let ensure = [&*ccm, "ensure", "file", &one.to_string_lossy(), "--content", &content];
            row("one stable `ccm ensure file`", median(21, &ensure, || Ok(()))?, None);
        }
        if n == 10_000 {
            api::measure(&ccm, Path::new(&directory), n, stable)?;
            stage.barrier(&ccm)?;
            let templated = stage.base.join("templated.yaml");
            fs::write(&templated, generate::templated(Path::new(&directory), n))?;
            let apply = [&*ccm, "apply", &templated.to_string_lossy(), "--no-sync"];
            let used = median(times, &apply, || Ok(()))?;
            let ratio = used.cpu.as_secs_f64() / stable.cpu.as_secs_f64();
            let (cpu, plain) = (milliseconds(used.cpu), milliseconds(stable.cpu));
            println!(
                "| {n} files stable, two placeholders each, against none | {cpu} | {plain} | \
                 {ratio:.2} × | {:.1} MiB |",
                used.peak_kib as f64 / 1024.0
            );
        }
    }
    scaffold::measure(&ccm, &me, base)?;
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
    archive::run(&ccm, base)
}

/// Packages that are there, against one question about all of them.
fn packages(ccm: &str, base: &Path) -> io::Result<()> {
    let Some(manifest) = packages::manifest(200)? else {
        println!("| 200 packages stable: not run, there are not so many here | | | | |");
        return Ok(());
    };
    let path = base.join("packages.yaml");
    fs::write(&path, manifest)?;
    let floor = median(21, &["dpkg-query", "-W"], || Ok(()))?;
    let stable = median(21, &[ccm, "apply", &path.to_string_lossy(), "--noop"], || Ok(()))?;
    row("200 packages stable, against one `dpkg-query -W`", stable, Some(floor));
    Ok(())
}

/// A place for files, a new directory for each time that they are created:
/// file systems are slow to reuse what was deleted a moment ago.
struct Stage {
    base: PathBuf,
    n: usize,
}

impl Stage {
    /// Directory and manifest of a number.
    fn files(&self, number: usize) -> io::Result<(String, String)> {
        let directory = self.base.join(number.to_string());
        let manifest = self.base.join(format!("{number}.yaml"));
        if !directory.exists() {
            fs::create_dir(&directory)?;
            fs::write(&manifest, generate::manifest(&directory, self.n))?;
        }
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        Ok((text(directory), text(manifest)))
    }

    /// Measures a command that creates the files, each time in a new place,
    /// numbered from `first` on.
    fn create(
        &self,
        first: usize,
        times: usize,
        command: impl Fn(&str, &str) -> Vec<String>,
    ) -> io::Result<Usage> {
        let mut usages = Vec::new();
        for number in first..first + times {
            let (directory, manifest) = self.files(number)?;
            usages.push(median(1, &command(&directory, &manifest), || Ok(()))?);
        }
        usages.sort_by_key(|usage| usage.cpu);
        let peak_kib = usages.iter().map(|usage| usage.peak_kib).max().unwrap_or_default();
        Ok(Usage { cpu: usages[times / 2].cpu, peak_kib })
    }

    /// Times the durability barrier by itself.
    fn barrier(&self, ccm: &str) -> io::Result<()> {
        let mut elapsed = Vec::new();
        for (number, sync) in [(100, "--no-sync"), (101, "--report")] {
            let (_, manifest) = self.files(number)?;
            let begin = Instant::now();
            median(1, &[ccm, "apply", &manifest, sync], || Ok(()))?;
            elapsed.push(begin.elapsed());
        }
        let barrier = milliseconds(elapsed[1].saturating_sub(elapsed[0]));
        println!("| the durability barrier for {} files, wall time | {barrier} | | | |", self.n);
        Ok(())
    }
}

pub(crate) fn row(what: &str, used: Usage, floor: Option<Usage>) {
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
