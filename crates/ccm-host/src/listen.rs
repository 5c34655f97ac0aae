//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, socket};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::file::mode;
use crate::trust::step_doubt;
use crate::walk::Walk;
use crate::{Error, FileKind, Host, Result, Stat};

/// Connections that wait until they are accepted.
const BACKLOG: i32 = 128;
/// How long another process may hold the lock of a directory.
const PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// A socket that listens. A unix socket is removed when this is dropped.
#[derive(Debug)]
pub enum ListenSocket {
    /// A TCP socket.
    Tcp(TcpListener, SocketAddr),
    /// A unix socket.
    Unix(UnixListener, SocketFile),
}

/// The name of a unix socket in its directory, which ends with this value.
#[derive(Debug)]
pub struct SocketFile {
    directory: OwnedFd,
    path: PathBuf,
    made: (u64, u64),
}

impl SocketFile {
    /// Where clients find it.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another process may have a socket of this name by now. One that is left
        // is replaced by the next.
        if lock_for_a_moment(&self.directory) != Ok(true) {
            return;
        }
        let Some(name) = self.path.file_name() else { return };
        let found = rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW);
        if found.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.made) {
            let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
        }
    }
}

impl ListenSocket {
    /// Listens at an address; port 0 is any free one.
    ///
    /// # Errors
    ///
    /// Returns why the system did not allow it.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let at = PathBuf::from(address.to_string());
        let failed = |source| Error::Io { action: "listen on", path: at.clone(), source };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self::Tcp(listener, address))
    }

    /// Listens on a unix socket that only this user can open: the socket has
    /// mode 0600, and no other user may be able to write to its directory.
    /// Replaces a socket that a killed process left behind.
    ///
    /// # Errors
    ///
    /// Fails if the path exists, if other users can write to the directory, or
    /// if a system call fails.
    pub fn bind_unix(host: &Host, path: &Path) -> Result<Self> {
        let failed =
            |source: io::Error| Error::Io { action: "listen on", path: path.to_owned(), source };
        let Some(name) = path.file_name() else {
            return Err(failed(io::Error::from(io::ErrorKind::InvalidInput)));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(parent, flags, Mode::empty()).map_err(Error::io("open", parent))?;
        let stat = Stat::of(&directory, parent)?;
        if stat.uid != host.whoami().0 || stat.mode & 0o022 != 0 {
            return Err(Error::SharedDirectory { path: parent.to_owned() });
        }
        // Who can rename it can put another socket in the place of this one.
        if host.is_root() {
            let walk =
                Walk::from_root(&host.absolute(parent)?).map_err(Error::io("open", parent))?;
            if let Some(doubt) = walk.way.iter().find_map(step_doubt) {
                return Err(Error::SharedDirectory { path: doubt.path });
            }
        }
        // Two that begin at once must not remove each other's socket.
        if !lock_for_a_moment(&directory).map_err(Error::io("lock", parent))? {
            let reason = "another process keeps this directory locked";
            let source = io::Error::new(io::ErrorKind::ResourceBusy, reason);
            return Err(Error::Io { action: "lock", path: parent.to_owned(), source });
        }
        // Short, and it leads nowhere else if the directory is renamed meanwhile.
        let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(Error::io("inspect", path)(errno)),
            Ok(found) => {
                let is_socket = Stat::new(&found).kind == FileKind::Other;
                let refused = UnixStream::connect(&short)
                    .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
                if !is_socket || !refused {
                    return Err(failed(io::Error::from(io::ErrorKind::AddrInUse)));
                }
                rustix::fs::unlinkat(&directory, name, AtFlags::empty())
                    .map_err(Error::io("remove", path))?;
            }
        }
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let made = socket(AddressFamily::Unix, SockType::Stream, flags, None)
            .map_err(|errno| failed(errno.into()))?;
        // The name gets the mode that the socket has: at no time can others connect.
        rustix::fs::fchmod(made.as_fd(), mode(0o600))
            .map_err(Error::io("set the mode of", path))?;
        let address = UnixAddr::new(&short).map_err(|errno| failed(errno.into()))?;
        bind(made.as_raw_fd(), &address).map_err(|errno| failed(errno.into()))?;
        let stat = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(Error::io("inspect", path))?;
        let _ = rustix::fs::flock(&directory, FlockOperation::Unlock);
        let file =
            SocketFile { directory, path: path.to_owned(), made: (stat.st_dev, stat.st_ino) };
        let backlog = Backlog::new(BACKLOG).map_err(|errno| failed(errno.into()))?;
        nix::sys::socket::listen(&made, backlog).map_err(|errno| failed(errno.into()))?;
        Ok(Self::Unix(UnixListener::from(made), file))
    }
}

/// Locks a directory; `false` if another process keeps it locked. Whoever can read
/// a directory can do so, hence this does not wait for long.
fn lock_for_a_moment(directory: &OwnedFd) -> rustix::io::Result<bool> {
    let until = Instant::now() + PATIENCE;
    loop {
        match rustix::fs::flock(directory, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < until => {
                std::thread::sleep(POLL);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Ok(false),
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_unix_socket_is_private_and_ends_with_its_value() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let host = Host::new();
        let socket = ListenSocket::bind_unix(&host, &path).unwrap();
        let found = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        let second = ListenSocket::bind_unix(&host, &path).unwrap_err();
        assert!(format!("{second:?}").contains("AddrInUse"), "{second:?}");
        drop(socket);
        assert!(std::fs::symlink_metadata(&path).is_err());
    }

    #[test]
    fn what_a_killed_process_left_is_replaced_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let host = Host::new();
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "std leaves it behind");
        let socket = ListenSocket::bind_unix(&host, &path).unwrap();
        // Someone else has the name by now: it stays.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "mine").unwrap();
        drop(socket);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        assert!(ListenSocket::bind_unix(&host, &path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_lock_that_others_hold_ends_in_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let held = std::fs::File::open(dir.path()).unwrap();
        held.lock().unwrap();
        let (send, result) = std::sync::mpsc::channel();
        let path = dir.path().join("s");
        std::thread::spawn(move || {
            send.send(ListenSocket::bind_unix(&Host::new(), &path).map(drop))
        });
        let error = result.recv_timeout(PATIENCE * 10).unwrap().unwrap_err();
        assert!(matches!(error, Error::Io { action: "lock", .. }), "{error:?}");
        drop(held);
        ListenSocket::bind_unix(&Host::new(), &dir.path().join("s")).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_rename_is_refused() {
        if ccm_testkit::lacks_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        std::fs::create_dir(&own).unwrap();
        std::fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).unwrap();
        ListenSocket::bind_unix(&Host::new(), &own.join("s")).unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let error = ListenSocket::bind_unix(&Host::new(), &own.join("s")).unwrap_err();
        assert!(matches!(error, Error::SharedDirectory { .. }), "{error}");
    }

    #[test]
    fn a_directory_that_others_can_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let error = ListenSocket::bind_unix(&Host::new(), &dir.path().join("s")).unwrap_err();
        assert!(matches!(error, Error::SharedDirectory { .. }), "{error}");
        let long = dir.path().join("x".repeat(120));
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700)).unwrap();
        assert!(ListenSocket::bind_unix(&Host::new(), &long).is_err());
        assert!(ListenSocket::bind_unix(&Host::new(), Path::new("/")).is_err());
    }
}
