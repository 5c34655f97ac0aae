//! The provider `dnf`, for packages of Fedora, Red Hat and related
//! distributions.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use ccm_engine::{Error, ProviderDef, Result};
use ccm_host::{Command, Exit, Host, Output};

use super::manager::{self, Advice};
use super::version::generic;
use super::{AS_ROOT, Action, Details, Installed, Package, PackageChange, PackageStatus, Provider};

const NAME: &str = "dnf";

const STATUS: &str = "%{NAME} %|EPOCH?{%{EPOCH}}:{0}| %{VERSION} %{RELEASE} %{ARCH}\\n";
const DETAILS: &str = "%{LICENSE}\\n%|URL?{%{URL}}|\\n%{SUMMARY}\\n%{DESCRIPTION}";

const ADVICE: Advice = &[
    ("Unable to find a match", "check the name and the version: `dnf list --showduplicates`"),
    ("No packages marked for downgrade", "`dnf list --showduplicates` lists the versions"),
    ("Failed to download metadata", "check the repositories: `dnf repolist -v`"),
    ("superuser", AS_ROOT),
];

pub(super) const DEF: ProviderDef<Package> = ProviderDef {
    name: NAME,
    rank: |host, _| {
        let is_there = host.which("dnf") && host.which("rpm");
        is_there.then(|| manager::rank(host, &["/etc/redhat-release", "/etc/system-release"]))
    },
    open: |host| Box::new(Dnf { host: host.clone() }),
};

struct Dnf {
    host: Host,
}

/// What rpm has answered about packages, and how many commands had run then.
#[derive(Default)]
struct Known(Mutex<Option<(u64, HashMap<String, String>)>>);

/// The answer of rpm about each of several packages: its lines, none for one that
/// is not installed. A name that rpm answers with another one is left out.
fn answers(output: &str, packages: &[&str]) -> HashMap<String, String> {
    let mut found: HashMap<String, String> = HashMap::new();
    for line in output.lines() {
        let absent = line.strip_prefix("package ");
        let absent = absent.and_then(|rest| rest.strip_suffix(" is not installed"));
        let name = absent.or_else(|| line.split(' ').next()).unwrap_or_default();
        if packages.contains(&name) {
            let answer = found.entry(name.to_owned()).or_default();
            if absent.is_none() {
                answer.push_str(line);
                answer.push('\n');
            }
        }
    }
    found
}

impl Dnf {
    /// What rpm has answered about a package, unless something may have changed it
    /// since.
    fn known(&self, package: &str) -> Option<String> {
        let commands = self.host.changes().commands;
        let known = self.host.cached::<Known>();
        let known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, answers) = known.as_ref().filter(|(then, _)| *then == commands)?;
        answers.get(package).cloned()
    }

    fn ask(&self, package: &str, format: &str) -> Result<(Command, Output)> {
        let command = Command::new("rpm", ["-q", package, "--queryformat", format]);
        Ok((command.clone(), manager::query(&self.host, command)?))
    }

    /// The words behind `dnf` for actions of one kind: options, and what to change.
    fn words(actions: &[&Action]) -> (&'static [&'static str], Vec<String>) {
        let options: &[&str] = match actions.first().map(|action| action.kind()) {
            Some("remove") => &["remove"],
            Some("downgrade") => &["downgrade"],
            // Without this, what is installed is good enough on some systems.
            Some("latest") => &["install", "--best"],
            _ => &["install"],
        };
        let what = |action: &&Action| match action.version() {
            Some(version) => format!("{}-{version}", action.package()),
            None => action.package().to_owned(),
        };
        (options, actions.iter().map(what).collect())
    }

    /// Lets dnf resolve a transaction and then decline it.
    fn decline(&self, before: &[&str], actions: &[&Action]) -> Result<(Command, Output)> {
        let (options, what) = Self::words(actions);
        let args = before.iter().chain(&["--assumeno"]).chain(options).copied();
        let command = Command::new("dnf", args.chain(what.iter().map(String::as_str))).proxies();
        Ok((command.clone(), manager::query(&self.host, command)?))
    }
}

/// The transaction that dnf has resolved and then declined; `None` where it has
/// not resolved one.
fn transaction(output: &str) -> Option<Vec<PackageChange>> {
    if output.lines().any(|line| line.starts_with("Nothing to do")) {
        return Some(Vec::new());
    }
    if !output.contains("Operation aborted") {
        return None;
    }
    let mut changes = Vec::new();
    let mut is_removal = false;
    let mut words: Vec<&str> = Vec::new();
    let mut rows = output.lines().skip_while(|line| !line.trim_start().starts_with("Package"));
    rows.next();
    for line in rows.take_while(|line| !line.starts_with("Transaction Summary")) {
        if line.starts_with(' ') {
            words.extend(line.split_whitespace());
            // A long name stands on a line of its own.
            if let [package, _, version, ..] = words[..] {
                let version = version.split_once(':').map_or(version, |(_, version)| version);
                let version = (!is_removal).then(|| version.to_owned());
                changes.push(PackageChange { package: package.to_owned(), version });
                words.clear();
            }
        } else if line.ends_with(':') {
            is_removal = line.starts_with("Removing");
        }
    }
    Some(changes)
}

fn parse(line: &str) -> Option<(Installed, &str)> {
    let mut fields = line.split(' ').skip(1);
    let epoch = fields.next()?.parse().ok()?;
    let (version, release, arch) = (fields.next()?, fields.next()?, fields.next()?);
    let version = format!("{version}-{release}");
    Some((Installed { version, epoch, arch: arch.to_owned() }, release))
}

/// A kernel may be there several times; the newest counts.
fn newest(answer: &str) -> Option<(Installed, &str)> {
    answer.lines().filter_map(parse).max_by(|(a, _), (b, _)| {
        let version = || generic::compare(&a.version, &b.version, false);
        a.epoch.cmp(&b.epoch).then_with(version)
    })
}

/// A wanted version with an epoch is compared with it, one without is not.
fn compare(installed: &Installed, wanted: &str) -> Ordering {
    let with_epoch = wanted
        .split_once(':')
        .and_then(|(epoch, version)| Some((epoch.parse::<u64>().ok()?, version)));
    match with_epoch {
        Some((epoch, version)) => installed
            .epoch
            .cmp(&epoch)
            .then_with(|| generic::compare(&installed.version, version, false)),
        None => generic::compare(&installed.version, wanted, false),
    }
}

impl Provider for Dnf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check_name(&mut self, package: &str) -> Result<()> {
        // No name of an rpm package has one.
        if package.contains(':') {
            return Err(Error::Refused {
                reason: format!("dnf would read {package} as a name with an epoch and version"),
                hint: Some("the version goes into `ensure`, with its epoch".to_owned()),
            });
        }
        Ok(())
    }

    fn survey(&mut self, packages: &[&str]) -> Result<()> {
        if packages.first().is_some_and(|first| self.known(first).is_some()) {
            return Ok(());
        }
        let words = ["-q", "--queryformat", STATUS].into_iter().chain(packages.iter().copied());
        let output = manager::query(&self.host, Command::new("rpm", words))?;
        let answers = answers(&String::from_utf8_lossy(&output.stdout), packages);
        let known = self.host.cached::<Known>();
        let commands = self.host.changes().commands;
        *known.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((commands, answers));
        Ok(())
    }

    fn find(&mut self, package: &str) -> Result<PackageStatus> {
        let answer = match self.known(package) {
            Some(answer) => answer,
            None => {
                let (command, output) = self.ask(package, STATUS)?;
                // A database that cannot be read says nothing about the package.
                let is_error = |line: &str| line.starts_with("error:");
                match output.exit {
                    Exit::Code(0) => String::from_utf8_lossy(&output.stdout).into_owned(),
                    _ if output.stderr_tail(10).lines().any(is_error) => {
                        return Err(output.failure(&command).into());
                    }
                    _ => String::new(),
                }
            }
        };
        let Some((installed, release)) = newest(&answer) else {
            return Ok(PackageStatus::default());
        };
        let extended = BTreeMap::from([
            ("epoch", installed.epoch.to_string()),
            ("release", release.to_owned()),
        ]);
        Ok(PackageStatus { installed: Some(installed), extended })
    }

    fn details(&mut self, package: &str) -> Result<Details> {
        let (_, output) = self.ask(package, DETAILS)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let mut parts = text.splitn(4, '\n').map(|part| part.trim_end().to_owned());
        let mut next = || parts.next().unwrap_or_default();
        let (license, url, summary, description) = (next(), next(), next(), next());
        Ok(Details { license, url, summary, description })
    }

    fn compare(&self, installed: &Installed, wanted: &str) -> Ordering {
        compare(installed, wanted)
    }

    fn change(&mut self, actions: &[&Action], say: &mut dyn FnMut(&str)) -> Result<()> {
        let (options, what) = Self::words(actions);
        let args = options.iter().copied().chain(["-y"]).chain(what.iter().map(String::as_str));
        manager::change(&self.host, Command::new("dnf", args), ADVICE, say)
    }

    fn simulate(&mut self, actions: &[&Action]) -> Result<Option<Vec<PackageChange>>> {
        let resolved = |output: &Output| {
            let shown = String::from_utf8_lossy(&output.stdout);
            transaction(&format!("{shown}\n{}", output.stderr_tail(10)))
        };
        let (_, output) = self.decline(&["--cacheonly"], actions)?;
        if let Some(changes) = resolved(&output) {
            return Ok(Some(changes));
        }
        // The cache may be missing or old. A run would refresh it, a preview
        // leaves it alone and uses one of its own.
        let cache = self.host.temporary_directory("ccm-dnf-")?;
        let option = format!("--setopt=cachedir={}", cache.path().display());
        let (command, output) = self.decline(&[&option], actions)?;
        match resolved(&output) {
            Some(changes) => Ok(Some(changes)),
            None => Err(unresolved(&output, &command)),
        }
    }
}

/// Why dnf has resolved no transaction. It may exit with 0 all the same: then
/// only what it prints tells.
fn unresolved(output: &Output, command: &Command) -> Error {
    if output.exit != Exit::Code(0) {
        return manager::missing(output.failure(command), ADVICE);
    }
    let shown = String::from_utf8_lossy(&output.stdout);
    let shown: Vec<&str> = shown.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut said = shown[shown.len().saturating_sub(5)..].join("\n");
    if !output.stderr.is_empty() {
        said = format!("{said}\n{}", output.stderr_tail(5));
    }
    let words = command.words();
    let reason = match said.trim() {
        "" => format!("`{words}` shows no transaction"),
        said => format!("`{words}` shows no transaction, only:\n{said}"),
    };
    let hint = ADVICE.iter().find(|(words, _)| said.contains(words));
    Error::Missing { reason, hint: hint.map(|(_, hint)| (*hint).to_owned()), by: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_the_newest_kernel_counts() {
        let (zsh, release) = newest("zsh 0 5.8 9.el9 x86_64\n").unwrap();
        assert_eq!(
            (zsh.version.as_str(), zsh.epoch, zsh.arch.as_str()),
            ("5.8-9.el9", 0, "x86_64")
        );
        assert_eq!(release, "9.el9");
        let kernels = "kernel 0 5.14.0 9.el9 x86_64\nkernel 0 5.14.0 70.el9 x86_64\n\
                       kernel 0 5.14.0 10.el9 x86_64\n";
        assert_eq!(newest(kernels).unwrap().0.version, "5.14.0-70.el9");
        let epochs = "a 1 1.0 1 noarch\na 0 2.0 1 noarch\n";
        assert_eq!(newest(epochs).unwrap().0.version, "1.0-1");
        assert_eq!(newest("nonsense\n"), None);
    }

    #[test]
    fn one_answer_tells_of_many_packages() {
        let output = "zsh 0 5.8 9.el9 x86_64\npackage gone is not installed\n\
                      glibc 0 2.34 1 i686\nglibc 0 2.34 1 x86_64\nother 0 1 1 noarch\n";
        let found = answers(output, &["zsh", "gone", "glibc", "virtual"]);
        assert_eq!(found["zsh"], "zsh 0 5.8 9.el9 x86_64\n");
        assert_eq!((&*found["gone"], found["glibc"].lines().count()), ("", 2));
        assert!(!found.contains_key("virtual") && !found.contains_key("other"), "{found:?}");
    }

    #[test]
    fn an_epoch_counts_only_where_it_is_wanted() {
        let installed = Installed { version: "1.0-1".into(), epoch: 1, arch: "noarch".into() };
        for (wanted, order) in [
            ("1.0-1", Ordering::Equal),
            ("1:1.0-1", Ordering::Equal),
            ("2.0-1", Ordering::Less),
            ("0:2.0-1", Ordering::Greater),
            ("2:0.5-1", Ordering::Less),
            ("0.5-1", Ordering::Greater),
        ] {
            assert_eq!(compare(&installed, wanted), order, "{wanted}");
        }
    }

    #[test]
    fn declined_transactions_name_every_package() {
        let output = "Dependencies resolved.\n\
            ========\n Package   Architecture   Version   Repository   Size\n========\n\
            Installing:\n a   noarch   1:2.0-1   local   6 k\n\
            Installing dependencies:\n a-very-long-name-of-a-package\n     noarch 1-1 local 6 k\n\
            Removing:\n b   x86_64   3-1   @local   6 k\n\n\
            Transaction Summary\n========\nInstall  2 Packages\n\nOperation aborted.\n";
        let changes = transaction(output).unwrap();
        let rows: Vec<_> = changes.iter().map(|c| (&*c.package, c.version.as_deref())).collect();
        let wanted =
            [("a", Some("2.0-1")), ("a-very-long-name-of-a-package", Some("1-1")), ("b", None)];
        assert_eq!(rows, wanted);
        assert_eq!(transaction("Nothing to do.\nComplete!\n"), Some(vec![]));
        assert_eq!(transaction("Error: Unable to find a match: x\n"), None);
    }

    #[test]
    fn a_transaction_that_is_not_resolved_says_what_is_wrong() {
        let command = Command::new("dnf", ["--assumeno", "install", "x"]);
        let said = |code: i32, stdout: &str, stderr: &str| {
            let (stdout, stderr) = (stdout.into(), stderr.into());
            let error = unresolved(&Output { exit: Exit::Code(code), stdout, stderr }, &command);
            (error.to_string(), error.hint())
        };
        let (reason, hint) = said(0, "Last check: now\n\nUnable to find a match: x\n", "");
        assert_eq!(
            reason,
            "`dnf --assumeno install x` shows no transaction, only:\nLast check: now\n\
             Unable to find a match: x"
        );
        assert!(hint.unwrap().starts_with("check the name"));
        let (reason, _) = said(0, "", "warning: skipped\n");
        assert!(reason.ends_with("only:\nwarning: skipped"), "{reason}");
        assert_eq!(said(0, "", "").0, "`dnf --assumeno install x` shows no transaction");
        assert!(said(1, "", "Error: x").0.contains("exited with code 1"));
    }
}
