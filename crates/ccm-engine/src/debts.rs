//! Owed reactions within a run: who must react to what, from before a change
//! until the subscriber has reacted.
//!
//! A resource can be subscribed to from any manifest of the run: the one that
//! it stands in, one below, one above. Which subscribers those are is known of
//! the manifests that were entered; the ones that are still to come are read
//! ahead, once, when the first change is about to be made. So a run without
//! changes reads nothing twice.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use ccm_host::{Host, StateDir};
use ccm_model::{Event, OwedReaction, ResourceRef};
use ccm_state::{Debt, Ledger};
use ccm_template::Resolver;
use govalue::Map;

use crate::history::HistoryInfo;
use crate::lifecycle::is_managed;
use crate::manifest::{Manifest, RemoteSource};
use crate::manifest_run::{Above, Child, MAX_DEPTH, load_child};
use crate::options::RunOptions;
use crate::resource::{AnyResource, AnyType};
use crate::{Error, Result, chain};

/// The manifests that lead from the first to another, as they are written.
pub(crate) type Route = Vec<String>;

/// A subscriber: the manifest that it stands in, and its name.
type Key = (Route, String);

/// Where a run keeps what it owes.
#[derive(Clone, Debug, Default)]
pub struct RunState {
    /// The state directory; without one nothing is remembered.
    pub directory: Option<StateDir>,
    /// The session that resources outside of manifests belong to.
    pub session: Option<PathBuf>,
    /// What the history says of the run; `None` keeps none.
    pub history: Option<HistoryInfo>,
}

/// What the resources of a run owe.
#[derive(Default)]
pub(crate) struct Debts {
    ledger: Option<Ledger>,
    /// A preview shows debts, and neither makes nor pays any.
    is_preview: bool,
    /// Debts of earlier runs.
    earlier: HashMap<Key, Debt>,
    /// Who subscribes to what.
    subscribers: HashMap<String, BTreeSet<Key>>,
    /// Manifests that may run and were not looked into yet.
    ahead: Vec<ChildAhead>,
    looked_into: HashSet<Route>,
    entered: HashSet<Route>,
    /// Manifests that some resource applies.
    declared: HashSet<Route>,
    /// What `control` keeps out of this run.
    skipped: HashSet<Key>,
    skipped_manifests: HashSet<Route>,
    /// Those whose turn came and who still owe.
    kept: HashSet<Key>,
    /// Debts that the resource at work has caused.
    fresh: Vec<Key>,
    has_changes: bool,
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

impl Debts {
    /// The debts of a manifest.
    pub(crate) fn of_manifest(identity: &str, options: &RunOptions) -> Self {
        Self::open(options, identity)
    }

    /// The debts of resources that stand in no manifest: those of the session.
    pub(crate) fn of_session(options: &RunOptions) -> Self {
        match &options.state.session {
            Some(session) => Self::open(options, &format!("session {}", session.display())),
            None => Self::default(),
        }
    }

    fn open(options: &RunOptions, identity: &str) -> Self {
        let mut debts = Self::default();
        let mode = options.mode;
        let Some(directory) = &options.state.directory else { return debts };
        if mode.health_check_only {
            return debts;
        }
        debts.is_preview = mode.noop;
        match Ledger::open(directory, identity, mode.noop) {
            Ok(ledger) => {
                let key = |debt: &Debt| (debt.path.clone(), debt.subscriber.clone());
                debts.earlier = ledger.debts().map(|debt| (key(debt), debt.clone())).collect();
                debts.ledger = Some(ledger);
            }
            Err(error) => {
                let error = chain(&error);
                options.host.warn(format!("{error}; ccm does not know what earlier runs owe"));
            }
        }
        debts
    }

    /// Learns of the subscribers in a manifest that is about to run.
    pub(crate) fn enter(&mut self, manifest: &Manifest, route: &Route, host: &Host) {
        if self.ledger.is_none() {
            return;
        }
        self.ahead.retain(|child| child.route != *route);
        let declared = self.learn(manifest, route, host);
        self.entered.insert(route.clone());
        let is_gone = |key: &&Key| key.0 == *route && !declared.contains(&key.1);
        let gone: Vec<Key> = self.earlier.keys().filter(is_gone).cloned().collect();
        for key in gone {
            self.drop_gone(&key, host);
        }
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
            for reference in resource.subscribe() {
                let known = self.subscribers.entry(reference.to_string()).or_default();
                known.insert((route.clone(), name.clone()));
            }
            names.insert(name);
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
        below.push(child.path.to_owned());
        self.declared.insert(below.clone());
        let is_wanted = is_managed(resource, &manifest.templates).unwrap_or(true);
        if below.len() > MAX_DEPTH || !is_wanted || self.looked_into.contains(&below) {
            return;
        }
        self.ahead.push(ChildAhead {
            route: below,
            path: manifest.working_directory.join(child.path),
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
            if !self.looked_into.insert(ahead.route.clone()) {
                continue;
            }
            let path = ahead.path.to_string_lossy().into_owned();
            let child = Child {
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
            if let Ok(manifest) = load_child(host, types, inputs, &child, above) {
                self.learn(&manifest, &ahead.route, host);
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
        names: impl Iterator<Item = String>,
        by: &str,
        types: &'static [&'static dyn AnyType],
        options: &RunOptions,
    ) -> Result<()> {
        if self.is_preview || self.ledger.is_none() {
            return Ok(());
        }
        self.has_changes = true;
        self.look_ahead(types, options);
        if self.subscribers.is_empty() {
            return Ok(());
        }
        let subscribers = names.filter_map(|name| self.subscribers.get(&name)).flatten();
        let subscribers: BTreeSet<Key> = subscribers.cloned().collect();
        self.owe(subscribers, by, &options.host)
    }

    fn owe(&mut self, keys: BTreeSet<Key>, by: &str, host: &Host) -> Result<()> {
        let Some(ledger) = &mut self.ledger else { return Ok(()) };
        let is_new = |(route, name): &Key| ledger.find(route, name).is_none();
        let keys: Vec<Key> = keys.into_iter().filter(is_new).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let by = host.redactor().text(by).into_owned();
        let since = host.now();
        let debts = keys.iter().map(|(path, subscriber)| Debt {
            path: path.clone(),
            subscriber: subscriber.clone(),
            by: by.clone(),
            since,
        });
        ledger.owe(debts.collect()).map_err(|source| Error::Debt { source })?;
        self.fresh.extend(keys);
        Ok(())
    }

    /// A resource is done. What acted and made no difference owes nobody
    /// anything; what failed may have changed something all the same.
    pub(crate) fn after_change(&mut self, event: &Event, is_done: bool, host: &Host) {
        let fresh = std::mem::take(&mut self.fresh);
        if !event.changed && is_done {
            for key in fresh {
                self.pay(&key, host);
            }
        }
    }

    /// What a subscriber owes from earlier runs, unless the change that it is to
    /// react to has just failed: then it waits for that to succeed.
    pub(crate) fn claim(
        &self,
        resource: &dyn AnyResource,
        route: &Route,
        host: &Host,
        is_failed: impl FnOnce(&ResourceRef) -> bool,
    ) -> Option<OwedReaction> {
        if self.earlier.is_empty() || resource.subscribe().is_empty() {
            return None;
        }
        let debt = self.earlier.get(&(route.clone(), shown(resource, host)))?;
        if debt.by.parse().is_ok_and(|by| is_failed(&by)) {
            return None;
        }
        Some(OwedReaction { since: debt.since, by: debt.by.clone() })
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
        if self.is_preview || self.ledger.is_none() {
            return Ok(());
        }
        let owed = self.owe(
            BTreeSet::from([(route.clone(), shown(resource, host))]),
            &by.to_string(),
            host,
        );
        // It is not this resource that owes it to others.
        self.fresh.clear();
        owed
    }

    /// A subscriber has reacted, or had no need to.
    pub(crate) fn reacted(&mut self, resource: &dyn AnyResource, route: &Route, host: &Host) {
        if !self.is_preview && self.ledger.is_some() {
            self.pay(&(route.clone(), shown(resource, host)), host);
        }
    }

    /// `control` keeps a resource out of this run.
    pub(crate) fn skipped(&mut self, resource: &dyn AnyResource, route: &Route, host: &Host) {
        if self.ledger.is_none() {
            return;
        }
        self.skipped.insert((route.clone(), shown(resource, host)));
        if let Some(child) = resource.child() {
            let mut below = route.clone();
            below.push(child.path.to_owned());
            self.skipped_manifests.insert(below);
        }
    }

    /// A subscriber's turn has passed and it did not react.
    pub(crate) fn kept(&mut self, resource: &dyn AnyResource, route: &Route, host: &Host) {
        if self.ledger.is_some() && !resource.subscribe().is_empty() {
            self.kept.insert((route.clone(), shown(resource, host)));
        }
    }

    /// Subscribers in a manifest that came only now, and that must react to
    /// what this run has changed before: those that `has_changed` says so of.
    pub(crate) fn late(
        &mut self,
        resources: &[Box<dyn AnyResource>],
        route: &Route,
        host: &Host,
        mut has_changed: impl FnMut(&ResourceRef) -> bool,
    ) -> Result<()> {
        let is_late = self.has_changes && !self.looked_into.contains(route);
        if !is_late || self.is_preview || self.ledger.is_none() {
            return Ok(());
        }
        for resource in resources {
            let by = resource.subscribe().iter().find(|reference| has_changed(reference));
            if let Some(by) = by {
                let key = (route.clone(), shown(&**resource, host));
                self.owe(BTreeSet::from([key]), &by.to_string(), host)?;
            }
        }
        self.fresh.clear();
        Ok(())
    }

    /// Ends the run. `is_whole`: every resource that is to run had its turn.
    pub(crate) fn finish(&mut self, is_whole: bool, host: &Host) {
        if self.is_preview {
            return;
        }
        let Some(ledger) = &self.ledger else { return };
        let key = |debt: &Debt| (debt.path.clone(), debt.subscriber.clone());
        let left: Vec<Key> = ledger.debts().map(key).collect();
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
        if let Some(Err(error)) = self.ledger.as_mut().map(Ledger::close) {
            let error = chain(&error);
            host.warn(format!("{error}; the next run may repeat reactions of this one"));
        }
    }

    /// Drops the debt of a subscriber that is no longer there, and says so.
    fn drop_gone(&mut self, key: &Key, host: &Host) {
        let Some(debt) = self.earlier.remove(key) else { return };
        if self.is_preview {
            return;
        }
        let (by, name) = (&debt.by, &key.1);
        host.warn(format!(
            "{name} owes a reaction to {by} and is no longer in the manifest; ccm forgets it"
        ));
        self.pay(key, host);
    }

    fn pay(&mut self, key: &Key, host: &Host) {
        let Some(ledger) = &mut self.ledger else { return };
        if let Err(error) = ledger.pay(&key.0, &key.1) {
            let error = chain(&error);
            host.warn(format!("{error}; the next run may repeat the reaction of {}", key.1));
        }
    }
}

/// What a subscriber is called in records: without secrets.
fn shown(resource: &dyn AnyResource, host: &Host) -> String {
    host.redactor().text(&resource.display()).into_owned()
}
