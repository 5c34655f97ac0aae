//! Software packages: whether they are installed, and in which version.

mod apt;
mod command_line;
mod dnf;
mod manager;
mod predicted;
#[cfg(test)]
mod tests;
pub mod version;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use ccm_engine::{
    CommandLine, Context, Declare, Detail, Ensure, Findings, Former, Prediction, ProviderDef,
    ResourceType, Result, Step, Together, Trigger,
};
use ccm_host::Reach;
use ccm_model::{Change, Common, Stage, Verb, did_you_mean};
use serde::{Deserialize, Serialize, Serializer};

use crate::name;
pub use predicted::PackageChange;
use predicted::{PredictedPackages, SimulatedGroup};

/// What to do about what only root can do.
const AS_ROOT: &str = "run ccm as root";

/// The `package` type.
pub struct Package;

/// Manage packages
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
}

impl Properties {
    fn wanted(&self) -> Wanted<'_> {
        match self.common.ensure.as_str() {
            "present" => Wanted::Present,
            "absent" => Wanted::Absent,
            "latest" => Wanted::Latest,
            version => Wanted::Version(version),
        }
    }
}

/// What `ensure` asks for.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    Present,
    Absent,
    Latest,
    Version(&'a str),
}

/// Operations of a package provider. Each can report what it waits for.
pub trait Provider {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether it reads a name as a name, and not as an order to do something
    /// with another package.
    fn check_name(&mut self, package: &str) -> Result<()>;
    /// Whether it could know such a version at all.
    fn check_version(&self, _version: &str) -> Result<()> {
        Ok(())
    }
    /// What is installed under a name.
    fn find(&mut self, package: &str) -> Result<PackageStatus>;
    /// What else is known of an installed package.
    fn details(&mut self, package: &str) -> Result<Details>;
    /// How an installed version and a wanted one are ordered.
    fn compare(&self, installed: &Installed, wanted: &str) -> Ordering;
    /// Reads at once what is installed under these names, for `find`.
    fn survey(&mut self, _packages: &[&str]) -> Result<()> {
        Ok(())
    }
    /// Takes actions of one kind in one transaction; `say` gets
    /// what the user should know meanwhile.
    fn change(&mut self, actions: &[&Action], say: &mut dyn FnMut(&str)) -> Result<()>;
    /// The packages that such actions would change, their own and others, without
    /// changing anything; `None` where the package manager cannot tell.
    fn simulate(&mut self, actions: &[&Action]) -> Result<Option<Vec<PackageChange>>>;
}

/// Which version is to be installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Any version; the package manager chooses.
    Any,
    /// The newest version in the package lists.
    Latest,
    /// This one.
    Version(String),
}

/// Current status of a package.
#[derive(Clone, Debug, Default)]
pub struct PackageStatus {
    /// The package, if it is wholly installed.
    pub installed: Option<Installed>,
    /// Details specific to the provider.
    pub extended: BTreeMap<&'static str, String>,
}

/// An installed package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// Its version.
    pub version: String,
    /// Epoch of the version, where the package manager has one.
    pub epoch: u64,
    /// Its architecture.
    pub arch: String,
}

/// Details of a package.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Its licence.
    pub license: String,
    /// Its home page.
    pub url: String,
    /// One-line summary.
    pub summary: String,
    /// Full description.
    pub description: String,
}

/// Installed version, compared with the desired one.
#[derive(Clone, Debug)]
pub struct State {
    name: String,
    provider: &'static str,
    found: PackageStatus,
    /// The installed version against the wanted one.
    order: Ordering,
    details: Details,
}

impl State {
    fn is_installed(&self) -> bool {
        self.found.installed.is_some()
    }
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        self.found.installed.as_ref().map_or("absent", |installed| &installed.version)
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Outer<'a> {
            metadata: Metadata<'a>,
        }
        #[derive(Serialize)]
        struct Metadata<'a> {
            name: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            version: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            arch: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            license: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            url: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            summary: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            description: &'a str,
            provider: &'a str,
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            extended: &'a BTreeMap<&'static str, String>,
        }
        let installed = self.found.installed.as_ref();
        let metadata = Metadata {
            name: &self.name,
            version: installed.map_or("", |installed| &installed.version),
            arch: installed.map_or("", |installed| &installed.arch),
            license: &self.details.license,
            url: &self.details.url,
            summary: &self.details.summary,
            description: &self.details.description,
            provider: self.provider,
            extended: &self.found.extended,
        };
        Outer { metadata }.serialize(to)
    }
}

/// An action of this type.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Install what is not there.
    Install { package: String, target: Target },
    /// Bring forward what is there.
    Upgrade { package: String, target: Target },
    /// Bring back what is there, to this version.
    Downgrade { package: String, version: String },
    /// Remove what is there.
    Uninstall { package: String },
}

impl Action {
    /// Those of one kind fit into one transaction.
    fn kind(&self) -> &'static str {
        match self {
            Self::Install { target: Target::Latest, .. }
            | Self::Upgrade { target: Target::Latest, .. } => "latest",
            Self::Install { .. } | Self::Upgrade { .. } => "install",
            Self::Downgrade { .. } => "downgrade",
            Self::Uninstall { .. } => "remove",
        }
    }

    fn package(&self) -> &str {
        match self {
            Self::Install { package, .. }
            | Self::Upgrade { package, .. }
            | Self::Downgrade { package, .. }
            | Self::Uninstall { package } => package,
        }
    }

    /// Whether only the package manager knows the version.
    fn is_latest(&self) -> bool {
        self.kind() == "latest"
    }

    /// The version that it asks for.
    fn version(&self) -> Option<&str> {
        match self {
            Self::Install { target: Target::Version(version), .. }
            | Self::Upgrade { target: Target::Version(version), .. }
            | Self::Downgrade { version, .. } => Some(version),
            _ => None,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install { target: Target::Version(version), .. } => {
                write!(f, "Would have installed version {version}")
            }
            // Without a version a package manager takes the newest.
            Self::Install { target: Target::Any | Target::Latest, .. } => {
                f.write_str("Would have installed latest")
            }
            Self::Upgrade { target: Target::Version(version), .. } => {
                write!(f, "Would have upgraded to {version}")
            }
            Self::Upgrade { target: Target::Any | Target::Latest, .. } => {
                f.write_str("Would have upgraded to latest")
            }
            Self::Downgrade { version, .. } => write!(f, "Would have downgraded to {version}"),
            Self::Uninstall { .. } => f.write_str("Would have uninstalled"),
        }
    }
}

impl Declare for Package {
    type Properties = Properties;

    const NAME: &'static str = "package";
    const ABOUT: &'static str = "Manage packages";
    const NAME_DOC: &'static str = "Name of the package";
    const ENSURE: Ensure = Ensure::Any("present");
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);
    const REACH: Reach = Reach::Packages;

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        let package = want.common.name.as_str();
        if let Some(problem) = name::problem("package name", package)
            && !package.is_empty()
        {
            findings.add("name", problem);
        }
        if let Wanted::Version(version) = want.wanted() {
            if let Some(problem) = name::version_problem(version) {
                findings.add("ensure", problem);
            } else if !version.contains(|c: char| c.is_ascii_digit()) {
                let words = ["present", "absent", "latest"];
                let hint = did_you_mean(version, words)
                    .unwrap_or_else(|| format!("allowed: {}, or a version", words.join(", ")));
                let message = format!("`{version}` is neither a state nor a version");
                findings.add_with_hint("ensure", message, hint);
            }
        }
    }

    /// What a package brings is known only to the package manager.
    fn can_create(_want: &Properties, _path: &Path) -> bool {
        true
    }
}

impl ResourceType for Package {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[apt::DEF, dnf::DEF];

    const TOGETHER: Option<Together<Self>> = Some(Together {
        kind: |action| Some(action.kind()),
        survey: |on, names| on.survey(names),
        act: |on, actions, cx| on.change(actions, &mut *cx.output),
        predict: |on, actions, cx| {
            if let Some(transaction) = on.simulate(actions)? {
                let host = cx.templates.host();
                host.predicted::<SimulatedGroup>().record(actions, &transaction);
            }
            Ok(())
        },
    });

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        let package = &want.common.name;
        on.check_name(package)?;
        if let Wanted::Version(version) = want.wanted() {
            on.check_version(version)?;
        }
        let mut found = on.find(package)?;
        let predicted = cx.templates.host().predicted::<PredictedPackages>();
        if let Some(change) = predicted.get(package) {
            found.installed =
                change.version.map(|version| Installed { version, ..Installed::default() });
        }
        let order = match (want.wanted(), &found.installed) {
            (Wanted::Version(version), Some(installed)) => on.compare(installed, version),
            _ => Ordering::Equal,
        };
        let details = if found.installed.is_some() && cx.detail >= Detail::Inspect {
            on.details(package)?
        } else {
            Details::default()
        };
        Ok(State { name: package.clone(), provider: on.name(), found, order, details })
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        let package = want.common.name.clone();
        let is_installed = have.is_installed();
        let install =
            |target| (Verb::Installed, Action::Install { package: package.clone(), target });
        let upgrade =
            |target| (Verb::Upgraded, Action::Upgrade { package: package.clone(), target });
        let (verb, action) = match want.wanted() {
            Wanted::Absent if is_installed => {
                (Verb::Removed, Action::Uninstall { package: package.clone() })
            }
            Wanted::Present if !is_installed => install(Target::Any),
            // Only the package manager knows what is the latest.
            Wanted::Latest if is_installed => upgrade(Target::Latest),
            Wanted::Latest => install(Target::Latest),
            Wanted::Version(version) => {
                let version = version.to_owned();
                match have.order {
                    _ if !is_installed => install(Target::Version(version)),
                    Ordering::Less => upgrade(Target::Version(version)),
                    Ordering::Equal => return Ok(vec![]),
                    Ordering::Greater => {
                        let package = package.clone();
                        (Verb::Downgraded, Action::Downgrade { package, version })
                    }
                }
            }
            Wanted::Absent | Wanted::Present => return Ok(vec![]),
        };
        let from = ccm_engine::State::ensure(have);
        let change = Change::of("ensure").from(from).to(want.common.ensure.as_str());
        Ok(vec![Step::new(verb, action).change(change)])
    }

    fn act(on: &mut Self::Provider, action: &Action, cx: &mut Context<'_>) -> Result<()> {
        on.change(&[action], &mut *cx.output)
    }

    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Action>,
        cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        let host = cx.templates.host();
        let transaction = match host.predicted::<SimulatedGroup>().take(&step.action) {
            Some(transaction) => Some(transaction),
            None => match on.simulate(&[&step.action]) {
                // Some simulate only as root; then what comes along is not known.
                Err(error) if !host.is_root() && error.hint().as_deref() == Some(AS_ROOT) => None,
                simulated => simulated?,
            },
        };
        if !host.is_root() {
            host.warn(format!("{} changes packages only as root: apply needs root", on.name()));
        }
        if transaction.as_ref().is_some_and(Vec::is_empty) {
            return Ok(Prediction::Nothing);
        }
        let package = step.action.package();
        let mut version = step.action.version();
        if let Some(transaction) = &transaction {
            host.predicted::<PredictedPackages>().record(transaction);
            let own = transaction.iter().find(|change| change.package == package);
            version = own.and_then(|change| change.version.as_deref()).or(version);
        }
        if let Some(version) = version.map(str::to_owned) {
            for change in step.changes.iter_mut().filter(|change| change.property == "ensure") {
                change.to = Some(version.as_str().into());
            }
        }
        Ok(match step.action {
            Action::Uninstall { .. } => Prediction::Open,
            _ => Prediction::Packages,
        })
    }

    fn former(_want: &Properties, have: &State) -> Former {
        Former::Properties(serde_json::json!({"ensure": ccm_engine::State::ensure(have)}))
    }

    fn complete(changes: &mut [Change], after: &State) {
        for change in changes.iter_mut().filter(|change| change.property == "ensure") {
            change.to = Some(ccm_engine::State::ensure(after).into());
        }
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        let is_reached = match want.wanted() {
            Wanted::Absent => !have.is_installed(),
            Wanted::Present | Wanted::Latest => have.is_installed(),
            Wanted::Version(_) => have.is_installed() && have.order.is_eq(),
        };
        let found = ccm_engine::State::ensure(have);
        (!is_reached).then(|| format!("ensure is {found}, should be {}", want.common.ensure))
    }

    /// `latest` asks the package manager every time, and mostly it has nothing
    /// to do.
    fn has_changed(before: &State, after: &State) -> bool {
        before.found.installed != after.found.installed
    }
}
