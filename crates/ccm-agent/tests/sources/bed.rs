//! A cache, a source, and what it tells.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ccm_agent::sources::{
    Accept, Cache, LastGood, Source, SourceContent, SourceEvent, SourceKind, SourceSettings,
};
use ccm_host::{Cancel, Digest, System};
use ccm_nats::{ContextChoice, KeptConnection, Nats};
use ccm_testkit::wait_until;

/// How long things may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A place for the cache of an agent, and its way to the network.
pub(crate) struct Bed {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) system: System,
    pub(crate) nats: Option<Nats>,
    kept: Option<KeptConnection>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory, system: System::default(), nats: None, kept: None }
    }

    /// With a connection of its own to a NATS server, kept as an agent does.
    pub(crate) fn with_nats(url: &str) -> Self {
        Self::with_context(&format!("\"url\": \"{url}\""))
    }

    /// The same with these members in its context.
    pub(crate) fn with_context(members: &str) -> Self {
        let mut bed = Self::new();
        bed.write_context(members);
        let choice = ContextChoice {
            flag: Some(bed.context().to_str().unwrap().to_owned()),
            configured: None,
        };
        let nats = Nats::new(choice, "agent");
        let plain = System::default();
        bed.kept = Some(nats.keep_connected(&plain.begin(Cancel::default()), |_| {}).unwrap());
        bed.system = plain.with_fetch(Arc::new(nats.clone()));
        bed.nats = Some(nats);
        bed
    }

    fn context(&self) -> PathBuf {
        self.directory.path().join("context.json")
    }

    pub(crate) fn write_context(&self, members: &str) {
        std::fs::write(self.context(), format!("{{{members}}}")).unwrap();
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(self.context(), private).unwrap();
    }

    pub(crate) fn cache_path(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    /// Opens the cache, once who had it before has let go.
    pub(crate) fn cache(&self) -> Cache {
        wait_until("the cache", || self.try_cache().ok())
    }

    pub(crate) fn try_cache(&self) -> ccm_agent::sources::Result<Cache> {
        Cache::open(&self.cache_path(), &self.system.begin(Cancel::default()))
    }

    pub(crate) fn start(&self, cache: &Cache, kind: SourceKind, url: &str) -> Watch {
        self.start_with(cache, kind, url, None)
    }

    pub(crate) fn start_with(
        &self,
        cache: &Cache,
        kind: SourceKind,
        url: &str,
        accept: Option<Accept>,
    ) -> Watch {
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&events);
        let settings = SourceSettings {
            kind,
            url: url.to_owned(),
            interval: Duration::from_hours(1),
            splay: Duration::ZERO,
            accept,
        };
        let tell = move |event| told.lock().unwrap().push(event);
        let source =
            Source::start(settings, cache, &self.system, self.nats.as_ref(), tell).unwrap();
        Watch { source, events }
    }

    pub(crate) fn manifest(&self, cache: &Cache, url: &str) -> Watch {
        self.start(cache, SourceKind::Manifest, url)
    }

    pub(crate) fn data(&self, cache: &Cache, url: &str) -> Watch {
        self.start(cache, SourceKind::Data, url)
    }
}

/// A source and what it told.
pub(crate) struct Watch {
    pub(crate) source: Source,
    pub(crate) events: Arc<Mutex<Vec<SourceEvent>>>,
}

impl Watch {
    pub(crate) fn events(&self) -> Vec<SourceEvent> {
        self.events.lock().unwrap().clone()
    }

    pub(crate) fn has(&self, event: &SourceEvent) -> bool {
        self.events().contains(event)
    }

    pub(crate) fn count(&self, wanted: impl Fn(&SourceEvent) -> bool) -> usize {
        self.events().iter().filter(|event| wanted(event)).count()
    }

    /// The messages of failures so far.
    pub(crate) fn failures(&self) -> Vec<String> {
        let message = |event| match event {
            SourceEvent::Failed { message, .. } => Some(message),
            _ => None,
        };
        self.events().into_iter().filter_map(message).collect()
    }

    /// Waits until the text of the manifest or document is this.
    pub(crate) fn wait_for_text(&self, wanted: &str) -> Arc<LastGood> {
        wait_until(format!("{wanted:?} as last good copy"), || {
            self.source.current().filter(|copy| text(copy) == wanted)
        })
    }

    /// Waits until a check has failed.
    pub(crate) fn wait_for_failure(&self) -> String {
        wait_until("a failure", || self.failures().pop())
    }

    pub(crate) fn wait_for(&self, event: &SourceEvent) {
        wait_until(format!("{event:?}"), || self.has(event));
    }

    pub(crate) fn text(&self) -> Option<String> {
        self.source.current().map(|copy| text(&copy))
    }
}

/// The manifest or document of a copy.
pub(crate) fn text(copy: &LastGood) -> String {
    match &copy.content {
        SourceContent::Manifest(path) => std::fs::read_to_string(path).unwrap(),
        SourceContent::Document(text) => text.clone(),
    }
}

/// A manifest of this version.
pub(crate) fn manifest(version: usize) -> String {
    format!("ccm: {{resources: [exec: [{{\"echo {version}\": {{}}}}]]}}\n")
}

/// An archive with it.
pub(crate) fn archive(version: usize) -> Vec<u8> {
    ccm_testkit::tarball(&[("manifest.yaml", manifest(version).as_bytes())])
}

/// The directory of a source.
pub(crate) fn place(bed: &Bed, url: &str) -> PathBuf {
    bed.cache_path().join(&Digest::of(url.as_bytes()).to_string()[..16])
}

/// The names in a directory, sorted.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What `current.json` says.
pub(crate) fn record(bed: &Bed, url: &str) -> serde_json::Value {
    let text = std::fs::read(place(bed, url).join("current.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}
