//! Access to the operating system: files, processes, users, network, clock.
//!
//! Files are reached through directory descriptors and replaced atomically,
//! commands run through one runner, users and groups are looked up once per
//! run. All other crates do I/O through [`Host`]; a Clippy lint enforces this.

mod atomic;
mod barrier;
mod beneath;
mod busy;
mod cache;
mod cancel;
mod command;
mod connect;
mod destination;
mod digest;
mod directory;
mod error;
mod extended;
mod fetch;
mod file;
mod folder;
mod forecast;
mod getent;
mod http;
mod in_place;
mod incoming;
mod input;
mod inspect;
mod journal;
mod listen;
mod lock;
mod machine;
mod marker;
mod network;
mod output;
mod pending;
pub mod process;
mod random;
mod remove;
mod resolve;
mod run_lock;
mod service_manager;
mod services;
mod sources;
mod stale_dirs;
mod state_dir;
mod system;
mod threads;
mod tree;
mod trust;
mod users;
mod walk;
mod worker;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

pub use atomic::{Attributes, Content};
pub use cache::ChangeCounters;
pub use cancel::{Cancel, CancelReason};
pub use command::{Command, Environment, Exit, Identity, Output, RUN_AS, Stream, become_command};
pub use connect::{Connection, Transport};
pub use destination::{Destination, EntryMetadata, NewFile};
pub use digest::{Digest, Digesting};
pub use directory::TemporaryDirectory;
pub use error::{Error, Result};
pub use fetch::{
    Body, Fetch, Fetched, Fetchers, Progress, Request, Validators, local_path, url_scheme,
};
pub use file::{FileKind, Stat};
pub use folder::{Folder, FolderEntry};
pub use forecast::{
    AccountKind, MissedFile, NewAccount, NewContent, PredictedEntries, Reach, Supplier,
};
pub use http::{HttpAnswer, HttpError, HttpRequest, Tls, TlsPart, Url};
pub use incoming::Incoming;
pub use input::StandardInput;
pub use inspect::{Inspected, NodeKind};
pub use journal::{FormerFile, Image, Journal, MustKeep, Place, path_text};
pub use listen::{ListenSocket, SocketFile};
pub use machine::{Space, Uname, kernel_name};
pub use network::{Interface, InterfaceAddress};
pub use output::OutputFile;
pub use pending::PendingQuery;
pub use run_lock::{DirectoryLock, LockError, LockHolder, RunLock};
pub use service_manager::{SERVICE_VARIABLES, ServiceManager};
pub use services::{Lookup, Publish, Registry};
pub use sources::{RecordedFetch, RecordedFile, RecordedSources, Replay};
pub use state_dir::{AppendFile, NewStateFile, StateDir};
pub use system::System;
pub use tree::{Entries, FindLimits, FoundFile, Saved, Tree, TreeEntry, tree_place};
pub use trust::{Doubt, Refuse};
pub use users::Account;
pub use worker::{Worker, WorkerControl};

use ccm_model::Redactor;
use lock::Lock;

/// The handle through which one run does all I/O, with its caches. Clones share
/// them, in other threads too.
#[derive(Clone, Debug, Default)]
pub struct Host {
    inner: Arc<Inner>,
    view: Arc<View>,
}

/// What reads through a handle see: the machine itself, or what the steps of a
/// preview would leave of it.
#[derive(Debug, Default)]
struct View {
    is_preview: bool,
    /// Predictions of the preview.
    forecast: Lock<forecast::Forecast>,
    /// How many predictions were recorded.
    predictions: AtomicU64,
    /// What providers know of the machine as it is seen here.
    cache: cache::RunCache,
}

#[derive(Debug, Default)]
struct Inner {
    system: System,
    users: Lock<users::Users>,
    given_ids: Lock<forecast::GivenIds>,
    whoami: OnceLock<(u32, u32)>,
    /// What tells this process from others that had its number.
    own_token: OnceLock<Option<String>>,
    barrier: Lock<barrier::Barrier>,
    random: Lock<random::Random>,
    /// Directories in which remains of killed runs were looked for already.
    swept: Lock<HashSet<PathBuf>>,
    buffer: Lock<Vec<u8>>,
    idle: Arc<threads::Idle>,
    /// The directory that a file was last replaced in, kept open while nothing
    /// happens that could make its path lead elsewhere.
    parent: Lock<Option<(PathBuf, Arc<OwnedFd>)>>,
    /// The directory of the last change that was recorded, and where symlinks on
    /// the way to it lead.
    real_parent: Lock<Option<(PathBuf, Option<PathBuf>)>>,
    /// Nothing need survive a power failure.
    is_passing: AtomicBool,
    /// Directories that no symlink of another user leads to, and those that
    /// were looked at for who can change them. Both hold as long as `parent`.
    checked: Lock<HashSet<PathBuf>>,
    trusted: Lock<HashMap<PathBuf, Option<Doubt>>>,
    cancel: Cancel,
    /// Token that identifies commands of this run.
    run_token: Lock<Option<String>>,
    warnings: Lock<Warnings>,
    /// Redactor with the secrets of this run.
    redactor: Lock<Redactor>,
    sources: Lock<sources::Sources>,
    progress: Lock<fetch::ProgressSink>,
    /// How many commands ran that may have changed something.
    commands: AtomicU64,
    /// Where changes are recorded before they are made.
    journal: Lock<Option<Arc<dyn Journal>>>,
    /// Contents of files with several names that are in the journal.
    kept: Lock<journal::DigestsByInode>,
    is_recorded: AtomicBool,
    /// The largest content that the history of this run keeps; 0 without one.
    max_image: AtomicU64,
    /// How many callers want no change whose former content is not kept.
    must_keep: AtomicU64,
}

/// As long as it lives, the values of a resource are redacted.
#[derive(Debug)]
pub struct ResourceSecrets {
    host: Host,
    former: Vec<String>,
}

impl Drop for ResourceSecrets {
    fn drop(&mut self) {
        self.host.set_resource_secrets(std::mem::take(&mut self.former));
    }
}

/// Limit on the number of warnings in one run.
const MAX_WARNINGS: usize = 10_000;

/// What was worth knowing in a run.
#[derive(Debug, Default)]
struct Warnings {
    known: HashSet<String>,
    /// Warnings that have not been taken yet.
    new: Vec<String>,
}

impl Host {
    /// A handle of its own, for tests and for commands that run nothing. A run
    /// gets its handle from [`System::begin`].
    pub fn new() -> Self {
        Self::default()
    }

    /// A handle with nothing cached, for each step of work that lasts longer than
    /// a run: who can change a directory is looked up once per handle.
    #[must_use]
    pub fn anew(&self) -> Self {
        Self::of(self.inner.system.clone(), self.inner.cancel.clone())
    }

    fn of(system: System, cancel: Cancel) -> Self {
        let inner = Arc::new(Inner { system, cancel, ..Inner::default() });
        Self { inner, view: Arc::default() }
    }

    /// Adds values to redact in everything that leaves the run.
    pub fn add_secrets(&self, values: impl IntoIterator<Item = String>) {
        self.inner.redactor.hold().add(values);
    }

    /// Redacts these values too while the guard lives: in what belongs to the
    /// resource at work, and not in what belongs to others.
    #[must_use]
    pub fn begin_resource(&self, values: Vec<String>) -> ResourceSecrets {
        let former = self.inner.redactor.hold().set_resource(values);
        ResourceSecrets { host: self.clone(), former }
    }

    /// Replaces what is secret in the resource at work: it is known by now.
    pub fn set_resource_secrets(&self, values: Vec<String>) {
        self.inner.redactor.hold().set_resource(values);
    }

    /// The redactor of this run.
    pub fn redactor(&self) -> impl Deref<Target = Redactor> {
        self.inner.redactor.hold()
    }

    /// Adds a warning to the result of the run. The same warning counts once.
    pub fn warn(&self, message: impl Into<String>) {
        let message = message.into();
        let mut warnings = self.inner.warnings.hold();
        if warnings.known.len() < MAX_WARNINGS && warnings.known.insert(message.clone()) {
            warnings.new.push(message);
        }
    }

    /// Returns the warnings since the last call.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.inner.warnings.hold().new)
    }

    /// The token that cancels this run.
    pub fn cancel(&self) -> &Cancel {
        &self.inner.cancel
    }

    /// The current time.
    pub fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    /// The time since the machine was started, suspended time included. It never
    /// jumps.
    pub fn since_boot(&self) -> std::time::Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        std::time::Duration::try_from(time).unwrap_or_default()
    }

    /// The instant of a date and time of day (year, month, day, hour, minute,
    /// second) where this machine stands, in seconds since 1970; `None` when
    /// there is no such time.
    pub fn local_time(&self, date: (i16, i8, i8), time: (i8, i8, i8)) -> Option<i64> {
        let local = jiff::civil::DateTime::new(date.0, date.1, date.2, time.0, time.1, time.2, 0);
        let zoned = local.ok()?.to_zoned(jiff::tz::TimeZone::system()).ok()?;
        Some(zoned.timestamp().as_second())
    }

    /// A variable of the environment; empty ones count as unset.
    pub fn env(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name).filter(|value| !value.is_empty())
    }

    /// Whether `CCM_STRICT=1` turns trust warnings into errors.
    pub fn is_strict(&self) -> bool {
        self.env("CCM_STRICT").is_some_and(|value| value == "1")
    }

    /// All variables of the environment that are text.
    pub fn env_all(&self) -> BTreeMap<String, String> {
        let text = |(key, value): (OsString, OsString)| {
            Some((key.into_string().ok()?, value.into_string().ok()?))
        };
        std::env::vars_os().filter_map(text).collect()
    }

    /// The directory that ccm was started in. Fails if it was removed since.
    pub fn current_dir(&self) -> Result<PathBuf> {
        std::env::current_dir().map_err(|source| Error::Io {
            action: "find",
            path: Path::new("the current directory").to_owned(),
            source,
        })
    }

    /// Names the time since the machine was started; `None` if the kernel does
    /// not tell.
    pub fn boot_id(&self) -> Option<String> {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned())
    }

    /// Where temporary files belong.
    pub fn temp_dir(&self) -> PathBuf {
        std::env::temp_dir()
    }

    /// Forgets the open directory and what is known of others: their paths may
    /// lead elsewhere from now on.
    pub(crate) fn forget_parent(&self) {
        self.inner.parent.set(None);
        self.inner.real_parent.set(None);
        self.inner.checked.hold().clear();
        self.inner.trusted.hold().clear();
    }

    /// Random bytes, unguessable.
    pub fn random<const N: usize>(&self) -> [u8; N] {
        self.inner.random.hold().bytes()
    }

    /// An unguessable name: the prefix and 24 hexadecimal digits.
    pub(crate) fn random_name(&self, prefix: &str) -> String {
        let mut name = String::with_capacity(prefix.len() + 24);
        name.push_str(prefix);
        for byte in self.random::<12>() {
            for digit in [byte >> 4, byte & 0xf] {
                name.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        name
    }
}
