//! Previews within a run or within a plan that must leave no trace in it: child
//! manifests with `noop: true`.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::Forecast;
use crate::Host;

/// The forecast of an outer preview while an inner one runs.
#[derive(Debug)]
#[must_use]
pub struct Aside(Forecast);

type AnyValue = Arc<dyn Any + Send + Sync>;

type Copied = fn(&AnyValue) -> AnyValue;

/// One value of each type, with how to copy it.
#[derive(Default)]
pub(super) struct Values(HashMap<TypeId, (AnyValue, Copied)>);

impl Clone for Values {
    fn clone(&self) -> Self {
        let copied = self.0.iter().map(|(id, (value, copy))| (*id, (copy(value), *copy)));
        Self(copied.collect())
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

fn copied<T: Clone + Default + Send + Sync + 'static>(value: &AnyValue) -> AnyValue {
    let value = value.downcast_ref::<T>().cloned();
    Arc::new(value.unwrap_or_default())
}

impl Host {
    /// Returns the prediction that a provider stores as a value of type `T`,
    /// initially empty. For state that is not in the file system, such as
    /// services.
    pub fn predicted<T: Clone + Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut forecast = self.inner.forecast.hold();
        let new = || (Arc::new(T::default()) as AnyValue, copied::<T> as Copied);
        let (value, _) = forecast.values.0.entry(TypeId::of::<T>()).or_insert_with(new);
        // The key is the type, so the value is of it.
        Arc::clone(value).downcast().unwrap_or_default()
    }

    /// Begins a preview within the run or the plan. It sees everything that was
    /// predicted so far.
    pub fn begin_aside(&self) -> Aside {
        Aside(self.inner.forecast.hold().clone())
    }

    /// Ends such a preview, and forgets what it has predicted.
    pub fn end_aside(&self, aside: Aside) {
        *self.inner.forecast.hold() = aside.0;
        self.count_prediction();
    }
}
