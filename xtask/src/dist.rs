//! The files of a release, for people who do not build ccm themselves.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;

use crate::tools::{allowed, in_path};
use crate::{Result, licences, output, release, root, run, sbom, step, target_directory};

/// An architecture that ccm is released for.
struct Platform {
    target: &'static str,
    /// As Rust calls it.
    architecture: &'static str,
    /// The number of the architecture in binaries.
    machine: u16,
    /// Runs its binaries on other machines.
    emulator: &'static str,
}

const PLATFORMS: [Platform; 2] = [
    Platform {
        target: "x86_64-unknown-linux-musl",
        architecture: "x86_64",
        machine: 62,
        emulator: "qemu-x86_64",
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        architecture: "aarch64",
        machine: 183,
        emulator: "qemu-aarch64",
    },
];

/// The compiler for C, which knows all architectures.
const ZIG: &str = "ziglang==0.15.2";

/// How a release is made.
struct Options {
    profile: String,
    /// Whether binaries of other architectures are tried too.
    check: bool,
    /// Whether the commit is built again elsewhere, and gives the same files.
    twice: bool,
}

/// Builds everything that a release consists of, for all architectures, into
/// `dist` in cargo's target directory.
pub(crate) fn dist(args: &[&str]) -> Result {
    let options = options(args)?;
    let commit = output(Command::new("git").args(["rev-parse", "HEAD"]))?;
    let zig = zig()?;
    let directory = target_directory()?.join("dist");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let mut binaries = Vec::new();
    for platform in &PLATFORMS {
        step(&format!("build for {}", platform.target), || {
            let binary = build(platform, &options.profile, &zig)?;
            check_static(&binary, platform.machine)?;
            binaries.push(binary);
            Ok(())
        })?;
    }
    let own = PLATFORMS.iter().position(|it| it.architecture == std::env::consts::ARCH);
    let own = own.and_then(|index| binaries.get(index)).ok_or("no binary for this machine")?;
    for (platform, binary) in PLATFORMS.iter().zip(&binaries) {
        if binary == own || options.check {
            step(&format!("try the binary for {}", platform.architecture), || {
                check_works(binary, platform, binary == own)
            })?;
        }
    }
    if options.check {
        step("users that only a module of glibc knows", || check_users(own))?;
    }
    step("packages", || {
        let certificates = target_directory()?.join("ca-certificates.crt");
        std::fs::write(&certificates, bundle()).map_err(|error| error.to_string())?;
        for (platform, binary) in PLATFORMS.iter().zip(&binaries) {
            pack(platform, binary, own, &certificates, &directory)?;
        }
        Ok(())
    })?;
    if options.check {
        step("the container image", || check_image(&directory))?;
    }
    step("bill of materials", || {
        sbom::write(&directory.join(format!("ccm-{}.cdx.json", version())))
    })?;
    std::fs::write(directory.join("CHANGES.md"), changes()?).map_err(|error| error.to_string())?;
    sums(&directory)?;
    if options.twice {
        step("the same again", || build_again(&options, &commit, &directory))?;
    }
    println!("\nxtask: the release is in {}", directory.display());
    Ok(())
}

/// Makes the release once more, from a clone in another directory with an empty
/// target directory, and compares the checksums.
fn build_again(options: &Options, commit: &str, directory: &Path) -> Result {
    let clone = std::env::temp_dir().join(format!("ccm-again-{}", std::process::id()));
    let result = (|| {
        run(Command::new("git").args(["clone", "--quiet", "--no-checkout", "."]).arg(&clone))?;
        let checkout = ["checkout", "--quiet", "--detach", commit.trim()];
        run(Command::new("git").arg("-C").arg(&clone).args(checkout))?;
        // Tools are not part of what is built.
        let tools = [zig()?.with_file_name(""), target_directory()?.join("tools/bin")];
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(tools.into_iter().chain(std::env::split_paths(&path)));
        let mut again = Command::new("cargo");
        again
            .args(["xtask", "dist", &format!("--profile={}", options.profile)])
            .env("PATH", path.map_err(|error| error.to_string())?)
            .env_remove("CARGO_TARGET_DIR")
            .current_dir(&clone);
        // Not `run`, which works in this checkout.
        let status = again.status().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("{again:?} ended with {status}"));
        }
        let sums = |directory: &Path| {
            std::fs::read_to_string(directory.join("SHA256SUMS")).map_err(|error| error.to_string())
        };
        let (first, second) = (sums(directory)?, sums(&clone.join("target/dist"))?);
        if first == second {
            return Ok(());
        }
        let differ = first.lines().filter(|line| !second.contains(line)).collect::<Vec<_>>();
        Err(format!("these files differ from build to build:\n{}", differ.join("\n")))
    })();
    let _ = std::fs::remove_dir_all(&clone);
    result
}

fn options(args: &[&str]) -> Result<Options> {
    let mut options = Options { profile: "release".to_owned(), check: false, twice: false };
    for arg in args {
        match arg.strip_prefix("--profile=") {
            Some(profile) => options = Options { profile: profile.to_owned(), ..options },
            None if *arg == "--check" => options.check = true,
            None if *arg == "--twice" => options.twice = true,
            None => return Err(format!("dist does not know {arg}")),
        }
    }
    Ok(options)
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Zig, from the search path or as a Python package among the project's tools.
fn zig() -> Result<PathBuf> {
    let tools = target_directory()?.join("tools/zig");
    let program = tools.join("ziglang/zig");
    if program.exists() {
        return Ok(program);
    }
    if let Some(program) = in_path("zig") {
        return Ok(program);
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(&tools).arg(ZIG);
    if !allowed() {
        return Err(format!(
            "`zig` is missing, which compiles C code for all architectures. Install it, or let \
             CCM_INSTALL_TOOLS=1 do this:\n\n    {pip:?}"
        ));
    }
    run(&mut pip)?;
    Ok(program)
}

fn build(platform: &Platform, profile: &str, zig: &Path) -> Result<PathBuf> {
    let target = platform.target;
    if allowed() {
        run(Command::new("rustup").args(["target", "add", target]))?;
    }
    let project = root().canonicalize().map_err(|error| error.to_string())?;
    let script = |name: &str| project.join("packaging").join(name);
    let (name, loud) = (target.replace('-', "_"), target.replace('-', "_").to_uppercase());
    // Names of files in C code are the same on every machine.
    let home = release::cargo_home();
    let flags = format!("-ffile-prefix-map={}=/cargo", home.display());
    let mut cargo = release::build_command(profile)?;
    cargo
        .args(["--target", target])
        .env("CCM_ZIG", zig)
        .env(format!("CC_{name}"), script("cc.sh"))
        .env(format!("AR_{name}"), script("ar.sh"))
        .env(format!("CFLAGS_{name}"), flags)
        .env(format!("CARGO_TARGET_{loud}_LINKER"), "rust-lld");
    run(&mut cargo)?;
    Ok(target_directory()?.join(target).join(profile).join("ccm"))
}

/// Checks in the header of a binary that it is for a machine, and that the kernel
/// runs it without a loader.
fn check_static(binary: &Path, machine: u16) -> Result {
    let bytes = std::fs::read(binary).map_err(|error| error.to_string())?;
    let shown = binary.display();
    match elf(&bytes) {
        Some((found, _)) if found != machine => Err(format!("{shown} is for machine {found}")),
        Some((_, false)) => Ok(()),
        Some((_, true)) => Err(format!("{shown} is not static: it needs a loader")),
        None => Err(format!("{shown} is not a binary of 64 bits")),
    }
}

/// The machine that a binary is for, and whether it names a loader.
fn elf(bytes: &[u8]) -> Option<(u16, bool)> {
    const LOADER: u32 = 3;
    let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let offset = u64::from_le_bytes(bytes.get(32..40)?.try_into().ok()?);
    let (size, count) = (usize::from(short(54)?), usize::from(short(56)?));
    let mut has_loader = false;
    for index in 0..count {
        let at = usize::try_from(offset).ok()?.checked_add(index * size)?;
        let kind = u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?);
        has_loader |= kind == LOADER;
    }
    Some((short(18)?, has_loader))
}

/// What the README, the tutorial and the other pages show, done with this binary:
/// the tests of the documentation.
fn check_works(binary: &Path, platform: &Platform, runs_here: bool) -> Result {
    let directory = std::env::temp_dir().join(format!("ccm-dist-{}", std::process::id()));
    let program = directory.join("ccm");
    let emulator = if runs_here { "" } else { platform.emulator };
    let script = format!("#!/bin/sh\nexec {emulator} {} \"$@\"\n", binary.display());
    let result = (|| {
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        std::fs::write(&program, script).map_err(|error| error.to_string())?;
        std::fs::set_permissions(&program, Permissions::from_mode(0o755))
            .map_err(|error| error.to_string())?;
        let said = output(Command::new(&program).arg("--version"))?;
        if !said.starts_with(&format!("ccm {} (", version())) {
            return Err(format!("--version prints {said}"));
        }
        let tests =
            ["--package", "ccm", "--test", "docs", "--", "follow", "functions", "--nocapture"];
        let mut command = Command::new("cargo");
        command.args(["test", "--locked", "--quiet"]).args(tests).env("CCM_BINARY", &program);
        if !runs_here {
            println!("not in an emulator: the pages on which ccm starts itself");
            command.env("CCM_BINARY_IS_EMULATED", "1");
        }
        run(&mut command)
    })();
    let _ = std::fs::remove_dir_all(&directory);
    result
}

/// Lets the binary look for users on a machine with a module that knows more than
/// the files do.
fn check_users(binary: &Path) -> Result {
    in_overlay(&["libnss-extrausers"], "check-users.sh", binary)
}

/// Lets podman load and run the image for this machine.
fn check_image(directory: &Path) -> Result {
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let image = directory.join(format!("ccm-{}-{architecture}.image.tar", version()));
    in_overlay(&["podman", "crun"], "check-image.sh", &image)
}

/// Runs a script where these packages are installed, and where nothing stays.
fn in_overlay(packages: &[&str], name: &str, file: &Path) -> Result {
    if output(Command::new("id").arg("-u"))?.trim() != "0" {
        println!("NOT RUN: this needs root");
        return Ok(());
    }
    let script = |name: &str| root().join("packaging").join(name);
    run(Command::new(script("overlay.sh")).args(packages).arg("--").arg(script(name)).arg(file))
}

fn pack(platform: &Platform, binary: &Path, own: &Path, ca: &Path, directory: &Path) -> Result {
    let licenses = target_directory()?.join("LICENSES.third-party");
    licences::write(&licenses)?;
    let date = release::source_date()?;
    let script = |name: &str, args: &[&Path]| {
        run(Command::new(root().join("packaging").join(name))
            .arg(binary)
            .args(args)
            .env("CCM_LICENSES", &licenses)
            .env("CCM_RUNS", own)
            .env("SOURCE_DATE_EPOCH", &date))
    };
    script("tar.sh", &[Path::new(platform.target), directory])?;
    script("deb.sh", &[directory])?;
    script("rpm.sh", &[directory])?;
    script("image.sh", &[ca, directory])
}

/// Certificates of authorities that browsers trust, for the container image.
fn bundle() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        let encoded = base64::engine::general_purpose::STANDARD.encode(certificate);
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in encoded.as_bytes().chunks(64) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

/// What the changelog says of this version, or of the next one.
fn changes() -> Result<String> {
    let text = std::fs::read_to_string(root().join("CHANGELOG.md"));
    let text = text.map_err(|error| error.to_string())?;
    let mut sections = text.split("\n## ").skip(1);
    let own = format!("{} - ", version());
    let section = sections.find(|section| section.starts_with(&own));
    let section = section.or_else(|| text.split("\n## Unreleased\n").nth(1)?.split("\n## ").next());
    let section = section.ok_or("CHANGELOG.md has no section of this version")?;
    let (_, body) = section.split_once('\n').unwrap_or(("", section));
    Ok(body.trim().to_owned() + "\n")
}

/// Writes `SHA256SUMS`, with which `install.sh` and people verify the files.
fn sums(directory: &Path) -> Result {
    let entries = std::fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    let sums = output(Command::new("env").arg("-C").arg(directory).arg("sha256sum").args(names))?;
    print!("{sums}");
    std::fs::write(directory.join("SHA256SUMS"), sums).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::{bundle, changes, elf};

    #[test]
    fn headers_of_binaries() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let (_, has_loader) = elf(&own).unwrap();
        assert!(has_loader, "tests are linked to glibc");
        for end in 0..200 {
            let _ = elf(&own[..end]);
        }
        assert_eq!(elf(b"\x7fELF"), None);
        assert_eq!(elf(b"#!/bin/sh\n"), None);
    }

    #[test]
    fn certificates_and_changes() {
        let bundle = bundle();
        assert!(bundle.matches("BEGIN CERTIFICATE").count() > 100);
        assert!(bundle.lines().all(|line| line.len() <= 64));
        let changes = changes().unwrap();
        assert!(changes.contains("### ") && !changes.contains("\n## "), "{changes}");
    }
}
