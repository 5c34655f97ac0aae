//! Archives: any bytes are unpacked or refused, and nothing beside the
//! destination is ever made or changed.

#![no_main]

use std::cell::OnceCell;
use std::path::PathBuf;

use ccm_archive::{Extraction, Format, Limits};
use ccm_host::Host;
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits = Limits { entries: 100, bytes: 1 << 20, ratio: 10 };
const NAMES: [&str; 6] = ["a.tar", "a.zip", "a.tar.gz", "a.tar.xz", "a.tar.zst", "a.tar.bz2"];

thread_local! {
    static STAGE: OnceCell<PathBuf> = const { OnceCell::new() };
}

/// A directory with something to reach from the destination in it.
fn stage() -> PathBuf {
    let path = std::env::temp_dir().join(format!("ccm-fuzz-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(path.join("out")).unwrap();
    std::fs::write(path.join("out/secret"), "secret").unwrap();
    path
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&first, rest)) = bytes.split_first() else { return };
    let name = NAMES[usize::from(first) % NAMES.len()];
    let mut archive = rest.to_vec();
    if name == "a.tar" {
        // Nothing gets past wrong checksums otherwise.
        for block in archive.chunks_exact_mut(512) {
            block[148..156].fill(b' ');
            let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
            block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    let stage = STAGE.with(|cell| cell.get_or_init(stage).clone());
    let (path, into) = (stage.join("archive"), stage.join("in"));
    std::fs::write(&path, archive).unwrap();
    std::fs::create_dir(&into).unwrap();
    let host = Host::new();
    let (file, stat) = host.open(&path).unwrap();
    let extraction = Extraction {
        format: Format::of(name).unwrap(),
        destination: &into,
        limits: LIMITS,
        checksum: None,
        creates: None,
        allows_setuid: false,
        subject: &path,
    };
    let _ = extraction.run(&host, file, stat.size, name).and_then(|done| done.complete());
    assert_eq!(std::fs::read_dir(&stage).unwrap().count(), 3);
    assert_eq!(std::fs::read_dir(stage.join("out")).unwrap().count(), 1);
    assert_eq!(std::fs::read(stage.join("out/secret")).unwrap(), b"secret");
    if std::fs::remove_dir_all(&into).is_err() {
        // What it made may not even let its owner in.
        let _ = std::process::Command::new("chmod").args(["-R", "u+rwx"]).arg(&into).status();
        std::fs::remove_dir_all(&into).unwrap();
    }
});
