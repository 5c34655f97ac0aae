//! Project tasks.
//!
//! ```text
//! cargo xtask quickstart [DIR]   build ccm and apply examples/quickstart
//! cargo xtask test               everything that must hold before a change lands
//! cargo xtask test --quick       lints, tests inside of crates, conformance vectors
//! cargo xtask docs               make what is generated in docs/ current, and the book
//! cargo xtask tidy               only the rules that no compiler knows
//! cargo xtask bench              the benchmarks
//! cargo xtask fuzz [RUNS]        the fuzz targets, with a nightly compiler
//! cargo xtask schemas            write the schemas anew
//! cargo xtask studio-test        the page of ccm studio: format, types, modules, browser
//! cargo xtask studio-format      format the page of ccm studio and its tests
//! cargo xtask studio-vendor      make the page's vendored libraries anew
//! cargo xtask dist [--check] [--twice]
//!                                the files of a release, for all architectures
//! cargo xtask deb [BINARY]       a Debian package, of a binary that is there
//! cargo xtask rpm [BINARY]       an rpm package, of a binary that is there
//! cargo xtask licenses FILE      the licenses of the libraries in ccm
//! cargo xtask sbom FILE          the libraries in ccm, as a bill of materials
//! ```

#![expect(clippy::print_stdout, reason = "a task talks to whoever runs it")]

mod dist;
mod docs;
mod licences;
mod nats;
mod quickstart;
mod release;
mod sbom;
mod studio;
mod tests;
mod tidy;
mod tools;
mod workflows;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use tests::Scope;

type Result<T = ()> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match args.as_slice() {
        ["test"] => test(),
        ["test", "--quick"] => quick_test(),
        ["docs"] => docs::write(&root()),
        ["tidy"] => tidy::check(&root()),
        ["bench"] => bench(),
        ["fuzz"] => fuzz("200000"),
        ["fuzz", runs] => fuzz(runs),
        ["schemas"] => schemas(),
        ["nats"] => nats::SERVER.build(),
        ["quickstart"] => quickstart::apply(&root(), None),
        ["quickstart", directory] => quickstart::apply(&root(), Some(Path::new(directory))),
        ["studio-test"] => studio::test(),
        ["studio-format"] => studio::write_formatted(),
        ["studio-vendor"] => studio::vendor(),
        ["dist", ..] => dist::dist(&args[1..]),
        ["deb"] => release::deb(None),
        ["deb", binary] => release::deb(Some(Path::new(binary))),
        ["rpm"] => release::rpm(None),
        ["rpm", binary] => release::rpm(Some(Path::new(binary))),
        ["licenses", file] => licences::write(Path::new(file)),
        ["sbom", file] => sbom::write(Path::new(file)),
        _ => Err("usage: cargo xtask test [--quick] | docs | tidy | bench | fuzz [RUNS] | schemas | nats | \
                  quickstart [DIR] | studio-test | studio-format | studio-vendor | \
                  dist [--check] [--twice] [--profile=P] | deb [BINARY] | rpm [BINARY] | licenses FILE | \
                  sbom FILE"
            .into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("\nxtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Writes what `ccm schema` prints to where editors and others find it.
fn schemas() -> Result {
    cargo(&["build", "--locked", "-p", "ccm"])?;
    for name in ["manifest", "request", "response", "event", "plan", "graph", "why"] {
        let output = Command::new("cargo")
            .args(["run", "--quiet", "--locked", "-p", "ccm", "--", "schema", name])
            .output()
            .map_err(|error| error.to_string())?;
        // Requests have the file name that they have in the original.
        let file = if name == "request" { "resource_ensure_request" } else { name };
        let path = root().join("schemas/v1").join(format!("{file}.json"));
        std::fs::write(&path, output.stdout).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn test() -> Result {
    step("tools", tools::install)?;
    lint()?;
    // Leaving features out compiles other code, and can leave code without a use.
    step("lints without features", || {
        let lint = |package: &[&str]| {
            let common = ["clippy", "--no-default-features", "--locked"];
            cargo(&[&common, package, &["--", "-D", "warnings"]].concat())
        };
        lint(&["--package=gotemplate", "--all-targets"])?;
        lint(&["--package=ccm"])
    })?;
    step("documentation", || {
        run(Command::new("cargo")
            .args(["doc", "--workspace", "--no-deps", "--locked", "--quiet"])
            .env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    step("studio: tools", studio::install_in_ci)?;
    step("tests", || tests::run(Scope::All))?;
    println!("\nxtask: all passed");
    Ok(())
}

/// What is worth its time after every edit: lints, the tests inside of crates and
/// the conformance vectors.
fn quick_test() -> Result {
    lint()?;
    step("quick tests", || tests::run(Scope::Quick))?;
    println!("\nxtask: the quick tests passed; run `cargo xtask test` before a change lands");
    Ok(())
}

fn lint() -> Result {
    step("formatting", || cargo(&["fmt", "--all", "--check"]))?;
    step("tidy", || tidy::check(&root()))?;
    step("dependencies", licences::check)?;
    step("workflows", workflows::check)?;
    step("lints", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    })
}

fn bench() -> Result {
    cargo(&["build", "--release", "--package", "ccm", "--package", "ccm-bench"])?;
    let target = target_directory()?.join("release");
    run(Command::new(target.join("ccm-bench")).arg("run").arg(target.join("ccm")))
}

fn fuzz(runs: &str) -> Result {
    let targets = std::fs::read_dir(root().join("fuzz/fuzz_targets")).map_err(|e| e.to_string())?;
    let mut names: Vec<_> = targets
        .flatten()
        .filter_map(|entry| entry.path().file_stem()?.to_str().map(str::to_owned))
        .collect();
    names.sort();
    names.iter().try_for_each(|name| {
        let runs = format!("-runs={runs}");
        cargo(&["+nightly", "fuzz", "run", name, "--", &runs, "-max_len=4096"])
    })
}

/// Where cargo puts what it builds.
fn target_directory() -> Result<PathBuf> {
    let metadata = metadata(&["--no-deps"])?;
    let directory = metadata["target_directory"].as_str().ok_or("no target directory")?;
    Ok(directory.into())
}

fn metadata(args: &[&str]) -> Result<serde_json::Value> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(args)
        .current_dir(root())
        .output()
        .map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn step(name: &str, check: impl FnOnce() -> Result) -> Result {
    println!("\n== {name}");
    let begin = Instant::now();
    check().map_err(|error| format!("{name} failed: {error}"))?;
    println!("== {name}: {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn cargo(args: &[&str]) -> Result {
    run(Command::new("cargo").args(args))
}

fn run(command: &mut Command) -> Result {
    let status = at_root(command).status().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

/// What a command prints.
fn output(command: &mut Command) -> Result<String> {
    let output = at_root(command).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)))
    }
}

fn at_root(command: &mut Command) -> &mut Command {
    // What cargo tells this program about itself would make build scripts that
    // look at it run again, and with them half of the build.
    for (name, _) in std::env::vars_os() {
        let is_about_us = name.to_str().is_some_and(|name| {
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_NAME", "CARGO_BIN_NAME"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
        });
        if is_about_us {
            command.env_remove(name);
        }
    }
    command.current_dir(root())
}
