//! Restores files, directories and symlinks.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use ccm_host::{Attributes, Content, Digest, FileKind, Host, Image, NewContent};
use ccm_state::history::{self, PathChange, RecordedRun, RecordedTurn};

use super::judge::{Verdict, is_about_attributes, is_directory, is_given, is_known, judge};
use super::links::Links;
use super::order::is_removed;
use super::undone::Undone;
use crate::chain;
use crate::options::RunOptions;

/// Larger files are not read whole.
const MAX_CONTENT: u64 = 1 << 30;

/// Takes changes of paths back.
pub(super) struct PathUndo<'r> {
    run: &'r RecordedRun,
    host: Host,
    /// The handle that in a preview records what would be restored.
    preview: Host,
    force: bool,
    noop: bool,
    /// In a preview, what would be at places by now.
    predicted: HashMap<PathBuf, Image>,
    /// Whether contents are there and whole, as far as that was looked at.
    contents: HashMap<Digest, bool>,
    /// Images of each path before each change of the run.
    befores: HashMap<&'r Path, Vec<(Position, &'r Image)>>,
    /// The sizes of files that the run has found or left at a place.
    sizes: HashMap<&'r Path, Vec<u64>>,
    /// Directories that an undo of the same run was making when it was killed.
    half_made: HashSet<PathBuf>,
    /// Places of which nothing is left to take back.
    settled: HashSet<PathBuf>,
    /// Symlinks that lead to what is removed.
    links: Links,
}

/// Why a path is not as it was.
enum Refusal {
    /// It is not as the run left it, or something else is in the way.
    Conflict(String),
    /// What it was is not known any more.
    Lost(String),
    /// A symlink that stays leads to its resource.
    Pointed(String),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Self::Conflict(reason)
    }
}

/// Where a change stands: the resource, and the change among its changes.
type Position = (usize, usize);

impl<'r> PathUndo<'r> {
    pub(super) fn new(
        run: &'r RecordedRun,
        order: &[usize],
        options: &RunOptions,
        preview: &Host,
        force: bool,
    ) -> Self {
        let mut befores: HashMap<&Path, Vec<_>> = HashMap::new();
        let mut afters: HashMap<&Path, Option<&Image>> = HashMap::new();
        let mut sizes: HashMap<&Path, Vec<u64>> = HashMap::new();
        for (turn, recorded) in run.turns.iter().enumerate() {
            for (at, change) in recorded.paths.iter().enumerate() {
                let PathChange { place, before, after, .. } = change;
                befores.entry(place).or_default().push(((turn, at), before));
                afters.insert(place, after.as_ref());
                for image in std::iter::once(before).chain(after) {
                    if let Image::File { size, .. } = image {
                        sizes.entry(place).or_default().push(*size);
                    }
                }
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
            preview: preview.clone(),
            force,
            noop: options.mode.noop,
            predicted: HashMap::new(),
            contents: HashMap::new(),
            half_made: half_made(run, options),
            links: Links::of(run, order, &options.host),
            befores,
            sizes,
            settled,
        }
    }

    /// Removes the temporary files that a killed run has left beside what it has
    /// changed, and in the tree that its last resource was writing: what it was
    /// about to put in place there is in no journal yet.
    pub(super) fn remove_leftovers(&self) {
        if self.noop || self.run.finished.is_some() {
            return;
        }
        let changes = self.run.turns.iter().flat_map(|turn| &turn.paths);
        let parents = changes.filter_map(|change| change.place.parent());
        let mut directories: BTreeSet<PathBuf> = parents.map(Path::to_owned).collect();
        let last = self.run.turns.last().map(|turn| PathBuf::from(&turn.name));
        if let Some(root) = last.filter(|name| name.is_absolute())
            && let Ok(Some(tree)) = self.host.open_tree(&root)
            && let Ok(entries) = tree.entries()
        {
            directories.extend(entries.directories.iter().map(|place| root.join(place)));
            directories.insert(root);
        }
        for directory in directories {
            // One that is gone has nothing in it.
            let _ = self.host.remove_leftovers(&directory);
        }
    }

    /// Takes back what a resource changed, the last change first.
    pub(super) fn undo(&mut self, turn: &RecordedTurn, number: usize) -> Undone {
        let mut undone = Undone::default();
        for (at, change) in turn.paths.iter().enumerate().rev() {
            let path = &change.path;
            let Err(refusal) = self.undo_path(change, (number, at), &mut undone) else { continue };
            self.links.stays(&change.place);
            // A resource that is the path itself names it already.
            let is_own = Path::new(&turn.name) == path;
            let name = if is_own { String::new() } else { format!("{}: ", path.display()) };
            undone.has_lost |= matches!(refusal, Refusal::Lost(_));
            undone.is_held |= matches!(refusal, Refusal::Pointed(_));
            match refusal {
                // All of a resource stays for the same reason.
                Refusal::Pointed(reason) if undone.errors.contains(&reason) => {}
                Refusal::Pointed(reason) => undone.errors.push(reason),
                Refusal::Conflict(reason) | Refusal::Lost(reason) => {
                    undone.errors.push(format!("{name}{reason}"));
                }
            }
        }
        undone
    }

    fn undo_path(
        &mut self,
        change: &PathChange,
        position: Position,
        undone: &mut Undone,
    ) -> Result<(), Refusal> {
        let PathChange { path, place, before, after, .. } = change;
        if after.as_ref() == Some(before) || self.settled.contains(place) {
            return Ok(());
        }
        self.check_above(place)?;
        self.check_way(path, place)?;
        let now = self.present(place)?;
        if self.is_undone(place, &now) {
            self.settled.insert(place.clone());
            return Ok(());
        }
        match judge(change, &now) {
            Verdict::Nothing => return Ok(()),
            // It is what an earlier change of the run has found.
            Verdict::Conflict(_) if self.was(place, position, &now) => return Ok(()),
            Verdict::Conflict(_)
                if is_directory(before) && is_directory(&now) && self.half_made.contains(place) => {
            }
            Verdict::Conflict(reason) if !self.force => return Err(reason.into()),
            Verdict::Conflict(_) | Verdict::Restore => {}
        }
        if now != Image::Absent && is_removed(change) {
            self.check_links(change, position)?;
        }
        self.check_restorable(change)?;
        if *before != Image::Absent {
            self.check_parent(place)?;
        }
        if now != Image::Absent && !matches!(now, Image::Directory { .. } if is_directory(before)) {
            self.check_empty(place, &now)?;
        }
        let (wanted, loss) = self.without_privileges(change, &now)?;
        let change = &PathChange { before: wanted.clone(), ..change.clone() };
        if self.noop {
            self.preview.begin_prediction("undo");
            self.predict(change, &now).map_err(|error| chain(&error))?;
            self.predicted.insert(place.clone(), wanted.clone());
        } else {
            self.restore(change, &now).map_err(|error| chain(&error))?;
            let sizes = self.sizes.get(place.as_path()).map_or(&[][..], Vec::as_slice);
            let is = self.host.image_of_sizes(path, sizes).map_err(|error| chain(&error))?;
            if !matches!(judge(change, &is), Verdict::Nothing) {
                return Err("the restored state is not what was recorded".to_owned().into());
            }
        }
        self.links.restored(place, &wanted, &self.host);
        undone.restored.push((path.clone(), now, wanted));
        loss.map_or(Ok(()), |loss| Err(loss.into()))
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
        let sizes = self.sizes.get(path).map_or(&[][..], Vec::as_slice);
        self.host.image_of_sizes(path, sizes).map_err(|error| chain(&error))
    }

    /// Fails if symlinks on the way to a path lead elsewhere than in the run:
    /// what is there is not of the run.
    fn check_way(&self, path: &Path, place: &Path) -> Result<(), String> {
        let (Some(parent), Some(known)) = (path.parent(), place.parent()) else { return Ok(()) };
        let real = self.host.followed(parent);
        if real == known {
            return Ok(());
        }
        let (parent, real) = (parent.display(), real.display());
        Err(format!("changed since the run: the path {parent} now points to {real}"))
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
                    "changed since the run: {} is no longer a directory",
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

    /// Fails if a symlink that stays leads to what is to be removed.
    fn check_links(&self, change: &PathChange, (turn, _): Position) -> Result<(), Refusal> {
        let found = self.links.pointing_to(&change.path, &change.place, turn);
        let Some((link, target)) = found else { return Ok(()) };
        let (link, target) = (link.display(), target.display());
        let reason = format!("not removed, because the symlink {link} points to {target}");
        Err(Refusal::Pointed(reason))
    }

    /// Fails if what was there before was not kept.
    fn check_restorable(&mut self, change: &PathChange) -> Result<(), Refusal> {
        let lost = |why: &str| Err(Refusal::Lost(format!("cannot be undone: {why}")));
        match &change.before {
            Image::Other => lost("it was a socket, FIFO or device"),
            Image::File { .. } if is_about_attributes(change) => Ok(()),
            Image::File { digest: None, .. } => lost("its former content was not kept"),
            Image::File { digest: Some(digest), .. } if !self.has_content(*digest) => {
                lost("its former content is no longer in the history")
            }
            _ => Ok(()),
        }
    }

    fn has_content(&mut self, digest: Digest) -> bool {
        let run = self.run;
        *self.contents.entry(digest).or_insert_with(|| match run.content(digest) {
            Ok(Some(_)) => true,
            _ if self.noop => false,
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
        let leftovers = if self.noop {
            self.host.leftovers(path).map_err(|error| chain(&error))?
        } else {
            self.host.remove_leftovers(path).map_err(|error| chain(&error))?;
            Vec::new()
        };
        let names = self.host.list(path).map_err(|error| chain(&error))?;
        let is_left = |name: &std::ffi::OsString| {
            self.predicted.get(&path.join(name)) != Some(&Image::Absent)
                && !leftovers.contains(name)
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
                if is_about_attributes(change) {
                    return self.restore_attributes(change, now, attributes);
                }
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

    /// Gives a file its owner, group and mode back. One that another user could
    /// write to meanwhile, and still can while this looks at it, is replaced by
    /// a copy of what was recognized.
    fn restore_attributes(
        &self,
        change: &PathChange,
        now: &Image,
        attributes: &Attributes,
    ) -> ccm_host::Result<()> {
        let (path, host) = (&change.path, &self.host);
        let digest = change.before.digest().filter(|_| is_given(change) && host.is_root());
        if let Some(digest) = digest.filter(|digest| now.digest() == Some(*digest)) {
            let (bytes, _) = host.read_bytes(path, MAX_CONTENT)?;
            if Digest::of(&bytes) != digest {
                return Ok(());
            }
            match host.replace(path, Content::Bytes(&bytes), attributes) {
                Err(ccm_host::Error::MountedFile { .. }) => {}
                replaced => return replaced,
            }
        }
        host.set_attributes(path, attributes)
    }

    fn restore_file(
        &self,
        path: &Path,
        digest: Digest,
        attributes: &Attributes,
        in_place: bool,
    ) -> ccm_host::Result<()> {
        let Some(bytes) = self.run.content(digest)? else { return Ok(()) };
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

    /// Predicts [`PathUndo::restore`]; fails where that would.
    fn predict(&self, change: &PathChange, now: &Image) -> ccm_host::Result<()> {
        let PathChange { path, before, .. } = change;
        let host = &self.preview;
        let is_same_kind = std::mem::discriminant(now) == std::mem::discriminant(before);
        if *now != Image::Absent
            && !is_same_kind
            && (is_directory(now) || *before == Image::Absent || is_directory(before))
        {
            // Whether it is empty is known by now.
            host.predict_removal(path, true)?;
        }
        match before {
            Image::Absent | Image::Other => Ok(()),
            Image::Directory { attributes } if is_same_kind => {
                host.predict_attributes(path, attributes)
            }
            Image::Directory { attributes } => host.predict_directory(path, attributes),
            Image::Symlink { uid, gid, target } => host.predict_symlink(path, target, (*uid, *gid)),
            Image::File { attributes, digest, .. } => {
                let is_same = is_same_kind && (digest.is_none() || *digest == now.digest());
                if is_same || is_about_attributes(change) {
                    return host.predict_attributes(path, attributes);
                }
                let content = NewContent::Bytes(b"");
                if change.is_in_place && is_same_kind {
                    match host.predict_in_place(path, Some(content), attributes) {
                        Err(ccm_host::Error::PlantedFile { .. }) => {}
                        predicted => return predicted,
                    }
                }
                match host.predict_file(path, content, attributes) {
                    Err(ccm_host::Error::MountedFile { .. }) => {
                        host.predict_in_place(path, Some(content), attributes)
                    }
                    predicted => predicted,
                }
            }
        }
    }

    /// What is to be restored, without setuid and setgid bits where another user
    /// can change the directory, or could have changed the content: what was
    /// privileged there may have been planted. Also says so.
    fn without_privileges(
        &self,
        change: &PathChange,
        now: &Image,
    ) -> Result<(Image, Option<String>), String> {
        let PathChange { place, before, .. } = change;
        let Image::File { attributes, size, digest } = *before else {
            return Ok((before.clone(), None));
        };
        let kept = now.attributes().map_or(0, |now| now.mode);
        if attributes.mode & !kept & 0o6000 == 0 || !self.host.is_root() {
            return Ok((before.clone(), None));
        }
        let parent = place.parent().unwrap_or(Path::new("/"));
        let reason = if is_about_attributes(change) && (digest.is_none() || digest != now.digest())
        {
            "its content may have changed since the run".to_owned()
        } else {
            let attributes = match self.predicted.get(parent).and_then(Image::attributes) {
                Some(predicted) => Some(predicted),
                None => {
                    let stat = self.host.stat(parent).map_err(|error| chain(&error))?;
                    stat.map(|stat| stat.attributes())
                }
            };
            if attributes.is_some_and(|parent| !parent.is_writable_by_others()) {
                return Ok((before.clone(), None));
            }
            format!("other users can change the directory {}", parent.display())
        };
        let mode = attributes.mode & 0o1777;
        let wanted = Image::File { attributes: Attributes { mode, ..attributes }, size, digest };
        let mode = attributes.mode;
        let loss = format!(
            "restored without its setuid and setgid bits (mode {mode:04o}), because {reason}"
        );
        Ok((wanted, Some(loss)))
    }
}

/// The directories that undos of a run have begun to make and not ended: they
/// were killed before they gave them their attributes.
fn half_made(run: &RecordedRun, options: &RunOptions) -> HashSet<PathBuf> {
    let Some(state) = &options.state.directory else { return HashSet::new() };
    let undos = history::list(state).unwrap_or_default().into_iter().filter(|later| {
        later.info.undo_of.as_ref() == Some(&run.info.id) && later.finished.is_none()
    });
    let killed = undos.filter_map(|undo| history::open(state, &undo.info.id).ok().flatten());
    let turns = killed.flat_map(|undo| undo.turns);
    let paths = turns.flat_map(|turn| turn.paths);
    let is_begun = |change: &PathChange| change.after.is_none() && !is_directory(&change.before);
    paths.filter(is_begun).map(|change| change.place).collect()
}
