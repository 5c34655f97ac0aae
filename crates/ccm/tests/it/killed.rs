//! Runs that are killed with SIGKILL, at random moments and between any two
//! system calls that write. After the next run of the same manifest every
//! subscriber has reacted to the last change, and nothing is owed.
//!
//! By default a sample is tried. `CCM_KILLS=300` kills that many runs at random
//! moments, `CCM_KILLS_CHOSEN=60` that many at chosen ones, for each shape of
//! manifest; `CCM_KILLS_CHOSEN=all` tries every moment.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use ccm_testkit::{is_work_in, wait_until};

use crate::TestEnv;
use crate::owed::{apply, owed};

/// How the files and the commands that react to them are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// All in one manifest.
    Flat,
    /// The files in one manifest, the commands in another below a third.
    Nested,
    /// The commands in a manifest that the run itself makes.
    Made,
    /// The commands in a manifest that is an empty one until the run replaces it.
    Replaced,
}

/// A file for each of twenty commands, which copy it: whoever has reacted to
/// the last change has the same content.
fn twenty(env: &TestEnv, shape: Shape) {
    let (mut files, mut commands) = (String::new(), String::new());
    for n in 0..20 {
        let _ = write!(
            files,
            "{{\"[DIR]/f{n}\": {{alias: f{n}, content: \"{{{{ Facts.v }}}}\", [ME], mode: \
             \"0644\"}}}},"
        );
        let reference = match (shape, n) {
            (Shape::Nested, 19) => "apply#files.yaml".to_owned(),
            _ => format!("file#f{n}"),
        };
        // Under a name of its own: one of a killed run may still be at work.
        let _ = write!(
            commands,
            "{{e{n}: {{provider: shell, refresh_only: true, subscribe: [\"{reference}\"], command: \
             \"cp [DIR]/f{n} [DIR]/new{n}.$$ && mv [DIR]/new{n}.$$ [DIR]/seen{n}\"}}}},"
        );
    }
    let commands = format!("{{exec: [{commands}]}}");
    match shape {
        Shape::Flat => {
            env.manifest(&format!("ccm: {{resources: [{{file: [{files}]}}, {commands}]}}"));
        }
        Shape::Nested => {
            env.write("files.yaml", &format!("ccm: {{resources: [{{file: [{files}]}}]}}"));
            env.write("commands.yaml", &format!("ccm: {{resources: [{commands}]}}"));
            env.write("between.yaml", "ccm: {resources: [{apply: [{commands.yaml: {}}]}]}");
            env.manifest("ccm: {resources: [{apply: [{files.yaml: {}}, {between.yaml: {}}]}]}");
        }
        Shape::Made | Shape::Replaced => {
            env.write("source.yaml", &format!("ccm: {{resources: [{commands}]}}"));
            env.manifest(&format!(
                "ccm: {{resources: [{{file: [{files} {{\"[DIR]/made.yaml\": {{source: \
                 \"[DIR]/source.yaml\", [ME], mode: \"0644\"}}}}]}}, {{apply: [made.yaml]}}]}}"
            ));
        }
    }
}

/// What is there before a run that is killed.
fn prepare(env: &TestEnv, shape: Shape) {
    match shape {
        Shape::Flat | Shape::Nested => {}
        Shape::Made => {
            let _ = std::fs::remove_file(env.path("made.yaml"));
        }
        Shape::Replaced => {
            env.write(
                "made.yaml",
                "ccm: {resources: [{exec: [{\"true\": {refresh_only: true}}]}]}",
            );
        }
    }
}

fn fact(round: usize) -> String {
    format!("v={round}")
}

/// The run after one that was killed pays everything.
fn check_next(env: &TestEnv, round: usize, killed: &str) {
    let (code, report) = apply(env, &["--fact", &fact(round), "--no-sync"]);
    assert_eq!(code, Some(0), "{killed}: {report}");
    for n in 0..20 {
        let seen = std::fs::read_to_string(env.path(&format!("seen{n}"))).unwrap_or_default();
        assert_eq!(seen, round.to_string(), "killed {killed}: e{n} has not reacted");
    }
    assert_eq!(owed(env), (Some(0), vec![]), "killed {killed}");
    let left = std::fs::read_dir(env.state().join("owed")).into_iter().flatten().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert!(left.is_empty(), "killed {killed}: records are left: {left:?}");
}

/// Kills runs at random moments.
#[expect(clippy::print_stdout, reason = "figures")]
fn kill_at_random(shape: Shape) {
    let times = std::env::var("CCM_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let env = TestEnv::new();
    twenty(&env, shape);
    let begin = Instant::now();
    assert_eq!(apply(&env, &["--fact", &fact(0), "--no-sync"]).0, Some(0));
    let whole = begin.elapsed();
    let (mut killed, mut had_owed, mut round) = (0, 0, 0);
    // Some are over before they are killed, and do not count.
    while killed < times {
        round += 1;
        assert!(round < 10 * times, "most runs are over before they are killed");
        prepare(&env, shape);
        let mut run = env
            .command(["apply", "manifest.yaml", "--no-report", "--no-sync", "--fact", &fact(round)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Spread over the time that a run takes, whatever the machine does.
        let at = whole.mul_f64((round * 7919 % times) as f64 / times as f64);
        // Another moment of the run each time.
        std::thread::sleep(at);
        run.kill().unwrap();
        killed += usize::from(run.wait().unwrap().code().is_none());
        wait_until("a command that was at work to end", || !is_work_in(env.dir()));
        had_owed += usize::from(owed(&env).0 == Some(2));
        check_next(&env, round, &format!("after {at:?}"));
    }
    println!("{shape:?}: {killed} of {round} runs killed, {had_owed} left owed");
    let is_known = !matches!(shape, Shape::Made | Shape::Replaced);
    assert!(had_owed > 0 || !is_known, "no kill came at the right moment: this shows nothing");
}

#[test]
fn killed_runs_owe_and_the_next_one_pays() {
    kill_at_random(Shape::Flat);
}

#[test]
fn killed_runs_of_nested_manifests_owe_and_the_next_one_pays() {
    kill_at_random(Shape::Nested);
}

#[test]
fn killed_runs_that_make_manifests_owe_and_the_next_one_pays() {
    kill_at_random(Shape::Made);
}

/// System calls that change a file, a directory or what is on disk, or start a
/// command.
const WRITING: &str = "write,writev,pwrite64,openat,openat2,rename,renameat,renameat2,linkat,unlink,\
                       unlinkat,mkdir,mkdirat,rmdir,fsync,fdatasync,syncfs,sync_file_range,fchmod,\
                       fchmodat,fchown,fchownat,ftruncate,fallocate,copy_file_range,utimensat,\
                       fsetxattr,clone,clone3,vfork,fork";

/// A moment: just before the n-th call of this name.
pub(crate) type Moment = (String, usize);

fn traced(env: &TestEnv, round: usize, options: &[&str]) -> std::process::ExitStatus {
    traced_with(env, &["--fact", &fact(round)], options)
}

pub(crate) fn traced_with(
    env: &TestEnv,
    args: &[&str],
    options: &[&str],
) -> std::process::ExitStatus {
    let args = ["apply", "manifest.yaml", "--no-report"].iter().chain(args);
    let ccm = env.command(args);
    let mut command = Command::new("strace");
    // Only ccm itself, not what it starts.
    command.args(["-qq", "-o"]).arg(env.path("trace")).args(options);
    command.arg(ccm.get_program()).args(ccm.get_args()).current_dir(env.dir()).env_clear();
    command.envs(ccm.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap()
}

/// The moments that a run has.
fn moments(env: &TestEnv, round: usize) -> Vec<Moment> {
    moments_with(env, &["--fact", &fact(round)])
}

pub(crate) fn moments_with(env: &TestEnv, args: &[&str]) -> Vec<Moment> {
    let status = traced_with(env, args, &["-e", &format!("trace={WRITING}")]);
    assert!(status.success(), "{status:?}");
    let mut counts = std::collections::HashMap::<String, usize>::new();
    let mut moments = Vec::new();
    for line in env.read("trace").lines() {
        let Some((call, arguments)) = line.split_once('(') else { continue };
        let count = counts.entry(call.to_owned()).or_default();
        *count += 1;
        let only_reads = call.starts_with("openat")
            && !["O_CREAT", "O_TMPFILE", "O_TRUNC"].iter().any(|flag| arguments.contains(flag));
        if !only_reads {
            moments.push((call.to_owned(), *count));
        }
    }
    moments
}

/// Kills runs just before system calls that write. Every other time the run
/// after it, which changes everything again, is killed too, at half the way.
#[expect(clippy::print_stdout, reason = "figures")]
fn kill_at_chosen(shape: Shape) {
    if ccm_testkit::lacks_strace() {
        return;
    }
    let env = TestEnv::new();
    twenty(&env, shape);
    assert_eq!(apply(&env, &["--fact", &fact(0), "--no-sync"]).0, Some(0));
    prepare(&env, shape);
    let all = moments(&env, 1);
    assert!(all.len() > 200, "{shape:?}: only {} moments", all.len());
    let wanted = match std::env::var("CCM_KILLS_CHOSEN").as_deref() {
        Ok("all") => all.len(),
        Ok(number) => number.parse::<usize>().unwrap().min(all.len()),
        Err(_) => 6,
    };
    let (mut killed, mut had_owed, mut round) = (0, 0, 1);
    for index in 0..wanted {
        let at = index * all.len() / wanted;
        let mut place = String::new();
        for at in [at, at / 2].into_iter().take(1 + index % 2) {
            let (call, number) = &all[at];
            let _ = write!(place, "before {call} {number}, ");
            let trace = format!("trace={call}");
            let inject = format!("inject={call}:signal=KILL:when={number}");
            round += 1;
            prepare(&env, shape);
            let status = traced(&env, round, &["-e", &trace, "-e", &inject]);
            killed += usize::from(!status.success());
            wait_until("a command that was at work to end", || !is_work_in(env.dir()));
            had_owed += usize::from(owed(&env).0 == Some(2));
        }
        check_next(&env, round, &place);
    }
    let all = all.len();
    println!("{shape:?}: {killed} runs killed at {wanted} of {all} moments, {had_owed} left owed");
    assert!(killed >= wanted, "some were not killed: the moments are not the same");
}

#[test]
fn killed_between_any_two_writes() {
    kill_at_chosen(Shape::Flat);
}

#[test]
fn killed_between_any_two_writes_with_nested_manifests() {
    kill_at_chosen(Shape::Nested);
}

#[test]
fn killed_between_any_two_writes_with_a_manifest_that_the_run_makes() {
    kill_at_chosen(Shape::Made);
}

#[test]
fn killed_between_any_two_writes_with_a_manifest_that_the_run_replaces() {
    kill_at_chosen(Shape::Replaced);
}
