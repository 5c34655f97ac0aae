//! Keeps what a symlink points to that stays.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use ccm_host::{FileKind, Host, Image};
use ccm_state::history::RecordedRun;

use super::order::{ByPath, is_removed, led_to};

/// The symlinks that lead to what an undo removes. ccm cannot know all symlinks
/// of a machine: it looks at those of the run, and at those in the two directories
/// above each path that it removes, where releases have theirs. A symlink that has
/// not changed since before the run led nowhere then, and may do so again.
pub(super) struct Links {
    /// What is removed, and by which resources.
    removed: BTreeMap<PathBuf, BTreeSet<usize>>,
    /// What symlinks lead to, of those that do.
    targets: HashMap<PathBuf, PathBuf>,
    /// The same by what they lead to, and by the resources that are removed there.
    by_target: ByPath<PathBuf>,
    by_turn: HashMap<usize, BTreeSet<PathBuf>>,
    /// Symlinks that are removed too.
    leaving: HashSet<PathBuf>,
}

impl Links {
    /// Looks for symlinks; `order` has the resources that are taken back.
    pub(super) fn of(run: &RecordedRun, order: &[usize], host: &Host) -> Self {
        let mut removed: BTreeMap<PathBuf, BTreeSet<usize>> = BTreeMap::new();
        let mut places: HashSet<&Path> = HashSet::new();
        let mut candidates: BTreeSet<PathBuf> = BTreeSet::new();
        let turns = order.iter().filter_map(|at| Some((*at, run.turns.get(*at)?)));
        let changes = turns.flat_map(|(at, turn)| turn.paths.iter().map(move |path| (at, path)));
        for (at, change) in changes {
            places.insert(&change.place);
            if is_removed(change) {
                removed.entry(change.place.clone()).or_default().insert(at);
            }
            let images = std::iter::once(&change.before).chain(&change.after);
            if images.into_iter().any(|image| matches!(image, Image::Symlink { .. })) {
                candidates.insert(change.place.clone());
            }
        }
        let mut directories: BTreeSet<&Path> = BTreeSet::new();
        for place in removed.keys() {
            directories.extend(place.ancestors().skip(1).take(2));
        }
        for directory in directories {
            // One that cannot be read has no symlinks that ccm knows.
            let names = host.list(directory).unwrap_or_default();
            let paths = names.into_iter().map(|name| directory.join(name));
            candidates.extend(paths.filter(|path| !places.contains(path.as_path())));
        }
        let leaving = removed.keys().filter(|place| candidates.contains(*place));
        let leaving = leaving.cloned().collect();
        let mut links = Self {
            leaving,
            removed,
            targets: HashMap::new(),
            by_target: ByPath::default(),
            by_turn: HashMap::new(),
        };
        for place in candidates {
            let Ok(Some(stat)) = host.lstat(&place) else { continue };
            let is_older = stat.ctime < run.info.started && !places.contains(place.as_path());
            if stat.kind == FileKind::Symlink && !is_older {
                links.add(&place, host.followed(&place));
            }
        }
        links
    }

    fn add(&mut self, place: &Path, target: PathBuf) {
        let Some(turns) = self.removed.get(&target) else { return };
        for turn in turns {
            self.by_turn.entry(*turn).or_default().insert(place.to_owned());
        }
        self.by_target.add(&target, place.to_owned());
        self.targets.insert(place.to_owned(), target);
    }

    /// A path is as it was before the run.
    pub(super) fn restored(&mut self, place: &Path, image: &Image, host: &Host) {
        if let Some(target) = self.targets.remove(place) {
            self.by_target.remove(&target, &place.to_owned());
            for turn in self.removed.get(&target).into_iter().flatten() {
                if let Some(links) = self.by_turn.get_mut(turn) {
                    links.remove(place);
                }
            }
        }
        if let Image::Symlink { target, .. } = image {
            self.add(place, led_to(host, place, target));
        }
    }

    /// A path is left as it is.
    pub(super) fn stays(&mut self, place: &Path) {
        self.leaving.remove(place);
    }

    /// A symlink that stays and leads to a path, to what is below it or above it,
    /// or to another path of the same resource; and what it leads to. What the run
    /// has reached by way of a symlink is removed before that is switched back.
    pub(super) fn pointing_to(
        &self,
        path: &Path,
        place: &Path,
        turn: usize,
    ) -> Option<(&Path, &Path)> {
        let related = self.by_target.above(place).chain(self.by_target.below(place));
        let mut links = related.chain(self.by_turn.get(&turn).into_iter().flatten());
        let link = links.find(|link| {
            !self.leaving.contains(*link) && (path == place || !path.starts_with(link))
        })?;
        Some((link, self.targets.get(link)?))
    }
}
