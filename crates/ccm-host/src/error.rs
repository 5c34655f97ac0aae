//! Errors of this crate.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::Exit;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A system call, command, lookup or download that failed, or that ccm refuses
/// for safety.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A system call failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The failed action, such as `open`.
        action: &'static str,
        /// The file or directory of the failed call.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// A path that must be a directory.
    #[error("{}", not_a_directory(path))]
    NotADirectory {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// A path that must be a regular file.
    #[error("{} is {found}, not a regular file", path.display())]
    NotAFile {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The actual type.
        found: &'static str,
    },
    /// A symlink where ccm follows none.
    #[error("{} is a symlink, which ccm does not follow", path.display())]
    Symlink {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// A file of another user where ccm would write.
    #[error("{} belongs to another user (uid {uid}); ccm does not replace it", path.display())]
    OtherOwner {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The user who owns it, and is not the one running ccm.
        uid: u32,
    },
    /// A temporary file that could not be renamed to its target.
    #[error("could not rename temporary file to {}", path.display())]
    Rename {
        /// The target, which keeps its old content.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// A file that cannot be replaced because something is mounted on it.
    #[error("cannot replace {}: it is a mount point", path.display())]
    MountedFile {
        /// The target, which keeps its old content.
        path: PathBuf,
    },
    /// A file that another user may have put in the place of the one that ccm
    /// was asked to write into: it belongs to neither root nor the wanted owner,
    /// or has other names that may be those of a file elsewhere.
    #[error("refusing to write into {}: {reason}", path.display())]
    PlantedFile {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// A symlink that points outside the managed tree.
    #[error("{} is outside its directory tree because of a symlink, which ccm does not follow", path.display())]
    LeadsOutside {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// A directory tree that is not followed to its end.
    #[error("{} is more than {limit} directories deep", path.display())]
    TooDeep {
        /// The directory or file at which ccm gave up.
        path: PathBuf,
        /// How deep ccm goes.
        limit: usize,
    },
    /// A directory tree with more entries than ccm reads.
    #[error("{} contains too much: the limit is {limit} files and directories", path.display())]
    TooMany {
        /// The directory at which ccm gave up.
        path: PathBuf,
        /// How many entries there may be.
        limit: usize,
    },
    /// Something that would be removed for good, because the history cannot keep
    /// it.
    #[error("cannot remove {}: {reason}", path.display())]
    NotKept {
        /// The path that stays as it is.
        path: PathBuf,
        /// Why it cannot be restored later.
        reason: String,
    },
    /// A symlink of another user that points to something this user does not
    /// own. ccm does not follow it as root.
    #[error(
        "{} is a symlink that belongs to user {owner} and points to something that belongs to user \
         {target}: ccm does not follow it as root", path.display()
    )]
    ForeignLink {
        /// The symlink on the way to the managed path.
        path: PathBuf,
        /// The user who owns the symlink.
        owner: u32,
        /// The user who owns the target.
        target: u32,
    },
    /// A symlink of root in a directory that other users can change: they can
    /// put another one in its place.
    #[error(
        "{} is a symlink in a directory that other users can change, and points to something that \
         belongs to user {target}: ccm does not follow it as root",
        path.display()
    )]
    LooseLink {
        /// The symlink on the way to the managed path.
        path: PathBuf,
        /// The user who owns the target.
        target: u32,
    },
    /// A file that decides what ccm does as root, and that other users can
    /// change.
    #[error("refusing to read {} as root: {doubt}", path.display())]
    Untrusted {
        /// The file that ccm was asked to read.
        path: PathBuf,
        /// The user or mode that allows others to change it.
        doubt: crate::Doubt,
    },
    /// A file with a secret that others can read.
    #[error(
        "refusing to use {} as root: it holds a secret and is readable by other users \
         (mode {mode:04o})", path.display()
    )]
    Exposed {
        /// The file that holds the secret.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A directory of ccm's own that others can change.
    #[error("refusing to keep state in {}: {doubt}", path.display())]
    SharedState {
        /// The directory that ccm was to use.
        path: PathBuf,
        /// The user or mode that allows others to change it or a parent directory.
        doubt: crate::Doubt,
    },
    /// A directory in which only this user may make a socket.
    #[error("refusing to create a socket in {}: other users can write to it", path.display())]
    SharedDirectory {
        /// The directory of the socket.
        path: PathBuf,
    },
    /// Something whose former state could not be recorded, and that is therefore
    /// left as it is.
    #[error("cannot record the former state of {}, so ccm does not change it", path.display())]
    Unrecorded {
        /// The path that was about to change.
        path: PathBuf,
        /// Why it was not recorded.
        source: Box<Error>,
    },
    /// A file in a format of a later version.
    #[error("{} was written by a newer ccm", path.display())]
    NewerState {
        /// The file that cannot be read.
        path: PathBuf,
    },
    /// A text that is not UTF-8.
    #[error("{} is not UTF-8: byte {offset} of line {line} cannot be read", path.display())]
    NotUtf8 {
        /// The file that should hold text.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The byte within the line, from 1.
        offset: usize,
    },
    /// A file beyond what is read into memory.
    #[error("{} is larger than {limit} bytes", path.display())]
    TooLarge {
        /// The path as the caller gave it.
        path: PathBuf,
        /// The most bytes that ccm reads of such a file.
        limit: u64,
    },
    /// A directory that cannot simply be removed.
    #[error(
        "cannot remove {}: directory is not empty, set 'force: true' to remove it and everything \
         in it", path.display()
    )]
    NotEmpty {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// A directory with entries where something else should be.
    #[error("{} is a non-empty directory; ccm does not replace it", path.display())]
    InTheWay {
        /// The path as the caller gave it.
        path: PathBuf,
    },
    /// Removal met another file system.
    #[error("cannot remove {}: another file system is mounted there", path.display())]
    MountPoint {
        /// The directory or file at which ccm gave up.
        path: PathBuf,
    },
    /// A download that failed.
    #[error("cannot download {url}: {reason}")]
    Fetch {
        /// Where from, without credentials.
        url: String,
        /// The reason, without credentials.
        reason: String,
    },
    /// A source that its owner deleted.
    #[error("cannot download {url}: {reason}")]
    Deleted {
        /// Where from, without credentials.
        url: String,
        /// How the server says that it is deleted.
        reason: String,
    },
    /// A failed request to a network service.
    #[error("{message}")]
    Network {
        /// The request, the server and the reason, without credentials.
        message: String,
        /// Advice on how to fix the problem, for the `hint:` line.
        hint: Option<String>,
    },
    /// A URL with a scheme that no registered [`Fetch`](crate::Fetch)
    /// implements.
    #[error("cannot download {url}: `{scheme}` is not available in this version")]
    UnknownScheme {
        /// The URL, without credentials.
        url: String,
        /// The scheme of the URL.
        scheme: String,
        /// The schemes that are available.
        known: Vec<&'static str>,
    },
    /// A download with a wrong checksum.
    #[error("checksum mismatch, expected \"{expected}\" got \"{actual}\" from {url}")]
    Checksum {
        /// Where from, without credentials.
        url: String,
        /// The digest it should have.
        expected: crate::Digest,
        /// The digest it has.
        actual: crate::Digest,
    },
    /// The user database has no user of this name.
    #[error("could not lookup user `{name}`: it does not exist")]
    UnknownUser {
        /// The name asked for.
        name: String,
    },
    /// The group database has no group of this name.
    #[error("could not lookup group `{name}`: it does not exist")]
    UnknownGroup {
        /// The name asked for.
        name: String,
    },
    /// In a preview: only the run can tell what will be at a path.
    #[error("the state of {} is known only after {by} has run", path.display())]
    Unpredictable {
        /// The path.
        path: PathBuf,
        /// The resource that decides about it.
        by: std::sync::Arc<str>,
    },
    /// A numeric id beyond what the system has.
    #[error("`{id}` is not a user or group id")]
    InvalidId {
        /// The number as it was written, which does not fit into an ID.
        id: String,
    },
    /// A user or group without a name.
    #[error("{what} name cannot be empty")]
    EmptyName {
        /// `user` or `group`.
        what: &'static str,
    },
    /// No directory of the search path has an executable of this name.
    #[error("command not found: {command}")]
    CommandNotFound {
        /// The command as written.
        command: String,
        /// The search path, as `PATH` holds it.
        path: String,
    },
    /// A command that could not be started.
    #[error("cannot run {command}")]
    Spawn {
        /// The program, without its arguments.
        command: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// A command that did not succeed.
    #[error("`{command}` {exit}{}{last_words}", if last_words.is_empty() { "" } else { "\n" })]
    Failed {
        /// The program with its arguments; secrets are redacted when it is shown.
        command: String,
        /// The exit code or signal that made it a failure.
        exit: Exit,
        /// The last lines of its standard error.
        last_words: String,
    },
    /// A command that exceeded its timeout.
    #[error("{command} exceeded its timeout of {after:?}; ccm terminated its process group")]
    Timeout {
        /// The program, without its arguments.
        command: String,
        /// The time it had.
        after: Duration,
    },
    /// A command as another user or group, and ccm may not become it.
    #[error("cannot run as {who}: ccm does not run as root")]
    NotRoot {
        /// The user or group.
        who: String,
    },
    /// A user given by number, without an entry in the user database.
    #[error("user {uid} has no entry in the user database, so ccm does not know its group")]
    NoPrimaryGroup {
        /// The number.
        uid: u32,
    },
    /// A command whose process could not become another user or group.
    #[error("cannot run as {who}")]
    Become {
        /// The user or group.
        who: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// A directory that another user may not enter.
    #[error("cannot enter {} as {who}", path.display())]
    Enter {
        /// The directory of the command.
        path: PathBuf,
        /// The user or group.
        who: String,
        /// The error of the system call.
        source: io::Error,
    },
    /// The run was interrupted while a command ran.
    #[error("{command} was terminated because the run was interrupted")]
    Interrupted {
        /// The program, without its arguments.
        command: String,
    },
}

/// The reason when an https URL leads to a server that speaks plain HTTP.
pub(crate) const NO_TLS: &str = "the TLS handshake failed: the server did not respond with TLS";

/// Tells a missing directory from something else at its path.
fn not_a_directory(path: &Path) -> String {
    let path_shown = path.display();
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("{path_shown} is not a directory: it does not exist")
        }
        _ => format!("{path_shown} is not a directory"),
    }
}

impl Error {
    /// Advice on how to fix the problem, for the `hint:` line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } | Self::Rename { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Some("run ccm as a user with this permission".to_owned())
            }
            Self::Io { source, .. } | Self::Rename { source, .. }
                if source.kind() == io::ErrorKind::StorageFull =>
            {
                Some("free some space on the file system".to_owned())
            }
            Self::UnknownUser { .. } => {
                Some("create the user in an earlier resource, or use a numeric ID".to_owned())
            }
            Self::UnknownGroup { .. } => {
                Some("create the group in an earlier resource, or use a numeric ID".to_owned())
            }
            Self::NotRoot { .. } => {
                Some("run ccm as root, or as the user that the command needs".to_owned())
            }
            Self::NoPrimaryGroup { .. } => {
                Some("set `group`, or create the user in an earlier resource".to_owned())
            }
            Self::Enter { .. } => {
                Some("set `cwd` to a directory that this user can enter".to_owned())
            }
            Self::CommandNotFound { path, .. } => Some(format!("searched {path}")),
            Self::PlantedFile { .. } => {
                Some("without `write: in_place`, ccm replaces the file".to_owned())
            }
            Self::MountPoint { .. } => Some("unmount it first".to_owned()),
            Self::ForeignLink { .. } => {
                Some("let root own the symlink, or declare the path that it points to".to_owned())
            }
            Self::LooseLink { .. } => {
                let hint = "let only root write to that directory, or declare the path that the \
                            symlink points to";
                Some(hint.to_owned())
            }
            Self::UnknownScheme { known, .. } => {
                Some(format!("available schemes: {}", known.join(", ")))
            }
            Self::Fetch { reason, .. } if reason.ends_with(NO_TLS) => {
                Some("if the server uses plain HTTP, write http://".to_owned())
            }
            Self::Network { hint, .. } => hint.clone(),
            Self::Exposed { path, .. } => Some(format!("chmod 600 {}", path.display())),
            Self::Untrusted { doubt, .. } => Some(doubt.hint()),
            Self::NotKept { .. } => Some("remove it yourself, or run with --no-history".to_owned()),
            Self::Unrecorded { .. } => {
                Some("free some space in the state directory, or run with --no-history".to_owned())
            }
            Self::SharedDirectory { .. } => {
                Some("choose a directory of your own with mode 0700".to_owned())
            }
            Self::Io { action: "listen on", source, .. }
                if source.kind() == io::ErrorKind::AddrInUse =>
            {
                Some(
                    "stop the process that listens there, or choose another address or path"
                        .to_owned(),
                )
            }
            Self::NewerState { .. } => Some("use the newer ccm".to_owned()),
            Self::SharedState { doubt, .. } => {
                let path = doubt.path.display();
                Some(format!("choose another directory with --state-dir, or make {path} safe"))
            }
            Self::NotADirectory { path } if !path.exists() => {
                Some("declare it in an earlier resource, with `ensure: directory`".to_owned())
            }
            _ => None,
        }
    }

    /// Whether the reason is that nothing exists at a path.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether the reason is that the user may not look at a path.
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether something is missing that another resource can create: a user, a
    /// group, a program, a file or a directory.
    pub fn is_about_something_missing(&self) -> bool {
        match self {
            Self::UnknownUser { .. }
            | Self::UnknownGroup { .. }
            | Self::NoPrimaryGroup { .. }
            | Self::CommandNotFound { .. }
            | Self::Unpredictable { .. } => true,
            Self::NotADirectory { path } => !path.exists(),
            error => error.is_missing(),
        }
    }

    pub(crate) fn io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(rustix::io::Errno) -> Self + use<> {
        let path = path.to_owned();
        move |errno| Self::Io { action, path, source: errno.into() }
    }

    pub(crate) fn std_io(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
