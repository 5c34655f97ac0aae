//! Packages that earlier steps of a preview would install or remove.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Action;

/// One package of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageChange {
    /// Its name.
    pub package: String,
    /// The version that it would have; `None` where it would be removed.
    pub version: Option<String>,
}

/// What one simulation says of the packages of a group.
#[derive(Debug, Default)]
pub(super) struct SimulatedGroup(Mutex<Vec<(Action, Vec<PackageChange>)>>);

impl Clone for SimulatedGroup {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl SimulatedGroup {
    /// Notes a transaction of several actions. Those that it changes besides come
    /// along with the first one.
    pub(super) fn record(&self, actions: &[&Action], transaction: &[PackageChange]) {
        let is_own = |change: &&PackageChange| {
            actions.iter().any(|action| action.package() == change.package)
        };
        let mut others: Vec<PackageChange> =
            transaction.iter().filter(|change| !is_own(change)).cloned().collect();
        let parts = actions.iter().map(|action| {
            let own = transaction.iter().filter(|change| change.package == action.package());
            let mut part: Vec<PackageChange> = own.cloned().collect();
            // A name that stands for another package has no part of its own. What
            // is to be brought forward has none if it is the latest.
            let is_upgrade = matches!(action, Action::Upgrade { .. });
            if !part.is_empty() || !is_upgrade {
                part.append(&mut others);
            }
            let stands_for_another = part.is_empty() && !is_upgrade;
            let part = if stands_for_another { transaction.to_vec() } else { part };
            ((*action).clone(), part)
        });
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = parts.collect();
    }

    /// The part of an action in the transaction.
    pub(super) fn take(&self, action: &Action) -> Option<Vec<PackageChange>> {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = parts.iter().position(|(known, _)| known == action)?;
        Some(parts.swap_remove(at).1)
    }
}

/// What a preview has decided about packages.
#[derive(Debug, Default)]
pub(super) struct PredictedPackages(Mutex<HashMap<String, Option<String>>>);

impl Clone for PredictedPackages {
    fn clone(&self) -> Self {
        Self(Mutex::new(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }
}

impl PredictedPackages {
    /// The package as it would be, if anything would change it.
    pub(super) fn get(&self, package: &str) -> Option<PackageChange> {
        let packages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let version = packages.get(package)?.clone();
        Some(PackageChange { package: package.to_owned(), version })
    }

    pub(super) fn record(&self, transaction: &[PackageChange]) {
        let mut packages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for change in transaction {
            packages.insert(change.package.clone(), change.version.clone());
        }
    }
}
