//! The type `archive`: downloads, extracts and optionally removes archives.

mod command_line;
mod headers;
mod http;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_archive::Format;
use ccm_engine::{
    CommandLine, Context, Declare, Ensure, Error, Extent, Findings, ManagedPath, Prediction,
    ProviderDef, ResourceType, Result, Step, Trigger,
};
use ccm_host::{Attributes, Digest, Stat};
use ccm_model::{Change, Common, Stage, Verb, redact_credentials};
use serde::{Deserialize, Serialize, Serializer};

use headers::Headers;

/// The `archive` type.
pub struct Archive;

/// Download and extract archives
#[derive(Clone, Debug, Default, ccm_model::Properties)]
pub struct Properties {
    #[property(common)]
    pub(crate) common: Common,
    /// URL to download the archive from
    #[property(required_unless(ensure = "absent"), format = Url, group = "Download")]
    pub(crate) url: String,
    /// SHA-256 checksum that the archive must have
    #[property(value = "SHA256", group = "Download")]
    pub(crate) checksum: Option<String>,
    /// Directory to extract the archive into
    #[property(flag = "extract", value = "DIR", format = Path, group = "Extraction")]
    pub(crate) extract_parent: Option<String>,
    /// Skip download and extraction if this file exists
    #[property(value = "FILE", format = Path, group = "Extraction")]
    pub(crate) creates: Option<String>,
    /// Remove the archive after it is extracted
    #[property(group = "Extraction")]
    pub(crate) cleanup: bool,
    /// Extract setuid and setgid bits instead of refusing the archive
    #[property(group = "Extraction")]
    pub(crate) allow_setuid: bool,
    /// User for basic authentication
    #[property(value = "USER", group = "Authentication")]
    pub(crate) username: Option<String>,
    /// Password for basic authentication
    #[property(secret, env = "HTTP_PASSWORD", group = "Authentication")]
    pub(crate) password: Option<String>,
    /// HTTP headers to send
    #[property(
        secret_values,
        flag = "header",
        short = 'H',
        value = "NAME:VALUE",
        group = "Authentication"
    )]
    pub(crate) headers: Headers,
    /// Owner of the archive, as user name or ID
    #[property(
        required_unless(ensure = "absent"),
        value = "USER[:GROUP]",
        format = User,
        group = "Permissions"
    )]
    pub(crate) owner: String,
    /// Group of the archive, as name or ID
    #[property(required_unless(ensure = "absent"), format = Group, group = "Permissions")]
    pub(crate) group: String,
}

impl Properties {
    fn path(&self) -> &Path {
        Path::new(&self.common.name)
    }

    fn is_removal(&self) -> bool {
        self.common.ensure == "absent"
    }

    fn checksum(&self) -> Option<Result<Digest, &'static str>> {
        self.checksum.as_deref().map(parse_checksum)
    }

    fn unpacks(&self) -> bool {
        self.extract_parent.is_some()
    }

    /// What there is to extract, if anything.
    fn extraction(&self) -> Option<Extract> {
        Some(Extract {
            path: self.path().to_owned(),
            parent: self.extract_parent.as_ref()?.into(),
            creates: self.creates.as_ref().map(PathBuf::from),
            checksum: self.checksum.clone(),
            cleanup: self.cleanup,
            allows_setuid: self.allow_setuid,
        })
    }

    /// User and password; half of a pair is not sent.
    fn credentials(&self) -> Option<(String, String)> {
        let is_set = |text: &&String| !text.is_empty();
        let user = self.username.as_ref().filter(is_set)?;
        Some((user.clone(), self.password.as_ref().filter(is_set)?.clone()))
    }

    fn download(&self, attributes: Attributes) -> Download {
        let headers = self.headers.entries();
        Download {
            path: self.path().to_owned(),
            url: self.url.clone(),
            user: self.credentials(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            checksum: self.checksum.clone(),
            attributes,
            is_unpacked: self.unpacks(),
        }
    }
}

/// A SHA-256 checksum as people write it.
fn parse_checksum(text: &str) -> Result<Digest, &'static str> {
    let digits = match text.get(..7) {
        Some(prefix) if prefix.eq_ignore_ascii_case("sha256:") => &text[7..],
        _ => text,
    };
    digits.parse()
}

/// Operations of an archive provider.
pub trait Provider {
    /// What is there, compared with what is wanted.
    fn observe(&mut self, want: &Properties, cx: &Context<'_>) -> Result<State>;
    /// Downloads the archive and verifies its checksum. An archive to extract
    /// gets its path and owner only after the extraction.
    fn download(&mut self, download: &Download) -> Result<()>;
    /// Sets owner and group of an archive that is there.
    fn set_owner(&mut self, path: &Path, attributes: &Attributes) -> Result<()>;
    /// Extracts the downloaded or existing archive, and records its digest.
    fn extract(&mut self, extract: &Extract, cx: &Context<'_>) -> Result<()>;
    /// Removes the archive.
    fn remove(&mut self, path: &Path) -> Result<()>;
    /// Records what an action would leave behind.
    fn predict(&mut self, action: &Action) -> Result<Prediction>;
}

/// Parameters of a download.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Download {
    path: PathBuf,
    url: String,
    user: Option<(String, String)>,
    headers: Vec<(String, String)>,
    checksum: Option<String>,
    attributes: Attributes,
    /// It gets its path only after it is extracted.
    is_unpacked: bool,
}

/// Without credentials.
impl fmt::Debug for Download {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Download")
            .field("path", &self.path)
            .field("url", &redact_credentials(&self.url))
            .field("checksum", &self.checksum)
            .field("attributes", &self.attributes)
            .finish_non_exhaustive()
    }
}

/// Parameters of an extraction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extract {
    path: PathBuf,
    parent: PathBuf,
    creates: Option<PathBuf>,
    checksum: Option<String>,
    /// The archive goes afterwards.
    cleanup: bool,
    /// Setuid and setgid bits are extracted.
    #[serde(default)]
    allows_setuid: bool,
}

impl Extract {
    /// What an extraction that was not ended is remembered by: what the next
    /// run looks at to see whether there is one to do.
    fn subject(&self) -> &Path {
        self.creates.as_ref().unwrap_or(&self.path)
    }
}

/// Current state of the archive, compared with the desired state.
#[derive(Clone, Debug)]
pub struct State {
    found: CurrentArchive,
    stat: Option<Stat>,
    checksum: Option<Digest>,
    /// Whether the checksum is the wanted one, where one is wanted and matters.
    is_right: Option<bool>,
    /// Whether the file that shows that all is unpacked is there, if there is
    /// to be one.
    creates: Option<bool>,
    /// Whether an extraction began and was not ended.
    is_incomplete: bool,
    /// The digest of what was extracted last, where that is known and matters.
    extracted: Option<Digest>,
    /// The wanted owner and group as numbers, and the mode that a new archive
    /// gets.
    wanted: Option<Attributes>,
    name: String,
    provider: &'static str,
    owner: Option<Arc<str>>,
    group: Option<Arc<str>>,
}

/// What is at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CurrentArchive {
    Nothing,
    File,
    /// A link to a file; when it is to be removed, any link.
    Link,
    Directory,
    /// A socket, FIFO or device.
    Other,
}

impl State {
    fn is_unpacked(&self) -> bool {
        self.creates == Some(true) && !self.is_incomplete
    }

    /// Whether another version is extracted than the wanted one. An archive that
    /// stays would say so by itself.
    fn is_outdated(&self, want: &Properties) -> bool {
        let wanted = want.checksum().and_then(Result::ok).filter(|_| want.cleanup);
        wanted.zip(self.extracted).is_some_and(|(wanted, extracted)| wanted != extracted)
    }

    fn is_there(&self) -> bool {
        self.found != CurrentArchive::Nothing
    }

    /// Why the wanted file is missing, if ccm does not extract the archive.
    fn left_to_others(&self, want: &Properties) -> Option<String> {
        let creates = want.creates.as_ref().filter(|_| !want.unpacks() && !want.is_removal())?;
        (self.creates == Some(false)).then(|| {
            format!("{creates} does not exist, and ccm extracts nothing without `extract_parent`")
        })
    }

    /// The first attribute that differs: name, current value, desired value.
    fn wrong_owner(&self) -> Option<(&'static str, u32, u32)> {
        let (have, wanted) = (self.stat.as_ref()?, self.wanted?);
        if have.uid != wanted.uid {
            return Some(("owner", have.uid, wanted.uid));
        }
        (have.gid != wanted.gid).then_some(("group", have.gid, wanted.gid))
    }

    fn download_step(&self, want: &Properties, attributes: Attributes) -> Step<Action> {
        let is_update = self.is_there() || self.is_outdated(want);
        let verb = if is_update { Verb::Updated } else { Verb::Created };
        let mut step = Step::new(verb, Action::Download(want.download(attributes)));
        if !self.is_there() && !want.cleanup {
            step = step.change(Change::of("ensure").from("absent").to("present"));
        }
        let mut checksum = Change::of("checksum");
        let former = self.checksum.or(self.extracted.filter(|_| is_update));
        checksum.from = former.map(|digest| digest.to_string().into());
        checksum.to = want.checksum.as_deref().map(Into::into);
        if checksum.to.is_some() && self.is_right != Some(true) {
            step = step.change(checksum);
        }
        step.changes.extend(self.owner_changes(want));
        step
    }

    fn owner_changes(&self, want: &Properties) -> Vec<Change> {
        let Some(wanted) = self.wanted else { return Vec::new() };
        let stat = self.stat.as_ref();
        let ids = [
            ("owner", stat.map(|stat| stat.uid), &self.owner, wanted.uid, &want.owner),
            ("group", stat.map(|stat| stat.gid), &self.group, wanted.gid, &want.group),
        ];
        let wrong = ids.into_iter().filter(|(_, have, _, wanted, _)| *have != Some(*wanted));
        let change =
            |(property, have, name, _, to): (_, Option<u32>, &Option<Arc<str>>, _, &String)| {
                let mut change = Change::of(property).to(to.as_str());
                change.from = have
                    .map(|id| name.as_deref().map_or_else(|| id.to_string(), str::to_owned).into());
                change
            };
        wrong.map(change).collect()
    }
}

impl ccm_engine::State for State {
    fn ensure(&self) -> &str {
        if self.is_there() { "present" } else { "absent" }
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
            #[serde(skip_serializing_if = "Option::is_none")]
            checksum: Option<String>,
            archive_exists: bool,
            creates_exists: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            owner: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            group: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            mtime: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            size: Option<u64>,
            provider: &'a str,
        }
        let stat = self.stat.as_ref();
        let metadata = Metadata {
            name: &self.name,
            checksum: self.checksum.map(|digest| digest.to_string()),
            archive_exists: self.is_there(),
            creates_exists: self.creates == Some(true),
            owner: self.owner.as_deref(),
            group: self.group.as_deref(),
            mtime: stat.map(|stat| stat.mtime.to_string()),
            size: stat.map(|stat| stat.size),
            provider: self.provider,
        };
        Outer { metadata }.serialize(to)
    }
}

/// An action of this type.
#[expect(missing_docs, reason = "the names of the fields say what they are")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Fetch the archive.
    Download(Download),
    /// Set its owner and group.
    SetOwner { path: PathBuf, attributes: Attributes },
    /// Unpack it.
    Extract(Extract),
    /// Remove it after it is extracted.
    CleanUp { path: PathBuf },
    /// Remove it, as it is not wanted.
    Remove { path: PathBuf },
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Download(_) => "Would have downloaded",
            Self::SetOwner { .. } => "Would have updated attributes",
            Self::Extract(_) => "Would have extracted",
            Self::CleanUp { .. } => "Would have cleaned up",
            Self::Remove { .. } => "Would have removed",
        })
    }
}

impl Declare for Archive {
    type Properties = Properties;

    const NAME: &'static str = "archive";
    const ABOUT: &'static str = "Download and extract archives";
    const NAME_DOC: &'static str = "Absolute path of the archive, with the extension of its format";
    const ENSURE: Ensure = Ensure::OneOf(&["present", "absent"]);
    const COMMAND_LINE: Option<CommandLine> = Some(command_line::VIEW);

    fn validate(want: &Properties, _stage: Stage, findings: &mut Findings) {
        findings.check_path("name", &want.common.name);
        let format = Format::of(&want.common.name);
        if format.is_none() {
            let message = "archive type not supported: the name has no known extension";
            findings.add_with_hint("name", message, format!("supported: {}", Format::known()));
        }
        if !want.url.is_empty() {
            check_url(&want.url, format, findings);
        } else if !want.is_removal() {
            findings.add("url", "cannot be empty");
        }
        if let Some(path) = &want.extract_parent {
            findings.check_path("extract_parent", path);
        }
        if let Some(path) = &want.creates {
            findings.check_path("creates", path);
        }
        if want.cleanup && !want.unpacks() {
            let message =
                "without `extract_parent`, ccm would delete the archive without extracting it";
            findings.add_with_hint("cleanup", message, "set `extract_parent`");
        }
        if want.cleanup && want.creates.is_none() {
            let message =
                "without `creates`, ccm could not tell whether the deleted archive was extracted";
            findings.add_with_hint("cleanup", message, "set `creates`");
        }
        if let Some(Err(reason)) = want.checksum() {
            findings.add("checksum", reason);
        }
        for (property, value, what) in
            [("owner", &want.owner, "user"), ("group", &want.group, "group")]
        {
            if !want.is_removal() && value.is_empty() {
                findings.add(property, format!("{what} name cannot be empty"));
            }
        }
        if want.username.as_ref().is_some_and(|user| user.contains(':')) {
            findings.add("username", "cannot contain a colon");
        }
        want.headers.check(findings);
    }

    fn can_create(want: &Properties, path: &Path) -> bool {
        let parent = want.extract_parent.as_ref();
        want.common.ensure == "present" && parent.is_some_and(|parent| path.starts_with(parent))
    }

    fn managed_paths(want: &Properties) -> Vec<ManagedPath> {
        let own =
            [(Some(&want.common.name), Extent::Itself), (want.creates.as_ref(), Extent::Itself)];
        let all = own.into_iter().chain([(want.extract_parent.as_ref(), Extent::Tree)]);
        all.filter_map(|(path, extent)| Some(ManagedPath { path: path?.into(), extent })).collect()
    }
}

impl ResourceType for Archive {
    type State = State;
    type Action = Action;
    type Provider = dyn Provider;

    const PROVIDERS: &'static [ProviderDef<Self>] = &[http::DEF];

    fn observe(on: &mut Self::Provider, want: &Properties, cx: &mut Context<'_>) -> Result<State> {
        on.observe(want, cx)
    }

    fn decide(want: &Properties, have: &State, _why: Trigger) -> Result<Vec<Step<Action>>> {
        let name = &want.common.name;
        match have.found {
            CurrentArchive::Directory => {
                let hint = "remove it first; ccm never replaces it on its own".to_owned();
                let reason = format!("{name} is a directory, not an archive");
                return Err(Error::Refused { reason, hint: Some(hint) });
            }
            CurrentArchive::Other if !want.is_removal() => {
                let reason = format!("{name} is a socket, FIFO or device, not an archive");
                return Err(Error::refused(reason));
            }
            _ => {}
        }
        let ensure = |from: &str, to: &str| Change::of("ensure").from(from).to(to);
        let gone = |action| Step::new(Verb::Removed, action).change(ensure("present", "absent"));
        let path = want.path().to_owned();
        let Some(wanted) = have.wanted else {
            return Ok(if have.is_there() { vec![gone(Action::Remove { path })] } else { vec![] });
        };
        let (is_wrong, is_outdated) = (have.is_right == Some(false), have.is_outdated(want));
        if have.is_unpacked() && !is_wrong && !is_outdated {
            let is_left = want.cleanup && have.is_there();
            return Ok(if is_left { vec![gone(Action::CleanUp { path })] } else { vec![] });
        }
        let mut steps = Vec::new();
        let is_wrong_link = have.found == CurrentArchive::Link && have.wrong_owner().is_some();
        let downloads = !have.is_there() || is_wrong || is_wrong_link;
        if downloads {
            steps.push(have.download_step(want, wanted));
        }
        if !downloads && let Some(reason) = have.left_to_others(want) {
            let hint = "set `extract_parent`, or set `creates` on the resource that extracts it";
            return Err(Error::Refused { reason, hint: Some(hint.to_owned()) });
        }
        let is_unpacked =
            !downloads && have.creates != Some(false) && !have.is_incomplete && !is_outdated;
        let extract = want.extraction().filter(|_| !is_unpacked);
        let extracts = extract.is_some();
        if let Some(extract) = extract {
            let to = extract.parent.to_string_lossy().into_owned();
            let change = Change::of("extract_parent").to(to);
            steps.push(Step::new(Verb::Created, Action::Extract(extract)).change(change));
        }
        // Its new owner could change what is extracted, so that comes first.
        if extracts && want.cleanup {
            let step = Step::new(Verb::Removed, Action::CleanUp { path });
            steps.push(if have.is_there() {
                step.change(ensure("present", "absent"))
            } else {
                step
            });
        } else if !downloads && have.wrong_owner().is_some() {
            let action = Action::SetOwner { path, attributes: wanted };
            let mut step = Step::new(Verb::Updated, action);
            step.changes = have.owner_changes(want);
            steps.push(step);
        }
        Ok(steps)
    }

    fn act(on: &mut Self::Provider, action: &Action, cx: &mut Context<'_>) -> Result<()> {
        match action {
            Action::Download(download) => on.download(download),
            Action::SetOwner { path, attributes } => on.set_owner(path, attributes),
            Action::Extract(extract) => on.extract(extract, cx),
            Action::CleanUp { path } | Action::Remove { path } => on.remove(path),
        }
    }

    fn evidence(_on: &mut Self::Provider, want: &Properties, have: &State) -> serde_json::Value {
        let mut evidence = serde_json::to_value(have).unwrap_or_default();
        if let (Some(digest), Some(map)) = (have.extracted, evidence.as_object_mut())
            && have.is_outdated(want)
        {
            map.insert("extracted".to_owned(), digest.to_string().into());
        }
        evidence
    }

    fn places(want: &Properties) -> Vec<&Path> {
        let others = want.extract_parent.iter().chain(&want.creates).map(Path::new);
        others.chain([want.path()]).collect()
    }

    fn predict(
        on: &mut Self::Provider,
        step: &mut Step<Action>,
        _cx: &mut Context<'_>,
    ) -> Result<Prediction> {
        on.predict(&step.action)
    }

    fn mismatch(want: &Properties, have: &State) -> Option<String> {
        if let Some(creates) = &want.creates
            && want.unpacks()
            && have.creates == Some(false)
        {
            return Some(format!("the archive did not create {creates}"));
        }
        if let Some(reason) = have.left_to_others(want) {
            return Some(reason);
        }
        let wanted = if want.is_removal() || want.cleanup { "absent" } else { "present" };
        let found = ccm_engine::State::ensure(have);
        if found != wanted {
            return Some(format!("archive is {found}, should be {wanted}"));
        }
        if have.is_right == Some(false) {
            return Some("the checksum differs".to_owned());
        }
        let (attribute, is, should) = have.wrong_owner()?;
        Some(format!("{attribute} is {is}, should be {should}"))
    }
}

fn check_url(url: &str, of_name: Option<Format>, findings: &mut Findings) {
    if !findings.check_url("url", url) {
        return;
    }
    match (Format::of_url(url), of_name) {
        (None, _) => {
            let message = "archive type not supported: the path of the URL has no known extension";
            findings.add_with_hint("url", message, format!("supported: {}", Format::known()));
        }
        (Some(of_url), Some(of_name)) if of_url != of_name => {
            findings.add("url", "its extension and that of `name` are of different formats");
        }
        _ => {}
    }
}
