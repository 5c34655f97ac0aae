//! The provider `apt`, for Debian packages.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use ccm_engine::{Error, ProviderDef, Result};
use ccm_host::{Command, Exit, Host};

use super::manager::{self, Advice};
use super::version::debian;
use super::{AS_ROOT, Action, Details, Installed, Package, PackageChange, PackageStatus, Provider};

const NAME: &str = "apt";

/// Every package at once: asking for one costs dpkg-query as much.
const STATUS: &str = "-f=${Package} ${Version} ${Architecture} ${db:Status-Status}\\n";
const DETAILS: &str = "-f=${Homepage}\\n${binary:Summary}\\n${Description}";

/// Another package manager has two minutes to finish.
const LOCK_TIMEOUT: [&str; 2] = ["-o", "DPkg::Lock::Timeout=120"];
/// A name that apt does not know is not taken for a regular expression.
const EXACT: [&str; 2] = ["-o", "APT::Cmd::Pattern-Only=true"];
const KEEP_CONFIGURATION: [&str; 2] = ["-o", "DPkg::Options::=--force-confold"];

const ADVICE: Advice = &[
    ("Unable to locate package", "check the name; `apt-get update` refreshes the package lists"),
    ("was not found", "`apt-cache policy` lists the available versions"),
    (
        "Unable to fetch",
        "check the repository, and refresh the package lists with `apt-get update`",
    ),
    ("Held packages", "to let ccm change it, run `apt-mark unhold`"),
    ("are you root?", AS_ROOT),
    ("Could not get lock", "another package manager is running; try again when it has finished"),
];

pub(super) const DEF: ProviderDef<Package> = ProviderDef {
    name: NAME,
    rank: |host, _| {
        let is_there = host.which("apt-get") && host.which("dpkg-query");
        is_there.then(|| manager::rank(host, &["/etc/debian_version"]))
    },
    open: |host| Box::new(Apt { host: host.clone() }),
};

struct Apt {
    host: Host,
}

/// What dpkg says of one package.
#[derive(Clone, Debug)]
struct Entry {
    version: String,
    arch: String,
    status: String,
}

/// What dpkg says of all packages, by name.
type Packages = HashMap<String, Vec<Entry>>;

/// The packages of a run, and how many commands had run when dpkg was asked.
#[derive(Default)]
struct Known {
    packages: Mutex<Option<(u64, Arc<Packages>)>>,
}

impl Apt {
    fn packages(&self) -> Result<Arc<Packages>> {
        let known = self.host.cached::<Known>();
        let commands = self.host.changes().commands;
        let mut known = known.packages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, packages)) = &*known
            && *then == commands
        {
            return Ok(Arc::clone(packages));
        }
        let command = Command::new("dpkg-query", ["-W", STATUS]);
        let output = manager::query(&self.host, command.clone())?;
        // A machine without a single package is not an error.
        if output.exit != Exit::Code(0) && !output.stderr_tail(1).contains("no packages found") {
            return Err(output.failure(&command).into());
        }
        let packages = Arc::new(parse(&String::from_utf8_lossy(&output.stdout)));
        *known = Some((commands, Arc::clone(&packages)));
        Ok(packages)
    }

    /// The newest versions of packages that apt could install, in their order.
    fn candidates(&self, packages: &[&str]) -> Result<Vec<String>> {
        let words = EXACT.into_iter().chain(["policy"]).chain(packages.iter().copied());
        let command = Command::new("apt-cache", words);
        let output = manager::query(&self.host, command.clone())?;
        if output.exit != Exit::Code(0) {
            return Err(output.failure(&command).into());
        }
        let policy = String::from_utf8_lossy(&output.stdout);
        let known = |package: &&str| match packages {
            [_] => candidate(&policy),
            _ => candidate(section(&policy, package)?),
        };
        let unknown = |package: &str| Error::Missing {
            reason: format!("apt knows no version of package {package}"),
            hint: Some("check the name; `apt-get update` refreshes the package lists".to_owned()),
            by: None,
        };
        packages.iter().map(|package| known(package).ok_or_else(|| unknown(package))).collect()
    }

    /// Whether the lists of apt have a package of exactly this name.
    fn is_known(&self, package: &str) -> Result<bool> {
        let command = Command::new("apt-cache", ["pkgnames", package]);
        let output = manager::query(&self.host, command.clone())?;
        if output.exit != Exit::Code(0) {
            return Err(output.failure(&command).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().any(|name| name == package))
    }

    /// The words behind `apt-get` for actions of one kind: options, and what to
    /// change.
    fn words(&self, actions: &[&Action]) -> Result<(Vec<&'static str>, Vec<String>)> {
        let is_removal = |action: &&Action| matches!(action, Action::Uninstall { .. });
        let mut options = if actions.iter().all(is_removal) {
            vec!["-q", "-y", "remove"]
        } else {
            ["install", "-y", "-q"].into_iter().chain(KEEP_CONFIGURATION).collect()
        };
        if actions.iter().any(|action| action.version().is_some()) {
            options.push("--allow-downgrades");
        }
        let latest: Vec<&str> =
            actions.iter().filter(|action| action.is_latest()).map(|it| it.package()).collect();
        let latest = if latest.is_empty() { Vec::new() } else { self.candidates(&latest)? };
        let mut latest = latest.into_iter();
        let what = |action: &&Action| {
            let package = action.package();
            let latest = if action.is_latest() { latest.next() } else { None };
            match latest.as_deref().or(action.version()) {
                Some(version) => format!("{package}={version}"),
                None => package.to_owned(),
            }
        };
        Ok((options, actions.iter().map(what).collect()))
    }

    fn command(before: &[&str], (options, packages): &(Vec<&str>, Vec<String>)) -> Command {
        let args = before.iter().chain(options).chain(&LOCK_TIMEOUT).chain(&EXACT);
        Command::new("apt-get", args.copied().chain(packages.iter().map(String::as_str)))
            .variable("DEBIAN_FRONTEND", "noninteractive")
            .variable("APT_LISTBUGS_FRONTEND", "none")
            .variable("APT_LISTCHANGES_FRONTEND", "none")
    }
}

/// The transaction that `apt-get --simulate` prints.
fn transaction(output: &str) -> Vec<PackageChange> {
    let change = |line: &str| {
        let mut words = line.split(' ');
        let order = words.next()?;
        let package = words.next()?.to_owned();
        match order {
            "Remv" => Some(PackageChange { package, version: None }),
            "Inst" => {
                let version = words.find_map(|word| word.strip_prefix('('))?;
                Some(PackageChange { package, version: Some(version.to_owned()) })
            }
            _ => None,
        }
    };
    output.lines().filter_map(change).collect()
}

fn parse(status: &str) -> Packages {
    let mut packages = Packages::new();
    for line in status.lines() {
        // A package that is only known by name has no version.
        let mut fields = line.split(' ').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        let (name, version, arch, status) = (next(), next(), next(), next());
        packages.entry(name).or_default().push(Entry { version, arch, status });
    }
    packages
}

/// What a name means: with an architecture behind a colon that one, without
/// the machine's own before a foreign one.
fn look_up<'a>(packages: &'a Packages, name: &str) -> Option<&'a Entry> {
    let native = packages.get("dpkg").and_then(|entries| entries.first()).map(|dpkg| &dpkg.arch);
    let is_native = |entry: &Entry| entry.arch == "all" || Some(&entry.arch) == native;
    let is_installed = |entry: &&Entry| entry.status == "installed";
    if let Some((name, arch)) = name.split_once(':') {
        let is_meant = |entry: &&Entry| {
            entry.arch == arch || (entry.arch == "all" && native.is_some_and(|own| own == arch))
        };
        return packages.get(name)?.iter().find(is_meant);
    }
    let entries = packages.get(name)?;
    entries
        .iter()
        .find(|entry| is_native(entry))
        .or_else(|| entries.iter().find(is_installed))
        .or_else(|| entries.first())
}

/// What apt makes of a name that is not that of a package.
fn order(name: &str) -> Option<String> {
    if let Some(other) = name.strip_suffix('+') {
        return Some(format!("an order to install {other}"));
    }
    if let Some(other) = name.strip_suffix('-') {
        return Some(format!("an order to remove {other}"));
    }
    let is_split_twice = name.matches(':').count() > 1;
    is_split_twice.then(|| "a package and an architecture".to_owned())
}

/// What a policy says of one of several packages.
fn section<'p>(policy: &'p str, package: &str) -> Option<&'p str> {
    let mut rest = policy;
    loop {
        let (title, body) = rest.split_once('\n')?;
        // The lines of a section are indented.
        let end = body.split_inclusive('\n').take_while(|line| line.starts_with(' '));
        let (own, next) = body.split_at(end.map(str::len).sum());
        if title.strip_suffix(':') == Some(package) {
            return Some(own);
        }
        rest = next;
    }
}

fn candidate(policy: &str) -> Option<String> {
    let line = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "))?;
    (line != "(none)").then(|| line.to_owned())
}

impl Provider for Apt {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_name(&mut self, package: &str) -> Result<()> {
        let Some(order) = order(package) else { return Ok(()) };
        // apt itself looks for a package of this name first, as `g++` is one.
        if self.packages()?.contains_key(package) || self.is_known(package)? {
            return Ok(());
        }
        Err(Error::Missing {
            reason: format!("there is no package {package}, and apt would read it as {order}"),
            hint: Some("check the name; `apt-get update` refreshes the package lists".to_owned()),
            by: None,
        })
    }

    fn check_version(&self, version: &str) -> Result<()> {
        if version.ends_with(['+', '-']) {
            let version = format!("{version:?}");
            return Err(Error::refused(format!(
                "apt reads the last character of version {version} as an order"
            )));
        }
        let parsed = debian::Version::parse(version).map(drop);
        let invalid = |error: debian::ParseError| Error::Invalid {
            property: "ensure".into(),
            message: error.to_string(),
        };
        parsed.map_err(invalid)
    }

    fn find(&mut self, package: &str) -> Result<PackageStatus> {
        let packages = self.packages()?;
        let Some(entry) = look_up(&packages, package) else { return Ok(PackageStatus::default()) };
        // What is half done counts as absent, so that installing it repairs it.
        let installed = (entry.status == "installed").then(|| Installed {
            version: entry.version.clone(),
            epoch: 0,
            arch: entry.arch.clone(),
        });
        Ok(PackageStatus {
            installed,
            extended: BTreeMap::from([("status", entry.status.clone())]),
        })
    }

    fn details(&mut self, package: &str) -> Result<Details> {
        let command = Command::new("dpkg-query", ["-W", DETAILS, package]);
        let output = manager::query(&self.host, command)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut parts = text.splitn(3, '\n').map(|part| part.trim_end().to_owned());
        let mut next = || parts.next().unwrap_or_default();
        let (url, summary, description) = (next(), next(), next());
        Ok(Details { license: String::new(), url, summary, description })
    }

    fn compare(&self, installed: &Installed, wanted: &str) -> Ordering {
        debian::compare(&installed.version, wanted)
    }

    fn change(&mut self, actions: &[&Action], say: &mut dyn FnMut(&str)) -> Result<()> {
        let command = Self::command(&[], &self.words(actions)?);
        manager::change(&self.host, command, ADVICE, say)
    }

    fn simulate(&mut self, actions: &[&Action]) -> Result<Option<Vec<PackageChange>>> {
        let command = Self::command(&["--simulate"], &self.words(actions)?);
        let output = manager::query(&self.host, command.clone())?;
        if output.exit != Exit::Code(0) {
            return Err(manager::missing(output.failure(&command), ADVICE));
        }
        Ok(Some(transaction(&String::from_utf8_lossy(&output.stdout))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "dpkg 1.21 amd64 installed\n\
        libc6 2.36 i386 installed\n\
        libc6 2.37 amd64 installed\n\
        wine 8.0 i386 installed\n\
        docs 1.0 all installed\n\
        gone 1.0 amd64 config-files\n\
        known   not-installed\n";

    #[test]
    fn names_mean_the_machines_own_architecture_unless_they_say_otherwise() {
        let packages = parse(STATUS);
        let version = |name| look_up(&packages, name).map(|entry| entry.version.as_str());
        for (name, wanted) in [
            ("libc6", Some("2.37")),
            ("libc6:i386", Some("2.36")),
            ("libc6:amd64", Some("2.37")),
            ("libc6:arm64", None),
            ("wine", Some("8.0")),
            ("wine:amd64", None),
            ("docs", Some("1.0")),
            ("docs:all", Some("1.0")),
            ("docs:amd64", Some("1.0")),
            ("docs:i386", None),
            ("missing", None),
            ("known", Some("")),
        ] {
            assert_eq!(version(name), wanted, "{name}");
        }
        assert_eq!(look_up(&packages, "gone").unwrap().status, "config-files");
        assert_eq!(look_up(&packages, "known").unwrap().status, "not-installed");
    }

    #[test]
    fn names_that_apt_reads_as_orders() {
        for name in ["zsh+", "zsh-", "zsh:amd64-", "a:b:c", "g++"] {
            assert!(order(name).is_some(), "{name}");
        }
        for name in ["zsh", "libstdc++6", "libc6:i386", "python3-apt"] {
            assert_eq!(order(name), None, "{name}");
        }
    }

    #[test]
    fn the_candidate_is_that_of_the_policy() {
        let policy = "zsh:\n  Installed: 5.9-8+b18\n  Candidate: 5.9-8+b19\n  Version table:\n";
        assert_eq!(candidate(policy).as_deref(), Some("5.9-8+b19"));
        assert_eq!(candidate("zsh:\n  Installed: (none)\n  Candidate: (none)\n"), None);
        assert_eq!(candidate(""), None);
        let two = format!("{policy}git:\n  Installed: (none)\n  Candidate: 1:2.39\n");
        let of = |package| section(&two, package).and_then(candidate);
        assert_eq!(of("zsh").as_deref(), Some("5.9-8+b19"));
        assert_eq!(of("git").as_deref(), Some("1:2.39"));
        assert_eq!(of("missing"), None);
    }

    #[test]
    fn simulations_name_every_package() {
        let output = "NOTE: This is only a simulation!\n\
            Reading package lists...\n\
            Remv old [1.0-1]\n\
            Inst libz (1.3-1 Debian:13/stable [amd64])\n\
            Inst zsh [5.8] (5.9-8+b19 Debian:13/stable [amd64]) []\n\
            Conf zsh (5.9-8+b19 Debian:13/stable [amd64])\n";
        let change = |package: &str, version: Option<&str>| PackageChange {
            package: package.into(),
            version: version.map(str::to_owned),
        };
        let wanted =
            [change("old", None), change("libz", Some("1.3-1")), change("zsh", Some("5.9-8+b19"))];
        assert_eq!(transaction(output), wanted);
        assert_eq!(transaction("0 upgraded, 0 newly installed\n"), []);
    }
}
