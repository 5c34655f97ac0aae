//! Steps: decisions as data.

use ccm_model::{Change, Verb};
use serde::{Deserialize, Serialize};

/// One step towards the desired state.
///
/// It holds everything that acting on it needs, so it can be shown, kept and
/// compared, and acting does what was shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step<A> {
    /// The verb of the step.
    pub verb: Verb,
    /// The changes of the step.
    pub changes: Vec<Change>,
    /// The data that `act` needs.
    pub action: A,
}

impl<A> Step<A> {
    /// A step that changes nothing that a property describes.
    pub fn new(verb: Verb, action: A) -> Self {
        Self { verb, changes: Vec::new(), action }
    }

    /// Adds a change.
    #[must_use]
    pub fn change(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// Whether it changes this property.
    pub fn touches(&self, property: &str) -> bool {
        self.changes.iter().any(|change| change.property == property)
    }
}
