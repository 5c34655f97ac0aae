//! Predictions of providers, for state that is not in the file system.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::Host;

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
    /// initially empty; always empty outside of previews. For state that is not in
    /// the file system, such as services.
    pub fn predicted<T: Clone + Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut forecast = self.view.forecast.hold();
        let new = || (Arc::new(T::default()) as AnyValue, copied::<T> as Copied);
        let (value, _) = forecast.values.0.entry(TypeId::of::<T>()).or_insert_with(new);
        // The key is the type, so the value is of it.
        Arc::clone(value).downcast().unwrap_or_default()
    }
}
