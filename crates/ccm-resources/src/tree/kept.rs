//! What a purge keeps: every path that a resource of the run declares.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ccm_engine::{DeclaredPath, DeclaredPaths, Extent, Result};
use ccm_host::Host;

/// Places below a target that a purge keeps.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// These, whatever is in them.
    trees: HashSet<PathBuf>,
    /// These alone.
    places: HashSet<PathBuf>,
    /// The directories above all of them.
    above: HashSet<PathBuf>,
}

impl Kept {
    /// What the resources of the run declare below a target. `own` is the resource
    /// that purges, and `source` what it copies: what it declares itself does not
    /// keep anything.
    pub(crate) fn new(
        host: &Host,
        target: &Path,
        declared: &DeclaredPaths,
        own: &str,
        source: Option<&Path>,
    ) -> Result<Self> {
        declared.check()?;
        let mut kept = Self::default();
        let real_target = host.followed(target);
        let mut real = RealPaths { host, parents: HashMap::new() };
        for DeclaredPath { by, managed } in &declared.paths {
            let path = &managed.path;
            let resolved = real.resolve(path);
            for (path, target) in [(path, target), (&resolved, &real_target)] {
                if let Ok(place) = path.strip_prefix(target)
                    && !place.as_os_str().is_empty()
                {
                    match managed.extent {
                        Extent::Itself => kept.places.insert(place.to_owned()),
                        Extent::Tree | Extent::CopyOf(_) => kept.trees.insert(place.to_owned()),
                    };
                }
            }
            let below = real_target.strip_prefix(&resolved).or_else(|_| target.strip_prefix(path));
            if let Ok(below) = below {
                match &managed.extent {
                    Extent::Itself => {}
                    Extent::Tree if by == own => {}
                    Extent::Tree => drop(kept.trees.insert(PathBuf::new())),
                    Extent::CopyOf(copied) if by == own && source == Some(copied) => {}
                    Extent::CopyOf(copied) => kept.add_copy(host, copied, below)?,
                }
            }
        }
        let all = kept.trees.iter().chain(&kept.places);
        kept.above = all.flat_map(|place| place.ancestors().skip(1)).map(Path::to_owned).collect();
        Ok(kept)
    }

    /// Adds what another resource copies into the part of its target that lies
    /// `below` it.
    fn add_copy(&mut self, host: &Host, source: &Path, below: &Path) -> Result<()> {
        let Some(tree) = host.tree_on_disk(source)? else { return Ok(()) };
        let entries = tree.entries()?;
        let all = entries.files.into_iter().chain(entries.directories);
        self.places
            .extend(all.filter_map(|place| Some(place.strip_prefix(below).ok()?.to_owned())));
        Ok(())
    }

    /// Keeps what is mounted in the target.
    pub(crate) fn add_mount(&mut self, place: &Path) {
        self.above.extend(place.ancestors().skip(1).map(Path::to_owned));
        self.trees.insert(place.to_owned());
    }

    /// Whether a file stays, or a directory with what it is needed for.
    pub(crate) fn has(&self, place: &Path) -> bool {
        self.places.contains(place)
            || self.above.contains(place)
            || place.ancestors().any(|above| self.trees.contains(above))
    }
}

/// Paths with the symlinks in their directories resolved.
struct RealPaths<'a> {
    host: &'a Host,
    parents: HashMap<PathBuf, PathBuf>,
}

impl RealPaths<'_> {
    fn resolve(&mut self, path: &Path) -> PathBuf {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return path.to_owned();
        };
        if !self.parents.contains_key(parent) {
            self.parents.insert(parent.to_owned(), self.host.followed(parent));
        }
        self.parents.get(parent).map_or_else(|| path.to_owned(), |real| real.join(name))
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test sets its stage by itself")]
mod tests {
    use ccm_engine::ManagedPath;

    use super::*;

    #[test]
    fn what_others_declare_is_kept_and_what_is_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("t/real")).unwrap();
        std::fs::create_dir_all(at("outer/sub")).unwrap();
        std::fs::write(at("outer/sub/x"), "").unwrap();
        std::os::unix::fs::symlink("t", at("way")).unwrap();
        let kept_by = |path: &str, extent: Extent, by: &str| {
            let managed = ManagedPath { path: at(path), extent };
            let paths = vec![DeclaredPath { by: by.to_owned(), managed }];
            let declared = DeclaredPaths::of(paths);
            Kept::new(&Host::new(), &at("t"), &declared, "own", Some(&at("src"))).unwrap()
        };
        let own = |extent| kept_by("t", extent, "own");
        for (kept, place, wanted) in [
            (kept_by("t/a/b", Extent::Itself, "x"), "a/b", true),
            (kept_by("t/a/b", Extent::Itself, "x"), "a", true),
            (kept_by("t/a/b", Extent::Itself, "x"), "a/b/c", false),
            (kept_by("t/a/b", Extent::Itself, "x"), "a/c", false),
            (kept_by("t/a", Extent::Tree, "x"), "a/b/c", true),
            (kept_by("t/a", Extent::CopyOf(at("none")), "x"), "a/b/c", true),
            (kept_by("way/real/f", Extent::Itself, "x"), "real/f", true),
            (kept_by("other", Extent::Tree, "x"), "a", false),
            (kept_by("", Extent::Tree, "x"), "a", true),
            (kept_by("", Extent::Itself, "x"), "a", false),
            (kept_by("t", Extent::Tree, "x"), "a", true),
            (own(Extent::Tree), "a", false),
            (own(Extent::CopyOf(at("src"))), "a", false),
            (own(Extent::CopyOf(at("outer"))), "sub/x", true),
            (own(Extent::CopyOf(at("outer"))), "a", false),
        ] {
            assert_eq!(kept.has(Path::new(place)), wanted, "{place}: {kept:?}");
        }
        let mut kept = Kept::default();
        kept.add_mount(Path::new("a/mount"));
        assert!(kept.has(Path::new("a")) && kept.has(Path::new("a/mount/f")));
        assert!(!kept.has(Path::new("b")));
    }
}
