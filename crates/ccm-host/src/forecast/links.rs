//! Symlinks in a preview: those that earlier steps remove or replace are not
//! followed.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use super::{Forecast, Predicted};
use crate::Host;

/// As many as the kernel follows.
const MAX_LINKS: usize = 40;

/// Where a path leads.
pub(super) struct Route {
    pub(super) end: PathBuf,
    /// The symlinks on the way, and what is in them.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

impl Forecast {
    /// Whether what is on disk at a place will not be there.
    fn replaces(&self, place: &Path) -> bool {
        place.ancestors().enumerate().any(|(depth, above)| {
            self.entries.get(above).is_some_and(|entry| match entry.what {
                Predicted::Directory { is_new, .. } => is_new,
                Predicted::Absent | Predicted::File(..) | Predicted::Link(_) => true,
                Predicted::Something => depth == 0,
            })
        })
    }

    /// Notes that something that is known depends on what is at a place.
    pub(super) fn watch(&mut self, place: &Path) {
        for above in place.ancestors() {
            if !self.watched.insert(above.to_owned()) {
                break;
            }
        }
    }
}

impl Host {
    /// Where a path leads in the preview, every symlink followed. What is missing
    /// stays as it is written.
    pub fn followed(&self, path: &Path) -> PathBuf {
        self.route(path).end
    }

    /// The symlinks on the way to a path, itself included, and where they lead.
    /// In a preview: as earlier steps leave them.
    pub fn links_to(&self, path: &Path) -> Vec<(PathBuf, PathBuf)> {
        self.route(path).links
    }

    pub(super) fn route(&self, path: &Path) -> Route {
        let mut links = Vec::new();
        let base = if path.is_absolute() { None } else { self.current_dir().ok() };
        let mut pending: VecDeque<OsString> = base.iter().flat_map(|base| names(base)).collect();
        pending.extend(names(path));
        let mut real = PathBuf::from("/");
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                real.pop();
                continue;
            }
            let next = real.join(name);
            match self.link_target(&next).filter(|_| links.len() < MAX_LINKS) {
                None => real = next,
                Some(target) => {
                    self.view.forecast.hold().watch(&next);
                    links.push((next, target.clone()));
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    for name in names(&target).collect::<Vec<_>>().into_iter().rev() {
                        pending.push_front(name);
                    }
                }
            }
        }
        Route { end: real, links }
    }

    /// Where a path that steps of the preview do not decide is on disk: the
    /// symlinks of earlier steps are not there yet.
    pub(crate) fn on_disk<'p>(&self, path: &'p Path, follows: bool) -> Cow<'p, Path> {
        if self.view.forecast.hold().links.is_empty() {
            return Cow::Borrowed(path);
        }
        Cow::Owned(if follows { self.followed(path) } else { self.resolved(path) })
    }

    /// The text of a symlink that an earlier step of the preview makes.
    pub(crate) fn predicted_link(&self, path: &Path) -> Option<PathBuf> {
        if self.view.forecast.hold().links.is_empty() {
            return None;
        }
        let place = self.resolved(path);
        self.view.forecast.hold().links.get(&place).cloned()
    }

    /// What the symlink at a place leads to, if there will be one.
    fn link_target(&self, place: &Path) -> Option<PathBuf> {
        let forecast = self.view.forecast.hold();
        if let Some(target) = forecast.links.get(place) {
            return Some(target.clone());
        }
        if self.is_preview() && forecast.replaces(place) {
            return None;
        }
        drop(forecast);
        let target = rustix::fs::readlink(place, Vec::new()).ok()?;
        Some(OsString::from_vec(target.into_bytes()).into())
    }
}

/// The names in a path, with `..` where it goes up.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}
