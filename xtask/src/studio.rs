//! The page of `ccm studio`: its vendored libraries, and its tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Result, cargo, root, step, target_directory};

const NEEDED: [&str; 3] = ["node", "npm", "chromium"];

fn page() -> PathBuf {
    root().join("crates/ccm-studio")
}

fn tools() -> PathBuf {
    page().join("browser-tests")
}

fn vendored() -> PathBuf {
    page().join("web/vendor")
}

/// Makes the vendored libraries of the page anew.
pub(crate) fn vendor() -> Result {
    install()?;
    bundle(&vendored())
}

/// Formats the page and its tests.
pub(crate) fn write_formatted() -> Result {
    install()?;
    format("--write")
}

/// Everything about the page that can be tested: that the vendored files are
/// what the lock file gives, how it is written, its types, its modules, and the
/// page in a browser.
pub(crate) fn test() -> Result {
    let binary = if let Some(binary) = std::env::var_os("CCM_BINARY") {
        binary.into()
    } else {
        cargo(&["build", "--locked", "--package", "ccm"])?;
        target_directory()?.join("debug/ccm")
    };
    test_with(&binary)
}

fn test_with(binary: &Path) -> Result {
    step("studio: tools", install)?;
    step("studio: vendored files", compare_vendored)?;
    step("studio: formatting", || format("--check"))?;
    step("studio: lints", lint)?;
    step("studio: types", || node(&["node_modules/typescript/lib/tsc.js", "-p", "."]))?;
    step("studio: modules", || node(&["--test", "modules/"]))?;
    step("studio: browser", || run_in_tools(node_command(&["run.js"]).env("CCM_BINARY", binary)))
}

/// Installs what drives the browser before all tests, as the system tests use it
/// too. Only in CI, as it comes from the network.
pub(crate) fn install_in_ci() -> Result {
    if in_ci() && missing().is_empty() { install() } else { Ok(()) }
}

fn in_ci() -> bool {
    ["CCM_INSTALL_TOOLS", "CI"].iter().any(|name| std::env::var_os(name).is_some())
}

fn missing() -> Vec<&'static str> {
    NEEDED.into_iter().filter(|program| !in_path(program)).collect()
}

/// Whether the page can be tested as a part of all tests. Where programs are missing it says so;
/// in CI, which installs what it needs, that is a failure.
pub(crate) fn can_test() -> Result<bool> {
    let (in_ci, missing) = (in_ci(), missing());
    if missing.is_empty() && (in_ci || is_installed()) {
        return Ok(true);
    }
    let why = if missing.is_empty() {
        "`cargo xtask studio-test` downloads what it needs".to_owned()
    } else {
        format!("missing: {}", missing.join(", "))
    };
    if in_ci {
        return Err(format!("BROWSER TEST NOT RUN: {why}"));
    }
    println!("BROWSER TEST NOT RUN: {why}");
    Ok(false)
}

fn in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|place| place.join(program).exists())
}

/// The lock file that the installed packages are of.
fn installed_lock() -> PathBuf {
    tools().join("node_modules/.ccm-lock.json")
}

fn is_installed() -> bool {
    let lock = std::fs::read(tools().join("package-lock.json"));
    matches!((lock, std::fs::read(installed_lock())), (Ok(wanted), Ok(there)) if wanted == there)
}

/// Installs the packages of the lock file, unless they are there.
fn install() -> Result {
    if is_installed() {
        return Ok(());
    }
    // No package may run code of its own while it is installed.
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    run_in_tools(&mut npm)?;
    std::fs::copy(tools().join("package-lock.json"), installed_lock())
        .map(drop)
        .map_err(|error| error.to_string())
}

fn bundle(to: &Path) -> Result {
    let to = to.display().to_string();
    node(&["vendor/build.mjs", &to])
}

/// Makes the vendored files elsewhere, and compares every byte.
fn compare_vendored() -> Result {
    let made = target_directory()?.join("studio-vendor");
    let _ = std::fs::remove_dir_all(&made);
    bundle(&made)?;
    let (made, kept) = (contents(&made)?, contents(&vendored())?);
    let names: Vec<&String> = made.keys().chain(kept.keys()).collect();
    let differ = |name: &&&String| made.get(**name) != kept.get(**name);
    match names.iter().find(differ) {
        None => Ok(()),
        Some(name) => Err(format!(
            "web/vendor/{name} is not what the lock file gives; run `cargo xtask studio-vendor`"
        )),
    }
}

fn contents(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let listed = std::fs::read_dir(directory).map_err(|error| error.to_string())?;
    for entry in listed.flatten() {
        let bytes = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
        files.insert(entry.file_name().to_string_lossy().into_owned(), bytes);
    }
    Ok(files)
}

/// What is written by hand. The rest is made by a program, which may write it as it likes.
const WRITTEN: [&str; 6] = [
    "web/**/*.{js,ts,css,html,json}",
    "browser-tests/**/*.{js,mjs,ts,json}",
    "!web/vendor/**",
    "!web/answers.d.ts",
    "!browser-tests/{results,screens}/**",
    "!**/package-lock.json",
];

fn format(how: &str) -> Result {
    let config = "--config=browser-tests/.prettierrc.json";
    let options = [how, "--log-level=warn", config];
    run_in(&page(), &mut tool("prettier/bin/prettier.cjs", &[&options[..], &WRITTEN].concat()))
}

fn lint() -> Result {
    let config = "--config=browser-tests/eslint.config.js";
    run_in(&page(), &mut tool("eslint/bin/eslint.js", &[config, "web", "browser-tests"]))
}

/// A tool that looks at the page and its tests, from the directory above both.
fn tool(script: &str, args: &[&str]) -> Command {
    let mut command = node_command(&[&format!("browser-tests/node_modules/{script}")]);
    command.args(args);
    command
}

fn node_command(args: &[&str]) -> Command {
    let mut command = Command::new("node");
    command.args(args);
    command
}

fn node(args: &[&str]) -> Result {
    run_in_tools(&mut node_command(args))
}

fn run_in_tools(command: &mut Command) -> Result {
    run_in(&tools(), command)
}

fn run_in(directory: &Path, command: &mut Command) -> Result {
    let status = command.current_dir(directory).status();
    let status = status.map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}
