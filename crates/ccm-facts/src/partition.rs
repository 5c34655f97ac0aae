//! `partition`: physical file systems and their free space.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use ccm_host::{Host, PendingQuery, Space};
use govalue::Value;

use crate::tree::{Tree, name_of};
use crate::{count, map, percent};

/// How long one file system may think before the others are asked without it.
const SUSPICION: Duration = Duration::from_millis(100);

/// File systems over a network or in a process, never asked whatever the
/// kernel calls them: their answer may never come.
const REMOTE: [&str; 16] = [
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "ncpfs",
    "afs",
    "9p",
    "ceph",
    "glusterfs",
    "lustre",
    "beegfs",
    "orangefs",
    "davfs",
    "coda",
    "gpfs",
];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    device: String,
    mountpoint: String,
    fstype: String,
    opts: Vec<String>,
}

/// The file systems, with their room being asked for.
pub(crate) struct Partitions {
    host: Host,
    mounts: Vec<Mount>,
    query: UsageQuery,
}

impl Partitions {
    pub(crate) fn start(tree: &Tree<'_>) -> Self {
        let table = tree
            .text("proc/self/mountinfo")
            .or_else(|| tree.text("proc/1/mountinfo"))
            .unwrap_or_default();
        let physical = tree.text("proc/filesystems").map(|text| physical(&text));
        let mounts: Vec<_> = mounts(&table)
            .into_iter()
            .filter(|mount| is_physical(mount, physical.as_ref()))
            .collect();
        let paths = mounts.iter().map(|mount| PathBuf::from(&mount.mountpoint)).collect();
        let host = tree.host.clone();
        let query = UsageQuery::start(tree.host, paths, move |path| host.space(path).ok());
        Self { host: tree.host.clone(), mounts, query }
    }

    pub(crate) fn finish(self, until: Instant) -> Value {
        let spaces = self.query.finish(until);
        let usage = self.mounts.iter().zip(spaces).filter_map(|(mount, space)| match space {
            Answer::Space(space) => Some(usage(mount, space)),
            Answer::Refused => None,
            Answer::Late => {
                let path = &mount.mountpoint;
                self.host
                    .warn(format!("the file system at {path} does not answer; it has no facts"));
                None
            }
        });
        let usage = Value::array(usage);
        map([("partitions", Value::array(self.mounts.iter().map(partition))), ("usage", usage)])
    }
}

fn partition(mount: &Mount) -> Value {
    map([
        ("device", mount.device.as_str().into()),
        ("mountpoint", mount.mountpoint.as_str().into()),
        ("fstype", mount.fstype.as_str().into()),
        ("opts", Value::array(mount.opts.iter().map(|opt| opt.as_str().into()))),
    ])
}

/// As `df` counts: free is what everybody may take, and the share is that of
/// what everybody could ever have.
fn usage(mount: &Mount, space: Space) -> Value {
    let used = space.total.saturating_sub(space.free);
    let inodes_used = space.inodes.saturating_sub(space.inodes_free);
    map([
        ("path", mount.mountpoint.as_str().into()),
        ("fstype", mount.fstype.as_str().into()),
        ("total", count(space.total)),
        ("free", count(space.available)),
        ("used", count(used)),
        ("usedPercent", percent(used, used.saturating_add(space.available))),
        ("inodesTotal", count(space.inodes)),
        ("inodesUsed", count(inodes_used)),
        ("inodesFree", count(space.inodes_free)),
        ("inodesUsedPercent", percent(inodes_used, space.inodes)),
    ])
}

/// The types in `/proc/filesystems` that live on a device; ZFS does, too,
/// though it brings its own.
fn physical(filesystems: &str) -> HashSet<String> {
    let types = filesystems.lines().filter_map(|line| {
        let (flag, name) = line.split_once('\t')?;
        (flag.is_empty() || name == "zfs").then(|| name.trim().to_owned())
    });
    types.collect()
}

fn is_physical(mount: &Mount, types: Option<&HashSet<String>>) -> bool {
    let local = !REMOTE.contains(&mount.fstype.as_str()) && !mount.fstype.starts_with("fuse.");
    let on_device = match types {
        Some(types) => types.contains(&mount.fstype),
        None => mount.device.starts_with("/dev/"),
    };
    local && on_device && mount.device != "none"
}

/// The lines of a `mountinfo`. What is mounted over is out of reach, so of each
/// place the last one counts.
fn mounts(mountinfo: &str) -> Vec<Mount> {
    let all: Vec<_> = mountinfo.lines().filter_map(mount).collect();
    let mut places = HashSet::new();
    let mut tops: Vec<_> =
        all.iter().rev().filter(|mount| places.insert(&mount.mountpoint)).cloned().collect();
    tops.reverse();
    tops
}

fn mount(line: &str) -> Option<Mount> {
    // A few optional fields stand before the dash.
    let (place, source) = line.split_once(" - ")?;
    let place: Vec<_> = place.split(' ').collect();
    let [_, _, _, root, mountpoint, opts, ..] = place[..] else { return None };
    let mut source = source.split(' ');
    let (fstype, device) = (source.next()?, source.next()?);
    let mut opts: Vec<_> = opts.split(',').map(str::to_owned).collect();
    // Subvolumes are no binds, though they look alike.
    if root != "/" && fstype != "btrfs" {
        opts.push("bind".to_owned());
    }
    Some(Mount {
        device: name_of(device),
        mountpoint: name_of(mountpoint),
        fstype: fstype.to_owned(),
        opts,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Space(Space),
    Refused,
    Late,
}

type Ask = dyn Fn(&Path) -> Option<Space> + Send + Sync;

/// What [`Host::try_query`] calls the question for free space.
const QUERY: &str = "space";

/// File systems being asked by threads, of which one is enough as long as
/// nothing hangs.
struct UsageQuery {
    work: Arc<Work>,
    sender: Sender<(usize, Progress)>,
    answers: Receiver<(usize, Progress)>,
}

struct Work {
    host: Host,
    paths: Vec<PathBuf>,
    next: AtomicUsize,
    ask: Box<Ask>,
}

/// What a thread reports of one file system.
enum Progress {
    Answered(Option<Space>),
    /// A thread of this process is still waiting for it.
    Pending,
}

impl Work {
    fn ask(&self, at: usize, query: Option<PendingQuery>) -> Progress {
        let Some(_until_answered) = query else { return Progress::Pending };
        Progress::Answered((self.ask)(&self.paths[at]))
    }
}

impl UsageQuery {
    fn start(
        host: &Host,
        paths: Vec<PathBuf>,
        ask: impl Fn(&Path) -> Option<Space> + Send + Sync + 'static,
    ) -> Self {
        let (sender, answers) = channel();
        let (host, next) = (host.clone(), AtomicUsize::new(0));
        let work = Work { host, paths, next, ask: Box::new(ask) };
        let query = Self { work: Arc::new(work), sender, answers };
        query.add_thread();
        query
    }

    /// Starts a thread for the file systems that have not been queried yet.
    fn add_thread(&self) {
        if self.work.next.load(Ordering::Relaxed) >= self.work.paths.len() {
            return;
        }
        self.spawn(|work, sender| {
            loop {
                let at = work.next.fetch_add(1, Ordering::Relaxed);
                let Some(path) = work.paths.get(at) else { return };
                let query = work.host.try_query(QUERY, path);
                if sender.send((at, work.ask(at, query))).is_err() {
                    return;
                }
            }
        });
    }

    fn spawn(&self, run: impl FnOnce(&Work, &Sender<(usize, Progress)>) + Send + 'static) {
        let (work, sender) = (Arc::clone(&self.work), self.sender.clone());
        let thread = std::thread::Builder::new().name("facts-space".to_owned());
        if let Err(error) = thread.spawn(move || run(&work, &sender)) {
            tracing::warn!(%error, "cannot start a thread");
        }
    }

    fn finish(self, until: Instant) -> Vec<Answer> {
        let mut found = vec![Answer::Late; self.work.paths.len()];
        let mut pending = Vec::new();
        let mut missing = found.len();
        while missing > 0 {
            let left = until.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left.min(SUSPICION)) {
                Ok((at, Progress::Answered(space))) => {
                    found[at] = space.map_or(Answer::Refused, Answer::Space);
                    missing -= 1;
                }
                Ok((at, Progress::Pending)) => {
                    pending.push(at);
                    missing -= 1;
                }
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => self.add_thread(),
                Err(_) => break,
            }
        }
        for at in pending {
            found[at] = self.ask_again(at, until);
        }
        found
    }

    /// Asks a file system that another run was waiting for a moment ago. If that
    /// run still waits at the end, so would a thread of ours.
    fn ask_again(&self, at: usize, until: Instant) -> Answer {
        let query = self.work.host.query_until(QUERY, &self.work.paths[at], until);
        let Some(query) = query else { return Answer::Late };
        self.spawn(move |work, sender| drop(sender.send((at, work.ask(at, Some(query))))));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left) {
                Ok((from, Progress::Answered(space))) if from == at => {
                    return space.map_or(Answer::Refused, Answer::Space);
                }
                // Someone else was late.
                Ok(_) => {}
                Err(_) => return Answer::Late,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use ccm_host::{Cancel, System};

    use super::*;

    const MOUNTINFO: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
28 27 0:25 / /run rw,nosuid master:2 shared:3 - tmpfs tmpfs rw,size=4k
29 27 8:17 / /mnt/two\\040words ro,noatime - xfs /dev/sdb1 ro
30 27 0:40 / /home rw,relatime - nfs4 server:/home rw
31 27 0:41 / /remote rw - fuse.sshfs me@there:/ rw
32 27 254:0 /srv/data /data rw,relatime - ext4 /dev/vda rw
33 27 0:42 /@sub /sub rw,relatime - btrfs /dev/sdc rw
34 27 0:43 / /pool rw - zfs tank rw
35 27 0:44 / /over rw - overlay overlay rw
";
    const FILESYSTEMS: &str = "nodev\tsysfs\nnodev\ttmpfs\n\text4\n\txfs\n\tbtrfs\n\tfuseblk\n\
                               nodev\tzfs\nnodev\toverlay\nnodev\tnfs4\n";

    fn kept(types: Option<&HashSet<String>>) -> Vec<String> {
        let mounts = mounts(MOUNTINFO).into_iter().filter(|mount| is_physical(mount, types));
        mounts.map(|mount| mount.mountpoint).collect()
    }

    #[test]
    fn only_physical_file_systems_count() {
        let types = physical(FILESYSTEMS);
        assert_eq!(kept(Some(&types)), ["/", "/mnt/two words", "/data", "/sub", "/pool"]);
        // Without a list of types, devices decide.
        assert_eq!(kept(None), ["/", "/mnt/two words", "/data", "/sub"]);
        // Whatever a kernel says, these are not asked.
        let types = physical("\tnfs4\n\tfuse.sshfs\n");
        assert_eq!(kept(Some(&types)), Vec::<String>::new());
    }

    #[test]
    fn mounts_are_read() {
        let found = mounts(MOUNTINFO);
        let wanted = Mount {
            device: "/dev/sdb1".to_owned(),
            mountpoint: "/mnt/two words".to_owned(),
            fstype: "xfs".to_owned(),
            opts: vec!["ro".to_owned(), "noatime".to_owned()],
        };
        assert_eq!(found[3], wanted);
        assert_eq!(found[6].opts, ["rw", "relatime", "bind"]);
        assert_eq!(found[7].opts, ["rw", "relatime"]);
    }

    #[test]
    fn what_is_mounted_over_is_gone() {
        let text = "1 0 8:1 / /a rw - ext4 /dev/a rw\n2 0 8:2 / /a rw - xfs /dev/b rw\n";
        let found = mounts(text);
        assert_eq!((found.len(), found[0].device.as_str()), (1, "/dev/b"));
        assert_eq!(mounts("nonsense\n1 2 3 - ext4\n - \n"), []);
    }

    #[test]
    fn usage_is_that_of_df() {
        let mount = mounts(MOUNTINFO).remove(1);
        let space = Space { total: 1000, free: 400, available: 300, inodes: 10, inodes_free: 5 };
        let found = usage(&mount, space);
        let int = |key: &str| found.get(key).and_then(Value::as_int);
        assert_eq!((int("total"), int("free"), int("used")), (Some(1000), Some(300), Some(600)));
        assert_eq!((int("inodesUsed"), int("inodesFree")), (Some(5), Some(5)));
        let share = found.get("usedPercent").and_then(Value::as_float).unwrap();
        assert!((share - 600.0 / 900.0 * 100.0).abs() < 1e-9);
        assert_eq!(found.get("inodesUsedPercent"), Some(&Value::Float(50.0)));
    }

    #[test]
    fn those_that_hang_do_not_keep_the_others_waiting() {
        let space = Space { total: 1, free: 1, available: 1, inodes: 0, inodes_free: 0 };
        let paths = ["/hangs", "/a", "/hangs/too", "/refuses", "/b"].map(PathBuf::from).to_vec();
        let start = Instant::now();
        let query = UsageQuery::start(&Host::new(), paths, move |path| {
            if path.starts_with("/hangs") {
                // This is the hang.
                std::thread::sleep(Duration::from_mins(10));
            }
            (path != Path::new("/refuses")).then_some(space)
        });
        let found = query.finish(start + Duration::from_millis(1500));
        assert!(start.elapsed() < Duration::from_mins(1));
        let there = Answer::Space(space);
        assert_eq!(found, [Answer::Late, there, Answer::Late, Answer::Refused, there]);
    }

    #[test]
    fn nothing_to_ask_takes_no_time() {
        let query = UsageQuery::start(&Host::new(), Vec::new(), |_| None);
        assert_eq!(query.finish(Instant::now() + Duration::from_mins(1)), []);
    }

    #[test]
    fn one_thread_waits_for_one_that_hangs_however_often_it_is_asked() {
        let space = Space { total: 1, free: 1, available: 1, inodes: 0, inodes_free: 0 };
        let system = System::default();
        let asked = Arc::new(AtomicUsize::new(0));
        let (release, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let ask = || {
            let (asked, gate) = (Arc::clone(&asked), Arc::clone(&gate));
            let paths = ["/hangs", "/a"].map(PathBuf::from).to_vec();
            UsageQuery::start(&system.begin(Cancel::default()), paths, move |path| {
                if path.starts_with("/hangs") {
                    asked.fetch_add(1, Ordering::SeqCst);
                    let _ = gate.lock().unwrap().recv();
                }
                Some(space)
            })
        };
        for _ in 0..3 {
            let found = ask().finish(Instant::now() + Duration::from_millis(250));
            assert_eq!(found, [Answer::Late, Answer::Space(space)]);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        drop(release);
        let found = ask().finish(Instant::now() + Duration::from_mins(1));
        assert_eq!(found, [Answer::Space(space); 2]);
    }

    #[test]
    fn runs_that_ask_at_the_same_time_get_an_answer_each() {
        let system = System::default();
        let ask = |host: Host| {
            let query = UsageQuery::start(&host, vec![PathBuf::from("/")], |_| {
                // Long enough for all threads to ask.
                std::thread::sleep(Duration::from_millis(20));
                Some(Space { total: 1, free: 1, available: 1, inodes: 0, inodes_free: 0 })
            });
            query.finish(Instant::now() + Duration::from_mins(1))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| ask(system.begin(Cancel::default())))).collect();
            for thread in threads {
                assert!(matches!(thread.join().unwrap()[..], [Answer::Space(_)]));
            }
        });
    }
}
