//! Fault injection: each scenario runs many times, and each time another
//! system call fails. Whatever fails, ccm must not panic, hang, claim success
//! over a state that is not the desired one, or leave half a file.
//!
//! `strace` makes the k-th call of a kind fail, in ccm and in the commands
//! that it starts. By default a sample of all faults is tried;
//! `CCM_FAULTS=5000` tries that many, `CCM_FAULTS=all` all of them.
//! `CCM_FAULTS_ONLY=file` tries one scenario.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests set their stage by themselves"
)]

mod scenarios;
mod trace;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use scenarios::Scenario;
use trace::{Ended, Fault};

/// How many faults are tried when nobody says otherwise.
const SAMPLE: usize = 350;
/// After every so many faults, a run without one must repair everything.
const REPAIR_EVERY: usize = 8;

#[test]
fn no_fault_panics_hangs_lies_or_tears_a_file() {
    if ccm_testkit::lacks_strace() {
        return;
    }
    let only = std::env::var("CCM_FAULTS_ONLY").ok();
    let scenarios: Vec<Scenario> = scenarios::all()
        .into_iter()
        .filter(|scenario| match &only {
            Some(only) => scenario.name == only,
            None => true,
        })
        .collect();
    let mut jobs = Vec::new();
    for scenario in &scenarios {
        let faults = trace::faults_of(scenario);
        assert!(faults.len() > 100, "{}: only {} faults", scenario.name, faults.len());
        jobs.push((scenario, faults));
    }
    let jobs = sampled(jobs);
    let begin = Instant::now();
    let tried = try_all(&jobs);
    let mut failures = Vec::new();
    for (name, figures) in &tried {
        eprintln!(
            "{name}: {} faults injected, {} runs failed, {} succeeded, {} repaired, {} wrong",
            figures.injected,
            figures.failed,
            figures.succeeded,
            figures.repaired,
            figures.wrong.len()
        );
        // A scenario that never fails, or never succeeds, shows nothing.
        assert!(figures.failed > 0 && figures.succeeded > 0, "{name} shows nothing");
        failures.extend(figures.wrong.iter().map(|wrong| format!("{name}: {wrong}")));
    }
    let total: usize = tried.values().map(|figures| figures.injected).sum();
    eprintln!("{total} faults in {:.1} s", begin.elapsed().as_secs_f64());
    assert!(failures.is_empty(), "{} wrong:\n{}", failures.len(), failures.join("\n"));
}

/// What became of the faults of one scenario.
#[derive(Default)]
struct Figures {
    injected: usize,
    failed: usize,
    succeeded: usize,
    repaired: usize,
    wrong: Vec<String>,
}

/// As many faults as are asked for, spread evenly over the scenarios and over
/// the calls of each.
fn sampled(all: Vec<(&Scenario, Vec<Fault>)>) -> Vec<(&Scenario, Fault)> {
    let wanted = match std::env::var("CCM_FAULTS").as_deref() {
        Ok("all") => usize::MAX,
        Ok(number) => number.parse().unwrap(),
        Err(_) => SAMPLE,
    };
    let mut jobs = Vec::new();
    let mut left = wanted;
    let mut scenarios = all.len();
    let mut all = all;
    // Those with few faults first: what they do not use up goes to the others.
    all.sort_by_key(|(_, faults)| faults.len());
    for (scenario, faults) in all {
        let total = faults.len();
        let share = (left / scenarios).min(total);
        let is_taken = |at: usize| (at + 1) * share / total > at * share / total;
        let taken = faults.into_iter().enumerate().filter(|(at, _)| is_taken(*at));
        jobs.extend(taken.map(|(_, fault)| (scenario, fault)));
        left -= share;
        scenarios -= 1;
    }
    jobs
}

fn try_all(jobs: &[(&Scenario, Fault)]) -> BTreeMap<&'static str, Figures> {
    let tried: Mutex<BTreeMap<&'static str, Figures>> = Mutex::default();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((scenario, fault)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let repair = next.load(Ordering::Relaxed).is_multiple_of(REPAIR_EVERY);
                    let result = try_one(scenario, fault, repair);
                    let mut tried = tried.lock().unwrap();
                    let figures = tried.entry(scenario.name).or_default();
                    match result {
                        Ok(tried) => {
                            figures.injected += usize::from(tried.was_injected);
                            figures.succeeded += usize::from(tried.succeeded);
                            figures.failed += usize::from(!tried.succeeded);
                            figures.repaired += usize::from(tried.was_repaired);
                        }
                        Err(wrong) => {
                            figures.injected += 1;
                            figures.wrong.push(format!("{fault}: {wrong}"));
                        }
                    }
                }
            });
        }
    });
    tried.into_inner().unwrap()
}

struct Tried {
    was_injected: bool,
    succeeded: bool,
    was_repaired: bool,
}

/// One run with one fault; an error says what ccm did wrong.
fn try_one(scenario: &Scenario, fault: &Fault, repair: bool) -> Result<Tried, String> {
    let stage = tempfile::tempdir().unwrap();
    let directory = stage.path();
    (scenario.set_up)(directory);
    let Ended { code, stdout, stderr, was_injected } =
        trace::run(scenario, directory, Some(fault)).ok_or("hangs")?;
    let said = || format!("exit {code:?}\n{stdout}\n{stderr}");
    if stderr.contains("panicked") || stdout.contains("panicked") || code == Some(101) {
        return Err(format!("panics: {}", said()));
    }
    if code.is_none() {
        return Err(format!("ends by a signal: {}", said()));
    }
    (scenario.is_whole)(directory).map_err(|wrong| format!("torn: {wrong}: {}", said()))?;
    if code == Some(0) {
        (scenario.is_desired)(directory)
            .map_err(|wrong| format!("false success: {wrong}: {}", said()))?;
        if !stdout.lines().any(|line| line.starts_with("Applied ")) {
            return Err(format!("success without its report: {}", said()));
        }
    }
    if repair {
        check_repair(scenario, directory)?;
    }
    Ok(Tried { was_injected, succeeded: code == Some(0), was_repaired: repair })
}

/// A run without faults brings everything in order, whatever there was before.
fn check_repair(scenario: &Scenario, directory: &Path) -> Result<(), String> {
    let ended = trace::run(scenario, directory, None).ok_or("hangs in the next run")?;
    if ended.code != Some(0) {
        return Err(format!("the next run fails: {}\n{}", ended.stdout, ended.stderr));
    }
    (scenario.is_desired)(directory).map_err(|wrong| format!("the next run lies: {wrong}"))
}
