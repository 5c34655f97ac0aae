//! Owed reactions within a run, recorded before a change and removed when the
//! subscriber has reacted.
//!
//! Any manifest of the run can subscribe to a resource: its own, a child or a
//! parent. The subscribers in manifests that have started are known. Child
//! manifests that are still to come are read ahead once, before the first
//! change, so a run without changes reads nothing twice.
//!
//! A child manifest may not exist yet, or may change before it is applied,
//! because the run itself writes it. So while child manifests are still to
//! come, the changes are recorded too. When a child manifest starts, its
//! subscribers react to recorded changes that they have not seen, also in a
//! later run.

mod subscriptions;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ccm_host::{Host, StateDir};
use ccm_model::{Event, OwedReaction, ResourceRef, StillOwed};
use ccm_state::{Change, OwedRecord, OwedStore};
use ccm_template::Resolver;
use govalue::Map;
use jiff::Timestamp;

use self::subscriptions::Subscriptions;
use crate::history::HistoryInfo;
use crate::lifecycle::is_managed;
use crate::manifest::{Manifest, RemoteSource};
use crate::manifest_run::{Above, Child, load_child};
use crate::options::RunOptions;
use crate::resource::{AnyResource, AnyType};
use crate::{Error, Result, chain};

/// The manifests that lead from the first to another, as they are written.
pub(crate) type Route = Vec<String>;

/// A subscriber: the manifest that it stands in, and its name.
type Key = (Route, String);

/// Where a run records owed reactions.
#[derive(Clone, Debug, Default)]
pub struct RunState {
    /// The state directory; without it, nothing is recorded.
    pub directory: Option<StateDir>,
    /// The session that resources outside of manifests belong to.
    pub session: Option<PathBuf>,
    /// Information about the run for the history; `None` if no history is kept.
    pub history: Option<HistoryInfo>,
}

/// What the resources of a run owe.
#[derive(Default)]
pub(crate) struct OwedReactions {
    store: Option<OwedStore>,
    /// A preview shows what is owed, and changes nothing of it.
    is_preview: bool,
    /// What earlier runs left.
    earlier: HashMap<Key, OwedRecord>,
    /// Subscribers by resource.
    subscriptions: Subscriptions<Key>,
    /// Manifests that may run and were not looked into yet.
    ahead: Vec<ChildAhead>,
    looked_into: HashSet<Route>,
    /// Manifests that may run and were not entered yet, and where they are.
    awaited: HashMap<Route, PathBuf>,
    /// Those of them that the run itself may write.
    unsettled: HashSet<PathBuf>,
    entered: HashSet<Route>,
    /// Manifests that some resource applies.
    declared: HashSet<Route>,
    /// Resources that `control` skips in this run.
    skipped: HashSet<Key>,
    skipped_manifests: HashSet<Route>,
    /// Those whose turn came and who still owe.
    kept: HashSet<Key>,
    /// What the resource at work has caused.
    fresh: Vec<Key>,
    /// What the resource at work is recorded as, for manifests to come.
    fresh_change: Option<String>,
    /// What the resources of a group have caused that change together.
    group: Option<GroupDebts>,
    has_changes: bool,
}

/// What the changes of a group have caused. It is settled when all of its
/// resources had their turn: a subscriber may react to several.
#[derive(Default)]
struct GroupDebts {
    fresh: Vec<Key>,
    /// Its resources and their subscribers.
    members: HashMap<String, BTreeSet<Key>>,
    /// What they are recorded as, for manifests to come.
    changes: HashSet<String>,
    /// The resource at work.
    current: Option<String>,
    /// Those who owe a reaction for a change that was made.
    kept: BTreeSet<Key>,
}

/// A manifest that a resource may apply later.
struct ChildAhead {
    route: Route,
    path: PathBuf,
    data: Option<Map>,
    allow_apply: bool,
    templates: Resolver,
    remote: Option<Arc<RemoteSource>>,
}

impl OwedReactions {
    /// What the resources of a manifest owe.
    pub(crate) fn of_manifest(identity: &str, options: &RunOptions) -> Self {
        Self::open(options, identity)
    }

    /// Begins a request, whose resource stands in no manifest. What it owes
    /// belongs to the session; others may have written to its records since the
    /// last request.
    pub(crate) fn begin_request(&mut self, options: &RunOptions) {
        let before = std::mem::take(self);
        let kept = before.store.filter(OwedStore::is_in_memory);
        let RunState { session, directory, .. } = &options.state;
        *self = match (session, directory, kept) {
            (Some(session), Some(_), _) => {
                Self::open(options, &format!("session {}", session.display()))
            }
            (.., kept) if !options.mode.health_check_only => {
                Self::with(kept.unwrap_or_else(OwedStore::in_memory), options)
            }
            _ => Self::default(),
        };
    }

    fn with(store: OwedStore, options: &RunOptions) -> Self {
        let key = |record: &OwedRecord| (record.path.clone(), record.subscriber.clone());
        Self {
            earlier: store.records().map(|record| (key(record), record.clone())).collect(),
            store: Some(store),
            is_preview: options.mode.noop,
            ..Self::default()
        }
    }

    fn open(options: &RunOptions, identity: &str) -> Self {
        let mode = options.mode;
        let Some(directory) = &options.state.directory else { return Self::default() };
        if mode.health_check_only {
            return Self::default();
        }
        match OwedStore::open(directory, identity, mode.noop) {
            Ok(store) => Self::with(store, options),
            Err(error) => {
                let error = chain(&error);
                options.host.warn(format!("{error}; ccm does not know what earlier runs owe"));
                Self::default()
            }
        }
    }

    /// Learns of the subscribers in a manifest that is about to run. One that
    /// came only now may have subscribers that must react to what this run has
    /// changed before, which `has_changed` knows, or an earlier one.
    ///
    /// # Errors
    ///
    /// Fails if what they owe cannot be recorded.
    pub(crate) fn enter(
        &mut self,
        manifest: &Manifest,
        route: &Route,
        host: &Host,
        has_changed: impl FnMut(&ResourceRef) -> bool,
    ) -> Result<()> {
        if self.store.is_none() {
            return Ok(());
        }
        self.ahead.retain(|child| child.route != *route);
        if let Some(path) = self.awaited.remove(route) {
            self.unsettled.remove(&path);
        }
        let declared = self.learn(manifest, route, host);
        self.entered.insert(route.clone());
        let is_gone = |key: &&Key| key.0 == *route && !declared.contains(&key.1);
        let gone: Vec<Key> = self.earlier.keys().filter(is_gone).cloned().collect();
        for key in gone {
            self.drop_gone(&key, host);
        }
        if route.is_empty() {
            return Ok(());
        }
        self.catch_up(&manifest.declarations.resources, route, host, has_changed)
    }

    /// Records what the subscribers in a manifest owe for changes that were made
    /// before it was entered.
    fn catch_up(
        &mut self,
        resources: &[Box<dyn AnyResource>],
        route: &Route,
        host: &Host,
        mut has_changed: impl FnMut(&ResourceRef) -> bool,
    ) -> Result<()> {
        let Some(store) = &mut self.store else { return Ok(()) };
        // Records carry no secrets, so changes are found without them.
        let unseen = store.unseen(route).iter();
        let unseen = unseen.flat_map(|change| change.names.iter().map(move |name| (name, change)));
        let unseen: HashMap<&String, &Change> = unseen.collect();
        if unseen.is_empty() && !self.has_changes {
            return Ok(());
        }
        let mut owed = Vec::new();
        for resource in resources {
            let key = || (route.clone(), shown(&**resource, host));
            let earlier = resource.subscribe().iter().find_map(|reference| {
                let name = reference.to_string();
                unseen.get(&name).or_else(|| unseen.get(&host.redactor().name(&name).into_owned()))
            });
            if let Some(change) = earlier {
                let record = record(key(), &change.by, change.since);
                self.earlier.entry(key()).or_insert_with(|| record.clone());
                owed.push(record);
            } else if self.has_changes
                && let Some(by) = resource.subscribe().iter().find(|by| has_changed(by))
            {
                let by = host.redactor().name(&by.to_string()).into_owned();
                owed.push(record(key(), &by, host.now()));
            }
        }
        if self.is_preview {
            return Ok(());
        }
        let recorded = store.owe(owed).and_then(|()| store.enter(route));
        recorded.map_err(|source| Error::Owed { source })
    }

    /// Adds the subscribers of a manifest, and the manifests below it that were
    /// not looked into; gives back the subscribers' names.
    fn learn(&mut self, manifest: &Manifest, route: &Route, host: &Host) -> HashSet<String> {
        let mut names = HashSet::new();
        for resource in &manifest.declarations.resources {
            if let Some(child) = resource.child() {
                self.add_ahead(&child, &**resource, manifest, route);
            }
            if resource.subscribe().is_empty() {
                continue;
            }
            let name = shown(&**resource, host);
            self.subscriptions.add((route.clone(), name.clone()), resource.subscribe());
            names.insert(name);
        }
        if !self.awaited.is_empty() {
            let written = manifest.declarations.resources.iter();
            let written = written.map(|resource| Path::new(&resource.common().name));
            let written: HashSet<&Path> = written.collect();
            let paths = self.awaited.values().filter(|path| written.contains(path.as_path()));
            self.unsettled.extend(paths.cloned());
        }
        names
    }

    fn add_ahead(
        &mut self,
        child: &Child<'_>,
        resource: &dyn AnyResource,
        manifest: &Manifest,
        route: &Route,
    ) {
        let mut below = route.clone();
        below.push(child.name.to_owned());
        self.declared.insert(below.clone());
        let is_wanted = is_managed(resource, &manifest.templates).unwrap_or(true);
        if !is_wanted || self.looked_into.contains(&below) {
            return;
        }
        let path = manifest.working_directory.join(child.path);
        if !self.entered.contains(&below) {
            self.awaited.insert(below.clone(), path.clone());
        }
        self.ahead.push(ChildAhead {
            route: below,
            path,
            data: child.data.cloned(),
            allow_apply: child.allow_apply,
            templates: manifest.templates.clone(),
            remote: manifest.remote.clone(),
        });
    }

    /// Reads the manifests that are still to come. One that cannot be read yet
    /// is learned of when it runs.
    fn look_ahead(&mut self, types: &'static [&'static dyn AnyType], options: &RunOptions) {
        while let Some(ahead) = self.ahead.pop() {
            let is_too_deep = ahead.route.len() > options.max_depth;
            if is_too_deep || !self.looked_into.insert(ahead.route.clone()) {
                continue;
            }
            let path = ahead.path.to_string_lossy().into_owned();
            let child = Child {
                name: &path,
                path: &path,
                data: ahead.data.as_ref(),
                noop: None,
                health_check_only: None,
                allow_apply: ahead.allow_apply,
            };
            let above = Above {
                templates: &ahead.templates,
                path: ahead.path.clone(),
                remote: ahead.remote,
            };
            let RunOptions { host, inputs, .. } = options;
            match load_child(host, types, inputs, &child, above) {
                Ok(manifest) => {
                    self.learn(&manifest, &ahead.route, host);
                }
                Err(_) => {
                    self.unsettled.insert(ahead.path);
                }
            }
        }
    }

    /// A resource is about to change: records what its subscribers will owe.
    /// `names` are what they can call it, and the ones that apply its manifest.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be recorded; then nothing may be changed.
    pub(crate) fn before_change(
        &mut self,
        names: Vec<String>,
        by: &str,
        types: &'static [&'static dyn AnyType],
        options: &RunOptions,
    ) -> Result<()> {
        if self.is_preview || self.store.is_none() {
            return Ok(());
        }
        if let Some(group) = &mut self.group
            && group.members.contains_key(by)
        {
            // It is recorded since the group began.
            group.current = Some(by.to_owned());
            self.fresh_change = group.changes.take(by);
            return Ok(());
        }
        self.has_changes = true;
        self.look_ahead(types, options);
        let subscribers = self.subscriptions.of(&names);
        let names = (!self.awaited.is_empty()).then_some(names);
        self.owe(subscribers, by, names, &options.host)
    }

    /// The same for a resource that changes together with others, before its turn.
    ///
    /// # Errors
    ///
    /// Fails if that cannot be recorded; then nothing may be changed.
    pub(crate) fn before_group_change(
        &mut self,
        names: &[String],
        by: &str,
        types: &'static [&'static dyn AnyType],
        options: &RunOptions,
    ) -> Result<()> {
        if self.is_preview || self.store.is_none() {
            return Ok(());
        }
        let recorded = self.before_change(names.to_vec(), by, types, options);
        let subscribers = self.subscriptions.of(names);
        let group = self.group.get_or_insert_default();
        group.fresh.append(&mut self.fresh);
        group.changes.extend(self.fresh_change.take());
        group.members.insert(by.to_owned(), subscribers);
        recorded
    }

    /// A resource of the group has changed without having its turn.
    pub(crate) fn keep_for_group(&mut self, by: &str) {
        if let Some(group) = &mut self.group {
            group.kept.extend(group.members.remove(by).unwrap_or_default());
        }
    }

    /// Ends a group: those who subscribe only to resources that did not change owe
    /// nothing.
    pub(crate) fn end_group(&mut self, host: &Host) {
        let Some(group) = self.group.take() else { return };
        for key in group.fresh.iter().filter(|key| !group.kept.contains(key)) {
            self.pay(key, host);
        }
    }

    /// Records what is owed to `by` and, for manifests that are still to come, what it
    /// is called.
    fn owe(
        &mut self,
        keys: BTreeSet<Key>,
        by: &str,
        names: Option<Vec<String>>,
        host: &Host,
    ) -> Result<()> {
        let Some(store) = &mut self.store else { return Ok(()) };
        let is_new = |(route, name): &Key| store.find(route, name).is_none();
        let keys: Vec<Key> = keys.into_iter().filter(is_new).collect();
        if keys.is_empty() && names.is_none() {
            return Ok(());
        }
        let redacted = |text: &str| host.redactor().name(text).into_owned();
        let (by, since) = (redacted(by), host.now());
        let owed = keys.iter().map(|key| record(key.clone(), &by, since)).collect();
        let change = names.map(|names| Change {
            by: by.clone(),
            names: names.iter().map(|name| redacted(name)).collect(),
            since,
        });
        self.fresh_change = change.is_some().then_some(by);
        let recorded = store.owe_for(owed, change, !self.unsettled.is_empty());
        recorded.map_err(|source| Error::Owed { source })?;
        self.fresh.extend(keys);
        Ok(())
    }

    /// A resource is done. What acted and made no difference owes nobody
    /// anything; what failed may have changed something all the same.
    pub(crate) fn after_change(&mut self, event: &Event, is_done: bool, host: &Host) {
        let fresh = std::mem::take(&mut self.fresh);
        let change = self.fresh_change.take();
        if let Some(group) = &mut self.group
            && let Some(by) = group.current.take()
            && (event.changed || !is_done)
        {
            group.kept.extend(group.members.remove(&by).unwrap_or_default());
        }
        if event.changed || !is_done {
            return;
        }
        for key in fresh {
            self.pay(&key, host);
        }
        if let (Some(by), Some(store)) = (change, &mut self.store)
            && let Err(error) = store.take_back(&by)
        {
            host.warn(format!("{}; the next run may react to {by}", chain(&error)));
        }
    }

    /// What subscribers owe now.
    pub(crate) fn records(&self) -> Vec<StillOwed> {
        let records = self.store.iter().flat_map(OwedStore::records).cloned();
        let still = |OwedRecord { path: route, subscriber, by, since }| StillOwed {
            subscriber,
            route,
            by,
            since,
        };
        records.map(still).collect()
    }

    /// What a subscriber owes from earlier runs, unless the change that it is to
    /// react to has just failed: then it waits for that to succeed.
    pub(crate) fn left_by_earlier(
        &self,
        resource: &dyn AnyResource,
        route: &Route,
        host: &Host,
        is_failed: impl FnOnce(&ResourceRef) -> bool,
    ) -> Option<OwedReaction> {
        if self.earlier.is_empty() || resource.subscribe().is_empty() {
            return None;
        }
        let record = self.earlier.get(&(route.clone(), shown(resource, host)))?;
        if record.by.parse().is_ok_and(|by| is_failed(&by)) {
            return None;
        }
        Some(OwedReaction { since: record.since, by: record.by.clone() })
    }

    /// Whether a subscriber still owes a reaction, of this run or an earlier one.
    pub(crate) fn is_owed(&self, resource: &dyn AnyResource, route: &Route, host: &Host) -> bool {
        let name = || shown(resource, host);
        self.store.as_ref().is_some_and(|store| store.find(route, &name()).is_some())
    }

    /// A subscriber is about to react. Whatever told it to, it owes the reaction
    /// until it is done.
    pub(crate) fn reacting(
        &mut self,
        resource: &dyn AnyResource,
        route: &Route,
        because: &[ResourceRef],
        host: &Host,
    ) -> Result<()> {
        let Some(by) = because.first() else { return Ok(()) };
        if self.is_preview || self.store.is_none() {
            return Ok(());
        }
        let owed = self.owe(
            BTreeSet::from([(route.clone(), shown(resource, host))]),
            &by.to_string(),
            None,
            host,
        );
        // It is not this resource that owes it to others.
        self.fresh.clear();
        owed
    }

    /// A subscriber has reacted, or had no need to.
    pub(crate) fn reacted(&mut self, resource: &dyn AnyResource, route: &Route, host: &Host) {
        if !self.is_preview && self.store.is_some() {
            self.pay(&(route.clone(), shown(resource, host)), host);
        }
    }

    /// `control` keeps a resource out of this run.
    pub(crate) fn skipped(&mut self, resource: &dyn AnyResource, route: &Route, host: &Host) {
        if self.store.is_none() {
            return;
        }
        self.skipped.insert((route.clone(), shown(resource, host)));
        if let Some(child) = resource.child() {
            let mut below = route.clone();
            below.push(child.name.to_owned());
            self.skipped_manifests.insert(below);
        }
    }

    /// A subscriber's turn has passed and it did not react.
    pub(crate) fn kept(&mut self, resource: &dyn AnyResource, route: &Route, host: &Host) {
        if self.store.is_some() && !resource.subscribe().is_empty() {
            self.kept.insert((route.clone(), shown(resource, host)));
        }
    }

    /// Ends a request. What other requests may still pay stays.
    pub(crate) fn finish_request(&mut self, host: &Host) {
        self.end(false, !host.cancel().is_cancelled(), host);
    }

    /// Ends the run. `is_whole`: every resource that is to run had its turn.
    pub(crate) fn finish(&mut self, is_whole: bool, host: &Host) {
        self.end(is_whole, is_whole, host);
    }

    fn end(&mut self, is_whole: bool, is_complete: bool, host: &Host) {
        if self.is_preview {
            return;
        }
        let Some(store) = &mut self.store else { return };
        // A manifest that could not be read, or was held back, is still to come.
        let is_awaited = |route| !self.skipped_manifests.contains(route);
        if is_complete && !self.awaited.keys().any(is_awaited) {
            store.forget_changes();
        }
        let key = |record: &OwedRecord| (record.path.clone(), record.subscriber.clone());
        let left: Vec<Key> = store.records().map(key).collect();
        for key in left {
            if !is_whole || self.kept.contains(&key) {
                continue;
            }
            if self.skipped.contains(&key) {
                self.pay(&key, host);
                continue;
            }
            // The first manifest on the way that did not run.
            let routes = (1..=key.0.len()).map(|length| key.0[..length].to_vec());
            let Some(missing) = routes.into_iter().find(|route| !self.entered.contains(route))
            else {
                continue;
            };
            if self.skipped_manifests.contains(&missing) {
                self.pay(&key, host);
            } else if !self.declared.contains(&missing) {
                self.drop_gone(&key, host);
            }
        }
        if let Some(Err(error)) = self.store.as_mut().map(OwedStore::close) {
            let error = chain(&error);
            host.warn(format!("{error}; the next run may repeat reactions of this one"));
        }
    }

    /// Drops the record of a subscriber that is no longer there, and says so.
    fn drop_gone(&mut self, key: &Key, host: &Host) {
        let Some(record) = self.earlier.remove(key) else { return };
        if self.is_preview {
            return;
        }
        let (by, name) = (&record.by, &key.1);
        host.warn(format!(
            "{name} owes a reaction to {by} and is no longer in the manifest; ccm forgets it"
        ));
        self.pay(key, host);
    }

    fn pay(&mut self, key: &Key, host: &Host) {
        let Some(store) = &mut self.store else { return };
        if let Err(error) = store.pay(&key.0, &key.1) {
            let error = chain(&error);
            host.warn(format!("{error}; the next run may repeat the reaction of {}", key.1));
        }
    }
}

fn record((path, subscriber): Key, by: &str, since: Timestamp) -> OwedRecord {
    OwedRecord { path, subscriber, by: by.to_owned(), since }
}

/// What a subscriber is called in records: without secrets.
fn shown(resource: &dyn AnyResource, host: &Host) -> String {
    host.redactor().name(&resource.display()).into_owned()
}
