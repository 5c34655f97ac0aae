//! Files, directories and symlinks, back to what they were.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ccm_host::{Attributes, Content, Digest, FileKind, Host, Image};
use ccm_model::{Change, Verb};
use ccm_state::history::{PathChange, RecordedRun, RecordedTurn};

use crate::chain;
use crate::options::RunOptions;

/// Takes changes of paths back.
pub(super) struct PathUndo<'r> {
    run: &'r RecordedRun,
    host: Host,
    force: bool,
    noop: bool,
    /// In a preview, what paths would be by now.
    predicted: HashMap<PathBuf, Image>,
    /// Whether contents are there and whole, as far as that was looked at.
    contents: HashMap<Digest, bool>,
    /// What each path was before each change of the run.
    befores: HashMap<&'r Path, Vec<(Position, &'r Image)>>,
    /// Paths of which nothing is left to take back.
    settled: HashSet<PathBuf>,
}

/// Where a change stands: the resource, and the change among its changes.
type Position = (usize, usize);

/// What became of the paths of a resource.
#[derive(Debug, Default)]
pub(super) struct Undone {
    /// Each path that is as it was again: what it was just now, and is.
    restored: Vec<(PathBuf, Image, Image)>,
    /// What is left as it is, and why.
    pub(super) errors: Vec<String>,
}

/// What is to be done with a path.
enum Verdict {
    /// It is as it was before.
    Nothing,
    /// It is as the run left it.
    Restore,
    /// Somebody has changed it since.
    Conflict(String),
}

impl<'r> PathUndo<'r> {
    pub(super) fn new(run: &'r RecordedRun, options: &RunOptions, force: bool) -> Self {
        let mut befores: HashMap<&Path, Vec<_>> = HashMap::new();
        let mut afters: HashMap<&Path, Option<&Image>> = HashMap::new();
        for (turn, recorded) in run.turns.iter().enumerate() {
            for (at, change) in recorded.paths.iter().enumerate() {
                befores.entry(&change.path).or_default().push(((turn, at), &change.before));
                afters.insert(&change.path, change.after.as_ref());
            }
        }
        // What a run has made and unmade again is as it was.
        let is_back = |(path, after): &(&Path, Option<&Image>)| {
            let first = befores.get(path).and_then(|befores| befores.first());
            first.is_some_and(|(_, before)| is_known(before) && Some(*before) == *after)
        };
        let settled = afters.into_iter().filter(is_back).map(|(path, _)| path.to_owned()).collect();
        Self {
            run,
            host: options.host.clone(),
            force,
            noop: options.mode.noop,
            predicted: HashMap::new(),
            contents: HashMap::new(),
            befores,
            settled,
        }
    }

    /// Takes back what a resource changed, the last change first.
    pub(super) fn undo(&mut self, turn: &RecordedTurn, number: usize) -> Undone {
        let mut undone = Undone::default();
        for (at, change) in turn.paths.iter().enumerate().rev() {
            let path = &change.path;
            if let Err(reason) = self.undo_path(change, (number, at), &mut undone) {
                // A resource that is the path itself names it already.
                let is_own = Path::new(&turn.name) == path;
                let name = if is_own { String::new() } else { format!("{}: ", path.display()) };
                undone.errors.push(format!("{name}{reason}"));
            }
        }
        undone
    }

    fn undo_path(
        &mut self,
        change: &PathChange,
        position: Position,
        undone: &mut Undone,
    ) -> Result<(), String> {
        let PathChange { path, before, after, .. } = change;
        if after.as_ref() == Some(before) || self.settled.contains(path) {
            return Ok(());
        }
        self.check_above(path)?;
        let now = self.present(path)?;
        if self.is_undone(path, &now) {
            self.settled.insert(path.clone());
            return Ok(());
        }
        match judge(change, &now) {
            Verdict::Nothing => return Ok(()),
            // It is what an earlier change of the run has found.
            Verdict::Conflict(_) if self.was(path, position, &now) => return Ok(()),
            Verdict::Conflict(reason) if !self.force => return Err(reason),
            Verdict::Conflict(_) | Verdict::Restore => {}
        }
        self.check_restorable(change)?;
        if *before != Image::Absent {
            self.check_parent(path)?;
        }
        if now != Image::Absent && !matches!(now, Image::Directory { .. } if is_directory(before)) {
            self.check_empty(path, &now)?;
        }
        if self.noop {
            self.predicted.insert(path.clone(), before.clone());
        } else {
            self.restore(change, &now).map_err(|error| chain(&error))?;
            let is = self.host.image(path).map_err(|error| chain(&error))?;
            if !matches!(judge(change, &is), Verdict::Nothing) {
                return Err("the restored state is not what was recorded".to_owned());
            }
        }
        undone.restored.push((path.clone(), now, before.clone()));
        Ok(())
    }

    /// What is at a path, in a preview after what was undone so far.
    fn present(&self, path: &Path) -> Result<Image, String> {
        if let Some(image) = self.predicted.get(path) {
            return Ok(image.clone());
        }
        let above = path
            .ancestors()
            .skip(1)
            .find_map(|above| self.predicted.get(above).map(|image| (above, image)));
        match above {
            Some((above, image)) if is_directory(image) && self.is_directory(above)? => {}
            // Whatever a symlink leads to now, it will not be there.
            Some(_) => return Ok(Image::Absent),
            None => {}
        }
        self.host.image(path).map_err(|error| chain(&error))
    }

    fn is_directory(&self, path: &Path) -> Result<bool, String> {
        let stat = self.host.lstat(path).map_err(|error| chain(&error))?;
        Ok(stat.is_some_and(|stat| stat.kind == FileKind::Directory))
    }

    /// Fails if a directory above a path, which the run has changed too, is no
    /// directory any more: what a symlink there leads to is not of the run.
    fn check_above(&self, path: &Path) -> Result<(), String> {
        for above in path.ancestors().skip(1) {
            if !self.befores.contains_key(above) || self.predicted.contains_key(above) {
                continue;
            }
            let stat = self.host.lstat(above).map_err(|error| chain(&error))?;
            if stat.is_some_and(|stat| stat.kind != FileKind::Directory) {
                return Err(format!(
                    "changed since the run: {} is no directory any more",
                    above.display()
                ));
            }
        }
        Ok(())
    }

    /// Fails if the directory that something belongs in is gone.
    fn check_parent(&self, path: &Path) -> Result<(), String> {
        let Some(parent) = path.parent() else { return Ok(()) };
        let is_there = match self.predicted.get(parent) {
            Some(image) => is_directory(image),
            None => {
                let stat = self.host.stat(parent).map_err(|error| chain(&error))?;
                stat.is_some_and(|stat| stat.kind == FileKind::Directory)
            }
        };
        if is_there {
            return Ok(());
        }
        Err(format!("not restored, because the directory {} is gone", parent.display()))
    }

    /// Whether a path that the run changed more than once is as before the run.
    fn is_undone(&self, path: &Path, now: &Image) -> bool {
        let befores = self.befores.get(path).map(Vec::as_slice);
        matches!(befores, Some([(_, first), _, ..]) if is_known(first) && now.is_like(first))
    }

    /// Whether a path was this before the run, or between two of its changes
    /// up to a position.
    fn was(&self, path: &Path, position: Position, now: &Image) -> bool {
        let befores = self.befores.get(path).into_iter().flatten();
        befores
            .filter(|(at, _)| *at < position)
            .any(|(_, before)| is_known(before) && now.is_like(before))
    }

    /// Fails if what was there before was not kept.
    fn check_restorable(&mut self, change: &PathChange) -> Result<(), String> {
        match &change.before {
            Image::Other => Err("cannot be undone: it was a socket, FIFO or device".to_owned()),
            Image::File { .. } if is_about_attributes(change) => Ok(()),
            Image::File { digest: None, .. } => {
                Err("cannot be undone: its former content was not kept".to_owned())
            }
            Image::File { digest: Some(digest), .. } if !self.has_content(*digest) => {
                Err("cannot be undone: its former content is no longer in the history".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn has_content(&mut self, digest: Digest) -> bool {
        let run = self.run;
        *self.contents.entry(digest).or_insert_with(|| match run.content(digest) {
            Ok(Some(_)) => true,
            _ => {
                run.set_aside(digest);
                false
            }
        })
    }

    /// Nothing that the run did not make is removed with a directory.
    fn check_empty(&self, path: &Path, now: &Image) -> Result<(), String> {
        if !is_directory(now) {
            return Ok(());
        }
        if !self.noop {
            self.host.remove_leftovers(path).map_err(|error| chain(&error))?;
        }
        let names = self.host.list(path).map_err(|error| chain(&error))?;
        let is_left = |name: &std::ffi::OsString| {
            self.predicted.get(&path.join(name)) != Some(&Image::Absent)
        };
        match names.iter().filter(|name| is_left(name)).min() {
            Some(name) => {
                let name = path.join(name);
                Err(format!("not removed, because it contains {}", name.display()))
            }
            None => Ok(()),
        }
    }

    fn restore(&self, change: &PathChange, now: &Image) -> ccm_host::Result<()> {
        let PathChange { path, before, .. } = change;
        let host = &self.host;
        let is_same_kind = std::mem::discriminant(now) == std::mem::discriminant(before);
        if is_directory(now) && !is_same_kind {
            host.remove(path)?;
        }
        match before {
            Image::Absent if is_directory(now) => Ok(()),
            Image::Absent => host.remove(path),
            Image::Directory { attributes } if is_same_kind => {
                host.set_attributes(path, attributes)
            }
            Image::Directory { attributes } => {
                if !matches!(now, Image::Absent) {
                    host.remove(path)?;
                }
                host.create_directory(path, attributes)
            }
            Image::Symlink { uid, gid, target } => {
                host.replace_with_symlink(path, target, (*uid, *gid))
            }
            Image::File { attributes, digest, .. } => {
                let is_same = is_same_kind && (digest.is_none() || *digest == now.digest());
                match digest.filter(|_| !is_same) {
                    None => host.set_attributes(path, attributes),
                    Some(digest) => {
                        let in_place = change.is_in_place && is_same_kind;
                        self.restore_file(path, digest, attributes, in_place)
                    }
                }
            }
            Image::Other => Ok(()),
        }
    }

    fn restore_file(
        &self,
        path: &Path,
        digest: Digest,
        attributes: &Attributes,
        in_place: bool,
    ) -> ccm_host::Result<()> {
        let Some(bytes) = self.run.content(digest)? else { return Ok(()) };
        let attributes = &self.without_privileges(path, attributes)?;
        if in_place {
            match self.host.write_in_place(path, Some(Content::Bytes(&bytes)), attributes) {
                // The run has given it to another user, who could have changed
                // what it is: a new file takes its place.
                Err(ccm_host::Error::PlantedFile { .. }) => {}
                written => return written,
            }
        }
        match self.host.replace(path, Content::Bytes(&bytes), attributes) {
            Err(ccm_host::Error::MountedFile { .. }) => {
                self.host.write_in_place(path, Some(Content::Bytes(&bytes)), attributes)
            }
            replaced => replaced,
        }
    }
}

impl PathUndo<'_> {
    /// The same attributes without setuid and setgid bits where another user
    /// can change the directory: what was privileged there may have been planted.
    fn without_privileges(
        &self,
        path: &Path,
        attributes: &Attributes,
    ) -> ccm_host::Result<Attributes> {
        if attributes.mode & 0o6000 == 0 || !self.host.is_root() {
            return Ok(*attributes);
        }
        let parent = path.parent().unwrap_or(Path::new("/"));
        let is_safe = self.host.stat(parent)?.is_some_and(|stat| !stat.is_writable_by_others());
        let kept = if is_safe { 0o7777 } else { 0o1777 };
        Ok(Attributes { mode: attributes.mode & kept, ..*attributes })
    }
}

fn is_directory(image: &Image) -> bool {
    matches!(image, Image::Directory { .. })
}

/// Whether something can be recognized: a content that nobody has read cannot.
fn is_known(image: &Image) -> bool {
    !matches!(image, Image::File { digest: None, .. })
}

/// Whether a change was one of owner, group or mode alone.
fn is_about_attributes(change: &PathChange) -> bool {
    match (&change.before, &change.after) {
        (Image::File { digest: None, .. }, Some(Image::File { digest, .. })) => digest.is_none(),
        (Image::Directory { .. }, Some(Image::Directory { .. }) | None) => true,
        _ => false,
    }
}

/// Compares what is at a path with what was there before and after the run.
fn judge(change: &PathChange, now: &Image) -> Verdict {
    let PathChange { before, after, .. } = change;
    if is_about_attributes(change) {
        let is_kind = std::mem::discriminant(now) == std::mem::discriminant(before);
        let wanted = |image: &Image| is_kind && now.attributes() == image.attributes();
        return match after {
            _ if wanted(before) => Verdict::Nothing,
            None if is_kind => Verdict::Restore,
            Some(after) if wanted(after) => Verdict::Restore,
            Some(after) => Verdict::Conflict(difference(after, now)),
            None => Verdict::Conflict(difference(before, now)),
        };
    }
    if is_known(before) && now.is_like(before) {
        return Verdict::Nothing;
    }
    match after {
        Some(after) if now.is_like(after) => Verdict::Restore,
        Some(after) => Verdict::Conflict(difference(after, now)),
        // Killed between making a directory and giving it its attributes.
        None if is_directory(now) => Verdict::Restore,
        None => Verdict::Conflict("the run was killed while it changed this".to_owned()),
    }
}

/// How something differs from what the run left.
fn difference(left: &Image, now: &Image) -> String {
    let kind = |image: &Image| match image {
        Image::Absent => "absent",
        Image::File { .. } => "a file",
        Image::Directory { .. } => "a directory",
        Image::Symlink { .. } => "a symlink",
        Image::Other => "a socket, FIFO or device",
    };
    if std::mem::discriminant(left) != std::mem::discriminant(now) {
        let left = if *left == Image::Absent { "nothing" } else { kind(left) };
        return format!("changed since the run: the run left {left}, now it is {}", kind(now));
    }
    let mut differences = Vec::new();
    if let (Image::File { size, digest, .. }, Image::File { size: other, digest: its, .. }) =
        (left, now)
        && (size != other || digest.zip(*its).is_some_and(|(one, other)| one != other))
    {
        differences.push("its content".to_owned());
    }
    if let (Some(left), Some(now)) = (left.attributes(), now.attributes()) {
        if left.uid != now.uid {
            differences.push(format!("its owner ({} instead of {})", now.uid, left.uid));
        }
        if left.gid != now.gid {
            differences.push(format!("its group ({} instead of {})", now.gid, left.gid));
        }
        if left.mode != now.mode {
            differences.push(format!("its mode ({:04o} instead of {:04o})", now.mode, left.mode));
        }
    }
    if let (Image::Symlink { target, .. }, Image::Symlink { target: now, .. }) = (left, now)
        && target != now
    {
        differences.push(format!("its target ({} instead of {})", now.display(), target.display()));
    }
    format!("changed since the run: {}", differences.join(", "))
}

impl Undone {
    pub(super) fn is_nothing(&self) -> bool {
        self.restored.is_empty()
    }

    pub(super) fn verbs(&self) -> Vec<Verb> {
        if self.restored.is_empty() {
            return Vec::new();
        }
        let all = |test: fn(&(PathBuf, Image, Image)) -> bool| self.restored.iter().all(test);
        vec![if all(|(_, _, to)| *to == Image::Absent) {
            Verb::Removed
        } else if all(|(_, from, _)| *from == Image::Absent) {
            Verb::Created
        } else {
            Verb::Updated
        }]
    }

    /// What it changed: property by property of a single path, else lists.
    pub(super) fn changes(&self, host: &Host) -> Vec<Change> {
        let Some((first, from, _)) = self.restored.first() else { return Vec::new() };
        if self.restored.iter().all(|(path, ..)| path == first)
            && let Some((_, _, to)) = self.restored.last()
        {
            return changes_of(from, to, host);
        }
        let list = |property: &'static str, test: fn(&Image) -> bool| {
            let paths = self.restored.iter().filter(|(_, _, to)| test(to));
            let paths: Vec<String> =
                paths.map(|(path, ..)| path.to_string_lossy().into_owned()).collect();
            (!paths.is_empty()).then(|| match property {
                "removed" => Change::of(property).from(paths),
                _ => Change::of(property).to(paths),
            })
        };
        let restored = list("restored", |to| *to != Image::Absent);
        restored.into_iter().chain(list("removed", |to| *to == Image::Absent)).collect()
    }
}

fn changes_of(from: &Image, to: &Image, host: &Host) -> Vec<Change> {
    let ensure = |image: &Image| match image {
        Image::Absent => "absent",
        Image::Directory { .. } => "directory",
        Image::Symlink { .. } => "symlink",
        Image::File { .. } | Image::Other => "present",
    };
    let mut changes = Vec::new();
    if ensure(from) != ensure(to) {
        changes.push(Change::of("ensure").from(ensure(from)).to(ensure(to)));
    }
    let is_hidden = |image: &Image| image.attributes().is_some_and(|it| it.mode & 0o004 == 0);
    if let (Some(old), Some(new)) = (from.digest(), to.digest())
        && old != new
    {
        changes.push(if is_hidden(from) || is_hidden(to) {
            Change::secret("content")
        } else {
            Change::of("content").from(old.to_string()).to(new.to_string())
        });
    }
    if let (Image::Symlink { target: old, .. }, Image::Symlink { target: new, .. }) = (from, to) {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        changes.push(Change::of("target").from(text(old)).to(text(new)));
    }
    if let (Some(old), Some(new)) = (from.attributes(), to.attributes()) {
        let mut add = |property: &'static str, old: String, new: String| {
            if old != new {
                changes.push(Change::of(property).from(old).to(new));
            }
        };
        let user = |uid| host.user_name(uid).to_string();
        let group = |gid| host.group_name(gid).to_string();
        add("owner", user(old.uid), user(new.uid));
        add("group", group(old.gid), group(new.gid));
        add("mode", format!("{:04o}", old.mode), format!("{:04o}", new.mode));
    }
    changes
}
