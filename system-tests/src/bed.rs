//! What the machines of one test run share: a place in memory, and layers that
//! are made once.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::Machine;

/// What a machine is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The host's root alone.
    Plain,
    /// And a repository of Debian packages.
    Apt,
    /// And dnf with a repository of rpm packages.
    Dnf,
}

/// The place where machines live; ends with the process that made it.
pub(crate) struct Bed {
    pub(crate) directory: PathBuf,
    pub(crate) keeper: u32,
    /// Its standard input, held open for as long as the tests run.
    _child: Child,
}

/// The directory of the bed's scripts.
const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bed");

/// The one bed of this process, or why there can be none.
pub(crate) fn bed() -> Result<&'static Bed, &'static str> {
    static BED: OnceLock<Result<Bed, String>> = OnceLock::new();
    BED.get_or_init(make).as_ref().map_err(String::as_str)
}

fn make() -> Result<Bed, String> {
    if !cfg!(target_os = "linux") {
        return Err("machines are made by Linux".into());
    }
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() != 0) {
        return Err("only root can make machines".into());
    }
    let needed = [
        "/lib/systemd/systemd",
        "/usr/bin/unshare",
        "/usr/bin/nsenter",
        "/usr/bin/apt-get",
        "/usr/bin/dpkg-deb",
    ];
    if let Some(missing) = needed.into_iter().find(|path| !Path::new(path).exists()) {
        return Err(format!("{missing} is missing"));
    }
    let directory = std::env::temp_dir().join(format!("ccm-bed-{}", std::process::id()));
    std::fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "bash"])
        .arg(script("keeper.sh"))
        .arg(&directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // An interrupt at the terminal is for the tests; this ends after them.
        .process_group(0)
        .spawn()
        .map_err(|error| error.to_string())?;
    match first_line(&mut child).split_once(' ') {
        None => {}
        Some((_, reason)) => {
            let _ = std::fs::remove_dir(&directory);
            return Err(reason.to_owned());
        }
    }
    Ok(Bed { directory, keeper: child.id(), _child: child })
}

pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(SCRIPTS).join(name)
}

/// What a script says when it has done its work.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    let stdout = child.stdout.take().expect("its output is piped");
    BufReader::new(stdout).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

impl Layer {
    /// The layers of a machine, in the notation of overlayfs. A layer is made
    /// when it is first needed.
    pub(crate) fn lower(self, bed: &Bed) -> String {
        static APT: OnceLock<()> = OnceLock::new();
        static DNF: OnceLock<()> = OnceLock::new();
        let upper = |name: &str| bed.directory.join("layers").join(name);
        let made = |once: &OnceLock<()>, name: &str, network: &str| {
            let upper = upper(name);
            once.get_or_init(|| {
                let machine = Machine::boot(bed, "/", Some(&upper), network);
                machine.ok(&std::fs::read_to_string(script(&format!("{name}.sh"))).unwrap());
            });
            format!("{}:/", upper.join("data").display())
        };
        match self {
            Self::Plain => "/".to_owned(),
            Self::Apt => made(&APT, "apt", "none"),
            Self::Dnf => made(&DNF, "dnf", "host"),
        }
    }
}
