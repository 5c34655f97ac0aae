//! Per-run cache for providers, and the change counters that invalidate it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::Host;
use crate::lock::Lock;

/// Counts the actions of a run that may have changed the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounters {
    /// Commands run, but for those that only look.
    pub commands: u64,
    /// Files and directories written or removed by ccm itself.
    pub files: u64,
}

/// One value of each type.
#[derive(Default)]
pub(crate) struct RunCache {
    values: Lock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl fmt::Debug for RunCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.values.hold().len())
    }
}

impl Host {
    /// The counters so far. A cached value is valid as long as they are the
    /// same.
    pub fn changes(&self) -> ChangeCounters {
        let predictions = self.view.predictions.load(Ordering::Relaxed);
        let files = self.inner.barrier.hold().changes + predictions;
        ChangeCounters { commands: self.inner.commands.load(Ordering::Relaxed), files }
    }

    /// The run's cached value of this type, created on first use and shared by
    /// all clones of the host.
    pub fn cached<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut values = self.view.cache.values.hold();
        let value = values.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // The key is the type, so the value is of it.
        Arc::clone(value).downcast().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicU32};

    use super::*;
    use crate::{Attributes, Content};

    #[test]
    fn one_value_of_each_type_is_shared_by_clones() {
        let host = Host::new();
        host.cached::<AtomicU32>().store(7, Ordering::Relaxed);
        host.cached::<AtomicI64>().store(8, Ordering::Relaxed);
        assert_eq!(host.clone().cached::<AtomicU32>().load(Ordering::Relaxed), 7);
        assert_eq!(Host::new().cached::<AtomicU32>().load(Ordering::Relaxed), 0);
    }

    #[test]
    fn files_count_as_changes_also_across_the_barrier() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::new();
        let (uid, gid) = host.whoami();
        let attributes = Attributes { uid, gid, mode: 0o600 };
        let path = dir.path().join("f");
        host.replace(&path, Content::Bytes(b"x"), &attributes).unwrap();
        let written = host.changes();
        assert_ne!(written, ChangeCounters::default());
        host.sync().unwrap();
        assert_eq!(host.changes(), written);
        host.remove(&path).unwrap();
        assert_ne!(host.changes(), written);
        assert_eq!(host.changes().commands, 0);
    }
}
