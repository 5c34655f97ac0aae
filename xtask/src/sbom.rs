//! The bill of materials: which libraries are in ccm, as `CycloneDX`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::tools::{allowed, in_path};
use crate::{Result, metadata, release, root, run, target_directory};

/// The tool, at the version that is installed if it is missing.
const TOOL: &str = "cargo-cyclonedx";
const VERSION: &str = "0.5.9";
/// The libraries are the same for all architectures.
const TARGET: &str = "x86_64-unknown-linux-musl";

/// Writes the libraries of ccm to a file. The tool writes one file beside each
/// crate of the workspace, so all but that of ccm are removed.
pub(crate) fn write(file: &Path) -> Result {
    let tool = tool()?;
    let name = format!("ccm-sbom-{}", std::process::id());
    let made = run(Command::new(tool)
        .args(["cyclonedx", "--format", "json", "--target", TARGET, "--manifest-path"])
        .args(["crates/ccm/Cargo.toml", "--override-filename", &name])
        .env("SOURCE_DATE_EPOCH", release::source_date()?));
    let mut found = None;
    for package in metadata(&["--no-deps"])?["packages"].as_array().into_iter().flatten() {
        let manifest = PathBuf::from(package["manifest_path"].as_str().unwrap_or_default());
        let path = manifest.with_file_name(format!("{name}.json"));
        if let Ok(text) = std::fs::read_to_string(&path) {
            let _ = std::fs::remove_file(&path);
            if package["name"] == "ccm" {
                found = Some(text);
            }
        }
    }
    made?;
    let text = steady(&found.ok_or(format!("{TOOL} wrote no file for ccm"))?)?;
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The same on every machine: without the place of the project and without a
/// number that is new each time.
fn steady(text: &str) -> Result<String> {
    let project = root().canonicalize().map_err(|error| error.to_string())?;
    let text = text.replace(&format!("{}", project.display()), "/ccm");
    let mut bom: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if let Some(bom) = bom.as_object_mut() {
        bom.shift_remove("serialNumber");
    }
    let components = bom["components"].as_array().map_or(0, Vec::len);
    if components < 100 {
        return Err(format!("the bill of materials has {components} components only"));
    }
    serde_json::to_string_pretty(&bom).map(|text| text + "\n").map_err(|error| error.to_string())
}

fn tool() -> Result<PathBuf> {
    let tools = target_directory()?.join("tools");
    let program = tools.join("bin").join(TOOL);
    if program.exists() {
        return Ok(program);
    }
    if let Some(program) = in_path(TOOL) {
        return Ok(program);
    }
    let package = format!("{TOOL}@{VERSION}");
    if !allowed() {
        return Err(format!(
            "`{TOOL}` is missing. Run `cargo install --locked {package}`, or let \
             CCM_INSTALL_TOOLS=1 do it"
        ));
    }
    run(Command::new("cargo").args(["install", "--locked", "--root"]).arg(tools).arg(package))?;
    Ok(program)
}
