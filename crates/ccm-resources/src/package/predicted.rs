//! Packages that earlier steps of a preview would install or remove.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// One package of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageChange {
    /// Its name.
    pub package: String,
    /// The version that it would have; `None` where it would be removed.
    pub version: Option<String>,
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
