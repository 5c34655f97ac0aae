//! The journal of a run in progress.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ccm_host::{AppendFile, Digest, Error, FormerFile, Image, Journal, Place, Result, StateDir};
use ccm_model::{Event, Summary};
use jiff::Timestamp;
use serde_json::Value;

use super::prune::remove_run;
use super::{
    EventRecord, FORMAT, Former, JOURNAL, Limits, OBJECTS, PathName, RUNS, Record, RunInfo,
    RunSummary, SUMMARY, SealedObject, Undoable, is_same, times,
};
use crate::records::{Line, encode};

/// Events wait for the next record, up to this many bytes.
const MAX_WAITING: usize = 256 << 10;

/// Records what a run changes.
#[derive(Debug)]
pub struct RunJournal {
    state: StateDir,
    run: StateDir,
    objects: StateDir,
    info: RunInfo,
    limits: Limits,
    inner: Mutex<Inner>,
}

#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
#[derive(Debug)]
struct Inner {
    file: AppendFile,
    /// Records that nothing depends on, written with the next one that matters.
    waiting: Line,
    /// The name of the resource at work.
    name: String,
    /// How many events were written in full, and the last one with its number.
    events: u64,
    last: Option<(u64, Event)>,
    /// Where this run's names of objects are; made with the first of them.
    kept: Option<StateDir>,
    /// Objects that this run has written, and how many of them are on disk.
    new: Vec<Digest>,
    synced: usize,
    /// Resources whose states are on disk before their turns.
    ahead: HashSet<(String, String, Vec<String>)>,
    /// Changes of paths were recorded that are not on disk yet.
    is_unsynced: bool,
    /// How often everything was put on disk.
    syncs: usize,
    /// How many bytes of content it keeps, and how many of these are new.
    size: u64,
    stored: u64,
    /// Something can be taken back; something cannot.
    can: bool,
    cannot: bool,
    /// Something may have changed. What only asked the package manager has not.
    has_effect: bool,
    /// The same of the resource at work: something was done, a path changed.
    has_acted: bool,
    has_written: bool,
    /// How many resources changed something, in success or not.
    changed: usize,
    /// Losses already reported, so that each is reported once.
    lost: HashSet<String>,
}

impl RunJournal {
    /// Begins the record of a run; its id is chosen here.
    ///
    /// # Errors
    ///
    /// Fails if nothing can be recorded.
    pub fn begin(state: &StateDir, mut info: RunInfo, limits: Limits) -> Result<Arc<Self>> {
        let runs = state.make_folder(RUNS)?;
        let names = runs.names()?;
        let last = names.iter().filter_map(|name| name.to_str()).max();
        info.id = new_id(info.started, last);
        let run = runs.make_folder(&info.id)?;
        let objects = state.make_folder(OBJECTS)?;
        let mut file = run.append_later(JOURNAL)?;
        file.append(&encode(&Record::Header { format: FORMAT, info: info.clone() }))?;
        let inner = Inner {
            file,
            waiting: Line::default(),
            name: String::new(),
            events: 0,
            last: None,
            kept: None,
            new: Vec::new(),
            synced: 0,
            ahead: HashSet::new(),
            is_unsynced: false,
            syncs: 0,
            size: 0,
            stored: 0,
            can: false,
            cannot: false,
            has_effect: false,
            has_acted: false,
            has_written: false,
            changed: 0,
            lost: HashSet::new(),
        };
        let (state, inner) = (state.clone(), Mutex::new(inner));
        Ok(Arc::new(Self { state, run, objects, info, limits, inner }))
    }

    /// The id of the run.
    pub fn id(&self) -> &str {
        &self.info.id
    }

    fn hold(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A resource is about to change.
    ///
    /// # Errors
    ///
    /// Fails if what it was is not recorded.
    pub fn turn(&self, kind: &str, name: &str, route: &[String], former: &Former) -> Result<()> {
        let mut inner = self.hold();
        let is_ahead = !inner.ahead.is_empty()
            && inner.ahead.remove(&(kind.to_owned(), name.to_owned(), route.to_owned()));
        (inner.has_acted, inner.has_written) = (*former != Former::Files, false);
        name.clone_into(&mut inner.name);
        let (kind, name) = (Cow::Borrowed(kind), Cow::Borrowed(name));
        inner.wait(&Record::Turn(kind, name, Cow::Borrowed(route)));
        match former {
            // The first path brings it along.
            Former::Files => return Ok(()),
            Former::Properties(before) => {
                (inner.can, inner.is_unsynced) = (true, true);
                inner.append(&Record::State { before: Cow::Borrowed(before), sealed: None })?;
            }
            Former::Sealed { properties, sealed } => {
                let digest = self.seal(&mut inner, sealed)?;
                (inner.can, inner.is_unsynced) = (true, true);
                let before = Cow::Borrowed(properties);
                inner.append(&Record::State { before, sealed: Some(digest) })?;
            }
            Former::Lost(reason) => {
                inner.cannot = true;
                inner.append(&Record::Lost { what: "".into(), reason: Cow::Borrowed(reason) })?;
            }
        }
        // A command may take long: files that were changed before it get to
        // disk meanwhile, so what is known of them must be there too.
        if inner.is_unsynced && !is_ahead { self.sync(&mut inner) } else { Ok(()) }
    }

    /// Resources are about to change together, before their turns: type, name,
    /// manifests on the way, and state of each.
    ///
    /// # Errors
    ///
    /// Fails if what they were is not recorded.
    pub fn ahead<'r>(
        &self,
        resources: impl IntoIterator<Item = (&'r str, &'r str, &'r [String], &'r Value)>,
    ) -> Result<()> {
        let mut inner = self.hold();
        for (kind, name, route, before) in resources {
            inner.append(&Record::Ahead(
                Cow::Borrowed(kind),
                Cow::Borrowed(name),
                Cow::Borrowed(route),
                Cow::Borrowed(before),
            ))?;
            inner.ahead.insert((kind.to_owned(), name.to_owned(), route.to_owned()));
        }
        (inner.can, inner.has_effect, inner.is_unsynced) = (true, true, true);
        self.sync(&mut inner)
    }

    /// Records the new state of a resource that is not a file.
    pub fn complete_state(&self, after: &Value) {
        self.hold().wait(&Record::StateAfter { after: Cow::Borrowed(after) });
    }

    /// Records the event of the resource, with diffs.
    pub fn event(&self, event: &Event, diff: Option<&str>) {
        let mut inner = self.hold();
        let has_acted = std::mem::take(&mut inner.has_acted);
        let has_written = std::mem::take(&mut inner.has_written);
        inner.has_effect |= event.changed || (event.failed && has_acted);
        inner.changed += usize::from(event.changed || has_written);
        let name = std::mem::take(&mut inner.name);
        let time = times(event);
        match &inner.last {
            Some((of, last)) if diff.is_none() && name == event.name && is_same(last, event) => {
                let record = Record::Again(*of, time.0, time.1);
                inner.wait(&record);
            }
            _ => {
                inner.events += 1;
                let number = inner.events;
                inner.wait(&Record::Event(EventRecord::new(event, number, &name, diff)));
                let is_plain = diff.is_none() && name == event.name;
                inner.last = is_plain.then(|| (number, event.clone()));
            }
        }
    }

    /// How many bytes of former content it has added.
    pub fn stored(&self) -> u64 {
        self.hold().stored
    }

    /// Ends the run. Everything is on disk after the next `Host::sync`.
    ///
    /// # Errors
    ///
    /// Fails if the end is not recorded.
    pub fn finish(&self, finished: Timestamp, summary: &Summary) -> Result<()> {
        let mut inner = self.hold();
        if !inner.has_effect {
            let Some(runs) = self.state.folder(RUNS, false)? else { return Ok(()) };
            return remove_run(&self.state, &runs, self.id()).map(drop);
        }
        let totals = serde_json::to_value(summary).unwrap_or_default();
        inner.append(&Record::End { finished, summary: totals })?;
        let brief = RunSummary {
            format: FORMAT,
            info: self.info.clone(),
            finished: Some(finished),
            changed: inner.changed,
            failed: summary.failed,
            counts: Some(summary.outcomes),
            undo: Undoable::of(inner.can, inner.cannot),
            stored: inner.stored,
        };
        let mut file = self.run.new_file(SUMMARY)?;
        file.write(&encode(&brief))?;
        file.finish_as(SUMMARY)?;
        self.run.sync_later(SUMMARY);
        self.run.sync_later(JOURNAL);
        for digest in &inner.new {
            self.objects.sync_later(&digest.to_string());
        }
        Ok(())
    }

    /// Waits until everything that was recorded is on disk.
    fn sync(&self, inner: &mut Inner) -> Result<()> {
        if !inner.file.is_synced() {
            return Ok(());
        }
        let is_first = inner.syncs == 0;
        inner.syncs += 1;
        let new = inner.new.get(inner.synced..).unwrap_or_default();
        for digest in new {
            self.objects.sync_file(&digest.to_string())?;
        }
        if !new.is_empty() {
            self.objects.sync()?;
            if let Some(kept) = &inner.kept {
                kept.sync()?;
            }
        }
        inner.synced = inner.new.len();
        inner.file.sync()?;
        if is_first {
            self.run.sync()?;
            if let Some(runs) = self.state.folder(RUNS, false)? {
                runs.sync()?;
            }
            self.state.sync()?;
        }
        inner.is_unsynced = false;
        Ok(())
    }

    /// Says how a path may be shown, if it contains secrets.
    fn note_secrets(&self, inner: &mut Inner, path: &Path) {
        if let Cow::Owned(shown) = self.state.host().redactor().text(&path.to_string_lossy()) {
            inner.wait(&Record::Shown(PathName(Cow::Borrowed(path)), Cow::Owned(shown)));
        }
    }

    /// Where the run refers to the objects that it needs.
    fn kept(&self, inner: &mut Inner) -> Result<StateDir> {
        Ok(match &inner.kept {
            Some(kept) => kept.clone(),
            None => inner.kept.insert(self.run.make_folder(OBJECTS)?).clone(),
        })
    }

    /// Keeps properties as an object, which only this user may read. Salt in it
    /// keeps its name from telling what it holds.
    fn seal(&self, inner: &mut Inner, properties: &Value) -> Result<Digest> {
        let kept = self.kept(inner)?;
        let salt = u128::from_le_bytes(self.state.host().random());
        let object = SealedObject { salt: format!("{salt:032x}"), properties: properties.clone() };
        let bytes = serde_json::to_vec(&object).unwrap_or_default();
        let digest = Digest::of(&bytes);
        let name = digest.to_string();
        let mut new = self.objects.new_file("object")?;
        new.write(&bytes)?;
        new.finish_as(&name)?;
        self.objects.link_to(&name, &kept)?;
        inner.stored += bytes.len() as u64;
        inner.new.push(digest);
        Ok(digest)
    }

    /// Keeps what is in a file under the name of its digest.
    fn store(&self, inner: &mut Inner, file: &mut FormerFile<'_>) -> Result<Digest> {
        let kept = self.kept(inner)?;
        let digest = file.digest()?;
        if self.objects.link_to(&digest.to_string(), &kept)? {
            return Ok(digest);
        }
        // Named by what was copied: the file may change meanwhile.
        let mut new = self.objects.new_file("object")?;
        let digest = new.copy(file)?;
        let name = digest.to_string();
        new.finish_as(&name)?;
        if !self.objects.link_to(&name, &kept)? {
            return Err(Error::NotAFile {
                path: self.objects.path().join(&name),
                found: "missing",
            });
        }
        inner.stored += file.size();
        inner.new.push(digest);
        Ok(digest)
    }
}

impl Inner {
    /// Writes a record, and those that wait. Nothing may be changed before.
    fn append(&mut self, record: &Record<'_>) -> Result<()> {
        let before = self.waiting.len();
        self.waiting.push(record);
        // What waits tells of changes that were made; the one that fails is not.
        self.flush().inspect_err(|_| self.waiting.truncate(before))
    }

    /// Writes a record with the next one: nothing depends on it.
    fn wait(&mut self, record: &Record<'_>) {
        self.waiting.push(record);
        if self.waiting.len() > MAX_WAITING && self.flush().is_err() {
            self.waiting.truncate(0);
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.append(self.waiting.finish())?;
        self.waiting.truncate(0);
        Ok(())
    }

    /// A path, shortened if it is that of the resource at work.
    fn path_name<'p>(&self, path: &'p Path) -> PathName<'p> {
        let is_own = path.as_os_str() == self.name.as_str();
        PathName(Cow::Borrowed(if is_own { Path::new("") } else { path }))
    }
}

impl Journal for RunJournal {
    fn keep(&self, file: &mut FormerFile<'_>) -> Result<Option<Digest>> {
        let mut inner = self.hold();
        if file.size() > self.limits.content {
            let limit = self.limits.content >> 20;
            drop(inner);
            self.give_up(file.path(), &format!("its former content is larger than {limit} MiB"))?;
            return Ok(None);
        }
        if inner.size + file.size() > self.limits.store {
            drop(inner);
            self.give_up(file.path(), "the history of this run is full")?;
            return Ok(None);
        }
        inner.size += file.size();
        self.store(&mut inner, file).map(Some)
    }

    fn record(&self, place: Place<'_>, before: &Image, after: Option<&Image>) -> Result<()> {
        let mut inner = self.hold();
        self.note_secrets(&mut inner, place.path);
        let path = inner.path_name(place.path);
        let (before, after) = (Cow::Borrowed(before), after.map(Cow::Borrowed));
        inner.append(&match place.directory {
            None => Record::Path(path, before, after),
            Some(real) => Record::Led(path, PathName(Cow::Borrowed(real)), before, after),
        })?;
        (inner.can, inner.has_effect) = (true, true);
        (inner.has_acted, inner.has_written) = (true, true);
        inner.is_unsynced = true;
        if inner.file.is_due() { self.sync(&mut inner) } else { Ok(()) }
    }

    fn complete(&self, path: &Path, after: &Image) -> Result<()> {
        let mut inner = self.hold();
        let record = Record::After(inner.path_name(path), Cow::Borrowed(after));
        inner.wait(&record);
        Ok(())
    }

    fn give_up(&self, path: &Path, reason: &str) -> Result<()> {
        let what = path.display().to_string();
        let mut inner = self.hold();
        inner.cannot = true;
        if inner.lost.insert(what.clone()) {
            self.note_secrets(&mut inner, path);
            self.state.host().warn(format!("{what} cannot be restored later: {reason}"));
            inner.append(&Record::Lost { what: what.into(), reason: reason.into() })?;
        }
        Ok(())
    }
}

/// A name for a run that sorts after the last one, even if the clock was set
/// back meanwhile: the time, and a number for runs of the same second.
fn new_id(now: Timestamp, last: Option<&str>) -> String {
    let now = now.strftime("%Y%m%d-%H%M%S").to_string();
    let later = last.and_then(|id| {
        let (time, number) = id.rsplit_once('-')?;
        let number: u32 = number.parse().ok()?;
        (time.len() == now.len() && time >= now.as_str()).then(|| (time.to_owned(), number + 1))
    });
    let (time, number) = later.unwrap_or((now, 1));
    format!("{time}-{number:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_in_the_order_of_runs() {
        let now: Timestamp = "2026-11-17T11:54:02Z".parse().unwrap();
        let first = new_id(now, None);
        assert_eq!(first, "20261117-115402-001");
        let second = new_id(now, Some(&first));
        assert_eq!(second, "20261117-115402-002");
        let earlier: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
        assert_eq!(new_id(earlier, Some(&second)), "20261117-115402-003");
        assert_eq!(new_id(now, Some("20261117-115401-007")), "20261117-115402-001");
        assert_eq!(new_id(now, Some("nonsense")), "20261117-115402-001");
    }
}
