//! Lists the files of the page, so that the binary holds what is in the
//! repository, byte by byte.

#![expect(clippy::disallowed_methods, reason = "this is how builds talk to cargo")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What the page is made of; anything else in the directory is about it.
const SERVED: [&str; 5] = ["html", "js", "css", "svg", "txt"];

fn main() {
    let root = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("web");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    list(&root, &mut files);
    files.sort();
    let mut text = String::from("pub(crate) const EMBEDDED: &[(&str, &[u8])] = &[\n");
    for file in &files {
        let Ok(name) = file.strip_prefix(&root) else { continue };
        let (name, file) = (name.display().to_string(), file.display().to_string());
        let _ = writeln!(text, "    ({name:?}, include_bytes!({file:?})),");
    }
    text.push_str("];\n");
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default()).join("assets.rs");
    if let Err(error) = std::fs::write(&out, text) {
        panic!("cannot write {}: {error}", out.display());
    }
}

fn list(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            println!("cargo:rerun-if-changed={}", path.display());
            list(&path, files);
        } else if path.extension().is_some_and(|kind| SERVED.iter().any(|known| kind == *known)) {
            files.push(path);
        }
    }
}
