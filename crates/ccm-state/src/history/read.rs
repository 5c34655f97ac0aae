//! Reads recorded runs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ccm_host::{Digest, Error, Image, Result, StateDir};
use ccm_model::{Event, REDACTED};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    FORMAT, JOURNAL, OBJECTS, PathName, RUNS, Record, RunInfo, RunSummary, SUMMARY, SealedObject,
    Undoable,
};
use crate::records::{Line, decode, set_aside, whole_lines};

/// Longer files were not written by ccm.
const MAX_SUMMARY: u64 = 1 << 20;
const MAX_JOURNAL: u64 = 4 << 30;
const MAX_OBJECT: u64 = 1 << 30;
/// What a damaged summary is called.
const ASIDE: &str = "summary.damaged";
/// What stands for resources that nothing is known of.
const UNKNOWN: (&str, &str) = ("ccm", "history");
/// Why not everything of a run can be taken back.
const DAMAGED: &str = "part of the journal was damaged";
const SHORT: &str = "the end of the journal is missing";
const CUT: &str = "the machine stopped during the run; what it changed just before may not be \
                   recorded";

/// One path that a run changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// Where it is, as the run was told.
    pub path: PathBuf,
    /// The same with all symlinks on the way resolved, as they were.
    pub place: PathBuf,
    /// Image before the change.
    pub before: Image,
    /// Image after the run; `None` if the run was killed before it was recorded.
    pub after: Option<Image>,
    /// The file kept its inode, and with it its other names.
    pub is_in_place: bool,
}

impl PathChange {
    /// Whether another change only sets attributes of the directory that this
    /// one has made or changed.
    fn is_followed_by(&self, next: &Self) -> bool {
        let is_directory = |image: &Image| matches!(image, Image::Directory { .. });
        is_directory(&next.before)
            && next.after.as_ref().is_none_or(is_directory)
            && self.after.as_ref().is_some_and(is_directory)
    }
}

/// The changes of a run to one resource.
#[derive(Clone, Debug, Default)]
pub struct RecordedTurn {
    /// The resource's type.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The child manifests on the way to it.
    pub route: Vec<String>,
    /// The paths that it changed, in order.
    pub paths: Vec<PathChange>,
    /// Properties that bring back what it was, and those of what it became.
    pub state: Option<(Value, Option<Value>)>,
    /// The object with properties that bring it back and that nobody may see.
    pub sealed: Option<Digest>,
    /// What cannot be undone, with the reason. An empty name means the resource itself.
    pub lost: Vec<(String, String)>,
    /// The event; `None` if the run was killed before it.
    pub event: Option<Box<Event>>,
    /// Diffs of text files.
    pub diff: Option<String>,
}

impl RecordedTurn {
    fn new(kind: Cow<'_, str>, name: Cow<'_, str>, route: Cow<'_, [String]>) -> Self {
        let (kind, name, route) = (kind.into_owned(), name.into_owned(), route.into_owned());
        Self { kind, name, route, ..Self::default() }
    }

    /// Stands for resources that nothing is known of.
    fn unknown(reason: &str) -> Self {
        let lost = vec![(String::new(), reason.to_owned())];
        let (kind, name) = (UNKNOWN.0.to_owned(), UNKNOWN.1.to_owned());
        Self { kind, name, lost, ..Self::default() }
    }

    /// Whether it stands for resources that nothing is known of, because the
    /// journal is damaged or was cut.
    pub fn is_unknown(&self) -> bool {
        (self.kind.as_str(), self.name.as_str()) == UNKNOWN
    }

    /// The path that a record names.
    fn path(&self, name: PathName<'_>) -> PathBuf {
        let is_own = name.0.as_os_str().is_empty();
        if is_own { PathBuf::from(&self.name) } else { name.0.into_owned() }
    }

    /// Adds a change of a path.
    fn add(&mut self, path: PathBuf, place: PathBuf, before: Image, after: Option<Image>) {
        // Only what is written in place is known afterwards.
        let is_in_place = after.is_none() && before.digest().is_some();
        let change = PathChange { path, place, before, after, is_in_place };
        let known = self.paths.iter_mut().rev().find(|known| known.path == change.path);
        // What is made and then given its attributes is one change: it is taken
        // back as a whole, or not at all.
        match known {
            Some(known) if known.is_followed_by(&change) => known.after = change.after,
            _ => self.paths.push(change),
        }
    }

    /// Something of it is no longer as it was.
    fn has_changed(&self) -> bool {
        !self.paths.is_empty() || self.event.as_ref().is_some_and(|event| event.changed)
    }

    /// Something of it can be taken back; something cannot.
    fn can_be_undone(&self) -> (bool, bool) {
        (!self.paths.is_empty() || self.state.is_some(), !self.lost.is_empty())
    }
}

/// A run of the past.
#[derive(Clone, Debug, Default)]
pub struct RecordedRun {
    /// Information at the start of the run.
    pub info: RunInfo,
    /// When it ended; `None` if it was killed.
    pub finished: Option<Timestamp>,
    /// Its totals, as reports have them.
    pub summary: Value,
    /// The resources that it changed, in order.
    pub turns: Vec<RecordedTurn>,
    /// The parts of paths that were secret in the run.
    pub secrets: Vec<String>,
    /// Part of its journal cannot be read.
    pub is_damaged: bool,
    /// The last record was not written to its end, so its change was not made.
    is_torn: bool,
    objects: Option<StateDir>,
    /// While it is read: the last event in full, and its number.
    last: Option<(u64, Box<Event>)>,
}

/// The part of a path that is not shown of it: what lies between the texts that
/// are the same at both ends.
fn hidden_part(path: &str, shown: &str) -> String {
    let before = shown.split(REDACTED).next().unwrap_or_default();
    let behind = shown.rsplit(REDACTED).next().unwrap_or_default();
    let rest = path.strip_prefix(before).unwrap_or(path);
    rest.strip_suffix(behind).unwrap_or(rest).to_owned()
}

impl RecordedRun {
    /// Reads a run's journal.
    fn read(state: &StateDir, run: &StateDir, id: &str) -> Result<Self> {
        let path = run.path().join(JOURNAL);
        let bytes = run.read(JOURNAL, MAX_JOURNAL)?.unwrap_or_default();
        let decoded = decode::<Record<'static>>(&bytes);
        let (is_damaged, is_torn) = (decoded.is_damaged, decoded.is_torn);
        let mut found = Self { is_damaged, is_torn, ..Self::default() };
        if is_torn && !is_damaged {
            let path = path.display();
            state.host().warn(format!("{path} ends in an incomplete record; ccm ignores it"));
        }
        if decoded.is_damaged {
            state
                .host()
                .warn(format!("{} is damaged; ccm uses the intact records", path.display()));
        }
        id.clone_into(&mut found.info.id);
        found.objects = state.folder(OBJECTS, false)?;
        // Those that changed together with others, until their own turn.
        let mut ahead = Vec::new();
        let mut gaps = decoded.gaps.into_iter().peekable();
        for (at, record) in decoded.records.into_iter().enumerate() {
            while gaps.next_if_eq(&at).is_some() {
                found.turns.push(RecordedTurn::unknown(DAMAGED));
            }
            match record {
                Record::Header { format, .. } if format > FORMAT => {
                    return Err(Error::NewerState { path });
                }
                Record::Header { info, .. } => found.info = RunInfo { id: id.to_owned(), ..info },
                Record::Turn(kind, name, route) => {
                    ahead.retain(|turn: &RecordedTurn| {
                        turn.kind != kind || turn.name != name || turn.route != *route
                    });
                    found.turns.push(RecordedTurn::new(kind, name, route));
                }
                Record::Ahead(kind, name, route, before) => ahead.push(RecordedTurn {
                    state: Some((before.into_owned(), None)),
                    ..RecordedTurn::new(kind, name, route)
                }),
                Record::End { finished, summary } => {
                    (found.finished, found.summary) = (Some(finished), summary);
                }
                Record::Shown(path, shown) => {
                    let secret = hidden_part(&path.0.to_string_lossy(), &shown);
                    if !found.secrets.contains(&secret) {
                        found.secrets.push(secret);
                    }
                }
                record => found.add(record),
            }
        }
        found.turns.append(&mut ahead);
        // Whatever a run did, it has a header before that, and an end after it.
        let has_header = !found.info.manifest.is_empty() || found.info.boot.is_some();
        let has_summary = run.links(SUMMARY)?.is_some() || run.links(ASIDE)?.is_some();
        found.is_damaged |= !has_header && has_summary;
        let boot = state.host().boot_id();
        let is_cut = found.finished.is_none() && has_header && found.info.boot != boot;
        if found.is_damaged {
            found.turns.retain(|turn| !turn.is_unknown());
            found.turns.push(RecordedTurn::unknown(DAMAGED));
        } else if is_cut {
            found.turns.push(RecordedTurn::unknown(CUT));
        } else if found.finished.is_none() && has_summary {
            // The summary is written after the end, so this run was not killed.
            found.turns.push(RecordedTurn::unknown(SHORT));
        }
        for turn in &mut found.turns {
            turn.paths.retain(|change| change.after.as_ref() != Some(&change.before));
        }
        found.recognize();
        Ok(found)
    }

    /// Fills in the content of files whose attributes changed, where a later
    /// change of the run has read it: so the file is recognized afterwards.
    fn recognize(&mut self) {
        let mut read: HashMap<PathBuf, (u64, Digest)> = HashMap::new();
        for change in self.turns.iter_mut().rev().flat_map(|turn| turn.paths.iter_mut().rev()) {
            if let (
                Image::File { digest: before @ None, .. },
                Some(Image::File { digest: after @ None, size, .. }),
            ) = (&mut change.before, &mut change.after)
                && let Some((_, digest)) = read.get(&change.place).filter(|it| it.0 == *size)
            {
                (*before, *after) = (Some(*digest), Some(*digest));
            }
            match change.before {
                Image::File { digest: Some(digest), size, .. } => {
                    read.insert(change.place.clone(), (size, digest));
                }
                _ => {
                    read.remove(&change.place);
                }
            }
        }
    }

    /// Adds a record to the resource at work.
    fn add(&mut self, record: Record<'_>) {
        let Some(turn) = self.turns.last_mut() else { return };
        // Records behind a gap may be of any resource.
        if turn.is_unknown() && !matches!(record, Record::Lost { .. }) {
            return;
        }
        match record {
            Record::Path(path, before, after) => {
                let path = turn.path(path);
                let place = path.clone();
                turn.add(path, place, before.into_owned(), after.map(Cow::into_owned));
            }
            Record::Led(path, directory, before, after) => {
                let path = turn.path(path);
                let place = directory.0.join(path.file_name().unwrap_or_default());
                turn.add(path, place, before.into_owned(), after.map(Cow::into_owned));
            }
            Record::After(path, image) => {
                let path = turn.path(path);
                let last = turn.paths.iter_mut().rev().find(|change| change.path == path);
                if let Some(change) = last {
                    change.after = Some(image.into_owned());
                }
            }
            Record::State { before, sealed } => {
                turn.state = Some((before.into_owned(), None));
                turn.sealed = sealed;
            }
            Record::StateAfter { after } => {
                if let Some(state) = &mut turn.state {
                    state.1 = Some(after.into_owned());
                }
            }
            Record::Lost { what, reason } => {
                turn.lost.push((what.into_owned(), reason.into_owned()));
            }
            Record::Event(event) => {
                let number = event.number;
                let (event, diff) = event.into_event(&turn.kind, &turn.name);
                self.last = Some((number, Box::new(event.clone())));
                (turn.event, turn.diff) = (Some(Box::new(event)), diff);
            }
            Record::Again(of, time, duration) => {
                // One that refers to a damaged record says nothing.
                turn.event = self.last.as_ref().filter(|last| last.0 == of).map(|(_, last)| {
                    let mut event = last.clone();
                    event.kind = Cow::Owned(turn.kind.clone());
                    event.name.clone_from(&turn.name);
                    event.timestamp = Timestamp::from_microsecond(time).unwrap_or_default();
                    event.duration = Duration::from_micros(duration);
                    event
                });
            }
            Record::Header { .. }
            | Record::Turn(..)
            | Record::Ahead(..)
            | Record::Shown(..)
            | Record::End { .. } => {}
        }
    }

    /// How much of it can be taken back.
    pub fn undo(&self) -> Undoable {
        let turns = self.turns.iter().map(RecordedTurn::can_be_undone);
        let (can, cannot) = turns.fold((false, self.is_damaged), |(can, cannot), turn| {
            (can || turn.0, cannot || turn.1)
        });
        Undoable::of(can, cannot)
    }

    /// Reads a former content. `None` if it is not there, or damaged.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be read.
    pub fn content(&self, digest: Digest) -> Result<Option<Vec<u8>>> {
        let Some(objects) = &self.objects else { return Ok(None) };
        let name = digest.to_string();
        let Some(bytes) = objects.read(&name, MAX_OBJECT)? else { return Ok(None) };
        if Digest::of(&bytes) != digest {
            let path = objects.path().join(&name);
            objects.host().warn(format!("{} is damaged; ccm does not use it", path.display()));
            return Ok(None);
        }
        Ok(Some(bytes))
    }

    /// The properties that bring back what a resource was, sealed ones included.
    /// `None` if there are none, or if the sealed ones cannot be read.
    ///
    /// # Errors
    ///
    /// Fails if the object with them cannot be read.
    pub fn former_properties(&self, turn: &RecordedTurn) -> Result<Option<Value>> {
        let Some((before, _)) = &turn.state else { return Ok(None) };
        let mut before = before.clone();
        let Some(digest) = turn.sealed else { return Ok(Some(before)) };
        let object = self.content(digest)?;
        let object = object.and_then(|bytes| serde_json::from_slice::<SealedObject>(&bytes).ok());
        let (Some(object), Value::Object(all)) = (object, &mut before) else { return Ok(None) };
        if let Value::Object(sealed) = object.properties {
            all.extend(sealed);
        }
        Ok(Some(before))
    }

    /// Whether a former content is there, damaged or not.
    pub fn has_content(&self, digest: Digest) -> bool {
        let links = self.objects.as_ref().map(|objects| objects.links(digest.to_string()));
        matches!(links, Some(Ok(Some(_))))
    }

    /// Sets a damaged content aside, so that a good one can take its place.
    pub fn set_aside(&self, digest: Digest) {
        if let Some(objects) = &self.objects {
            let _ = objects.rename(digest.to_string(), format!("{digest}.damaged"));
        }
    }

    /// Returns the image of a path before this run changed it.
    pub fn former(&self, path: &Path) -> Option<&Image> {
        let paths = self.turns.iter().flat_map(|turn| &turn.paths);
        paths.into_iter().find(|change| change.path == path).map(|change| &change.before)
    }

    fn brief(&self) -> RunSummary {
        let events = || self.turns.iter().filter_map(|turn| turn.event.as_ref());
        RunSummary {
            format: FORMAT,
            info: self.info.clone(),
            finished: self.finished,
            changed: match self.finished {
                Some(_) => self.turns.iter().filter(|turn| turn.has_changed()).count(),
                None => self.turns.iter().filter(|turn| !turn.is_unknown()).count(),
            },
            failed: events().filter(|event| event.failed).count(),
            counts: serde_json::from_value(self.summary["outcomes"].clone()).ok(),
            undo: self.undo(),
            stored: 0,
        }
    }
}

/// The names of the runs, the oldest first.
pub(super) fn ids(runs: &StateDir) -> Result<Vec<String>> {
    let names = runs.names()?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| is_id(name)).collect())
}

/// Whether a name is one that ccm gives to a run.
fn is_id(name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() >= 19
        && bytes.iter().enumerate().all(|(at, &byte)| match at {
            8 | 15 => byte == b'-',
            _ => is_digit(byte),
        })
}

/// All runs, the newest first. One that cannot be read is reported, and left out.
///
/// # Errors
///
/// Fails if the directory cannot be read.
pub fn list(state: &StateDir) -> Result<Vec<RunSummary>> {
    let Some(runs) = state.folder(RUNS, false)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for id in ids(&runs)?.into_iter().rev() {
        match brief(state, &runs, &id, false) {
            Ok(Some(summary)) => found.push(summary),
            Ok(None) => {}
            Err(error) => state.host().warn(format!("{error}; ccm leaves out the run {id}")),
        }
    }
    Ok(found)
}

/// A run in a list. `is_repaired` sets a damaged summary aside: no other run may
/// write to the directory then.
pub(super) fn brief(
    state: &StateDir,
    runs: &StateDir,
    id: &str,
    is_repaired: bool,
) -> Result<Option<RunSummary>> {
    let Some(run) = runs.folder(id, false)? else { return Ok(None) };
    match summary(&run, id)? {
        Found::Whole(summary) => return Ok(Some(*summary)),
        Found::Nothing => {}
        Found::Damaged => {
            let path = run.path().join(SUMMARY);
            let renames = if is_repaired { "renames it and " } else { "" };
            let path = path.display();
            state.host().warn(format!("{path} is damaged; ccm {renames}reads the journal"));
            if is_repaired {
                set_aside(&run, SUMMARY, "damaged")?;
            }
        }
    }
    // Killed before its end, or damaged: the journal has it all.
    let recorded = RecordedRun::read(state, &run, id)?;
    // A run that was killed before its first change has changed nothing.
    Ok((!recorded.turns.is_empty() || recorded.is_damaged).then(|| recorded.brief()))
}

/// The summary of a run, as far as it can be read.
enum Found {
    Whole(Box<RunSummary>),
    Damaged,
    Nothing,
}

fn summary(run: &StateDir, id: &str) -> Result<Found> {
    let bytes = match run.read(SUMMARY, MAX_SUMMARY) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Found::Nothing),
        Err(Error::NotAFile { .. } | Error::TooLarge { .. }) => return Ok(Found::Damaged),
        Err(error) => return Err(error),
    };
    let summary = decode::<RunSummary>(&bytes).records.pop();
    let summary = summary.filter(|summary| summary.info.id == id);
    Ok(summary.map_or(Found::Damaged, |summary| Found::Whole(Box::new(summary))))
}

/// Renames a damaged journal and replaces it with one of the intact records;
/// renames a damaged summary.
/// Called while no run can write to it.
///
/// # Errors
///
/// Fails if the files cannot be written.
pub fn repair(state: &StateDir, run: &RecordedRun) -> Result<()> {
    let Some(runs) = state.folder(RUNS, false)? else { return Ok(()) };
    let Some(folder) = runs.folder(&run.info.id, false)? else { return Ok(()) };
    if matches!(summary(&folder, &run.info.id)?, Found::Damaged) {
        set_aside(&folder, SUMMARY, "damaged")?;
    }
    if !run.is_damaged && !run.is_torn {
        return Ok(());
    }
    let Some(bytes) = folder.read(JOURNAL, MAX_JOURNAL)? else { return Ok(()) };
    let mut line = Line::default();
    line.push(&Record::Turn(UNKNOWN.0.into(), UNKNOWN.1.into(), Cow::Borrowed(&[])));
    line.push(&Record::Lost { what: "".into(), reason: DAMAGED.into() });
    let whole = whole_lines(&bytes, line.finish());
    set_aside(&folder, JOURNAL, "damaged")?;
    folder.write(JOURNAL, &whole)
}

/// Reads a run; `None` when there is none with this id.
///
/// # Errors
///
/// Fails if its journal cannot be read, or is of a newer ccm.
pub fn open(state: &StateDir, id: &str) -> Result<Option<RecordedRun>> {
    let Some(runs) = state.folder(RUNS, false)?.filter(|_| is_id(id)) else { return Ok(None) };
    let Some(run) = runs.folder(id, false)? else { return Ok(None) };
    RecordedRun::read(state, &run, id).map(Some)
}
