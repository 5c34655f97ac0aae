//! Packs the files of the page. What the browser unpacks is what is in the
//! repository, byte by byte; packed, it takes a third of the room in the binary.

#![expect(clippy::disallowed_methods, reason = "this is how builds talk to cargo")]

use std::fmt::Write as _;
use std::io::Write as _;
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
    let out = PathBuf::from(std::env::var("OUT_DIR").unwrap_or_default());
    let mut text = String::from("pub(crate) const EMBEDDED: &[(&str, &[u8])] = &[\n");
    for (number, file) in files.iter().enumerate() {
        let Ok(name) = file.strip_prefix(&root) else { continue };
        let packed = out.join(format!("{number}.gz"));
        if let Err(error) = pack(file, &packed) {
            panic!("cannot pack {}: {error}", file.display());
        }
        let (name, packed) = (name.display().to_string(), packed.display().to_string());
        let _ = writeln!(text, "    ({name:?}, include_bytes!({packed:?})),");
    }
    text.push_str("];\n");
    let list = out.join("assets.rs");
    if let Err(error) = std::fs::write(&list, text) {
        panic!("cannot write {}: {error}", list.display());
    }
}

/// Gzip without name and time: the same file gives the same bytes.
fn pack(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&std::fs::read(from)?)?;
    std::fs::write(to, packer.finish()?)
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
